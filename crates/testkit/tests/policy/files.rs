//! Policy files that are traps: nothing runs, it is said where and why, and it does not take long.

use std::fs;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::desk::Desk;

pub const ALL: &[(&str, Check)] = &[
    ("a_policy_that_cannot_be_understood_stops_everything", cannot_be_understood),
    ("a_policy_that_is_no_file_stops_everything", no_file),
    ("a_policy_that_leads_nowhere_stops_everything", leads_nowhere),
];

/// The text, and what must be said of it.
const BAD: &[(&str, &str)] = &[
    ("version = 1\nversion = 1\n", "belljar.toml:2: duplicate key"),
    ("version = 2\n", "belljar.toml:1: version 2 is not known"),
    ("version = 1\n[file]\nread = []\n", "belljar.toml:2: `file` is no key here; did you mean `files`?"),
    ("version = 1\n[files]\nraed = []\n", "belljar.toml:3: `raed` is no key here; did you mean `read`?"),
    ("version = 1\nextends = [\"balance\"]\n", "belljar.toml:2: `balance` is no preset; did you mean `balanced`?"),
    ("version = 1\n[files]\nread = [\"../x\"]\n", "belljar.toml:3: `../x` goes up with `..`"),
    ("version = 1\n[defaults]\nexec = \"alow\"\n", "belljar.toml:3: `alow` is no value here; did you mean `allow`?"),
    ("version = 1\n[[agent]]\nname = \"*\"\n", "belljar.toml:3: who may do what is not for a project's file"),
    ("version = 1\n[approvals]\ntimeout = \"1s\"\n", "belljar.toml:3: who is asked is not for a project's file"),
    (
        "version = 1\n[[rule]]\nwhen = { program = \"a\" }\nthen = \"deny\"\nwhy = \"b\"\nmatches = [\"c\"]\n",
        "says it matches `c`, but it does not",
    ),
    (
        "version = 1\n[[rule]]\nwhen = { program = \"a\" }\nthen = \"deny\"\nwhy = \"b\"\npasses = [\"x && a\"]\n",
        "says it passes `x && a`, but it matches",
    ),
    (
        "version = 1\n[[rule]]\nwhen = { action = \"exec\", host = \"a\" }\nthen = \"deny\"\nwhy = \"b\"\n",
        "can never hold",
    ),
    ("version = 1\n\u{0}", "belljar.toml:2:"),
    ("version = 1\nextends = [\"locked\", \"open\"]\n", "are both levels"),
    (
        "version = 1\n[[rule]]\nid = \"defaults.exec\"\nwhen = { program = \"a\" }\nthen = \"deny\"\nwhy = \"b\"\n",
        "a name of belljar's own",
    ),
];

fn cannot_be_understood(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let deep = format!("version = 1\nextends = {}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let tables = format!("version = 1\n[{}a]\n", "a.".repeat(20_000));
    let long = format!("version = 1\n# {}\n", "x".repeat(2 << 20));
    let bad = BAD.iter().map(|(text, said)| ((*text).to_owned(), *said));
    let slow = format!(
        "version = 1\n[[rule]]\nwhen = {{ program = \"*{}b\" }}\nthen = \"deny\"\nwhy = \"b\"\npasses = [\"{}\"]\n",
        "a".repeat(100_000),
        "a".repeat(200_000)
    );
    let slow = (slow, "belljar.toml:3: a list has at most");
    let nasty =
        [(deep, "belljar.toml:2:"), (tables, "belljar.toml"), (long, "belljar.toml`: it is larger than 1048576 bytes")];
    for (text, said) in bad.chain(nasty).chain([slow]) {
        desk.put("belljar.toml", &text)?;
        desk.expect(&["run", "--", "touch", "ran"], 125, said)?;
    }
    desk.put("belljar.toml", "version = 1\n")?;
    desk.expect(&["run", "--", "touch", "ran"], 0, "1 added").map(|_| ())
}

/// A link that leads nowhere is no reason to go without.
fn leads_nowhere(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    std::os::unix::fs::symlink("/nowhere", desk.project.work.join("belljar.toml"))
        .map_err(|error| error.to_string())?;
    desk.expect(&["run", "--", "true"], 125, "leads nowhere").map(|_| ())
}

fn no_file(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let path = desk.project.work.join("belljar.toml");
    type Make = fn(&std::path::Path) -> std::io::Result<()>;
    let make: [(&str, Make); 3] = [
        ("it is no file", |path| fs::create_dir(path)),
        ("it is no file", |path| {
            rustix::fs::mknodat(
                rustix::fs::CWD,
                path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::from_raw_mode(0o666),
                0,
            )
            .map_err(Into::into)
        }),
        ("it is no text in UTF-8", |path| fs::write(path, b"version = 1\n# \xff\n")),
    ];
    for (said, make) in make {
        make(&path).map_err(|error| error.to_string())?;
        desk.expect(&["run", "--", "true"], 125, said)?;
        let removed = if path.is_dir() { fs::remove_dir(&path) } else { fs::remove_file(&path) };
        removed.map_err(|error| error.to_string())?;
    }
    Ok(())
}
