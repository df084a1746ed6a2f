# Runs a command in a sandbox that stood before it was asked for: BELLJAR WORKSPACE RESULT FLAGS… -- COMMAND…
import http.client, json, os, shutil, signal, socket, subprocess, sys, tempfile, time

belljar, workspace, result, *rest = sys.argv[1:]
at = rest.index("--")
flags, command = rest[:at], rest[at + 1:]
place = tempfile.mkdtemp(dir="/var/tmp")


class Door(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(place + "/door")


def size(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def seconds(text):
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text.rstrip("s"))


options = {"write": [workspace], "read": [], "hide": [], "environment": {}, "limits": {}}
words = iter(flags)
for flag in words:
    if flag == "--json":
        continue
    value = next(words)
    if flag in ("--read", "--write", "--hide"):
        options[flag[2:]].append(os.path.join(workspace, value))
    elif flag == "--env":
        name, _, text = value.partition("=")
        options["environment"][name] = text
    elif flag in ("--memory", "--disk", "--output"):
        options["limits"][flag[2:]] = size(value)
    elif flag in ("--pids", "--files"):
        options["limits"][{"--pids": "processes", "--files": "open_files"}[flag]] = int(value)
    elif flag == "--cpus":
        options["limits"]["cpus"] = float(value)
    elif flag in ("--timeout", "--cpu-time"):
        options["limits"][flag[2:].replace("-", "_")] = seconds(value)
    else:
        sys.exit("no such option in the API: " + flag)

server = subprocess.Popen(
    [belljar, "serve", "--listen", "unix:" + place + "/door", "--state", place + "/state"],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
    start_new_session=True,
)


def ask(method, path, body=None):
    door = Door("belljar")
    headers = {"Authorization": "Bearer " + open(place + "/state/token").read().strip(), "Content-Type": "application/json"}
    door.request(method, path, json.dumps(body) if body else None, headers)
    answer = door.getresponse()
    return answer.status, answer.read().decode()


def until(is_so):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if is_so():
            return
        time.sleep(0.01)
    sys.exit("nothing stands ready after a minute")


def run():
    for line in server.stderr:
        if b"listening at" in line:
            break
    else:
        sys.exit("the service did not begin")
    body = {"language": "python", "code": "pass", "options": options}
    status, text = ask("POST", "/v1/run", body)
    if status != 200:
        # What is refused at the door is refused here.
        open(result, "w").write(json.dumps({"version": 1, "outcome": "refused", "error": json.loads(text)}))
        return 125
    until(lambda: '_ready 0\n' not in ask("GET", "/v1/metrics")[1])
    # As a command would be: with the same words and the same folder, in the place of the interpreter that stood there.
    body["code"] = "import os\nos.chdir(%r)\nos.execv(%r, %r)\n" % (workspace, command[0], command)
    status, text = ask("POST", "/v1/run", body)
    told = json.loads(text)
    if status != 200:
        open(result, "w").write(json.dumps({"version": 1, "outcome": "not-set-up", "error": told}))
        sys.stderr.write(text)
        return 125
    told = told["result"]
    if told.get("backend_because") != "it stood ready":
        sys.exit("it was not run where something stood ready: " + text)
    # What the program said is no part of what a result file has.
    said, complained = told.pop("stdout"), told.pop("stderr")
    open(result, "w").write(json.dumps(told))
    # Where a result is asked for, what the program says is no part of it.
    sys.stdout.write(json.dumps(told) if "--json" in flags else said.get("text", ""))
    sys.stderr.write(complained.get("text", ""))
    return told["code"]


try:
    code = run()
finally:
    server.send_signal(signal.SIGTERM)
    server.wait()
    shutil.rmtree(place, ignore_errors=True)
sys.exit(code)
