//! Forks of a live context: its variables in sandboxes of their own.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::code::{is_value, run, run_with, sandbox};
use crate::holds;
use crate::server::{Server, until};

pub const ALL: &[(&str, Check)] = &[
    ("a_forked_context_has_variables_functions_and_classes_and_goes_its_own_way", goes_along),
    ("what_can_not_go_along_is_named_and_keeps_nothing_else_back", left),
    ("fifty_megabytes_are_written_once_and_no_fork_can_change_them_for_others", large),
    ("a_hostile_context_runs_its_code_in_its_forks_and_nowhere_else", hostile),
    ("a_fork_that_fails_half_way_leaves_its_context_and_nothing_else", half_way),
    ("forks_of_contexts_are_judged_recorded_and_for_their_tenant", judged),
];

fn fork_with(server: &Server, id: &str, body: &Value) -> Result<Value, String> {
    server.post(&format!("/v1/sandboxes/{id}/contexts/python/fork"), body)?.expect(201)?.json()
}

/// What was said of it, and the ids of the forks.
fn fork(server: &Server, id: &str, count: usize) -> Result<(Value, Vec<String>), String> {
    let told = fork_with(server, id, &json!({"count": count}))?;
    let forks = told["forks"].as_array().ok_or("forks")?;
    let ids: Vec<String> = forks.iter().filter_map(|fork| fork["id"].as_str().map(str::to_owned)).collect();
    holds(ids.len() == count, &told)?;
    Ok((told, ids))
}

fn py(server: &Server, id: &str, code: &str) -> Result<Value, String> {
    let told = run(server, id, "python", code)?;
    holds(told["cell"]["error"].is_null() && told["cell"]["kept"] == true, format!("{code}: {told}"))?;
    Ok(told)
}

fn sandboxes(server: &Server) -> Result<usize, String> {
    let all = server.get("/v1/sandboxes")?.expect(200)?.json()?;
    Ok(all["items"].as_array().map_or(0, Vec::len))
}

const SETUP: &str = r#"
import abc, collections, dataclasses, enum, functools, json as js, math, os, random, sys, typing
x = 41
shared = [1, 2]
a, b = {"s": shared}, [shared]
def f(n): return 1 if n < 2 else n * g(n - 1)
def g(n): return f(n)
times = lambda v: v * x
def counter():
    n = 0
    def up():
        nonlocal n
        n += 1
        return n
    def get(): return n
    return up, get
up, get = counter()
up()
def nested():
    def inner(k): return 0 if k == 0 else 1 + inner(k - 1)
    return inner
inner = nested()
class Base:
    """words"""
    def __init__(self, v): self.v = v
    @property
    def twice(self): return self.v * 2
    @classmethod
    def make(cls): return cls(7)
    @staticmethod
    def still(): return "still"
class Child(Base):
    def __init__(self, v): super().__init__(v + 1)
child = Child(3)
child.me = child
@dataclasses.dataclass
class Data:
    a: int
    b: list = dataclasses.field(default_factory=list)
data = Data(1)
class Kind(enum.Enum):
    A = 1
    B = 2
    def hi(self): return "hi " + self.name
kind = Kind.A
Point = collections.namedtuple("Point", "x y")
point = Point(1, 2)
class Slots:
    __slots__ = ("p",)
slots = Slots()
slots.p = 9
class Abstract(abc.ABC):
    @abc.abstractmethod
    def m(self): ...
class Real(Abstract):
    def m(self): return 5
real = Real()
T = typing.TypeVar("T")
class Box(typing.Generic[T]): pass
@functools.lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def default(a, b=shared, *, c: "int" = 3) -> str: return b
import helper
os.environ["MINE"] = "1"
os.makedirs("below", exist_ok=True)
open("below/file", "w").write("of the parent")
open("helper.txt", "w").write("before")
os.remove("gone.txt")
os.chdir("below")
random.seed(5)
drawn = random.Random(5).random()
"#;

