//! Requests that every backend can be asked: for a shell and small tools, and for languages.

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A shell and the usual tools, as a busybox has them.
    System,
    /// Python and JavaScript.
    Language,
}

pub struct Case {
    pub name: String,
    pub flags: Vec<String>,
    pub words: Vec<String>,
    pub input: String,
}

/// What is in the project before.
pub const FILES: [(&str, &str); 5] = [
    ("old.txt", "one\ntwo\nthree\n"),
    ("gone.txt", "gone\n"),
    ("folder/inner.txt", "inner\n"),
    ("script.sh", "echo script\n"),
    ("script.py", "print(__name__)\n"),
];

pub fn all(family: Family) -> Vec<Case> {
    let mut cases = Cases::default();
    match family {
        Family::System => system(&mut cases),
        Family::Language => language(&mut cases),
    }
    cases.0
}

#[derive(Default)]
struct Cases(Vec<Case>);

impl Cases {
    fn add(&mut self, name: impl Into<String>, flags: &[&str], words: &[&str], input: &str) {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        self.0.push(Case { name: name.into(), flags: owned(flags), words: owned(words), input: input.to_owned() });
    }

    fn shell(&mut self, name: impl Into<String>, flags: &[&str], script: &str) {
        self.add(name, flags, &["sh", "-c", script], "");
    }
}

