class Base:
    pass

class Child(Base):
    pass

print(Child.__mro__)
