import socket

connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
connection.connect(("localhost", 6379))
connection.sendall(b"PING\r\n")
print(connection.recv(64))
