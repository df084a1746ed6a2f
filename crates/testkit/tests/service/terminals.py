"""A person at terminals of the service, by the `websockets` library. Says what is not so, and ends with 1 then."""

import json
import socket
import sys

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

PATIENCE = 90
told = json.loads(sys.argv[2])
PORT, TOKEN, PATH = told["port"], told["token"], told["path"]


def attach(query="", token=None, narrow=False, **how):
    how.setdefault("additional_headers", {"Authorization": f"Bearer {token or TOKEN}"})
    if narrow:
        how["sock"] = socket.socket()
        how["sock"].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        how["sock"].connect(("127.0.0.1", PORT))
    return Viewer(connect(f"ws://127.0.0.1:{PORT}{PATH}/attach{query}", proxy=None, compression=None, **how).__enter__())


class Viewer:
    def __init__(self, ws):
        self.ws, self.shown, self.said = ws, b"", []
        self.attached = self.word()["attached"]

    def word(self):
        message = self.ws.recv(timeout=PATIENCE)
        assert isinstance(message, str), message
        return json.loads(message)

    def one(self):
        message = self.ws.recv(timeout=PATIENCE)
        if isinstance(message, str):
            self.said.append(json.loads(message))
        else:
            self.shown += message

    def until(self, text):
        while text not in self.shown:
            self.one()
        before, self.shown = self.shown.split(text, 1)
        return before

    def types(self, line):
        self.ws.send(line.encode() + b"\n")

    def says(self, what):
        self.ws.send(json.dumps(what))

    def end(self):
        try:
            while True:
                self.one()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


def a_shell():
    one = attach()
    assert one.attached["columns"] == 80 and one.attached["status"] == "running", one.attached
    # What is typed is shown, too: so what is looked for is written in another way than it is said.
    one.types("kept=5; stty size; echo $((6 * 7))-; test -t 0 && test -t 2 && echo o''n > /dev/tty")
    before = one.until(b"42-")
    assert b"24 80" in before, before
    one.until(b"on\r\n")
    one.says({"resize": {"columns": 100, "rows": 40}})
    one.types("while test \"$(stty size)\" != '40 100'; do sleep 0.05; done; echo lar''ger")
    one.until(b"larger")
    # Keys that the terminal itself understands.
    # By one that has the terminal for itself when it says so: until then the shell gives it away.
    one.types("sh -c 'echo be\"\"gan; exec sleep 1000'")
    one.until(b"began\r\n")
    one.ws.send(b"\x03")
    one.types("echo inter''rupted $?")
    one.until(b"interrupted 130")
    # Who else looks sees the same; who only looks can't type.
    other, only = attach(), attach("?view=true", told["reads"])
    for viewer in (other, only):
        viewer.until(b"interrupted 130")
        assert viewer.attached["columns"] == 100
    other.types("echo from-the-oth''er")
    for viewer in (one, other, only):
        viewer.until(b"from-the-other")
    only.types("echo no-bod''y")
    assert only.end() == 1008, only.said
    assert b"no-body" not in only.shown
    # Gone and back: it went on, and shows what it had shown.
    one.ws.close()
    other.ws.close()
    back = attach()
    back.until(b"42-")
    back.until(b"from-the-other")
    back.types("echo $((kept + 1))-kept")
    back.until(b"6-kept")
    back.types("exit 7")
    assert back.end() == 1000
    assert back.said[-1]["exit"]["code"] == 7, back.said
    # Over, it can be looked at all the same.
    late = attach()
    assert late.attached["status"] == "done", late.attached
    assert late.end() == 1000 and late.said[-1]["exit"]["code"] == 7 and b"6-kept" in late.shown