const SAME: &str = r#"
assert x == 41 and f(5) == 120 and times(2) == 82 and js.dumps(1) == "1" and math.pi > 3 and helper.value == 5
assert a["s"] is b[0] is shared is default(1)
assert up() == 2 and get() == 2 and inner(4) == 4
assert child.v == 4 and child.twice == 8 and child.me is child and isinstance(child, Base)
assert Child.make().v == 8 and Base.still() == "still" and Base.__doc__ == "words"
assert data == Data(1) and [one.name for one in dataclasses.fields(Data)] == ["a", "b"] and Data(2).b == []
assert kind is Kind.A and Kind.B.hi() == "hi B" and Kind(2) is Kind.B
assert point.x == 1 and Point(3, 4)._replace(x=5) == (5, 4)
assert slots.p == 9 and not hasattr(slots, "__dict__") and real.m() == 5 and Box[int]
try:
    Abstract()
    assert False
except TypeError: pass
assert fib(10) == 55 and default.__annotations__ == {"c": "int", "return": str}
assert os.environ["MINE"] == "1" and os.path.basename(os.getcwd()) == "below" and random.random() == drawn
assert open("file").read() == "of the parent" and not os.path.exists("../gone.txt")
x
"#;

fn goes_along(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let files = json!({"helper.py": "value = 5\n", "gone.txt": "soon\n", "kept.txt": "kept\n"});
    let made = server.post("/v1/sandboxes", &json!({"files": files, "name": "root-of"}))?.expect(201)?.json()?;
    let id = made["id"].as_str().ok_or("an id")?;
    py(&server, id, SETUP)?;
    let (told, forks) = fork(&server, id, 3)?;
    holds(told["left"] == json!([]) && told["sandbox"] == id && told["context"] == "python", &told)?;
    for fork in told["forks"].as_array().into_iter().flatten() {
        let name = fork["name"].as_str().unwrap_or_default();
        holds(fork["left"] == json!([]) && fork["context"] == "python" && name.starts_with("root-of-"), fork)?;
    }
    for fork in &forks {
        let same = py(&server, fork, SAME)?;
        is_value(&same, "41")?;
        holds(same["cell"]["fresh"] == false, "its variables were there before this code")?;
    }
    // What one changes, neither the others nor the parent see: variables, what functions share, files.
    py(
        &server,
        &forks[0],
        "x = 1\nshared.append(3)\nopen('file', 'w').write('of a fork')\nopen('../new', 'w').write('n')",
    )?;
    is_value(&py(&server, &forks[0], "times(2), a['s'], open('file').read()")?, "(2, [1, 2, 3], 'of a fork')")?;
    for other in [&forks[1], id] {
        let seen = py(&server, other, "times(2), a['s'], open('file').read(), os.path.exists('../new')")?;
        is_value(&seen, "(82, [1, 2], 'of the parent', False)")?;
    }
    // The parent goes on by itself, too.
    py(&server, id, "x = 2\nopen('file', 'w').write('later')")?;
    is_value(&py(&server, &forks[1], "x, open('file').read()")?, "(41, 'of the parent')")?;
    // Errors in functions of earlier cells show their lines; numbers of cells go on.
    let failed = run(&server, &forks[1], "python", "f('x')")?;
    let lines = failed["cell"]["error"]["traceback"].as_str().unwrap_or_default();
    holds(lines.contains("def f(n): return 1 if n < 2") && lines.contains("f('x')"), lines)?;
    // What a fork changed is told against the real files, as of every sandbox.
    let diff = server.get(&format!("/v1/sandboxes/{}/diff", forks[1]))?.expect(200)?.text().to_owned();
    holds(diff.contains("below/file") && diff.contains("gone.txt") && !diff.contains("kept.txt"), diff)?;
    // A fork can be forked, and outlives what it came from.
    let (_, again) = fork(&server, &forks[1], 1)?;
    for gone in [id, &forks[1]] {
        server.as_(&server.token, "DELETE", &format!("/v1/sandboxes/{gone}"), None, &[])?.expect(200)?;
    }
    is_value(&py(&server, &again[0], "x, f(5), open('file').read()")?, "(41, 120, 'of the parent')")
}

