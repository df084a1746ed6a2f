//! `belljar approve` as it is started by people, by agents and from inside a sandbox. Whoever waits is this test.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use belljar_testkit::contestant::{TEST_USER, belljar};
use belljar_testkit::{Project, Who};
use rustix::fs::{FlockOperation, inotify};
use serde_json::{Value, json};

const ID: &str = "0a1b2c3d";

/// A question that waits, until this is gone.
struct Waiting {
    folder: PathBuf,
    nonce: String,
    _lock: fs::File,
}

impl Waiting {
    /// Parked in this folder for state, as this user.
    fn parked(project: &Project, state: &Path, approvers: &[&str]) -> Waiting {
        let folder = state.join("belljar/approvals");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder.join("session")).expect("a folder");
        for folder in [state.join("belljar"), folder.clone(), folder.join("session")] {
            project.give(&folder).expect("it is handed over");
        }
        let nonce = "5a".repeat(16);
        let reason = json!({
            "ruling": "ask", "rule": "git.force", "place": "belljar.toml:12", "why": "rewrites what others have",
            "action": "exec", "about": "git push --force", "grant": "",
        });
        let question = json!({
            "version": 1, "id": ID, "nonce": nonce, "session": null, "approvers": approvers,
            "asked": 1, "until": u64::MAX, "offers": { "session": false, "always": false },
            "question": {
                "principal": { "user": "ann" }, "shown": [["command", "git push --force"]],
                "reasons": [reason], "findings": [], "revision": "aa", "digest": "bb",
            },
        });
        let name = folder.join(format!("{ID}.question"));
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name).expect("a file");
        file.write_all(question.to_string().as_bytes()).expect("it can be written");
        project.give(&name).expect("it is handed over");
        rustix::fs::flock(&file, FlockOperation::LockExclusive).expect("nobody else has it");
        Waiting { folder, nonce, _lock: file }
    }

    fn answer(&self) -> PathBuf {
        self.folder.join(format!("{ID}.answer"))
    }

    /// Waits for an answer while `given` gives it, and takes it as belljar would: what it is, and whose.
    fn taken(&self, mut given: Command) -> (Value, u32, Output) {
        let changes = inotify::init(inotify::CreateFlags::CLOEXEC).expect("the kernel tells of changes");
        inotify::add_watch(&changes, &self.folder, inotify::WatchFlags::MOVED_TO).expect("a folder");
        let child = given.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut changes = fs::File::from(changes);
        let mut event = [0; 4096];
        while !self.answer().exists() {
            assert_ne!(changes.read(&mut event).expect("it tells"), 0);
        }
        let taken = self.folder.join(format!("{ID}.taken"));
        fs::rename(self.answer(), &taken).expect("it is there");
        fs::remove_file(self.folder.join(format!("{ID}.question"))).expect("it is there");
        let owner = fs::metadata(&taken).expect("it is there").uid();
        let answer = serde_json::from_slice(&fs::read(&taken).expect("it can be read")).expect("JSON");
        fs::remove_file(taken).expect("it is there");
        (answer, owner, child.wait_with_output().expect("it ends"))
    }
}

fn digest(project: &Project, more: &[&str]) -> String {
    let said = project.done([&["approve", ID, "--json"], more].concat()).expect("it is shown");
    let shown: Value = serde_json::from_slice(&said.out).expect("JSON");
    shown["digest"].as_str().expect("text").to_owned()
}

fn yes(digest: &str) -> [&str; 6] {
    ["approve", ID, "--once", "--yes", "--digest", digest]
}

/// Only root can be both.
fn everybody() -> &'static [Who] {
    if rustix::process::geteuid().is_root() { &[Who::Root, Who::Ordinary] } else { &[Who::Ordinary] }
}

fn name(who: Who) -> String {
    let users = fs::read_to_string("/etc/passwd").expect("a list of users");
    let id = if rustix::process::geteuid().is_root() { who.user_id() } else { rustix::process::geteuid().as_raw() };
    let of = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        (fields.nth(1)? == id.to_string()).then_some(name)
    };
    users.lines().find_map(of).expect("a user has a name")
}

#[test]
fn an_answer_says_what_was_shown_and_is_of_who_gave_it() {
    for who in everybody() {
        let project = Project::new(*who).expect("a project");
        let waiting = Waiting::parked(&project, &project.state, &[&name(*who)]);
        let digest = digest(&project, &[]);
        let (answer, owner, output) = waiting.taken(project.command(yes(&digest)));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(answer["nonce"], waiting.nonce);
        assert_eq!(answer["digest"], digest);
        assert_eq!(answer["decision"], "once");
        assert_eq!(name(*who), name_of(owner));
    }
}

