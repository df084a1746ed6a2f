//! Small real programs, each with what it says: which of them run where.

use std::ffi::OsString;

use model::GroundKind;

pub const RUNS: &str = "runs";
pub const NOT_THERE: &str = "not there";

pub struct Program {
    pub name: &'static str,
    words: &'static [&'static str],
    pub says: &'static str,
}

impl Program {
    /// As it is started; nothing where there is no system for it.
    pub fn words(&self, ground: GroundKind) -> Option<Vec<OsString>> {
        let language = ["python3", "node"].contains(&self.words[0]);
        (ground != GroundKind::Module || language).then(|| self.words.iter().map(OsString::from).collect())
    }
}

const fn program(name: &'static str, words: &'static [&'static str], says: &'static str) -> Program {
    Program { name, words, says }
}

pub fn programs() -> &'static [Program] {
    PROGRAMS
}

const PROGRAMS: &[Program] = &[
    program("shell: arithmetic", &["sh", "-c", "echo $((6 * 7))"], "42"),
    program("shell: a pipe", &["sh", "-c", "printf 'b\\na\\n' | sort | head -n 1"], "a"),
    program("shell: a job in the background", &["sh", "-c", "(echo child) & wait; echo done"], "child\ndone"),
    program("shell: a file in the workspace", &["sh", "-c", "echo text > new.txt && cat new.txt"], "text"),
    program("shell: a temporary file", &["sh", "-c", "echo text > /tmp/one && cat /tmp/one"], "text"),
    program("shell: a signal", &["sh", "-c", "trap 'echo caught' TERM; kill -TERM $$; echo on"], "caught\non"),
    program("awk", &["awk", "BEGIN { print 2 ^ 10 }"], "1024"),
    program("sed", &["sh", "-c", "echo abc | sed s/b/x/"], "axc"),
    program("tar: pack and list", &["sh", "-c", "echo x > a.txt; tar cf a.tar a.txt; tar tf a.tar"], "a.txt"),
    program("gzip", &["sh", "-c", "echo hello | gzip | gzip -d"], "hello"),
    program(
        "git: commit",
        &[
            "sh",
            "-c",
            "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && git log --format=%s",
        ],
        "first",
    ),
    program(
        "cc: compile and run",
        &[
            "sh",
            "-c",
            "printf '#include <stdio.h>\\nint main(){puts(\"compiled\");return 0;}' > m.c && cc m.c -o m && ./m",
        ],
        "compiled",
    ),
    program("perl", &["perl", "-e", "print join(',', map { $_ * 2 } 1..3)"], "2,4,6"),
    program("python: print", &["python3", "-c", "print(sum(range(10)))"], "45"),
    program("python: json", &["python3", "-c", "import json; print(json.dumps({'a': [1, 2]}))"], "{\"a\": [1, 2]}"),
    program(
        "python: regular expressions",
        &["python3", "-c", "import re; print(re.sub('[aeiou]', '*', 'belljar'))"],
        "b*llj*r",
    ),
    program(
        "python: dates",
        &["python3", "-c", "import datetime; print(datetime.date(2024, 2, 29).isoformat())"],
        "2024-02-29",
    ),
    program(
        "python: hashes",
        &["python3", "-c", "import hashlib; print(hashlib.sha256(b'').hexdigest()[:8])"],
        "e3b0c442",
    ),
    program(
        "python: decimals",
        &["python3", "-c", "from decimal import Decimal; print(Decimal('0.1') + Decimal('0.2'))"],
        "0.3",
    ),
    program("python: a file", &["python3", "-c", "open('p.txt', 'w').write('x'); print(open('p.txt').read())"], "x"),
    program(
        "python: dataclasses",
        &["python3", "-c", "from dataclasses import dataclass as d\n@d\nclass A:\n    x: int\nprint(A(1))"],
        "A(x=1)",
    ),
    program(
        "python: asyncio",
        &[
            "python3",
            "-c",
            "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7\nprint(asyncio.run(f()))",
        ],
        "7",
    ),
    program(
        "python: sqlite",
        &["python3", "-c", "import sqlite3; print(sqlite3.connect(':memory:').execute('select 1+1').fetchone()[0])"],
        "2",
    ),
    program(
        "python: zlib",
        &["python3", "-c", "import zlib; print(zlib.decompress(zlib.compress(b'z')).decode())"],
        "z",
    ),
    program(
        "python: threads",
        &[
            "python3",
            "-c",
            "import threading; r = []; t = threading.Thread(target=r.append, args=(1,)); t.start(); t.join(); print(r)",
        ],
        "[1]",
    ),
    program(
        "python: a child process",
        &["python3", "-c", "import subprocess; print(subprocess.check_output(['echo', 'child']).decode().strip())"],
        "child",
    ),
    program(
        "python: a pool of processes",
        &[
            "python3",
            "-c",
            "from multiprocessing import Pool\nif __name__ == '__main__':\n    with Pool(2) as p:\n        print(p.map(abs, [-1, -2]))",
        ],
        "[1, 2]",
    ),
    program(
        "python: a socket of its own",
        &["python3", "-c", "import socket; a, b = socket.socketpair(); a.send(b'hi'); print(b.recv(2).decode())"],
        "hi",
    ),
    program(
        "python: a server on its loopback",
        &[
            "python3",
            "-c",
            "import socket, threading\ns = socket.create_server(('127.0.0.1', 0))\nthreading.Thread(target=lambda: s.accept()[0].send(b'hi')).start()\nprint(socket.create_connection(s.getsockname()).recv(2).decode())",
        ],
        "hi",
    ),
    program(
        "python: mmap",
        &["python3", "-c", "import mmap; m = mmap.mmap(-1, 8); m[:2] = b'ok'; print(m[:2].decode())"],
        "ok",
    ),
    program("node: print", &["node", "-e", "console.log([1, 2, 3].map(x => x * 2).join())"], "2,4,6"),
    program("node: a promise", &["node", "-e", "Promise.resolve(5).then(x => console.log(x))"], "5"),
    program(
        "node: json and regular expressions",
        &["node", "-e", "console.log(JSON.stringify({a: 'belljar'.replace(/l+/, '-')}))"],
        "{\"a\":\"be-jar\"}",
    ),
    program("node: a large integer", &["node", "-e", "console.log((2n ** 64n).toString())"], "18446744073709551616"),
    program(
        "node: a file",
        &[
            "node",
            "-e",
            "const fs = require('fs'); fs.writeFileSync('n.txt', 'x'); console.log(fs.readFileSync('n.txt', 'utf8'))",
        ],
        "x",
    ),
    program(
        "node: a child process",
        &["node", "-e", "console.log(require('child_process').execSync('echo child').toString().trim())"],
        "child",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_a_name_of_its_own_and_says_something() {
        let mut names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROGRAMS.len());
        assert!(PROGRAMS.iter().all(|program| !program.says.is_empty() && !program.words.is_empty()));
    }
}
