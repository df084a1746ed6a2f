//! The layers and the state: out of a guest's reach, and never used when they are not what they should be.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use belljar_testkit::Who;

use crate::Attack;
use crate::bench::Bench;

pub const ATTACKS: &[Attack] = &[
    ("state/marks_of_the_overlay_are_not_forged", forged_marks),
    ("state/never_visible_inside", visible),
    ("state/not_granted_by_any_way", granted),
    ("state/workspaces_that_are_none", workspaces),
    ("state/sandboxes_do_not_see_each_other", siblings),
    ("state/unreadable_for_others", private),
    ("state/corrupt_foreign_or_newer", unusable),
    ("state/others_may_write_to_it", writable_by_others),
    ("state/somebody_elses", somebody_elses),
    ("state/a_link", linked),
    ("state/a_claim_nobody_understands", unknown_claim),
    ("state/journal_that_is_none", bad_journal),
    ("state/journal_of_what_was_finished", finished_journal),
    ("state/journal_of_a_folder_that_is_gone", homeless_journal),
    ("state/two_applies_at_once", two_at_once),
    ("state/apply_while_it_runs", while_it_runs),
];

const SET: &str = r#"perl -e 'syscall(188, $ARGV[0], $ARGV[1], $ARGV[2], length $ARGV[2], 0) == 0 or exit 3' "#;

fn forged_marks(who: Who) {
    let bench = Bench::new(who);
    bench.host("mkdir d; echo keep > d/keep; echo keep > keep");
    bench.guest(
        &[],
        &format!(
            "echo w > witness; touch d/new; mknod d/keep2 c 0 0; mknod keep2 c 0 0; {SET} d user.overlay.opaque y
             {SET} d user.overlay.redirect /etc; {SET} d user.overlay.origin x; mkdir r; {SET} r user.overlay.redirect /d
             {SET} d trusted.overlay.opaque y; {SET} keep user.overlay.whiteout y; {SET} d user.overlay.opaque x"
        ),
    );
    // The control: such a mark, set where the layer really is, hides what is below it.
    let d = bench.layer().join("d");
    let said = bench.belljar(&["diff"]);
    assert!(!said.out.contains("keep"), "{said:?}");
    assert!(rustix::fs::lgetxattr(&d, "user.overlay.opaque", &mut [0u8; 8][..]).is_err(), "the mark is forged");
    bench.apply(&[]);
    assert_eq!((bench.read("d/keep").as_str(), bench.read("keep").as_str()), ("keep\n", "keep\n"));
    assert_eq!(bench.read("witness"), "w\n");
    let bench = Bench::new(who);
    bench.host("mkdir d; echo keep > d/keep");
    let id = bench.create();
    assert!(bench.exec(&id, "touch d/new; ls d").out.contains("keep"));
    let d = bench.layer().join("d");
    rustix::fs::setxattr(&d, "user.overlay.opaque", b"y", rustix::fs::XattrFlags::empty()).unwrap();
    assert!(!bench.exec(&id, "ls d").out.contains("keep"), "the control proves nothing");
}

fn visible(who: Who) {
    let bench = Bench::new(who);
    let id = bench.create();
    bench.exec(&id, "echo secret-of-one > f");
    let state = bench.state("");
    let said = bench.guest(&[], &format!("ls -laR {0} {0}/..; cat /proc/self/mountinfo", state.display()));
    assert!(!said.out.contains("state.sqlite") && !said.out.contains("state/belljar"), "{said:?}");
    let said = bench.guest(&[], &format!("echo x > {}/x; ls -la $HOME/.local/state; true", state.display()));
    assert!(!bench.state("x").exists(), "{said:?}");
    assert!(state.join("state.sqlite").exists(), "the control: it is there");
}

