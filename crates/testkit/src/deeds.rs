//! What a guest does to its workspace, as data: made at random by tests, done by a program inside the sandbox that says
//! what it sees in the end.

use serde::Serialize;

/// One thing done. Which thing is meant by the numbers is found out where it is done, from what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    pub what: &'static str,
    pub one: u32,
    pub other: u32,
    pub text: Vec<u8>,
}

/// All that [`PROGRAM`] knows and that leaves nothing closed behind.
pub const KINDS: &[&str] = &[
    "write", "append", "truncate", "edit", "rewrite", "add", "add", "delete", "delete-folder", "make-folder", "rename",
    "rename-folder", "change-mode", "change-folder", "link", "hard-link", "folder-for-file", "file-for-folder",
    "link-for-folder", "make-again", "touch",
];

/// Names that programs stumble over.
pub fn names() -> Vec<Vec<u8>> {
    let longest = vec![b'n'; 255];
    let odd: [&[u8]; 19] = [
        b"a", b"b", b"c.txt", b"main.rs", b"folder", b"with space", b"new\nline", b"tab\there", b"not\xffutf8\xfe",
        b"-rf", b"--", b"..up", b"...", b"quote\"d'", b"back\\slash", b"\xc3\xa9t\xc3\xa9", b"*", b" ", &longest,
    ];
    odd.iter().map(|name| name.to_vec()).collect()
}

const PROGRAM: &str = include_str!("deeds.py");

/// The command that does all this in the current folder, and then lists it. With `wait`, it first says `ready` and
/// waits for a line.
pub fn command(deeds: &[Deed], wait: bool) -> Vec<String> {
    #[derive(Serialize)]
    struct Told {
        names: Vec<String>,
        deeds: Vec<(&'static str, u32, u32, String)>,
        wait: bool,
    }
    let told = Told {
        names: names().iter().map(|name| hex(name)).collect(),
        deeds: deeds.iter().map(|deed| (deed.what, deed.one, deed.other, hex(&deed.text))).collect(),
        wait,
    };
    // It is plain data.
    let told = serde_json::to_string(&told).unwrap_or_default();
    // The system's own interpreter: others are not reached by every user.
    ["/usr/bin/python3", "-I", "-S", "-B", "-c", PROGRAM, &told].map(str::to_owned).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
