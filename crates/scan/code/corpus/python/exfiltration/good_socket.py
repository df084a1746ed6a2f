import base64, socket

with open("picture.png", "rb") as file:
    picture = base64.b64encode(file.read())
connection = socket.create_connection(("printer.example", 9100))
connection.sendall(b"DATA " + picture)