fn granted(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&[], "echo x > f");
    bench.host("mkdir -p ../state/other; ln -s state ../way");
    let at = |path: &str| bench.root.join(path).display().to_string();
    let layer = bench.layer().display().to_string();
    let places = [at("state"), at("state/belljar"), at("state/belljar/layers"), layer, at(""), at("way/belljar")];
    for place in &places {
        for flag in ["--read", "--write", "--workspace"] {
            let said =
                bench.belljar(&["run", flag, place, "--", "/bin/sh", "-c", "find / -name state.sqlite 2>/dev/null"]);
            assert!(said.code >= 120 && !said.out.contains("state.sqlite"), "{flag} {place}: {said:?}");
        }
        for mode in ["direct", "readonly", "cow"] {
            let words = ["run", "--workspace-mode", mode, "--workspace", place, "--", "/bin/true"];
            let said = bench.belljar(&words);
            assert!(said.code >= 120, "{mode} {place}: {said:?}");
            // By being there.
            let mut command = bench.command(belljar_testkit::contestant::belljar());
            command
                .current_dir(place)
                .args(["run", "--workspace-mode", mode, "--", "/bin/sh", "-c", "touch belljar/x x; find ."]);
            let said = bench.run(command);
            assert!(!said.out.contains("state.sqlite") && !bench.state("x").exists(), "{mode} in {place}: {said:?}");
        }
    }
    // The control: what lies beside it is granted.
    let said = bench.belljar(&["run", "--read", &at("state/other"), "--", "/bin/true"]);
    assert_eq!(said.code, 0, "{said:?}");
    // Also before it is there.
    let bench = Bench::new(who);
    let state = bench.root.join("state").display().to_string();
    let said = bench.belljar(&["run", "--write", &state, "--", "mkdir", &format!("{state}/belljar")]);
    assert!(said.code >= 120 && !bench.state("").exists(), "{said:?}");
}

fn workspaces(who: Who) {
    let bench = Bench::new(who);
    bench.host("mkdir -p ../home/.ssh ../home/.local/state ../home/.claude ../home/code");
    let at = |path: &str| bench.root.join(path).display().to_string();
    for place in
        ["/", "/etc", "/usr", "/proc", "/dev", "/sys", "/boot", &at("home"), &at("home/.ssh"), &at("home/.claude")]
    {
        for mode in ["cow", "direct"] {
            let words = ["--workspace-mode", mode, "--workspace", place];
            let said = bench.belljar(&[&["run"], &words[..], &["--", "/bin/true"]].concat());
            assert!(said.code >= 120, "{mode} {place}: {said:?}");
        }
        let said = bench.belljar(&["create", "--workspace", place]);
        assert!(said.code >= 120, "{place}: {said:?}");
    }
    // The control.
    let said = bench.belljar(&["run", "--workspace", &at("home/code"), "--", "/bin/true"]);
    assert_eq!(said.code, 0, "{said:?}");
}

fn siblings(who: Who) {
    let bench = Bench::new(who);
    bench.host("echo base > f");
    let id = bench.create();
    bench.exec(&id, "echo one > f; echo one > only");
    let said = bench.belljar(&["fork", &id, "-n", "2"]);
    let forks: Vec<&str> = said.out.split_whitespace().collect();
    assert_eq!(forks.len(), 2, "{said:?}");
    std::thread::scope(|scope| {
        for fork in &forks {
            let bench = &bench;
            scope.spawn(move || bench.exec(fork, &format!("echo {fork} > f; sleep 0.5; echo {fork} > mine-{fork}")));
        }
        let said = bench.exec(&id, "sleep 0.3; cat f; ls");
        assert!(said.out.starts_with("one\n") && !said.out.contains("mine-"), "{said:?}");
    });
    for (fork, other) in [(forks[0], forks[1]), (forks[1], forks[0])] {
        let said = bench.exec(fork, "cat f; ls");
        assert!(said.out.starts_with(fork) && !said.out.contains(&format!("mine-{other}")), "{said:?}");
    }
    assert_eq!(bench.exec(&bench.create(), "cat f; ls").out, "base\nf\n");
    assert_eq!(bench.read("f"), "base\n");
}

/// Another user of the machine.
fn nobody(bench: &Bench, script: &str) -> String {
    use std::os::unix::process::CommandExt;
    let mut command = bench.command("/bin/sh");
    command.uid(65534).gid(65534).args(["-c", script]);
    bench.run(command).out
}

fn private(who: Who) {
    let bench = Bench::new(who);
    bench.host("umask 0; mkdir -m 755 ../state/belljar; chmod 755 ../state");
    bench.host("umask 077; echo secret > f");
    let mut run = bench.command("/bin/sh");
    let program = belljar_testkit::contestant::belljar();
    run.args(["-c", &format!("umask 0; {} run -- sh -c 'echo secret-too >> f'", program.display())]);
    bench.run(run);
    assert!(bench.belljar(&["diff"]).out.contains('f'));
    let found =
        nobody(&bench, "cd ..; cat state/belljar/layers/*/*/*/* state/belljar/blobs/* state/belljar/state.sqlite*");
    assert!(!found.contains("secret"), "{found}");
    assert!(nobody(&bench, "ls ..").contains("state"), "the control: they are near");
    for entry in fs::read_dir(bench.state("")).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o022, 0, "others may write to {}: {mode:o}", entry.path().display());
    }
}