fn name_of(id: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").expect("a list of users");
    let line = users.lines().find(|line| line.split(':').nth(2) == Some(&id.to_string())).expect("a user has a name");
    line.split(':').next().unwrap_or_default().to_owned()
}

#[test]
fn agents_do_not_answer() {
    for who in everybody() {
        let project = Project::new(*who).expect("a project");
        let waiting = Waiting::parked(&project, &project.state, &[&name(*who)]);
        let digest = digest(&project, &[]);
        for variable in ["BELLJAR", "CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "CURSOR_AGENT", "AI_AGENT"] {
            let output = project.command(yes(&digest)).env(variable, "1").output().expect("it starts");
            assert_eq!(output.status.code(), Some(125), "{variable}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("may not answer questions"), "{variable}: {said}");
            assert!(!waiting.answer().exists());
        }
    }
}

/// The control is `an_answer_says_what_was_shown_and_is_of_who_gave_it`: outside, the same words are an answer.
#[test]
fn nothing_inside_a_sandbox_answers() {
    for who in everybody() {
        let project = Project::new(*who).expect("a project");
        let waiting = Waiting::parked(&project, &project.state, &[&name(*who)]);
        let digest = digest(&project, &[]);
        let forged = json!({
            "version": 1, "id": ID, "nonce": waiting.nonce, "digest": digest, "session": null, "decision": "once",
            "reason": "",
        });
        let binary = belljar();
        let state = format!("XDG_STATE_HOME={}", project.state.display());
        let script = format!(
            "env -u BELLJAR {} approve {ID} --once --yes --digest {digest}
             mkdir -p {folder}
             echo '{forged}' > {folder}/x; chmod 644 {folder}/x; mv {folder}/x {folder}/{ID}.answer
             ls -la {folder}; echo tried",
            binary.display(),
            folder = waiting.folder.display(),
        );
        let read = binary.to_str().expect("text");
        let flags = [
            &["run", "--read", read, "--env", &state][..],
            &["run", "--read", read, "--env", &state, "--workspace-mode", "direct"][..],
        ];
        for flags in flags {
            let output = project.command([flags, &["--", "sh", "-c", &script]].concat()).output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains("tried"), "it never ran: {output:?}");
            let left: Vec<_> = fs::read_dir(&waiting.folder).expect("it is there").flatten().collect();
            assert!(!waiting.answer().exists(), "an answer from inside: {left:?}");
            assert_eq!(left.len(), 2, "something else from inside: {left:?}");
        }
    }
}

/// Needs root, to be two users.
#[test]
fn root_answers_for_another_and_the_other_can_not_answer_for_root() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // Where root looks for what a user asks: in their home.
    let project = Project::new(Who::Ordinary).expect("a project");
    let home = PathBuf::from(format!("/home/{TEST_USER}"));
    let state = home.join(".local/state");
    let as_user = |words: &[&str]| {
        let id = Who::Ordinary.user_id();
        let mut command = Command::new(belljar());
        command.args(words).env_clear().env("HOME", &home).uid(id).gid(id).stdin(Stdio::null());
        command
    };
    let as_root = |words: &[&str]| {
        let mut command = Command::new(belljar());
        command.args(words).env_clear().env("HOME", "/root").stdin(Stdio::null());
        command
    };
    let made = as_user(&["approve", "list"]).output().expect("it starts");
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    for folder in [home.join(".local"), state.clone()] {
        fs::create_dir_all(&folder).expect("a folder");
        project.give(&folder).expect("it is handed over");
    }
    let waiting = Waiting::parked(&project, &state, &["root"]);
    let shown = as_root(&["approve", ID, "--json", "--of", TEST_USER]).output().expect("it starts");
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let digest = shown["digest"].as_str().expect("text");
    let output = as_user(&yes(digest)).output().expect("it starts");
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("may not answer this; root may"), "{output:?}");
    assert!(!waiting.answer().exists());
    let words = [&yes(digest)[..], &["--of", TEST_USER]].concat();
    let (answer, owner, output) = waiting.taken(as_root(&words));
    assert_eq!((owner, output.status.code()), (0, Some(0)), "{output:?}");
    assert_eq!(answer["nonce"], waiting.nonce);
    fs::remove_dir_all(&waiting.folder).expect("nothing else is in it");
    // And what root asks is not even seen by others.
    let project = Project::new(Who::Root).expect("a project");
    let waiting = Waiting::parked(&project, &project.state, &["root"]);
    let output = as_user(&yes(digest)).env("XDG_STATE_HOME", &project.state).output().expect("it starts");
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(!waiting.answer().exists());
}
