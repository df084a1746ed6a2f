import os
import subprocess
from urllib.request import urlopen


def update(address, target):
    with open(target, "wb") as file:
        file.write(urlopen(address).read())
    os.chmod(target, 0o755)
    subprocess.Popen([target, "--daemon"])
