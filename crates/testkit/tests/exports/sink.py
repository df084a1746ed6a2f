"""A place that takes posts, as a real server does. Usage: sink.py FOLDER [CERTIFICATE KEY [raw]]; prints its port.

Each post is a line in FOLDER/posts: its path, headers and body. `raw`: one stream, which becomes FOLDER/raw."""

import http.server
import json
import os
import socket
import ssl
import sys

folder = sys.argv[1]


class Sink(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        post = {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body}
        with open(folder + "/posts", "a", encoding="utf-8") as file:
            file.write(json.dumps(post) + "\n")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def raw():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        with context.wrap_socket(listener.accept()[0], server_side=True) as stream:
            with open(folder + "/raw.new", "wb") as file:
                while chunk := stream.recv(65536):
                    file.write(chunk)
    os.rename(folder + "/raw.new", folder + "/raw")


if sys.argv[4:] == ["raw"]:
    sys.exit(raw())
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
