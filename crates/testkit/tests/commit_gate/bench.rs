//! A project, a state and a home of its own for each attack, and belljar as their user runs it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use belljar_testkit::Who;
use belljar_testkit::contestant::{TEST_USER, belljar};

pub struct Bench {
    pub root: PathBuf,
    pub who: Who,
}

/// What a program said, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
    /// Of processors: the clock on the wall tells more of what others do.
    pub used: Duration,
}

impl Bench {
    pub fn new(who: Who) -> Bench {
        let mut random = [0u8; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).unwrap();
        // Not in /tmp or a home: sandboxes have their own.
        let root = Path::new("/srv/belljar-gate").join(format!("{:016x}", u64::from_ne_bytes(random)));
        let bench = Bench { root, who };
        for folder in ["", "project", "home", "state", "outside"] {
            let path = bench.root.join(folder);
            fs::create_dir_all(&path).unwrap();
            let mode = if folder == "state" { 0o700 } else { 0o755 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            chown(&path, Some(who.user_id()), Some(who.user_id())).unwrap();
        }
        bench
    }

    pub fn project(&self, path: &str) -> PathBuf {
        self.root.join("project").join(path)
    }

    pub fn outside(&self, path: &str) -> PathBuf {
        self.root.join("outside").join(path)
    }

    pub fn state(&self, path: &str) -> PathBuf {
        self.root.join("state/belljar").join(path)
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.project(path)).unwrap_or_default()
    }

    /// A command of the bench's user, in the project.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.root.join("project")).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("HOME", self.root.join("home")).env("XDG_STATE_HOME", self.root.join("state"));
        command.env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
        if self.who == Who::Ordinary {
            let id = self.who.user_id();
            command.uid(id).gid(id).env("USER", TEST_USER);
        }
        command
    }

    pub fn run(&self, mut command: Command) -> Said {
        let before = used_by_children();
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
            used: used_by_children() - before,
        }
    }

    pub fn belljar(&self, words: &[&str]) -> Said {
        let mut command = self.command(belljar());
        command.args(words);
        self.run(command)
    }

    /// On the host, as the user; it must succeed.
    pub fn host(&self, script: &str) -> Said {
        let mut command = self.command("/bin/sh");
        command.args(["-ec", script]);
        let said = self.run(command);
        assert_eq!(said.code, 0, "{script}: {said:?}");
        said
    }

    /// In a sandbox over the project; whether it succeeds is not asked, but it must have run.
    pub fn guest(&self, flags: &[&str], script: &str) -> Said {
        let said = self.belljar(&[&["run", "--disk", "4T"], flags, &["--", "/bin/sh", "-c", script]].concat());
        assert!(said.code < 120, "{script}: {said:?}");
        said
    }

    /// In a kept sandbox.
    pub fn exec(&self, id: &str, script: &str) -> Said {
        let said = self.belljar(&["exec", id, "--", "/bin/sh", "-c", script]);
        assert!(said.code < 120, "{script}: {said:?}");
        said
    }

    /// In a kept sandbox, which runs until `meanwhile` has happened: it waits for the end of its input.
    pub fn exec_while(&self, id: &str, script: &str, meanwhile: impl FnOnce()) {
        use std::io::{BufRead, BufReader};
        let mut command = self.command(belljar());
        command.args(["exec", "-q", id, "--", "/bin/sh", "-c", &format!("{script}; echo ready; cat > /dev/null")]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut word = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut word).unwrap();
        assert_eq!(word, "ready\n", "{script}");
        meanwhile();
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success(), "{script}");
    }

    pub fn create(&self) -> String {
        let said = self.belljar(&["create"]);
        assert_eq!(said.code, 0, "{said:?}");
        said.out.trim().to_owned()
    }

    pub fn apply(&self, words: &[&str]) -> Said {
        let said = self.belljar(&[&["apply"], words].concat());
        assert!(said.code <= 1, "{said:?}");
        said
    }

    /// What somebody without a gate would do: everything in the layers over the real files.
    pub fn copy_over(&self) {
        let layers = self.state("layers");
        let script = format!("for l in {}/*/0/upper; do cp -a --remove-destination $l/. .; done", layers.display());
        let mut command = self.command("/bin/sh");
        command.args(["-c", &script]);
        self.run(command);
    }

    pub fn layer(&self) -> PathBuf {
        let mut layers = fs::read_dir(self.state("layers")).unwrap();
        layers.next().expect("there is a layer").unwrap().path().join("0/upper")
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let removed = Command::new("rm").arg("-rf").arg(&self.root).status();
        if !removed.is_ok_and(|status| status.success()) {
            eprintln!("left behind: {}", self.root.display());
        }
    }
}

/// How the gate is absent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// The sandbox writes to the project itself.
    Layers,
    /// Somebody copies the layer over the project.
    Care,
}

/// `script` runs in a sandbox and its changes are taken. `harm` is what it must not achieve, and does without the gate.
pub fn attack(who: Who, without: Without, prepare: &str, script: &str, harm: impl Fn(&Bench) -> bool) {
    let script = &format!("{script}\necho here > witness");
    let control = Bench::new(who);
    control.host(prepare);
    assert!(!harm(&control), "the harm is there before");
    match without {
        Without::Layers => drop(control.guest(&["--workspace-mode", "direct"], script)),
        Without::Care => {
            control.guest(&[], script);
            control.copy_over();
        }
    }
    assert!(harm(&control), "the control proves nothing: {script}");
    drop(control);

    let bench = Bench::new(who);
    bench.host(prepare);
    bench.guest(&[], script);
    assert!(!harm(&bench), "without being taken");
    let said = bench.apply(&[]);
    assert_eq!(bench.read("witness"), "here\n", "nothing at all was taken: {said:?}");
    assert!(!harm(&bench), "{script}: {said:?}");
}

/// Processor time of all that was started here and has ended.
fn used_by_children() -> Duration {
    // SAFETY: getrusage(2) fills the record that it is given, which is plain numbers.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &mut used), 0);
        used
    };
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    time(used.ru_utime) + time(used.ru_stime)
}