fn system(cases: &mut Cases) {
    for code in (0..=20).chain([42, 63, 64, 99, 100, 113, 126, 127, 128, 200, 255]) {
        cases.shell(format!("exit {code}"), &[], &format!("exit {code}"));
    }
    for signal in ["TERM", "KILL", "INT", "HUP", "ABRT", "USR1", "USR2", "SEGV", "ALRM"] {
        cases.shell(format!("signal {signal}"), &[], &format!("kill -{signal} $$"));
        cases.shell(
            format!("signal {signal} caught"),
            &[],
            &format!("trap 'echo caught' {signal}; sh -c 'kill -{signal} '$$ 2>/dev/null; exit 3"),
        );
    }
    let words = [
        "plain", "two words", "", "'single'", "\"double\"", "$HOME", "`id`", "back\\slash", "*", "~", "--flag", "-",
        "tab\there", "new\nline", "ünïcödé", "🫙", ";", "a=b", "%s", "!",
    ];
    for word in words {
        cases.add(format!("argument {word:?}"), &[], &["sh", "-c", "printf '[%s]' \"$@\"", "sh", word, "last"], "");
    }
    for (name, input) in [("nothing", ""), ("a line", "line\n"), ("no end", "no end"), ("many", &"many\n".repeat(5000))]
    {
        cases.add(format!("input {name}"), &[], &["cat"], input);
        cases.add(format!("input {name} counted"), &[], &["wc", "-c"], input);
        cases.add(format!("input {name} unread"), &[], &["true"], input);
    }
    for number in 1..=40 {
        cases.shell(format!("arithmetic {number}"), &[], &format!("echo $(({number} * 37 % 101 - {number}))"));
    }
    for (name, script) in [
        ("sort", "printf 'c\\na\\nb\\n' | sort"),
        ("sort numbers", "printf '10\\n9\\n1\\n' | sort -n"),
        ("unique", "printf 'a\\na\\nb\\n' | uniq"),
        ("grep", "grep -n two old.txt"),
        ("grep nothing", "grep nothing old.txt"),
        ("head", "head -n 1 old.txt"),
        ("tail", "tail -n 1 old.txt"),
        ("cut", "echo a:b:c | cut -d: -f2"),
        ("tr", "echo abc | tr a-c A-C"),
        ("sed", "sed s/two/2/ old.txt"),
        ("awk", "awk '{ n += length($0) } END { print n }' old.txt"),
        ("find", "find . -type f | sort"),
        ("xargs", "echo a b c | xargs -n 1 echo"),
        ("base64", "echo hello | base64"),
        ("sha256", "echo hello | sha256sum | cut -c1-16"),
        ("basename", "basename /a/b/c.txt .txt"),
        ("expr", "expr 6 \\* 7"),
        ("seq", "seq 3"),
        ("tee", "echo x | tee /tmp/t && cat /tmp/t"),
        ("here document", "cat <<X\nhello\nX"),
        ("subshell", "(cd folder && ls)"),
        ("background", "sleep 0.05 & wait $!; echo $?"),
        ("pipe status", "false | true; echo $?"),
        ("function", "f() { echo $1; }; f x"),
        ("case", "case abc in a*) echo yes;; esac"),
        ("loop", "for i in 1 2 3; do printf $i; done"),
        ("errors only", "echo hidden >&2"),
        ("large output", "seq 20000 | tail -n 1"),
        ("set -e", "set -e; false; echo never"),
        ("unset variable", "set -u; echo $NOT_SET"),
        ("exec", "exec echo replaced"),
        ("umask", "umask 077; touch closed; ls -l closed | cut -c1-10"),
    ] {
        cases.shell(format!("tool {name}"), &[], script);
    }
    for (name, script) in [
        ("added", "echo new > new.txt"),
        ("changed", "echo four >> old.txt"),
        ("deleted", "rm gone.txt"),
        ("renamed", "mv gone.txt moved.txt"),
        ("folder added", "mkdir -p a/b/c && echo x > a/b/c/d"),
        ("folder deleted", "rm -r folder"),
        ("link", "ln -s old.txt link.txt && cat link.txt"),
        ("hard link", "ln old.txt twin.txt && cat twin.txt"),
        ("mode", "chmod 600 old.txt"),
        ("executable", "chmod 755 script.sh && ./script.sh"),
        ("emptied", ": > old.txt"),
        ("read", "cat old.txt folder/inner.txt"),
        ("read and changed", "cat old.txt > copy.txt && cat copy.txt"),
        ("file for a folder", "rm -r folder && echo file > folder"),
        ("folder for a file", "rm old.txt && mkdir old.txt && echo x > old.txt/x"),
        ("nothing", "cat old.txt > /dev/null"),
        ("touched", "touch new-and-empty"),
        ("in the middle", "printf X | dd of=old.txt bs=1 seek=2 conv=notrunc 2>/dev/null; cat old.txt"),
    ] {
        cases.shell(format!("cow {name}"), &[], script);
        cases.shell(format!("direct {name}"), &["--workspace-mode", "direct"], script);
        cases.shell(
            format!("read-only {name}"),
            &["--workspace-mode", "readonly"],
            &format!("({script}) 2>/dev/null && echo worked || echo refused"),
        );
    }
    for (name, flags, script) in [
        ("hidden file", &["--hide", "gone.txt"][..], "cat gone.txt 2>/dev/null; echo end"),
        ("hidden folder", &["--hide", "folder"], "ls -A folder; echo end"),
        ("given variable", &["--env", "A=b c"], "echo \"$A\""),
        ("variable from around", &["--env", "GIVEN"], "echo $GIVEN"),
        ("no variable from around", &[], "echo [$GIVEN]"),
        ("working folder", &["--cwd", "folder"], "pwd; ls"),
        ("where we are", &[], "pwd"),
        ("who we are", &[], "test $(id -u) != 0 && echo ordinary"),
        ("home", &[], "echo x > $HOME/x && cat $HOME/x"),
        ("temporary", &[], "echo x > /tmp/x && cat /tmp/x"),
        ("shared memory", &[], "echo x > /dev/shm/x && cat /dev/shm/x"),
        ("null", &[], "echo x > /dev/null && echo fine"),
        ("random", &[], "head -c 4 /dev/urandom | wc -c"),
        ("system is read-only", &[], "touch /usr/x 2>/dev/null || echo refused"),
        ("root is read-only", &[], "touch /x 2>/dev/null || echo refused"),
        ("no network", &[], "test -z \"$(cat /proc/net/route | tail -n +2)\" && echo none"),
        ("no powers", &[], "grep CapEff /proc/self/status"),
        ("no new powers", &[], "grep NoNewPrivs /proc/self/status"),
        ("first process is not seen", &[], "test $$ -lt 100 && echo own"),
        ("host name", &[], "hostname | grep -c $(cat /etc/hostname)"),
        ("time limit", &["--timeout", "400ms"], "sleep 30"),
        ("time limit and children", &["--timeout", "400ms"], "sleep 30 & sleep 30 & wait"),
        ("output limit", &["--output", "100"], "seq 1000"),
        ("exit of a killed child", &[], "sh -c 'kill -KILL $$'; echo $?"),
    ] {
        cases.shell(name, flags, script);
    }
    let refused: [(&str, &[&str]); 10] = [
        ("refused: the whole root", &["--read", "/"]),
        ("refused: writing to the system", &["--write", "/usr"]),
        ("refused: processes of the host", &["--read", "/proc"]),
        ("refused: devices of the host", &["--read", "/dev"]),
        ("refused: what is not there", &["--read", "/nowhere"]),
        ("refused: hiding what is not there", &["--hide", "nowhere"]),
        ("refused: a folder that is not there", &["--cwd", "nowhere"]),
        ("refused: a wall that nobody has", &["--accept-gap", "nothing"]),
        ("refused: no time", &["--timeout", "0"]),
        ("refused: no memory", &["--memory", "0"]),
    ];
    for (name, flags) in refused {
        cases.shell(name, flags, "true");
    }
    cases.add("not found", &[], &["no-such-program-anywhere"], "");
    cases.add("not found by path", &[], &["./no-such-program"], "");
    cases.add("not executable", &[], &["./old.txt"], "");
    cases.add("a folder is no program", &[], &["./folder"], "");
}

