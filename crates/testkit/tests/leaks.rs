//! A thousand sandboxes, some of them with their supervisor killed at a random moment: afterwards the machine has
//! nothing more than before. Needs root, to see everything and to be two users.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::contestant::{TEST_USER, belljar};
use belljar_testkit::dice::Dice;

const EACH: u64 = 500;
const GROUP: &str = "group ";
const WORKERS: u64 = 4;
/// Ends are asynchronous where the supervisor was killed: the kernel, and the keeper of the groups, take a moment.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_thousand_sandboxes_leave_nothing_behind_as_root() {
    many_leave_nothing(Who::Root, 0x5eed_0001);
}

#[test]
fn a_thousand_sandboxes_leave_nothing_behind_as_a_user() {
    many_leave_nothing(Who::Ordinary, 0x5eed_0002);
}

/// A supervisor that is killed leaves its layer on purpose, for whoever looks next: here there is none.
const READ_ONLY: &[&str] = &["--workspace-mode", "readonly"];

#[test]
fn what_hides_from_its_end_is_ended_with_the_supervisor() {
    if skip_unless_root() {
        return;
    }
    let forms = [
        // In a session of its own, child of nobody.
        "(setsid sh -c 'setsid sleep 600 & sleep 600' &) ; echo ready; sleep 600",
        // Stopped, itself and its children.
        "sleep 600 & kill -STOP $!; (setsid sh -c 'kill -STOP $$' &); echo ready; kill -STOP $$",
        // Deaf, with ever new children.
        "trap '' TERM HUP INT QUIT; echo ready; while :; do (sleep 0.001 &) ; done",
        // Children that leave a successor each.
        "f() { (sleep 0.001; f) & }; trap '' TERM HUP; f; f; f; echo ready; while :; do sleep 0.01; done",
        // Zombies, never waited for.
        "echo ready; exec perl -e 'for (1..300) { exit if !fork } sleep 600'",
    ];
    for who in [Who::Root, Who::Ordinary] {
        let place = Place::new(who);
        let before = place.census();
        for form in forms {
            for signal in [libc::SIGKILL, libc::SIGKILL, libc::SIGTERM] {
                let mut child =
                    place.start(&[READ_ONLY, &["--pids", "400"]].concat(), &["/bin/sh", "-c", form], Stdio::piped());
                let mut word = [0u8; 6];
                std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
                assert_eq!(&word, b"ready\n", "{form}");
                // SAFETY: takes integers; our own child, not yet waited for.
                unsafe { libc::kill(child.id() as i32, signal) };
                if signal == libc::SIGTERM {
                    // Some of them ignore it, and the grace is long: insist.
                    std::thread::sleep(Duration::from_millis(20));
                    child.kill().unwrap();
                }
                child.wait().unwrap();
            }
            let left = before.left_after(&place);
            assert!(left.is_empty(), "as {who:?}, {form}: {left:#?}");
        }
    }
}

/// What is begun before a request is judged ends with a request that comes to nothing.
#[test]
fn what_is_not_run_after_all_leaves_nothing_behind() {
    if skip_unless_root() {
        return;
    }
    let forms: &[(&[&str], &str, i32)] = &[
        (&["--write", "/"], "true", 123),
        (&["--read", "/there-is-no-such-folder"], "true", 125),
        (&["--no-such-flag"], "true", 125),
        (&["--backend", "no-such-backend"], "true", 125),
        (&[], "there-is-no-such-program", 127),
        (&[], "/etc/hostname", 126),
        (&["--help"], "true", 0),
        // Begun, and not fit: the processors are to be fewer.
        (&["--cpus", "1"], "true", 0),
    ];
    for who in [Who::Root, Who::Ordinary] {
        let place = Place::new(who);
        let before = place.census();
        for (flags, word, code) in forms {
            let ended = place.start(&[READ_ONLY, flags].concat(), &[word], Stdio::null()).wait().unwrap();
            assert_eq!(ended.code(), Some(*code), "as {who:?}, {flags:?} {word}");
            let left = before.left_after(&place);
            assert!(left.is_empty(), "as {who:?}, {flags:?} {word}: {left:#?}");
        }
    }
}

