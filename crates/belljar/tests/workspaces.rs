//! What people see of kept changes: the words of the real binary, from a run to what is taken.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A project and a state of its own for each test, removed afterwards.
struct Project {
    root: PathBuf,
}

impl Project {
    fn make(name: &str) -> Project {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kept-{name}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("project/src")).expect("a folder for the test");
        let project = Project { root: root.canonicalize().expect("it is there") };
        project.write("src/a.txt", "one\ntwo\nthree\nfour\nfive\n");
        project.write("gone.txt", "old\n");
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join("project").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }

    /// The words, the exit code, and all that is said, with what differs from time to time replaced.
    fn say(&self, words: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_belljar"))
            .args(words)
            .current_dir(self.path(""))
            .env("XDG_STATE_HOME", self.root.join("state"))
            .stdin(Stdio::null())
            .output()
            .expect("belljar starts");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).replace(&self.path("").display().to_string(), "PROJECT/");
        let text = text.replace(self.path("").display().to_string().trim_end_matches('/'), "PROJECT");
        let lines: Vec<String> = text.lines().map(steady).collect();
        format!("$ belljar {}\n{}\n[{}]\n", words.join(" "), lines.join("\n"), output.status.code().unwrap_or(-1))
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.root).expect("nothing holds it");
    }
}

/// Ids, times and sizes are not the same twice.
fn steady(line: &str) -> String {
    let word = |word: &str| {
        let bare = word.trim_end_matches([':', ',']);
        let digits = |length: usize| bare.len() == length && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        match digits(8) || digits(32) {
            true => word.replace(bare, "ID"),
            false => word.to_owned(),
        }
    };
    let line = line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    // Filesystems differ in what a folder takes.
    if let Some((before, _)) = line.split_once(" given back")
        && let Some((before, _)) = before.rsplit_once(", ")
    {
        return format!("{before}, SIZE given back");
    }
    // What a run used is measured, and is somebody else's test.
    match line.split_once(" after ") {
        Some((before, after)) if line.starts_with("belljar:") => {
            let changed = after.split_once("; changed").map_or(String::new(), |(_, rest)| format!("; changed{rest}"));
            format!("{before} after TIME{changed}")
        }
        _ => line,
    }
}

const CHANGE: &str = "echo hi > new.txt; sed -i s/two/TWO/ src/a.txt; rm gone.txt; mkdir -p .git/hooks; \
    echo evil > .git/hooks/pre-commit; ln -s /etc/passwd out; ln -s src/a.txt in; mkfifo pipe; printf 'a\\0b' > blob";

#[test]
fn from_a_run_to_what_is_taken() {
    let project = Project::make("story");
    let mut story = project.say(&["run", "--", "sh", "-c", CHANGE]);
    assert_eq!(project.read("src/a.txt"), "one\ntwo\nthree\nfour\nfive\n");
    assert!(!project.path("new.txt").exists() && project.path("gone.txt").exists());
    for words in [&["diff"][..], &["diff", "-p", "src"], &["apply", "--check"]] {
        story += &project.say(words);
    }
    // Somebody else works on the same file, and on another line of it.
    project.write("src/a.txt", "one\ntwo\nthree\nfour\nFIVE\n");
    for words in [&["apply"][..], &["diff"], &["apply", "last", ".git/hooks"], &["discard"], &["diff"]] {
        story += &project.say(words);
    }
    assert_eq!(project.read("src/a.txt"), "one\nTWO\nthree\nfour\nFIVE\n");
    assert_eq!(project.read(".git/hooks/pre-commit"), "evil\n");
    assert!(project.path("out").symlink_metadata().is_err() && project.path("pipe").symlink_metadata().is_err());
    assert_eq!(std::fs::read_dir(project.path("")).expect("the project").count(), 5, "something is left behind");
    insta::assert_snapshot!(story);
}

#[test]
fn a_conflict_is_left_for_somebody_to_decide() {
    let project = Project::make("conflict");
    let mut story = project.say(&["run", "--", "sh", "-c", "sed -i s/two/TWO/ src/a.txt; echo mine > b"]);
    project.write("src/a.txt", "one\nzwei\nthree\nfour\nfive\n");
    project.write("b", "yours\n");
    for words in [&["apply", "--check"][..], &["apply"], &["apply", "--ours", "src"]] {
        story += &project.say(words);
        assert_eq!(project.read("src/a.txt"), "one\nzwei\nthree\nfour\nfive\n");
        assert_eq!(project.read("b"), "yours\n");
    }
    story += &project.say(&["apply", "--theirs"]);
    assert_eq!(project.read("b"), "mine\n");
    story += &project.say(&["ps"]);
    insta::assert_snapshot!(story);
}

