def calculate():
    while True:
        expression = input("> ")
        print(eval(expression))
