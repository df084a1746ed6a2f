//! What people see and programs read: help, errors and codes of the real binary.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder of its own for each test, removed afterwards. Not in /tmp, which a sandbox replaces.
struct Project(PathBuf);

impl Project {
    fn make(name: &str) -> Project {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        Project(folder.canonicalize().expect("it is there"))
    }

    fn belljar(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_belljar"))
            .args(words)
            .current_dir(&self.0)
            .env("XDG_STATE_HOME", self.state())
            .stdin(Stdio::null())
            .output()
            .expect("belljar starts")
    }

    /// Beside the project: a sandbox keeps nothing in what it works on.
    fn state(&self) -> PathBuf {
        self.0.with_extension("state")
    }

    /// The exit code and the one line on standard error, with what differs between machines replaced.
    fn complaint(&self, words: &[&str]) -> String {
        let output = self.belljar(words);
        let text = String::from_utf8_lossy(&output.stderr).replace(&self.0.display().to_string(), "PROJECT");
        assert_eq!(text.trim_end().lines().count(), 1, "not one line: {text}");
        assert!(output.stdout.is_empty(), "something on standard output: {:?}", output.stdout);
        format!("{} {}", output.status.code().expect("an exit code"), text.trim_end())
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("nothing holds it");
        if self.state().exists() {
            std::fs::remove_dir_all(self.state()).expect("nothing holds the state");
        }
    }
}