#[test]
fn a_kept_sandbox_is_used_again_snapshotted_and_forked() {
    let project = Project::make("kept");
    let mut story = String::new();
    for words in [
        &["create", "--name", "try"][..],
        &["exec", "try", "-q", "--", "sh", "-c", "echo 1 > one"],
        &["snapshot", "try", "--name", "first"],
        &["exec", "try", "-q", "--", "sh", "-c", "rm one; rm -r src; echo 2 > two"],
        &["diff", "try"],
        &["fork", "try", "-n", "2"],
        &["exec", "try-1", "-q", "--", "sh", "-c", "echo A > who"],
        &["exec", "try-2", "-q", "--", "sh", "-c", "echo B > who; cat two"],
        &["diff", "try-1", "try-2"],
        &["diff", "try"],
        &["rollback", "try"],
        &["diff", "try"],
        &["rollback", "try", "nosuch"],
        &["snapshot", "try", "--name", "first"],
        &["apply", "try-2"],
        &["exec", "try-2", "-q", "--", "sh", "-c", "ls"],
        &["rm", "try", "try-1"],
        &["gc", "--older-than", "7d", "--dry-run"],
    ] {
        story += &project.say(words);
    }
    assert!(project.path("who").exists() && !project.path("src").exists());
    insta::assert_snapshot!(story);
}

#[test]
fn programs_read_all_of_it_as_json() {
    let project = Project::make("json");
    let ask = |words: &[&str]| -> serde_json::Value {
        let output = Command::new(env!("CARGO_BIN_EXE_belljar"))
            .args(words)
            .current_dir(project.path(""))
            .env("XDG_STATE_HOME", project.root.join("state"))
            .stdin(Stdio::null())
            .output()
            .expect("belljar starts");
        let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        serde_json::from_slice(&text).expect("it is JSON")
    };
    let ran = ask(&["run", "--json", "--", "sh", "-c", CHANGE]);
    assert_eq!((&ran["changes"]["added"], &ran["changes"]["protected"]), (&8.into(), &3.into()), "{ran}");
    let id = ran["changes"]["sandbox"].as_str().expect("an id");
    assert_eq!(ask(&["ps", "--json"])[0]["running"], false);
    assert!(ask(&["show", "--json", id])["id"].as_str().is_some_and(|full| full.starts_with(id)));
    let changes = ask(&["diff", "--json"]);
    let of =
        |path: &str| changes["changes"].as_array().into_iter().flatten().find(|change| change["path"] == path).cloned();
    assert_eq!(of("src/a.txt").expect("a change")["lines_added"], 1);
    assert_eq!(of("out").expect("a change")["is"]["target"], "/etc/passwd");
    assert_eq!(of("gone.txt").expect("a change")["kind"], "deleted");
    assert_eq!(of("blob").expect("a change")["binary"], true);
    assert!(of("pipe").expect("a change")["refused"].is_string());
    let taken = ask(&["apply", "--json"]);
    assert_eq!((taken["complete"].as_bool(), taken["held_back"].as_array().map(Vec::len)), (Some(false), Some(3)));
    assert!(ask(&["discard", "--json"])["disk"].is_u64());
    // Others of the same user may run something without layers meanwhile.
    let left = ask(&["ps", "--json"]);
    let kept = left.as_array().into_iter().flatten().filter(|one| one["workspaces"] != serde_json::json!([]));
    assert_eq!(kept.count(), 0, "{left}");
}

/// A program that reads settings of a repository would run this.
#[test]
fn nothing_of_the_hosts_obeys_what_the_sandbox_wrote() {
    let project = Project::make("canary");
    let canary = project.root.join("canary");
    let script = format!(
        "git init -q . && git config core.fsmonitor 'touch {0}' && git config diff.external 'touch {0}' && \
         git config core.hooksPath . && git config filter.x.clean 'touch {0}' && echo '* filter=x' > .gitattributes; \
         echo x > tracked; git add tracked",
        canary.display()
    );
    project.say(&["run", "--", "sh", "-c", &script]);
    for words in [&["diff"][..], &["diff", "-p"], &["apply", "--check"], &["ps"], &["apply"], &["discard"]] {
        project.say(words);
    }
    assert!(!canary.exists());
}
