import ast

def calculate():
    while True:
        expression = input("> ")
        print(ast.literal_eval(expression))