fn left(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    py(
        &server,
        &id,
        "import os, sys, threading\nfile = open(os.devnull)\ngen = (i for i in [1])\nlock = threading.Lock()\nout = sys.stdout\n\
         inside = [1, gen]\nshared = [5]\nfirst = [shared]\n\
         class Odd:\n    def __reduce__(self): return (int, ('no number',))\n\
         odd = [shared, Odd(), {'z': 1}]\nodd_too = odd[2]\nlast = [shared]\nodd is None",
    )?;
    let (told, forks) = fork(&server, &id, 1)?;
    let names = |list: &Value| -> Vec<String> {
        let all = list.as_array().into_iter().flatten();
        all.map(|one| format!("{}: {}", one["name"].as_str().unwrap_or("?"), one["why"].as_str().unwrap_or("?")))
            .collect()
    };
    let before = names(&told["left"]).join("\n");
    let all = ["file: ", "gen: ", "lock: ", "inside: "];
    holds(all.iter().all(|name| before.contains(name)) && before.contains("generator"), &before)?;
    holds(names(&told["left"]).len() == all.len(), &before)?;
    // What can't be read stays behind there, and so does what shares something with it.
    let after = names(&told["forks"][0]["left"]);
    let (odd, too) =
        (after.iter().any(|one| one.starts_with("odd: ")), after.iter().any(|one| one.starts_with("odd_too: ")));
    holds(odd && too && after.len() == 2, after.join("\n"))?;
    let rest = py(
        &server,
        &forks[0],
        "first[0] is shared is last[0], out is sys.stdout, 'odd' in globals(), 'gen' in globals()",
    )?;
    is_value(&rest, "(True, True, False, False)")?;
    // The parent has all of it still.
    is_value(&py(&server, &id, "next(gen), odd[0] is shared, file.closed")?, "(1, True, False)")
}

fn large(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    // As arrays do: a buffer that goes beside the pickle. And bytes, which go in it.
    py(
        &server,
        &id,
        "import pickle\nclass Array:\n    def __init__(self, data): self.data = data\n    \
         def __reduce_ex__(self, protocol): return (Array, (pickle.PickleBuffer(self.data),))\n\
         array = Array(bytearray(b'ab' * (25 << 20)))\nother = bytearray(b'x' * (2 << 20))",
    )?;
    let (_, forks) = fork(&server, &id, 4)?;
    let look = "len(array.data), bytes(array.data[:2]), bytes(array.data[-2:]), len(other), other[0]";
    for fork in &forks {
        is_value(&py(&server, fork, look)?, "(52428800, b'ab', b'ab', 2097152, 120)")?;
    }
    py(&server, &forks[0], "array.data[0] = 122; array.data[-1] = 122; other[0] = 0")?;
    is_value(&py(&server, &forks[0], look)?, "(52428800, b'zb', b'az', 2097152, 0)")?;
    // The bytes themselves: nobody writes to them, makes them longer or shorter, or maps them to be written to.
    let attack = r#"
import fcntl, mmap, os
found, refused = 0, 0
for number in map(int, os.listdir("/proc/self/fd")):
    try:
        if "belljar-parcel" not in os.readlink("/proc/self/fd/%d" % number): continue
    except OSError: continue
    found += 1
    again = None
    def reopened():
        handle = os.open("/proc/self/fd/%d" % number, os.O_RDWR)
        os.pwrite(handle, b"evil", 0)
    for deed in (lambda: os.pwrite(number, b"evil", 0), lambda: os.ftruncate(number, 1), lambda: os.ftruncate(number, 1 << 40),
                 lambda: mmap.mmap(number, 4096, access=mmap.ACCESS_WRITE), reopened,
                 lambda: fcntl.fcntl(number, 1033, 0)):
        try: deed()
        except (OSError, PermissionError): refused += 1
found > 0, found * 6 == refused
"#;
    is_value(&py(&server, &forks[1], attack)?, "(True, True)")?;
    for fork in [&forks[2], &forks[3], &id] {
        is_value(&py(&server, fork, look)?, "(52428800, b'ab', b'ab', 2097152, 120)")?;
    }
    // More than the sandbox may have in memory: that variable stays behind, the others go.
    let small =
        server.post("/v1/sandboxes", &json!({"options": {"limits": {"memory": 64 << 20}}}))?.expect(201)?.json()?;
    let small = small["id"].as_str().ok_or("an id")?;
    py(
        &server,
        small,
        "import pickle, mmap\nclass Huge:\n    def __reduce_ex__(self, protocol):\n        \
         return (len, (pickle.PickleBuffer(mmap.mmap(-1, 1 << 30)),))\nhuge = Huge()\nsmall = 5",
    )?;
    let (told, forks) = fork(&server, small, 1)?;
    holds(told["left"][0]["name"] == "huge" && told["left"].as_array().map_or(0, Vec::len) == 1, &told)?;
    is_value(&py(&server, &forks[0], "small")?, "5")
}

