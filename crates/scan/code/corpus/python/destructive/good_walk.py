import os

for root, folders, files in os.walk("build"):
    for name in files:
        if name.endswith(".pyc"):
            os.remove(os.path.join(root, name))