fn language(cases: &mut Cases) {
    for code in [0, 1, 2, 7, 42, 255] {
        cases.add(format!("python exit {code}"), &[], &["python3", "-c", &format!("import sys; sys.exit({code})")], "");
        cases.add(format!("javascript exit {code}"), &[], &["node", "-e", &format!("process.exit({code})")], "");
    }
    for (name, code) in [
        ("arithmetic", "print(2 ** 100)"),
        ("floats", "print(0.1 + 0.2)"),
        ("strings", "print('ünïcödé'.upper(), len('🫙'))"),
        ("slices", "print([1, 2, 3, 4][::-2])"),
        ("comprehension", "print({k: v for k, v in zip('abc', range(3))})"),
        ("format", "print(f'{3.14159:.2f} {255:#x} {\"a\":>3}')"),
        ("exception", "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    print(e)"),
        ("uncaught", "raise ValueError('bad')"),
        ("syntax", "print("),
        ("generator", "print(sum(x * x for x in range(10)))"),
        ("class", "class A:\n    def __repr__(self):\n        return 'A!'\nprint(A())"),
        ("json", "import json; print(json.loads('{\"a\": [1, null]}'))"),
        ("regular expression", "import re; print(re.findall(r'\\d+', 'a1b22'))"),
        ("dates", "import datetime; print(datetime.date(2024, 2, 28) + datetime.timedelta(2))"),
        ("hash", "import hashlib; print(hashlib.sha256(b'x').hexdigest())"),
        ("collections", "from collections import Counter; print(Counter('hello').most_common(1))"),
        ("itertools", "import itertools; print(list(itertools.permutations('ab')))"),
        ("math", "import math; print(math.factorial(20), math.pi)"),
        ("random seeded", "import random; random.seed(1); print(random.randint(1, 1000))"),
        ("csv", "import csv, io; print(list(csv.reader(io.StringIO('a,b'))))"),
        ("base64", "import base64; print(base64.b64encode(b'hi').decode())"),
        ("text wrap", "import textwrap; print(textwrap.shorten('hello wide world', 11))"),
        ("read", "print(open('old.txt').read())"),
        ("write", "open('new.txt', 'w').write('new')"),
        ("append", "open('old.txt', 'a').write('four')"),
        ("remove", "import os; os.remove('gone.txt')"),
        ("rename", "import os; os.rename('gone.txt', 'moved.txt')"),
        ("make a folder", "import os; os.makedirs('a/b')"),
        ("list", "import os; print(sorted(os.listdir('.')))"),
        ("missing", "open('nowhere')"),
        ("outside", "try:\n    open('/etc/shadow')\nexcept OSError:\n    print('refused')"),
        ("above", "try:\n    open('../../../../etc/shadow')\nexcept OSError:\n    print('refused')"),
        ("errors only", "import sys; print('hidden', file=sys.stderr)"),
        ("input", "print(input().upper())"),
        ("no input", "import sys; print(repr(sys.stdin.read()))"),
        ("no variable from around", "import os; print(os.environ.get('GIVEN'))"),
        ("arguments", "import sys; print(len(sys.argv))"),
        ("large output", "print('x' * 100000)"),
        ("deep recursion", "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nprint(f(300))"),
        (
            "no network",
            "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 1), 1)\nexcept (OSError, AttributeError):\n    print('refused')",
        ),
    ] {
        cases.add(
            format!("python {name}"),
            &[],
            &["python3", "-c", code],
            if name == "input" { "hello\n" } else { "" },
        );
    }
    for (name, code) in [
        ("arithmetic", "console.log(2n ** 100n + 1n)"),
        ("floats", "console.log(0.1 + 0.2)"),
        ("strings", "console.log('ünïcödé'.toUpperCase(), [...'🫙'].length)"),
        ("array", "console.log([3, 1, 2].sort().join('-'))"),
        ("object", "console.log(JSON.stringify({a: [1, null], b: 'x'}))"),
        ("closure", "const f = x => y => x + y; console.log(f(1)(2))"),
        ("class", "class A { get x() { return 7 } } console.log(new A().x)"),
        ("spread", "console.log(Math.max(...[1, 5, 3]))"),
        ("template", "console.log(`${1 + 1} jars`)"),
        ("regular expression", "console.log('a1b22'.match(/\\d+/g).join())"),
        ("exception", "try { null.x } catch (e) { console.log(e instanceof TypeError) }"),
        ("uncaught", "throw new Error('bad')"),
        ("syntax", "console.log("),
        ("promise", "Promise.all([1, Promise.resolve(2)]).then(x => console.log(x.join()))"),
        ("async", "(async () => { await null; console.log('later') })(); console.log('now')"),
        ("map and set", "console.log(new Map([[1, 2]]).get(1), new Set([1, 1]).size)"),
        ("dates", "console.log(new Date(0).toISOString())"),
        ("generator", "function* g() { yield 1; yield 2 } console.log([...g()].join())"),
        ("typed arrays", "console.log(new Uint8Array([1, 257])[1])"),
        ("large output", "console.log('x'.repeat(100000))"),
    ] {
        cases.add(format!("javascript {name}"), &[], &["node", "-e", code], "");
    }
    cases.add("time limit python", &["--timeout", "2s"], &["python3", "-c", "while True: pass"], "");
    cases.add("time limit javascript", &["--timeout", "2s"], &["node", "-e", "while (true) {}"], "");
    cases.add("output limit", &["--output", "100"], &["python3", "-c", "print('x' * 1000)"], "");
    cases.add("given variable", &["--env", "A=b"], &["python3", "-c", "import os; print(os.environ['A'])"], "");
    cases.add(
        "read-only",
        &["--workspace-mode", "readonly"],
        &["python3", "-c", "try:\n    open('old.txt', 'w')\nexcept OSError:\n    print('refused')"],
        "",
    );
    cases.add("hidden", &["--hide", "gone.txt"], &["python3", "-c", "print(repr(open('gone.txt').read()))"], "");
    cases.add("script", &[], &["python3", "script.py"], "");
    let refused: [(&str, &[&str]); 4] = [
        ("refused: the whole root", &["--read", "/"]),
        ("refused: what is not there", &["--read", "/nowhere"]),
        ("refused: a folder that is not there", &["--cwd", "nowhere"]),
        ("refused: no memory", &["--memory", "0"]),
    ];
    for (name, flags) in refused {
        cases.add(name, flags, &["python3", "-c", "pass"], "");
    }
}