#[test]
fn the_census_sees_what_there_is_more() {
    if skip_unless_root() {
        return;
    }
    for who in [Who::Root, Who::Ordinary] {
        let place = Place::new(who);
        let before = place.census();
        let mut child = place.start(READ_ONLY, &["/bin/sh", "-c", "echo ready; exec sleep 60"], Stdio::piped());
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0u8; 6]).unwrap();
        fs::write(place.root.join("tmp/forgotten"), "").unwrap();
        let more: Vec<String> = place.census().0.difference(&before.0).cloned().collect();
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(place.root.join("tmp/forgotten")).unwrap();
        let sees = |what: &str| more.iter().any(|line| line.starts_with(what));
        for what in ["process", "namespace net:", "namespace user:", "namespace mnt:", "file"] {
            assert!(sees(what), "no {what} in {more:#?}");
        }
        // Only root has groups on a host with the older hierarchies.
        assert!(who == Who::Ordinary || sees("group"), "no group in {more:#?}");
        assert!(before.left_after(&place).is_empty());
    }
}

#[test]
fn a_whole_process_group_killed_at_once_leaves_nothing_behind() {
    if skip_unless_root() {
        return;
    }
    let seed = 0x5eed_0003;
    println!("seed {seed:#x}");
    for who in [Who::Root, Who::Ordinary] {
        let place = Place::new(who);
        let before = place.census();
        std::thread::scope(|scope| {
            for worker in 0..WORKERS {
                let place = &place;
                scope.spawn(move || {
                    let mut dice = Dice(seed ^ (worker + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    for _ in 0..60 {
                        let mut child = place.start(&["--write", "."], &["/bin/true"], Stdio::null());
                        std::thread::sleep(Duration::from_micros(dice.throw() % 8_000));
                        // SAFETY: takes integers; the group is our child's own.
                        unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
                        child.wait().unwrap();
                    }
                });
            }
        });
        let left = before.left_after(&place);
        assert!(left.is_empty(), "as {who:?} with seed {seed:#x}: {left:#?}");
    }
}

fn many_leave_nothing(who: Who, seed: u64) {
    if skip_unless_root() {
        return;
    }
    println!("seed {seed:#x}");
    let place = Place::new(who);
    let before = place.census();
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let place = &place;
            scope.spawn(move || {
                let mut dice = Dice(seed ^ (worker + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                for number in 0..EACH / WORKERS {
                    one(place, number, &mut dice);
                }
            });
        }
    });
    let left = before.left_after(&place);
    assert!(left.is_empty(), "as {who:?} with seed {seed:#x}: {left:#?}");
}

fn one(place: &Place, number: u64, dice: &mut Dice) {
    let mut child =
        place.start(&["--write", ".", "--cpu-time", "9s", "--timeout", "20s"], &["/bin/true"], Stdio::null());
    let signal = match number % 10 {
        0 | 5 => libc::SIGKILL,
        7 => libc::SIGTERM,
        _ => 0,
    };
    if signal != 0 {
        // The attack is the moment itself, so here a wait is not a wait for something.
        let latest = if number.is_multiple_of(2) { 8_000 } else { 30_000 };
        std::thread::sleep(Duration::from_micros(dice.throw() % latest));
        // SAFETY: takes integers; our own child, not yet waited for.
        unsafe { libc::kill(child.id() as i32, signal) };
    }
    let status = child.wait().unwrap();
    if signal == 0 {
        assert!(status.success(), "{status}");
    }
}

fn skip_unless_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: needs root");
    }
    !root
}

/// A folder to run in, with folders of its own for all that programs put somewhere by habit.
struct Place {
    root: PathBuf,
    who: Who,
    /// In the environment of everything we start: how ours are told from others on this machine.
    mark: String,
    /// Groups are named after their supervisors, dead or alive.
    started: Mutex<BTreeSet<u32>>,
}

