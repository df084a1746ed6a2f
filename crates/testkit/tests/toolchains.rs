//! Real tool-chains do real work inside, as root and as an ordinary user: walls that break programs get taken down.
//! What is not installed is skipped, and the name of the skipped test says why.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use belljar_testkit::Who;
use belljar_testkit::contestant::{TEST_USER, belljar, peers_folder};
use libtest_mimic::{Arguments, Failed, Trial};

struct Job {
    name: &'static str,
    /// Must be in `PATH`, else the test is skipped.
    needs: &'static [&'static str],
    /// Files of the workspace.
    files: &'static [(&'static str, &'static str)],
    /// For bash; the first failing command ends it.
    script: &'static str,
    /// A line of its output: exit 0 alone may mean that nothing ran.
    says: &'static str,
}

const JOBS: &[Job] = &[
    Job {
        name: "python_with_numpy_and_pandas",
        needs: &["python3", "f2py"],
        files: &[(
            "work.py",
            "import multiprocessing, threading, sqlite3, ssl, ctypes, subprocess, tempfile\n\
             import numpy, pandas\n\
             frame = pandas.DataFrame({'a': numpy.arange(1000), 'b': numpy.random.rand(1000)})\n\
             frame.to_csv('frame.csv')\n\
             back = pandas.read_csv('frame.csv')\n\
             square = numpy.linalg.inv(numpy.eye(200) * 2) @ numpy.ones(200)\n\
             def double(number): return number * 2\n\
             if __name__ == '__main__':\n\
             \x20   with multiprocessing.Pool(2) as pool: doubled = sum(pool.map(double, range(10)))\n\
             \x20   sqlite3.connect('base.db').execute('create table t (a)')\n\
             \x20   print('python', len(back), square.sum(), doubled)\n",
        )],
        script: "python3 work.py",
        says: "python 1000 100.0 90",
    },
    Job {
        name: "pytest",
        needs: &["pytest"],
        files: &[(
            "test_small.py",
            "import pytest\n\
             @pytest.mark.parametrize('number', range(20))\n\
             def test_number(number, tmp_path):\n\
             \x20   (tmp_path / 'a').write_text(str(number))\n\
             \x20   assert int((tmp_path / 'a').read_text()) == number\n",
        )],
        script: "pytest -q | tee out; grep -q '20 passed' out && echo pytest passed",
        says: "pytest passed",
    },
    Job {
        name: "node_and_npm",
        needs: &["node", "npm"],
        files: &[(
            "work.js",
            "const { Worker } = require('worker_threads');\n\
             const { execFileSync } = require('child_process');\n\
             const fs = require('fs'), http = require('http'), crypto = require('crypto');\n\
             fs.writeFileSync('made', crypto.createHash('sha256').update('x').digest('hex'));\n\
             const worker = new Worker('require(\"worker_threads\").parentPort.postMessage(6 * 7)', { eval: true });\n\
             worker.on('message', (answer) => {\n\
               const server = http.createServer((_, to) => to.end('served')).listen(0, '127.0.0.1', () =>\n\
                 http.get({ port: server.address().port, host: '127.0.0.1' }, (from) => from.on('data', (text) => {\n\
                   console.log('node', answer, String(text), execFileSync('/bin/echo', ['child']).toString().trim());\n\
                   server.close(); process.exit(0);\n\
                 })));\n\
             });\n",
        )],
        script: "node work.js; npm --version; npm init -y >/dev/null; npm pkg set scripts.hi='echo hi from npm'; \
                 npm run hi; test -s package.json",
        says: "node 42 served child",
    },
    Job {
        name: "go_build",
        needs: &["go"],
        files: &[
            ("go.mod", "module example.org/hello\n\ngo 1.19\n"),
            (
                "main.go",
                "package main\n\nimport (\n\t\"fmt\"\n\t\"sync\"\n)\n\nfunc main() {\n\tvar all sync.WaitGroup\n\tsum := make(chan int, 8)\n\tfor i := 0; i < 8; i++ {\n\t\tall.Add(1)\n\t\tgo func(i int) { defer all.Done(); sum <- i }(i)\n\t}\n\tall.Wait()\n\tclose(sum)\n\ttotal := 0\n\tfor i := range sum {\n\t\ttotal += i\n\t}\n\tfmt.Println(\"go\", total)\n}\n",
            ),
        ],
        script: "export GOFLAGS=-mod=mod GOPROXY=off; go build -o hello . && ./hello && go vet ./...",
        says: "go 28",
    },
    Job {
        name: "rustc_and_cargo",
        needs: &["cargo", "rustc"],
        files: &[
            ("Cargo.toml", "[package]\nname = \"small\"\nedition = \"2021\"\n[workspace]\n"),
            ("src/main.rs", "mod other;\nfn main() { println!(\"rust {}\", other::sum(&[1, 2, 3])); }\n"),
            (
                "src/other.rs",
                "pub fn sum(n: &[u64]) -> u64 { n.iter().sum() }\n#[test]\nfn adds() { assert_eq!(sum(&[1, 2]), 3); }\n",
            ),
            ("alone.rs", "fn main() { println!(\"rustc alone\"); }\n"),
        ],
        script: "cargo build --offline && cargo test --offline && rustc -O alone.rs && ./alone && target/debug/small",
        says: "rust 6",
    },
    Job {
        name: "java",
        needs: &["javac", "java"],
        files: &[(
            "Hello.java",
            "import java.util.stream.*;\npublic class Hello {\n  public static void main(String[] a) throws Exception {\n    Thread t = new Thread(() -> {}); t.start(); t.join();\n    System.out.println(\"java \" + IntStream.range(0, 100).parallel().sum());\n  }\n}\n",
        )],
        script: "javac Hello.java && java Hello",
        says: "java 4950",
    },
    Job {
        name: "gcc",
        needs: &["gcc"],
        files: &[(
            "hello.c",
            "#include <stdio.h>\n#include <pthread.h>\nstatic void *work(void *x) { return x; }\nint main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0); puts(\"c works\"); }\n",
        )],
        script: "gcc -O2 -pthread -o hello hello.c && ./hello",
        says: "c works",
    },
    Job {
        name: "git",
        needs: &["git"],
        files: &[("file", "contents\n")],
        script: "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org; \
                 git init -q -b main . && git add file && git commit -qm first && git log --oneline | grep first; \
                 git worktree add -q ../workspace/tree -b other && (cd tree && echo more >>file && git commit -qam second); \
                 git merge -q other && git gc -q && git fsck && git status --short && echo git $(git rev-list --count main)",
        says: "git 2",
    },
    Job {
        name: "ripgrep",
        needs: &["rg"],
        files: &[("a/b/text", "one needle here\n"), ("a/other", "hay\n")],
        script: "rg --no-heading needle",
        says: "a/b/text:one needle here",
    },
    Job {
        name: "shell_tools",
        needs: &["bash", "perl", "awk", "sed", "tar", "gzip", "make", "find", "xargs"],
        files: &[("Makefile", "all:\n\t@echo made > made\n")],
        script: "make; seq 100 | xargs -P4 -n10 echo | awk '{n += NF} END {print n}' >count; tar czf all.tgz made count; \
                 mkdir out; tar xzf all.tgz -C out; mkfifo pipe; (cat made >pipe &) ; read word <pipe; \
                 diff <(sort count) <(sed '' out/count); perl -e 'use POSIX; my $pid = fork; exit 0 if !$pid; waitpid $pid, 0; \
                 print \"shell $ARGV[0] $ARGV[1]\\n\"' $word $(cat count)",
        says: "shell made 100",
    },
];

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for job in JOBS {
        for who in [Who::Root, Who::Ordinary] {
            let name = format!("{}::{}", job.name, who.name());
            trials.push(match why_not(job, who) {
                Some(why) => Trial::test(format!("{name} (skipped: {why})"), || Ok(())).with_ignored_flag(true),
                None => Trial::test(name, move || check(job, who)),
            });
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Programs are looked for as the user of the trial would find them.
fn path_of(who: Who) -> Vec<PathBuf> {
    let mut folders = vec![peers_folder().join("python/bin")];
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Shims of pyenv would hide the interpreter that has numpy; ours is first.
    folders.extend(std::env::split_paths(&path).filter(|folder| who == Who::Root || reachable(folder)));
    folders
}

/// Whether the ordinary user may pass through every folder above, and this one.
fn reachable(folder: &Path) -> bool {
    folder.ancestors().all(|one| fs::metadata(one).is_ok_and(|metadata| metadata.permissions().mode() & 0o005 == 0o005))
}

fn why_not(job: &Job, who: Who) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root, to act as root and as another user".to_owned());
    }
    let folders = path_of(who);
    let absent = job.needs.iter().find(|program| !folders.iter().any(|folder| folder.join(program).exists()))?;
    let anywhere = path_of(Who::Root).iter().any(|folder| folder.join(absent).exists());
    Some(match anywhere {
        true => format!("no {absent} that {TEST_USER} may reach on this host"),
        false => format!("no {absent} on this host"),
    })
}

