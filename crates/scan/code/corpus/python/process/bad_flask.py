from flask import Flask, request
import subprocess

app = Flask(__name__)

@app.route("/lookup")
def lookup():
    domain = request.args.get("domain")
    return subprocess.check_output(f"nslookup {domain}", shell=True)
