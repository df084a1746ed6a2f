"""A server inside a sandbox, some of whose answers mean no good. Says on which port it listens when it does."""

import base64
import hashlib
import json
import socketserver
import sys
from http.server import BaseHTTPRequestHandler


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            read = b""
            while size := int(self.rfile.readline(), 16):
                read += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return read
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, body, status=200, more=()):
        self.send_response(status)
        for name, value in [("Content-Length", str(len(body))), *more]:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def raw(self, data):
        self.wfile.write(data)
        self.close_connection = True

    def anything(self):
        body, path = self.body(), self.path.split("?")[0]
        if path == "/large":
            self.answer(b"y" * 20_000_000)
        elif path == "/stream":
            # Each part is sent before the next is asked for, which only who has read it does.
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (b"one", b"two"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
                if part == b"one":
                    print("said one", flush=True)
                    sys.stdin.readline()
            self.wfile.write(b"0\r\n\r\n")
        elif path == "/cookies":
            more = [("Set-Cookie", "own=1; Domain=localhost; Path=/"), ("Set-Cookie", "belljar_port=bp_mine; Path=/")]
            more += [("Access-Control-Allow-Origin", "*"), ("Strict-Transport-Security", "max-age=9"), ("Connection", "X-Hop"), ("X-Hop", "1")]
            self.answer(b"ok", more=more)
        elif path == "/elsewhere":
            self.answer(b"", 302, [("Location", "/here")])
        elif path == "/garbage":
            self.raw(b"\0\1\2 no answer \r\n\r\n")
        elif path == "/unasked":
            self.raw(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nsmuggled")
        elif path == "/endless":
            try:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                while True:
                    self.wfile.write(b"X-A: " + b"b" * 4000 + b"\r\n")
            except OSError:
                self.close_connection = True
        elif path == "/two":
            # One answer too many for whoever comes next on the same connection.
            self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled")
        elif self.headers.get("Upgrade", "").lower() == "websocket":
            self.echo()
        else:
            seen = {"method": self.command, "path": self.path, "headers": list(self.headers.items()), "length": len(body),
                    "sha256": hashlib.sha256(body).hexdigest()}
            self.answer(json.dumps(seen).encode())

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = anything

    def echo(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_response(101)
        for name, value in [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Accept", accept)]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        while True:
            head = self.rfile.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                return
            length = head[1] & 127
            assert length < 126
            mask, data = self.rfile.read(4), self.rfile.read(length)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
            if head[0] & 15 in (1, 2):
                self.wfile.write(bytes([head[0], len(data)]) + data)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


with Server(("127.0.0.1", int(sys.argv[1])), Handler) as server:
    print("listens", flush=True)
    server.serve_forever()