impl Place {
    fn new(who: Who) -> Place {
        let mut random = [0u8; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).unwrap();
        let mark = format!("leak-{:016x}", u64::from_ne_bytes(random));
        let root = Path::new("/srv/belljar-leaks").join(&mark);
        let place = Place { root, who, mark, started: Mutex::default() };
        // The last two are made by the first run and stay: they hold what sandboxes leave on purpose.
        let state = ["state", "state/belljar", "state/belljar/layers"];
        for folder in ["", "work", "home", "tmp", "run", "cache"].into_iter().chain(state) {
            let path = place.root.join(folder);
            fs::create_dir_all(&path).unwrap();
            let mode = if folder.contains("belljar") { 0o700 } else { 0o755 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            chown(&path, Some(who.user_id()), Some(who.user_id())).unwrap();
        }
        place
    }

    fn start(&self, flags: &[&str], words: &[&str], output: Stdio) -> Child {
        let mut command = Command::new(belljar());
        let at = |name: &str| self.root.join(name);
        command.current_dir(at("work")).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("HOME", at("home")).env("TMPDIR", at("tmp")).env("XDG_RUNTIME_DIR", at("run"));
        command.env("XDG_CACHE_HOME", at("cache")).env("XDG_STATE_HOME", at("state"));
        // Seen in /proc/PID/environ of the supervisor, its keeper and the first process, and of the payload.
        command.env("BELLJAR_LEAK_MARK", &self.mark);
        command.args(["run", "-q", "--env", "BELLJAR_LEAK_MARK"]).args(flags).arg("--").args(words);
        if self.who == Who::Ordinary {
            let id = self.who.user_id();
            command.uid(id).gid(id).env("USER", TEST_USER);
        }
        command.process_group(0).stdin(Stdio::null()).stdout(output).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        self.started.lock().unwrap().insert(child.id());
        child
    }

    fn census(&self) -> Census {
        Census::take(self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.root) {
            eprintln!("left behind: {}: {error}", self.root.display());
        }
    }
}

/// Everything of which there could be more afterwards, by name.
struct Census(BTreeSet<String>);

impl Census {
    fn take(place: &Place) -> Census {
        let mut found = BTreeSet::new();
        let processes: Vec<String> = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            .collect();
        for pid in &processes {
            // Ours, by the mark that no other test's processes have.
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let ours = environment.windows(place.mark.len()).any(|window| window == place.mark.as_bytes());
            if !ours {
                continue;
            }
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            found.insert(format!("process {pid} {}", name.trim()));
            for kind in ["net", "user", "mnt", "pid", "ipc", "uts", "cgroup"] {
                if let Ok(target) = fs::read_link(format!("/proc/{pid}/ns/{kind}")) {
                    found.insert(format!("namespace {}", target.display()));
                }
            }
        }
        for line in fs::read_to_string("/proc/self/mountinfo").unwrap().lines() {
            found.insert(format!("mount {line}"));
        }
        let started = place.started.lock().unwrap();
        groups(Path::new("/sys/fs/cgroup"), 6, &mut |path| {
            let number = path
                .file_name()
                .and_then(|name| name.to_str()?.strip_prefix("belljar-")?.split('-').next()?.parse().ok());
            if number.is_some_and(|number| started.contains(&number)) {
                found.insert(format!("{GROUP}{}", path.display()));
            }
        });
        drop(started);
        for folder in ["work", "home", "tmp", "run", "cache", "state"] {
            files(&place.root.join(folder), &mut found);
        }
        // Shared with all others on the machine: only what belongs to belljar by its name.
        for folder in ["/tmp", "/dev/shm", "/run", "/var/tmp", "/run/lock"] {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let named = name.to_str().is_some_and(|name| name.contains("belljar"));
                if named && entry.metadata().is_ok_and(|stat| stat.uid() == place.who.user_id()) {
                    found.insert(format!("file {}", entry.path().display()));
                }
            }
        }
        for kind in ["shm", "sem", "msg"] {
            let text = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
            found.extend(text.lines().skip(1).map(|line| format!("{kind} {line}")));
        }
        Census(found)
    }

    /// What there is more than before, once nothing more goes away by itself.
    fn left_after(&self, place: &Place) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left: Vec<String> = place.census().0.difference(&self.0).cloned().collect();
            if left.is_empty() {
                return left;
            }
            if Instant::now() > deadline {
                // Said once, by whoever left it; empty ones are not left for the next to find.
                for path in left.iter().filter_map(|line| line.strip_prefix(GROUP)) {
                    println!("{path}: {:?}", fs::remove_dir(path));
                }
                return left;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn groups(folder: &Path, depth: u32, found: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found(&entry.path());
            groups(&entry.path(), depth - 1, found);
        }
    }
}

fn files(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        found.insert(format!("file {}", entry.path().display()));
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files(&entry.path(), found);
        }
    }
}
