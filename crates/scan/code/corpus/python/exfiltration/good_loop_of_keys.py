import base64
import os
import subprocess


def run(command, header):
    environment = dict(os.environ)
    environment["REMOTE_USER"] = base64.b64decode(header).decode().split(":")[0]
    process = subprocess.Popen(["cgi-run", "page"], stdout=subprocess.PIPE, env=environment)
    out, _ = process.communicate()
    process.stdout.close()
    return out
