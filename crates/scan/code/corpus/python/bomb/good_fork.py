import os

for _ in range(os.cpu_count() or 1):
    if os.fork() == 0:
        work()
        os._exit(0)
