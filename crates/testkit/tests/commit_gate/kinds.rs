//! Kinds of files and rights that never leave a sandbox, and amounts that nobody waits for.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::Duration;

use belljar_testkit::Who;

use crate::Attack;
use crate::bench::{Bench, Without, attack};

pub const ATTACKS: &[Attack] = &[
    ("kinds/set_user_id_and_the_like", set_ids),
    ("kinds/attributes", attributes),
    ("kinds/capabilities", capabilities),
    ("kinds/pipes_sockets_and_devices", specials),
    ("kinds/file_full_of_nothing", sparse),
    ("kinds/a_hundred_thousand_files", many),
    ("kinds/very_deep", deep),
    ("kinds/closed_to_everybody", closed),
    ("kinds/owners", owners),
];

fn set_ids(who: Who) {
    attack(
        who,
        Without::Care,
        "echo a > old; mkdir d; chmod 755 d",
        "cp /bin/true tool; chmod 6755 tool; chmod 4755 old; mkdir n; chmod 3777 n; chmod 2775 d; echo x > n/f; chmod 1644 n/f",
        |bench| {
            let mode = |path: &str| fs::metadata(bench.project(path)).map_or(0, |stat| stat.mode() & 0o7000);
            ["tool", "old", "n", "d", "n/f"].iter().any(|path| mode(path) != 0)
        },
    );
}

fn has_attribute(bench: &Bench, path: &str, name: &str) -> bool {
    rustix::fs::lgetxattr(bench.project(path), name, &mut [0u8; 256][..]).is_ok()
}

/// `setxattr`, by number: hardly a machine has a program for it.
const SET: &str = r#"perl -e 'syscall(188, $ARGV[0], $ARGV[1], $ARGV[2], length $ARGV[2], 0) == 0 or exit 3' "#;

fn attributes(who: Who) {
    attack(
        who,
        Without::Layers,
        "echo a > old",
        &format!("echo n > new; {SET} new user.evil x; echo b >> old; {SET} old user.evil x"),
        |bench| has_attribute(bench, "new", "user.evil") || has_attribute(bench, "old", "user.evil"),
    );
}

/// Nobody inside may give a file capabilities; were one in the layer all the same, it would not cross.
fn capabilities(who: Who) {
    for gate in [false, true] {
        let bench = Bench::new(who);
        bench.guest(&[], "cp /bin/true tool; chmod 755 tool");
        let tool = bench.layer().join("tool");
        let done = std::process::Command::new("setcap").arg("cap_net_raw+ep").arg(&tool).status().unwrap();
        assert!(done.success());
        match gate {
            true => drop(bench.apply(&[])),
            // As root: only root may.
            false => {
                let done = std::process::Command::new("cp").arg("-a").arg(&tool).arg(bench.project("tool")).status();
                assert!(done.unwrap().success());
            }
        }
        assert!(bench.project("tool").exists());
        assert_eq!(has_attribute(&bench, "tool", "security.capability"), !gate);
    }
}

fn specials(who: Who) {
    let is_special = |bench: &Bench, path: &str| {
        fs::symlink_metadata(bench.project(path)).is_ok_and(|stat| !stat.is_file() && !stat.is_dir())
    };
    attack(
        who,
        Without::Layers,
        "echo a > old",
        "mkfifo pipe; rm old; mkfifo old; mkdir d; mkfifo d/pipe
         perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un(\"socket\")) or die'",
        |bench| ["pipe", "old", "d/pipe", "socket"].iter().any(|path| is_special(bench, path)),
    );
    let bench = Bench::new(who);
    bench.guest(&[], "mkfifo pipe; echo w > witness; mknod disk b 8 0; mknod zero c 1 5");
    for words in [&["diff"][..], &["diff", "--patch"], &["diff", "--json"], &["apply", "--check"], &["apply"], &["ps"]]
    {
        let said = bench.belljar(words);
        // Whoever waited for the pipe would do so until the test is ended.
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
    }
    for path in ["pipe", "disk", "zero"] {
        let stat = fs::symlink_metadata(bench.project(path));
        assert!(!stat.is_ok_and(|stat| stat.file_type().is_fifo() || stat.file_type().is_char_device()), "{path}");
    }
}

/// Its size is a claim: neither the disk nor the memory is filled with it, and nobody waits.
fn sparse(who: Who) {
    let is_huge = |bench: &Bench| fs::metadata(bench.project("big")).is_ok_and(|stat| stat.len() > 1 << 39);
    attack(who, Without::Layers, "echo a > old", "truncate -s 1T big; truncate -s 1T old", is_huge);
    let bench = Bench::new(who);
    bench.host("echo a > old");
    bench.guest(&[], "truncate -s 1T big; truncate -s 1T old");
    for words in [&["diff"][..], &["diff", "--patch"], &["diff", "--json"], &["apply", "--theirs"], &["ps"]] {
        let said = bench.belljar(words);
        assert!(said.used < Duration::from_secs(5), "{words:?}: {said:?}");
        assert!(said.code <= 1, "{words:?}: {said:?}");
    }
    assert!(bench.belljar(&["diff", "--patch"]).out.contains("Binary files"), "it is said to differ");
    assert_eq!(bench.read("old"), "a\n");
    // An ordinary one with holes crosses as it is.
    let bench = Bench::new(who);
    bench.guest(&[], "truncate -s 10M holes; echo end >> holes");
    bench.apply(&[]);
    assert_eq!(fs::metadata(bench.project("holes")).unwrap().len(), (10 << 20) + 4);
}

fn many(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&["--timeout", "5m"], "mkdir d; cd d; perl -e 'for (1..100000) { open F, \">f$_\" or die; close F }'");
    for words in [&["diff", "--stat"][..], &["apply", "--check"], &["apply"]] {
        let said = bench.belljar(words);
        assert!(said.code == 0 && said.used < Duration::from_secs(60), "{words:?}: {} {:?}", said.code, said.used);
    }
    assert_eq!(fs::read_dir(bench.project("d")).unwrap().count(), 100_000);
}