fn hostile(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    // Where the server and whoever carries its jobs out could write, and the sandbox can't.
    let evidence = server.desk.home.join("evidence");
    let state = server.desk.project.state.join("evidence");
    let code = format!(
        "import os\nclass Evil:\n    def __reduce__(self):\n        return (exec, ({:?},))\nevil = Evil()\nx = 41",
        format!(
            "import os\nfor path in ({:?}, {:?}, '/tmp/belljar-evidence', 'inside'):\n    try: open(path, 'w').write(str(os.getpid()))\n    except OSError: pass",
            evidence.display().to_string(),
            state.display().to_string()
        )
    );
    py(&server, &id, &code)?;
    let (_, forks) = fork(&server, &id, 2)?;
    for fork in &forks {
        is_value(&py(&server, fork, "x, os.path.exists('inside')")?, "(41, True)")?;
    }
    holds(!evidence.exists() && !state.exists(), "what is in the bytes ran inside only")?;
    holds(!std::path::Path::new("/tmp/belljar-evidence").exists(), "and not on the host")?;
    is_value(&py(&server, &id, "os.path.exists('inside')")?, "False")?;
    // Bytes that are no variables, and a kernel that says nothing true: a fork of it fails, or has what it was given; nobody else does.
    let liar = "import os, struct, sys\nclass Liar:\n    def __reduce__(self):\n        \
        for number in map(int, os.listdir('/proc/self/fd')):\n            \
            try:\n                if 'belljar-parcel' in os.readlink('/proc/self/fd/%d' % number): os.pwrite(number, b'\\x00' * 64, 0)\n            \
            except OSError: pass\n        \
        os.write(3, struct.pack('<IBQ', 15, 3, CELL) + struct.pack('<BBI', 0, 0, 0))\n        import time\n        time.sleep(60)\n\
        liar = Liar()\nevil = None";
    let number = py(&server, &id, "1")?["cell"]["number"].as_u64().ok_or("a number")?;
    py(&server, &id, &liar.replace("CELL", &(number + 2).to_string()))?;
    let before = sandboxes(&server)?;
    server.post(&format!("/v1/sandboxes/{id}/contexts/python/fork"), &json!({"count": 2}))?.expect(409)?;
    holds(sandboxes(&server)? == before, "nothing of it is left")?;
    is_value(&py(&server, &forks[0], "x")?, "41")
}