fn check(job: &Job, who: Who) -> Result<(), Failed> {
    let place = Place::make(job, who).map_err(|error| format!("cannot make the workspace: {error}"))?;
    let path: OsString = std::env::join_paths(path_of(who)).map_err(|error| error.to_string())?;
    let result = place.root.join("result.json");
    let mut command = Command::new(belljar());
    command.args(["run", "-q", "--write"]).arg(place.workspace()).arg("--result-file").arg(&result);
    command.args(["--", "bash", "-eu", "-o", "pipefail", "-c", job.script]).current_dir(place.workspace());
    command.env_clear().env("PATH", path).env("LANG", "C.UTF-8").stdin(Stdio::null());
    match who {
        Who::Root => command.env("HOME", "/root").env("USER", "root"),
        Who::Ordinary => {
            let home = format!("/home/{TEST_USER}");
            command.env("HOME", home).env("USER", TEST_USER).uid(who.user_id()).gid(who.user_id())
        }
    };
    let output = command.output().map_err(|error| format!("cannot run belljar: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let result: serde_json::Value =
        fs::read(&result).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let denials = result["denials"].as_array().cloned().unwrap_or_default();
    for denial in &denials {
        println!("denied: {denial}");
    }
    let said = stdout.lines().any(|line| line.trim() == job.says);
    if output.status.success() && said {
        return Ok(());
    }
    let error = format!(
        "{}; expected the line `{}`\ndenials: {denials:?}\nerror: {}\noutput: {stdout}\nerror output: {}",
        output.status,
        job.says,
        result["error"],
        String::from_utf8_lossy(&output.stderr)
    );
    Err(error.into())
}

/// A workspace of its own for each, removed afterwards.
struct Place {
    root: PathBuf,
}

impl Place {
    fn make(job: &Job, who: Who) -> std::io::Result<Place> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let place = Place { root: format!("/srv/belljar-toolchains/{}-{number}", std::process::id()).into() };
        let give = |path: &Path| chown(path, Some(who.user_id()), Some(who.user_id()));
        fs::create_dir_all(place.workspace())?;
        give(&place.root)?;
        give(&place.workspace())?;
        for (name, contents) in job.files {
            let file = place.workspace().join(name);
            let folder = file.parent().unwrap_or(&place.root).to_owned();
            fs::create_dir_all(&folder)?;
            for folder in folder.ancestors().take_while(|folder| folder.starts_with(place.workspace())) {
                give(folder)?;
            }
            fs::write(&file, contents)?;
            give(&file)?;
        }
        Ok(place)
    }

    fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.root) {
            eprintln!("left behind: {}: {error}", self.root.display());
        }
    }
}
