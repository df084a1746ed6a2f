class Shape:
    width = 3

name = "".join(["wi", "dth"])
print(getattr(Shape(), name))