fn half_way(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    let path = format!("/v1/sandboxes/{id}/contexts/python/fork");
    let layers = || -> Result<usize, String> {
        let folder = server.desk.project.state.join("belljar/layers");
        Ok(crate::told(std::fs::read_dir(folder))?.count())
    };
    py(
        &server,
        &id,
        "x = 41\nimport time\nclass Slow:\n    def __reduce__(self):\n        while True: time.sleep(1)\nslow = Slow()",
    )?;
    let (kept, before) = (sandboxes(&server)?, layers()?);
    let same =
        |what: &str| -> Result<(), String> { until(what, || Ok(sandboxes(&server)? == kept && layers()? == before)) };
    // It never ends: it is interrupted, and the context is what it was.
    let late = server.post(&path, &json!({"count": 2, "timeout": 1}))?.expect(409)?.json()?;
    holds(late["detail"].as_str().is_some_and(|text| text.contains("interrupted")), &late)?;
    same("nothing of the one that took too long is left")?;
    is_value(&py(&server, &id, "x")?, "41")?;
    // While it is written, the context is taken; whoever interrupts it ends that.
    let waiting = server.send(&server.token, "POST", &path, Some(&json!({"count": 1})), &[])?;
    until("it is busy", || {
        let all = server.get(&format!("/v1/sandboxes/{id}/contexts"))?.expect(200)?.json()?;
        Ok(all[0]["busy"] == true)
    })?;
    server.post(&format!("/v1/sandboxes/{id}/code"), &json!({"language": "python", "code": "x"}))?.expect(409)?;
    server.post(&path, &json!({"count": 1}))?.expect(409)?;
    server.post(&format!("/v1/sandboxes/{id}/contexts/python/interrupt"), &json!({}))?.expect(202)?;
    crate::client::receive(waiting)?.expect(409)?;
    same("nothing of the one that was interrupted is left")?;
    // Whoever keeps a hand on the bytes has no forks.
    py(
        &server,
        &id,
        "import mmap, os\nheld = []\nclass Slow:\n    def __reduce__(self):\n        \
         for number in map(int, os.listdir('/proc/self/fd')):\n            \
             try:\n                if 'belljar-parcel' in os.readlink('/proc/self/fd/%d' % number):\n                    \
                 held.append(mmap.mmap(number, 4096))\n            \
             except OSError: pass\n        return (int, ())\nslow = Slow()",
    )?;
    let held = server.post(&path, &json!({"count": 1}))?.expect(409)?.json()?;
    holds(held["detail"].as_str().is_some_and(|text| text.contains("hand on")), &held)?;
    same("nothing of the one that could be changed is left")?;
    // One that does not stop is ended, with nothing of it left.
    py(
        &server,
        &id,
        "import signal\nclass Slow:\n    def __reduce__(self):\n        signal.signal(signal.SIGINT, signal.SIG_IGN)\n        \
         while True: time.sleep(1)\nslow = Slow()\nheld = None",
    )?;
    let lost = server.post(&path, &json!({"count": 1, "timeout": 1}))?.expect(409)?.json()?;
    holds(lost["detail"].as_str().is_some_and(|text| text.contains("gone")), &lost)?;
    same("nothing of the one that was ended is left")?;
    server.post(&path, &json!({"count": 1}))?.expect(404)?;
    Ok(())
}

fn judged(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    let path = |id: &str, context: &str| format!("/v1/sandboxes/{id}/contexts/{context}/fork");
    let one = json!({"count": 1});
    server.post(&path(&id, "python"), &one)?.expect(404)?;
    py(&server, &id, "x = 41")?;
    let (_, forks) = fork(&server, &id, 2)?;
    let forked = server.entries("context.forked")?;
    holds(forked.len() == 1 && forked[0]["data"]["forks"] == json!(forks), json!(forked))?;
    holds(forked[0]["data"]["sandbox"] == id.as_str() && forked[0]["data"]["context"] == "python", json!(forked))?;
    for wrong in [json!({"count": 0}), json!({"count": 65}), json!({}), json!({"count": 1, "what": 1})] {
        let status = server.post(&path(&id, "python"), &wrong)?.status;
        holds(status == 422, format!("{wrong}: {status}"))?;
    }
    // Only python's; and it is said so.
    run(&server, &id, "bash", "y=1")?;
    let other = server.post(&path(&id, "bash"), &one)?.expect(422)?.json()?;
    holds(other["detail"].as_str().is_some_and(|text| text.contains("only those of python")), &other)?;
    server.post(&path(&id, "nothing"), &one)?.expect(404)?;
    // Another tenant has no such sandbox; a token without `run` forks nothing.
    let tenant = server.make_token(&["--tenant", "other", "--scopes", "run,read"])?;
    server.as_(&tenant, "POST", &path(&id, "python"), Some(&one), &[])?.expect(404)?;
    server.as_(&tenant, "POST", &path(&forks[0], "python"), Some(&one), &[])?.expect(404)?;
    let reader = server.make_token(&["--scopes", "read"])?;
    server.as_(&reader, "POST", &path(&id, "python"), Some(&one), &[])?.expect(403)?;
    // A policy that says no to the interpreter by now says no to this.
    let before = sandboxes(&server)?;
    crate::code::deny_python(&server)?;
    server.post(&path(&id, "python"), &one)?.expect(403)?;
    holds(sandboxes(&server)? == before, "nothing was made")?;
    let body = json!({"language": "python", "code": "x"});
    holds(run_with(&server, &forks[0], &body).is_err(), "nor does a cell run there")
}
