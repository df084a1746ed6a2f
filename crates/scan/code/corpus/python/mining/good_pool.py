import subprocess

subprocess.Popen(["./worker", "--pool-size", "4", "--queue", "jobs"])
