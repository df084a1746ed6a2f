import subprocess

subprocess.run("rm -rf ./dist", shell=True)
