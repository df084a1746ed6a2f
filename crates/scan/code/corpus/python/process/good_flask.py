from flask import Flask, request
import subprocess

app = Flask(__name__)

@app.route("/version")
def version():
    return subprocess.check_output(["git", "describe", "--tags"])
