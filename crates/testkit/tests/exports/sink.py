"""A place that takes posts, as a real server does. Usage: sink.py FOLDER [CERTIFICATE KEY]; prints its port.

Each post is a line in FOLDER/posts: its path, headers and body."""

import http.server
import json
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


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
