"""A visitor over WebSocket of a server inside, by the `websockets` library. Says what is not so, and ends with 1 then."""

import json
import socket
import sys

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

told = json.loads(sys.argv[1])


def visit(**how):
    sock = socket.create_connection(("127.0.0.1", told["port"]))
    return connect(f"ws://{told['host']}/socket", sock=sock, proxy=None, **how).__enter__()


token = {"Belljar-Port-Token": told["token"]}
cookie = {"Cookie": f"belljar_port={told['token']}"}
own = f"http://{told['host']}"
for how in (dict(additional_headers=token), dict(additional_headers=cookie, origin=own), dict(additional_headers=token, origin="http://x.example")):
    ws = visit(compression=None, **how)
    for said in ("hello", b"\x00\xff"):
        ws.send(said)
        assert ws.recv(timeout=90) == said
    ws.close()
for how, status in [(dict(), 401), (dict(additional_headers=cookie, origin="http://evil.example"), 403), (dict(additional_headers=cookie, origin="null"), 403)]:
    try:
        visit(**how)
        raise AssertionError(how)
    except InvalidStatus as refused:
        assert refused.response.status_code == status, (how, refused.response)
# One that stays until somebody closes the port.
stays = visit(additional_headers=token, compression=None)
stays.send("here")
assert stays.recv(timeout=90) == "here"
print("stays", flush=True)
try:
    stays.recv(timeout=90)
    raise AssertionError("it still stands")
except ConnectionClosed:
    print("cut", flush=True)
