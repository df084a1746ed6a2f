import os

line = "alias ll='ls -l'"
with open(os.path.join("docs", "example.bashrc.txt"), "a") as file:
    file.write(line)