#[test]
fn help_teaches() {
    let project = Project::make("help");
    for (name, words) in [
        ("belljar", vec!["--help"]),
        ("run", vec!["run", "--help"]),
        ("explain", vec!["explain", "--help"]),
        ("doctor", vec!["doctor", "--help"]),
        ("diff", vec!["diff", "--help"]),
        ("apply", vec!["apply", "--help"]),
        ("create", vec!["create", "--help"]),
        ("exec", vec!["exec", "--help"]),
        ("fork", vec!["fork", "--help"]),
        ("gc", vec!["gc", "--help"]),
    ] {
        let output = project.belljar(&words);
        assert_eq!(output.status.code(), Some(0));
        insta::assert_snapshot!(format!("help of {name}"), String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn bad_input_is_one_line_with_the_fix() {
    let project = Project::make("bad");
    std::os::unix::fs::symlink(&project.0, project.0.join("link")).expect("a link");
    std::fs::write(project.0.join("plain"), "text").expect("a file");
    std::fs::write(project.0.join("new\nline"), "").expect("a file");
    let cases: &[&[&str]] = &[
        &["run", "--nosuch", "--", "true"],
        &["run"],
        &["run", "--"],
        &["run", "--", ""],
        &["run", "--", "nosuchprogram"],
        &["run", "--", "./nosuchprogram"],
        &["run", "--", "./plain"],
        &["run", "--", "."],
        &["run", "--cwd", "nosuchfolder", "--", "true"],
        &["run", "--cwd", "plain", "--", "true"],
        &["run", "--cwd", "/boot", "--", "true"],
        &["run", "--read", "nosuchfile", "--", "true"],
        &["run", "--read", "new\nline", "--", "true"],
        &["run", "--read", "", "--", "true"],
        &["run", "--timeout", "0", "--", "true"],
        &["run", "--memory", "12XB", "--", "true"],
        &["run", "--memory", "0", "--", "true"],
        &["run", "--pids", "many", "--", "true"],
        &["run", "--cpus", "-1", "--", "true"],
        &["run", "--write", "/", "--", "true"],
        &["run", "--write", "/usr", "--", "true"],
        &["run", "--write", "/etc", "--", "true"],
        &["run", "--write", "/var", "--", "true"],
        &["run", "--read", "/proc", "--", "true"],
        &["run", "--write", "link", "--", "true"],
        &["run", "--read", "/etc/shadow", "--", "true"],
        &["run", "--env", "1X=2", "--", "true"],
        &["run", "--env", "=2", "--", "true"],
        &["run", "--backend", "nosuch", "--", "true"],
        &["run", "--accept-gap", "nosuch", "--", "true"],
        &["run", "--result-file", "nosuchfolder/file", "--", "true"],
        &["run", "--workspace", "nosuchfolder", "--", "true"],
        &["run", "--workspace", "plain", "--", "true"],
        &["run", "--workspace", "/", "--", "true"],
        &["run", "--workspace", "/etc", "--", "true"],
        &["run", "--workspace", "/usr", "--", "true"],
        &["run", "--workspace-mode", "nosuch", "--", "true"],
        &["diff"],
        &["diff", "nosuch"],
        &["diff", "plain"],
        &["apply", "last"],
        &["apply", "--ours", "--theirs"],
        &["show", "../../etc"],
        &["show", ""],
        &["exec", "nosuch", "--", "true"],
        &["create", "--name", "last"],
        &["create", "--name", "abc"],
        &["create", "--name", "a b"],
        &["fork", "last", "-n", "0"],
        &["rollback", "nosuch"],
        &["gc", "--older-than", "soon"],
        &["nosuchcommand"],
    ];
    let complaints: Vec<String> =
        cases.iter().map(|words| format!("{words:?}\n    {}", project.complaint(words))).collect();
    insta::assert_snapshot!(complaints.join("\n"));
}

#[test]
fn a_long_argument_list_is_passed_or_refused_but_never_cut() {
    let project = Project::make("long");
    let long = "x".repeat(100_000);
    let words: Vec<&str> = ["run", "-q", "--", "sh", "-c", "printf %s \"$*\" | wc -c", "sh"]
        .into_iter()
        .chain(std::iter::repeat_n(long.as_str(), 15))
        .collect();
    let output = project.belljar(&words);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), (15 * 100_000 + 14).to_string());
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_result_tells_codes_apart() {
    let project = Project::make("result");
    let result = project.0.join("result.json");
    let read =
        || -> serde_json::Value { serde_json::from_slice(&std::fs::read(&result).expect("a result")).expect("JSON") };
    let file = result.to_str().expect("a plain path");
    for code in [0, 1, 122, 123, 124, 125, 126, 127, 255] {
        let output = project.belljar(&["run", "-q", "--result-file", file, "--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(output.status.code(), Some(code));
        assert_eq!((&read()["outcome"], &read()["exit"]), (&"ran".into(), &code.into()));
        assert!(output.stderr.is_empty(), "-q said {:?}", output.stderr);
    }
    let output = project.belljar(&["run", "-q", "--result-file", file, "--timeout", "100ms", "--", "sleep", "60"]);
    assert_eq!((output.status.code(), &read()["overrun"]), (Some(124), &"wall-time".into()));
    let output = project.belljar(&["run", "-q", "--result-file", file, "--", "nosuchprogram"]);
    assert_eq!((output.status.code(), &read()["outcome"]), (Some(127), &"not-started".into()));
    let output = project.belljar(&["run", "-q", "--result-file", file, "--write", "/", "--", "true"]);
    assert_eq!((output.status.code(), &read()["outcome"]), (Some(123), &"refused".into()));
    let output = project.belljar(&["run", "-q", "--result-file", file, "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!((output.status.code(), &read()["signal"]), (Some(128 + 15), &15.into()));
    let walls = project.belljar(&["run", "--json", "--", "true"]);
    let object: serde_json::Value =
        serde_json::from_slice(&walls.stderr).expect("--json is one object on standard error");
    assert!(object["enforcement"].as_array().is_some_and(|walls| walls.len() >= 20));
}

#[test]
fn a_refused_call_is_recorded_with_its_program() {
    let project = Project::make("denial");
    let output = project.belljar(&["run", "--json", "--", "unshare", "--user", "true"]);
    let object: serde_json::Value = serde_json::from_slice(
        output.stderr.split(|byte| *byte == b'\n').rfind(|line| line.starts_with(b"{")).expect("an object"),
    )
    .expect("JSON");
    let denial = &object["denials"][0];
    assert_eq!((&denial["call"], &denial["program"]), (&"unshare".into(), &"unshare".into()), "{object}");
    let output = project.belljar(&["run", "--", "unshare", "--user", "true"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("denied: unshare unshare (new namespaces)"), "{text}");
}

#[test]
fn explain_runs_nothing_and_says_all() {
    let project = Project::make("explain");
    let output = project.belljar(&["explain", "--write", ".", "--", "touch", "made"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!project.0.join("made").exists());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(&format!("bind     {} read-write", project.0.display())), "{text}");
    let output = project.belljar(&["explain", "--json", "--", "touch", "made"]);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(plan["steps"].as_array().is_some_and(|steps| steps.len() > 20));
}

#[test]
fn an_odd_name_neither_commands_a_terminal_nor_breaks_what_programs_read() {
    let project = Project::make("odd");
    let names: [&[u8]; 4] =
        [b"red\x1b[31m", b"line\nbelljar: exit 0", b"\xe2\x80\xaegnp \xd8\x9c \xc2\x9b2J \x7f", b"no text \xff\xfe"];
    for name in names {
        let folder = project.0.join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join("plain"), "").expect("a file");
        let belljar = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_belljar"));
            command.args(words).current_dir(&folder).stdin(Stdio::null()).output().expect("belljar starts")
        };
        let shown = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).expect("text");
            let odd = |letter: &char| {
                letter.is_control() && *letter != '\n' || matches!(letter, '\u{61c}' | '\u{202a}'..='\u{202e}')
            };
            assert_eq!(text.chars().find(odd), None, "{text:?}");
            text
        };
        let said = shown(&belljar(&["run", "--", "./plain"]).stderr);
        assert!(said.lines().count() == 1 && said.contains("is not executable"), "{said:?}");
        let explained = shown(&belljar(&["explain", "--", "true"]).stdout);
        assert!(explained.lines().any(|line| line.starts_with("payload  chdir")), "{explained:?}");
        // As programs read it, the name is what it was, as far as it is text.
        let real = String::from_utf8_lossy(name).into_owned();
        let plan = shown(&belljar(&["explain", "--json", "--", "true"]).stdout);
        let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
        assert!(plan["directory"].as_str().is_some_and(|directory| directory.ends_with(&real)), "{plan}");
        let result = shown(&belljar(&["run", "--json", "--", "./plain"]).stderr);
        let result: serde_json::Value = serde_json::from_str(&result).expect("JSON");
        assert!(result["error"]["message"].as_str().is_some_and(|message| message.contains(&real)), "{result}");
    }
}

#[test]
fn doctor_says_what_the_host_can_hold() {
    let project = Project::make("doctor");
    let output = project.belljar(&["doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let native = &report["backends"][0];
    assert_eq!(native["backend"], "native");
    let features = native["features"].as_array().expect("features");
    for what in [
        "user namespaces with mounts", "fresh /proc", "network namespace", "a way out by name (nf_tables)",
        "overlayfs in a user namespace", "Landlock", "seccomp", "control groups",
    ] {
        let feature = features.iter().find(|feature| feature["what"] == what).expect(what);
        // Whatever does not work says how to mend it.
        assert!(feature["works"] == true || feature["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{feature}");
    }
    assert_eq!(output.status.code(), Some(if native["usable"] == true { 0 } else { 1 }));
}

#[test]
fn files_made_in_the_workspace_belong_to_the_caller() {
    use std::os::unix::fs::MetadataExt;
    let project = Project::make("owner");
    let output =
        project.belljar(&["run", "-q", "--write", ".", "--", "sh", "-c", "echo made > file && mkdir folder && id -u"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_ne!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    let own = std::fs::metadata(&project.0).expect("the project").uid();
    for made in ["file", "folder"] {
        assert_eq!(std::fs::metadata(project.0.join(made)).expect(made).uid(), own);
    }
    let output = project.belljar(&["run", "-q", "--workspace-mode", "readonly", "--", "touch", "file"]);
    assert_ne!(output.status.code(), Some(0), "a workspace that may only be read was written to");
}