/// Every command names it, none uses it, and it is as it was.
fn is_named_and_left(bench: &Bench, before: &[u8]) {
    let file = bench.state("state.sqlite");
    for words in [
        &["ps"][..],
        &["diff"],
        &["apply"],
        &["discard"],
        &["show", "last"],
        &["gc"],
        &["rm", "last"],
        &["exec", "last", "--", "/bin/true"],
    ] {
        let said = bench.belljar(words);
        assert_eq!(said.code, 125, "{words:?}: {said:?}");
        assert!(said.err.contains("state"), "{words:?}: {said:?}");
        assert!(fs::read(&file).unwrap() == before, "{words:?} changed it");
    }
    assert!(fs::read_dir(bench.state("layers")).unwrap().next().is_some(), "a layer is gone");
}

fn unusable(who: Who) {
    let sqlite =
        |bench: &Bench, sql: &str| drop(bench.host(&format!("sqlite3 ../state/belljar/state.sqlite \"{sql}\"")));
    type Spoil<'a> = &'a dyn Fn(&Bench);
    let spoils: &[Spoil<'_>] = &[
        &|bench| fs::write(bench.state("state.sqlite"), [0x5a; 8192]).unwrap(),
        &|bench| sqlite(bench, "PRAGMA user_version = 99"),
        &|bench| sqlite(bench, "PRAGMA application_id = 7"),
        &|bench| sqlite(bench, "UPDATE sandbox SET record = '{}'"),
        &|bench| sqlite(bench, "DROP TABLE base; DROP TABLE journal; DROP TABLE sandbox"),
    ];
    for spoil in spoils {
        let bench = Bench::new(who);
        bench.guest(&[], "echo x > f");
        assert_eq!(bench.belljar(&["ps"]).code, 0, "the control");
        bench.host("sqlite3 ../state/belljar/state.sqlite 'PRAGMA wal_checkpoint(TRUNCATE)'");
        fs::remove_file(bench.state("state.sqlite-wal")).ok();
        fs::remove_file(bench.state("state.sqlite-shm")).ok();
        spoil(&bench);
        bench.host("sqlite3 ../state/belljar/state.sqlite 'PRAGMA wal_checkpoint(TRUNCATE)' 2>&1 || true");
        let before = fs::read(bench.state("state.sqlite")).unwrap();
        is_named_and_left(&bench, &before);
        assert_eq!(bench.read("f"), "");
    }
}

fn writable_by_others(who: Who) {
    for mode in [0o777, 0o770, 0o722] {
        let bench = Bench::new(who);
        bench.guest(&[], "echo x > f");
        assert_eq!(bench.belljar(&["diff"]).code, 0, "the control");
        fs::set_permissions(bench.state(""), fs::Permissions::from_mode(mode)).unwrap();
        let before = fs::read(bench.state("state.sqlite")).unwrap();
        is_named_and_left(&bench, &before);
        let said = bench.belljar(&["run", "--", "/bin/true"]);
        assert_eq!(said.code, 125, "{said:?}");
    }
}

fn somebody_elses(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&[], "echo x > f");
    assert_eq!(bench.belljar(&["diff"]).code, 0, "the control");
    // Root's, for the user; the user's, for root.
    let other = if who == Who::Root { Who::Ordinary.user_id() } else { 0 };
    chown(bench.state(""), Some(other), None).unwrap();
    fs::set_permissions(bench.state(""), fs::Permissions::from_mode(0o755)).unwrap();
    for words in [&["ps"][..], &["apply"], &["run", "--", "/bin/true"]] {
        let said = bench.belljar(words);
        assert_eq!(said.code, 125, "{words:?}: {said:?}");
        assert!(said.err.contains("belongs to"), "{said:?}");
    }
    assert_eq!(bench.read("f"), "");
}

fn linked(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&[], "echo x > f");
    assert_eq!(bench.belljar(&["diff"]).code, 0, "the control");
    bench.host("cd ../state; mv belljar real; ln -s real belljar");
    for words in [&["ps"][..], &["apply"], &["run", "--", "/bin/true"], &["gc"]] {
        let said = bench.belljar(words);
        assert!(said.code == 125 && said.err.contains("link"), "{words:?}: {said:?}");
    }
    bench.host("cd ../state; rm belljar; mv real belljar; cd belljar; mv state.sqlite x; rm -f state.sqlite-*");
    symlink("x", bench.state("state.sqlite")).unwrap();
    let said = bench.belljar(&["apply"]);
    assert!(said.code == 125 && said.err.contains("state.sqlite"), "{said:?}");
    assert_eq!(bench.read("f"), "");
}