/// Deeper than a path can say, made in one go so that no limit on the way sees it.
const DEEP: &str = r#"perl -e 'for my $c (0..99) { mkdir "c$c"; chdir "c$c"; for (1..190) { mkdir "d"; chdir "d" }
    for (1..191) { chdir ".." } } for my $c (reverse 0..98) { my $n = $c + 1; rename("c$n", "c$c/" . ("d/" x 190) . "c$n") or die }'"#;

fn deep(who: Who) {
    let bench = Bench::new(who);
    // It may be ended for it, but only when somebody looks.
    let said = bench.belljar(&["run", "--disk", "4T", "--", "/bin/sh", "-c", &format!("echo w > witness; {DEEP}")]);
    assert!(said.used < Duration::from_secs(60), "the run does not end: {:?}", said.used);
    let layer = bench.layer();
    let depth = std::process::Command::new("sh")
        .args(["-c", "find . -printf '%d\\n' | sort -n | tail -1"])
        .current_dir(&layer)
        .output()
        .unwrap();
    let depth: usize = String::from_utf8_lossy(&depth.stdout).trim().parse().unwrap();
    assert!(depth > 2_100, "the control: it is really deep, {depth}");
    for words in [&["diff", "--stat"][..], &["diff", "--patch"], &["ps"], &["show", "last"], &["apply"], &["diff"]] {
        let said = bench.belljar(words);
        assert!(said.used < Duration::from_secs(30), "{words:?} takes {:?}", said.used);
        assert!(said.code <= 1, "{words:?}: {} {}", said.code, said.err);
    }
    assert_eq!(bench.read("witness"), "w\n");
    let said = bench.belljar(&["discard"]);
    assert!(said.code == 0 && said.used < Duration::from_secs(30), "{} {}", said.code, said.err);
    // Up to where paths can be used, it is taken as it is.
    let bench = Bench::new(who);
    bench.guest(&[], r#"perl -e 'for (1..150) { mkdir "dddddddddddddddddddd"; chdir "dddddddddddddddddddd" } open F, ">f"; print F "x"'"#);
    bench.apply(&[]);
    let found = bench.host("find . -name f | wc -l");
    assert_eq!(found.out.trim(), "1");
}

fn closed(who: Who) {
    let bench = Bench::new(who);
    bench.host("mkdir d; echo a > d/f");
    // All at the end and at once: who closes a folder while it is measured is ended for that.
    let script = "echo w > witness; mkdir n; echo x > n/f; echo b > d/f; chmod 000 n/f d/f n d";
    bench.belljar(&["run", "--", "/bin/sh", "-c", script]);
    for words in [&["diff"][..], &["diff", "--patch"], &["ps"], &["apply"], &["ps"]] {
        let said = bench.belljar(words);
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
    }
    assert_eq!(bench.read("witness"), "w\n");
    bench.host("chmod 700 n d; chmod 600 n/f d/f");
    assert_eq!((bench.read("n/f").as_str(), bench.read("d/f").as_str()), ("x\n", "b\n"));
}

/// Whoever takes them, files in somebody's project are theirs.
fn owners(who: Who) {
    let bench = Bench::new(who);
    let user = Who::Ordinary.user_id();
    std::os::unix::fs::chown(bench.project(""), Some(user), Some(user)).unwrap();
    bench.guest(&[], "mkdir -p a/b c; echo x > a/b/f; echo x > c/g; ln -s g c/l");
    // One by its path, with folders that nobody named; the rest as it is.
    bench.apply(&["last", "a/b/f"]);
    bench.apply(&[]);
    for path in ["a", "a/b", "a/b/f", "c", "c/g", "c/l"] {
        let stat = fs::symlink_metadata(bench.project(path)).unwrap();
        assert_eq!((stat.uid(), stat.gid()), (user, user), "{path}");
    }
}
