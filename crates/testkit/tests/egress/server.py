"""Servers of the outside world, on this machine's loopback. Usage: server.py FOLDER; prints its ports as JSON.

FOLDER has server.pem and server.key. Every request that arrives is a line in FOLDER/requests.
/echo tells what arrived, /bytes/N gives N bytes, /zeros/N as many zeros, /swallow counts a chunked body, /redirect?URL
leads there, /files/ is FOLDER/files, /git/ is git's own backend over FOLDER/git, /drip sends a line and waits for FOLDER/go
before the next, /last tells what headers the request before had, /host/ tells which host was asked for, /twisted/KIND/ says
`evil` the first time, in such a way, and `good` from then on. The raw one speaks first, then repeats."""

import http.server
import json
import os
import socketserver
import ssl
import subprocess
import sys
import threading
import time

folder = sys.argv[1]
lock = threading.Lock()


def note(what):
    with lock, open(folder + "/requests", "a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    last = {}
    twisted = set()
    timeout = 60

    def body(self):
        if self.headers.get("transfer-encoding") == "chunked":
            parts = b""
            while size := int(self.rfile.readline(), 16):
                parts += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return parts
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def swallow(self):
        total = 0
        while size := int(self.rfile.readline(), 16):
            total += size
            while size:
                size -= len(self.rfile.read(min(size, 1 << 18)))
            self.rfile.readline()
        self.rfile.readline()
        return total

    def answer(self, code, body, headers=()):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def serve(self):
        body = self.swallow() if self.path == "/swallow" else self.body()
        headers = {name.lower(): value for name, value in self.headers.items()}
        note({"method": self.command, "path": self.path, "headers": headers, "body": body if isinstance(body, int) else len(body)})
        path, _, query = self.path.partition("?")
        before, Server.last = Server.last, headers
        if path == "/echo":
            self.answer(200, json.dumps({"method": self.command, "headers": headers, "path": self.path}).encode())
        elif path.startswith("/host/"):
            self.answer(200, headers["host"].encode())
        elif path.startswith("/twisted/"):
            self.twist(path)
        elif path == "/last":
            self.answer(200, json.dumps(before).encode())
        elif path.startswith("/bytes/"):
            self.answer(200, b"x" * int(path[7:]))
        elif path.startswith("/zeros/"):
            self.send_response(200)
            self.send_header("content-length", path[7:])
            self.end_headers()
            left, piece = int(path[7:]), bytes(1 << 18)
            while left:
                left -= self.wfile.write(piece[:left])
        elif path == "/swallow":
            self.answer(200, b"")
        elif path == "/redirect":
            self.answer(302, b"", [("location", query)])
        elif path == "/drip":
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(b"data: first\n\n")
            self.wfile.flush()
            for _ in range(1000):
                if os.path.exists(folder + "/go"):
                    break
                time.sleep(0.01)
            self.wfile.write(b"data: second\n\n")
            self.close_connection = True
        elif path.startswith("/files/") and ".." not in path:
            target = folder + "/files/" + path[7:]
            if os.path.isdir(target):
                target += "/index.html"
            try:
                with open(target, "rb") as file:
                    kind = "text/html" if target.endswith(".html") else "application/octet-stream"
                    self.answer(200, file.read(), [("content-type", kind)])
            except OSError:
                self.answer(404, b"")
        elif path.startswith("/git/"):
            self.git(path[4:], query, headers, body)
        else:
            self.answer(404, b"")

    def twist(self, path):
        with lock:
            first = path not in Server.twisted
            Server.twisted.add(path)
        kind = path.split("/")[2] if first else "good"
        more = {
            "cookie": [("set-cookie", "who=evil")], "private": [("cache-control", "private")], "varies": [("vary", "user-agent")],
            "stored": [("cache-control", "no-store")], "part": [("content-range", "bytes 0-3/9")],
            "redirect": [("location", "/host/evil.whl")], "packed": [("content-encoding", "x-evil")],
        }
        code = {"redirect": 302, "part": 206, "lost": 404}.get(kind, 200)
        if kind == "short":
            self.send_response(200)
            self.send_header("content-length", "9")
            self.end_headers()
            self.wfile.write(b"evil")
            self.close_connection = True
        elif kind == "long":
            self.send_response(200)
            self.send_header("content-length", "4")
            self.end_headers()
            self.wfile.write(b"good" + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")
        else:
            self.answer(code, b"evil" if first else b"good", more.get(kind, []))

    def git(self, path, query, headers, body):
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": folder + "/git", "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)), "REMOTE_USER": "test", "REMOTE_ADDR": "127.0.0.1",
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }
        for name in ["git-protocol", "content-encoding"]:
            if name in headers:
                environment["HTTP_" + name.upper().replace("-", "_")] = headers[name]
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, stdout=subprocess.PIPE, check=False)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        fields = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n")]
        code = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        self.answer(code, rest, [field for field in fields if field[0] not in ("Status", "Content-Length")])

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = serve

    def log_message(self, *_):
        pass


class Raw(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"SSH-2.0-outside\r\n")
        while data := self.request.recv(65536):
            note({"raw": len(data)})
            self.request.sendall(data)


class Threads(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 1024


def start(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


http.server.ThreadingHTTPServer.request_queue_size = 1024
plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
secure = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + "/server.pem", folder + "/server.key")
secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
raw = Threads(("127.0.0.1", 0), Raw)
print(json.dumps({"http": start(plain), "https": start(secure), "raw": start(raw)}), flush=True)
sys.stdin.read()