/// A newer belljar may write other records: its layers are named, and never collected.
fn unknown_claim(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&[], "echo x > f");
    let id = "0123456789abcdef0123456789abcdef";
    for (claim, stays) in [("{\"version\": 2, \"new\": true}", true), ("{\"id\": \"x", false)] {
        bench.host(&format!("mkdir -p ../state/belljar/layers/{id}/0/upper"));
        fs::write(bench.state("layers").join(id).join("claim"), claim).unwrap();
        let said = bench.belljar(&["gc", "--older-than", "1d"]);
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(bench.state("layers").join(id).exists(), stays, "{claim}: {said:?}");
        assert_eq!(said.out.contains(id), stays, "{said:?}");
    }
}

fn bad_journal(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&[], "echo x > f");
    assert_eq!(bench.belljar(&["diff"]).code, 0, "the control");
    bench.host("sqlite3 ../state/belljar/state.sqlite \"INSERT INTO journal VALUES ('j', 's', 1, '{}')\"");
    for words in [&["apply"][..], &["diff"], &["discard"], &["gc"]] {
        let said = bench.belljar(words);
        assert_eq!(said.code, 125, "{words:?}: {said:?}");
    }
    assert_eq!(bench.read("f"), "");
    let rows = bench.host("sqlite3 ../state/belljar/state.sqlite 'SELECT count(*) FROM journal'").out;
    assert_eq!(rows.trim(), "1", "it is not deleted");
}

/// As a belljar leaves it that is killed between two calls.
fn plant_journal(bench: &Bench, id: &str, workspace: &std::path::Path) {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    let stat = fs::metadata(workspace).unwrap();
    let plan = serde_json::json!({
        "id": "0123456789abcdef0123456789abcdef", "sandbox": id, "steps": [],
        "workspaces": [{
            "path": { "Unix": workspace.as_os_str().as_bytes() }, "device": stat.dev(), "inode": stat.ino(),
            "owner": [0, 0], "copied": false,
        }],
    });
    fs::write(bench.root.join("outside/plan"), plan.to_string()).unwrap();
    let insert =
        "INSERT INTO journal VALUES ('j', (SELECT id FROM sandbox), 1, CAST(readfile('../outside/plan') AS TEXT))";
    bench.host(&format!("sqlite3 ../state/belljar/state.sqlite \"{insert}\""));
}

fn finished_journal(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&[], "echo x > f");
    plant_journal(&bench, "x", &bench.project(""));
    let said = bench.apply(&[]);
    assert_eq!((said.code, bench.read("f").as_str()), (0, "x\n"), "{said:?}");
    assert!(said.out.contains("finished"), "{said:?}");
}

/// It keeps nobody from using other sandboxes, and is not forgotten.
fn homeless_journal(who: Who) {
    let bench = Bench::new(who);
    let id = bench.create();
    bench.host("mkdir ../other");
    plant_journal(&bench, &id, &bench.root.join("other"));
    bench.host("mv ../other ../moved");
    let other = bench.create();
    bench.exec(&other, "echo x > f");
    for words in [&["diff", &other][..], &["apply", &other], &["discard", &other]] {
        let said = bench.belljar(words);
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
        assert!((said.err + &said.out).contains("can't be finished"), "{words:?}");
    }
    assert_eq!(bench.belljar(&["apply", &id]).code, 125, "its own is not taken over it");
    bench.host("mv ../moved ../other");
    assert_eq!(bench.belljar(&["apply", &id]).code, 0);
    assert_eq!(bench.read("f"), "x\n");
}

fn two_at_once(who: Who) {
    let bench = Bench::new(who);
    bench.host("for i in $(seq 200); do echo base > f$i; done");
    let id = bench.create();
    bench.exec(&id, "for i in $(seq 200); do echo sand > f$i; done");
    let said: Vec<i32> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| bench.belljar(&["apply", &id]).code)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(said.contains(&0) && said.iter().all(|code| [0, 125].contains(code)), "{said:?}");
    assert!((1..=200).all(|number| bench.read(&format!("f{number}")) == "sand\n"));
    let left = bench.host("ls -A").out;
    assert!(!left.contains(".belljar-"), "{left}");
}

fn while_it_runs(who: Who) {
    let bench = Bench::new(who);
    let id = bench.create();
    bench.exec_while(&id, "echo x > f", || {
        for words in [&["apply", &id][..], &["discard", &id], &["rm", &id], &["snapshot", &id], &["fork", &id]] {
            let said = bench.belljar(words);
            assert!(said.code == 125 && said.err.contains("in use"), "{words:?}: {said:?}");
        }
        assert_eq!(bench.belljar(&["diff", &id]).code, 0);
        bench.belljar(&["gc", "--older-than", "1s"]);
    });
    assert_eq!(bench.read("f"), "");
    bench.apply(&[&id]);
    assert_eq!(bench.read("f"), "x\n", "the control");
}
