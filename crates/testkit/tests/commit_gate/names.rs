//! Names of any bytes: taken as they are, and safe to look at.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use belljar_testkit::Who;
use belljar_testkit::contestant::belljar;

use crate::Attack;
use crate::bench::{Bench, Said};

pub const ATTACKS: &[Attack] = &[
    ("names/round_trip", round_trip),
    ("names/nothing_commands_the_terminal", safe_to_look_at),
    ("names/a_patch_commands_no_terminal", patch_on_a_terminal),
    ("names/ids_are_no_paths", ids),
];

const NAMES: &[&[u8]] = &[
    b"new\nline", b"-rf", b"--help", b"\x1b[2J\x1b]0;title\x07", b"\xff\xfe", b"e\xcc\x81", b"\xc3\xa9", b"tab\there",
    b" ", b"'\"\\$(x)`", b"a\xe2\x80\xaeb", b"\r", b"A", b"a", b"\x9b31m", b"...", b"a b",
];

/// Makes each in the guest, by perl, which takes any bytes.
fn making(contents: &str) -> String {
    let name = |name: &&[u8]| name.iter().map(|byte| format!("\\x{{{byte:02x}}}")).collect::<String>();
    let names: Vec<String> = NAMES.iter().map(|bytes| format!("\"./{}\"", name(bytes))).collect();
    format!(
        "perl -e 'for my $n ({}) {{ open F, \">\", $n or die; print F \"{contents}\"; close F }}'",
        names.join(", ")
    )
}

fn round_trip(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&[], &making("x"));
    bench.apply(&[]);
    let names = |bench: &Bench| {
        let mut names: Vec<Vec<u8>> = fs::read_dir(bench.project(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().as_bytes().to_vec())
            .collect();
        names.sort();
        names
    };
    let mut all: Vec<Vec<u8>> = NAMES.iter().map(|name| name.to_vec()).collect();
    all.push(vec![b'n'; 255]);
    all.sort();
    bench.guest(&[], &format!("echo > {}", "n".repeat(255)));
    bench.apply(&[]);
    assert_eq!(names(&bench), all);
    for name in NAMES {
        assert_eq!(fs::read(bench.project("").join(OsStr::from_bytes(name))).unwrap(), b"x");
    }
    // Changed, and gone again.
    bench.guest(&[], &making("y"));
    bench.apply(&[]);
    assert_eq!(fs::read(bench.project("").join(OsStr::from_bytes(NAMES[0]))).unwrap(), b"y");
    bench.guest(&[], "find . -type f -delete");
    bench.apply(&[]);
    assert!(names(&bench).is_empty());
}

fn is_plain(text: &str) -> bool {
    !text.chars().any(|letter| letter.is_control() && letter != '\n' || letter == '\u{202e}')
}

fn safe_to_look_at(who: Who) {
    let bench = Bench::new(who);
    // The control: a listing that does not care commands the terminal.
    bench.host(&format!("cd ../outside; {}", making("x")));
    assert!(!is_plain(&bench.host("ls -N ../outside").out), "the control proves nothing");
    let id = bench.create();
    bench.exec(
        &id,
        &format!(
            "{}; ln -s \"$(printf '/\\033[2J\\nx')\" link; mkfifo \"$(printf 'p\\033[2J')\"; : '\u{1b}[2J'",
            making("x")
        ),
    );
    bench.host("mkdir \"$(printf 'c\\033[2J')\"");
    let all: &[&[&str]] = &[
        &["diff", &id],
        &["diff", &id, "--json"],
        &["diff", &id, "--stat"],
        &["ps"],
        &["ps", "--json"],
        &["show", &id],
        &["show", &id, "--json"],
        &["apply", &id, "--check"],
        &["apply", &id, "--check", "--json"],
        &["apply", &id],
        &["diff", &id],
        &["diff", &id, "\u{1b}[2J/x"],
        &["show", "\u{1b}[2J"],
        &["gc", "--dry-run", "--older-than", "1d"],
        &["snapshot", &id, "--name", "\u{1b}[2J"],
        &["rollback", &id, "\u{1b}[2J"],
        &["discard", &id],
    ];
    for words in all {
        let Said { out, err, .. } = bench.belljar(words);
        assert!(is_plain(&out) && is_plain(&err), "{words:?}: {out:?} {err:?}");
    }
}

fn patch_on_a_terminal(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&[], "printf 'a\\033]52;c;x\\007\\033[2J\\r\\n\\302\\2332J' > f");
    // Raw to a program, which is the control as well.
    assert!(bench.belljar(&["diff", "--patch"]).out.contains("\u{1b}]52"), "it is as it is to a program");
    let mut command = bench.command("script");
    command.args(["-qec", &format!("{} diff --patch", belljar().display()), "/dev/null"]);
    let said = bench.run(command);
    assert!(said.out.contains("52;c;x"), "{said:?}");
    assert!(is_plain(&said.out.replace("\r\n", "\n").replace('\t', "")), "{said:?}");
}

fn ids(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&[], "echo x > f");
    let id = bench.belljar(&["ps", "--json"]).out;
    let id = id.split("\"id\": \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    // The control: the id itself works.
    assert_eq!(bench.belljar(&["show", &id]).code, 0);
    for bad in [
        "",
        "../x",
        "../../..",
        "/",
        ".",
        "-",
        "%",
        "*",
        "LAST",
        "\u{ff41}",
        &format!("{id}0"),
        &format!("{id}/"),
        &id.to_uppercase(),
    ] {
        for command in ["show", "discard", "snapshot", "rollback", "fork", "rm"] {
            let said = bench.belljar(&[command, "--", bad]);
            assert!(said.code != 0, "{command} {bad:?}: {said:?}");
        }
        let said = bench.belljar(&["exec", bad, "--", "/bin/true"]);
        assert!(said.code != 0, "exec {bad:?}: {said:?}");
    }
    for bad in ["-n", "--all", "-rf"] {
        assert!(bench.belljar(&["rm", bad]).code != 0);
    }
    for bad in ["last", "", "..", ".x", "-x", "a/b", "dead", "x\n", "\u{1b}"] {
        assert!(bench.belljar(&["create", &format!("--name={bad}")]).code != 0, "{bad:?}");
    }
    assert_eq!(bench.belljar(&["show", &id]).code, 0, "it is there still");
}
