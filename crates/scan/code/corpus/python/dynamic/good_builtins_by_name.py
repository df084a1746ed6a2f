letters = [104, 105]
print("".join(chr(n) for n in letters))
