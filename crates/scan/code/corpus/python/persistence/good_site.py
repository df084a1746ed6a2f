import site, os

target = os.path.join("build", "paths.txt")
with open(target, "w") as file:
    file.write("\n".join(site.getsitepackages()))