def from_a_page():
    own = f"http://127.0.0.1:{PORT}"
    protocols = ["belljar.terminal", f"belljar.bearer.{TOKEN}"]
    page = attach(subprotocols=protocols, origin=own, additional_headers={})
    assert page.ws.subprotocol == "belljar.terminal", page.ws.subprotocol
    assert TOKEN not in str(page.ws.response.headers)
    page.types("echo $((6 * 7))-")
    page.until(b"42-")
    for query, how, status in [
        ("", dict(subprotocols=protocols, origin="http://evil.example"), 403),
        ("", dict(subprotocols=protocols, origin="null"), 403),
        ("", dict(subprotocols=["belljar.terminal"], origin=own), 401),
        ("", dict(subprotocols=["belljar.terminal", "belljar.bearer.bj_no"], origin=own), 401),
        ("", dict(), 401),
        (f"?token={TOKEN}", dict(), 401),
        (f"?access_token={TOKEN}", dict(origin=own), 401),
        ("", dict(additional_headers={"Authorization": f"Bearer {told['reads']}"}), 403),
        ("", dict(additional_headers={"Authorization": f"Bearer {told['other']}"}), 404),
        ("?view=true", dict(additional_headers={"Authorization": f"Bearer {told['other']}"}), 404),
        ("?view=maybe", dict(additional_headers={"Authorization": f"Bearer {TOKEN}"}), 422),
    ]:
        how.setdefault("additional_headers", {})
        try:
            attach(query, **how)
            raise AssertionError(f"let in: {query} {how}")
        except InvalidStatus as refused:
            assert refused.response.status_code == status, (query, how, refused.response)
    # What is no word of ours, or has no end, ends it for who says it and for nobody else.
    for what, code in [("{}", 1008), ('{"signal":"KILL"}', 1008), ('{"resize":{"columns":0,"rows":1}}', 1008), (b"x" * 70000, 1009)]:
        wrong = attach()
        wrong.ws.send(what)
        ended = wrong.end()
        assert ended in (code, None) and not (ended is None and code != 1009), (what, ended)
    page.types("echo $((6 * 7))-again")
    page.until(b"42-again")


def told_without_secrets():
    one = attach()
    # The positive control: what colours is shown, and so is what looks like nothing.
    one.types(r"printf '\033[31mre''d\033[0m AK''XA''QYLPMN5HHHFPZAM2\n'")
    one.until(b"\x1b[31mred")
    one.until(b"AKXAQYLPMN5HHHFPZAM2")
    one.types(r"printf 'be''fore AKI''AQYLPMN5HHHFPZAM2 af''ter\n'")
    one.until(b"before ")
    told = one.until(b" after")
    assert b"AKIA" not in told, told
    # A command to whoever looks: put this into your clipboard.
    one.types(r"printf 'ha''ve\033]52;c;aGFjaw==\007do''ne\n'")
    one.until(b"have")
    told = one.until(b"done")
    assert told == b"", told


def slow():
    sleeps, looks = attach(narrow=True, max_queue=1, ping_interval=None), attach()
    looks.types("head -c 12000000 /dev/zero | tr '\\0' x; echo al''l")
    count = 0
    while b"all\r" not in looks.shown:
        looks.shown = looks.shown[-3:]
        before = len(looks.shown)
        looks.one()
        count += len(looks.shown) - before
    assert count > 12000000 or looks.said, (count, looks.said)
    # The one who did not look has not kept the other waiting, and is told how much was missed.
    sleeps.types("exit 3")
    assert sleeps.end() == 1000
    missed = sum(word.get("missed", 0) for word in sleeps.said)
    assert missed > 0, sleeps.said
    assert sleeps.said[-1]["exit"]["code"] == 3


def signalled():
    one = attach()
    one.until(b"ready")
    one.says({"signal": "USR1"})
    one.until(b"heard")
    assert one.end() == 1000 and one.said[-1]["exit"]["code"] == 9, one.said


def until_it_is_over():
    """Attached until the other side ends it; prints how."""
    one = attach()
    print("attached", flush=True)
    print(one.end(), json.dumps(one.said), flush=True)


globals()[sys.argv[1]]()
