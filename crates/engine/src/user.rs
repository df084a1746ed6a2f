//! Who runs us, by the kernel's word and the user record: without the C library's look-ups, which load code.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    /// Absolute.
    pub home: Option<PathBuf>,
}

impl User {
    /// Looked up once: several parts of a run ask, and none may get another answer than the one before.
    pub fn of_the_process() -> User {
        static KNOWN: OnceLock<User> = OnceLock::new();
        let look = || {
            let id = rustix::process::getuid().as_raw();
            recorded(id).unwrap_or_else(|| User { name: format!("uid:{id}"), home: None })
        };
        KNOWN.get_or_init(look).clone()
    }
}

fn recorded(id: u32) -> Option<User> {
    let id = id.to_string();
    let records = std::fs::read("/etc/passwd").ok()?;
    records.split(|byte| *byte == b'\n').find_map(|record| {
        let mut fields = record.split(|byte| *byte == b':');
        let name = fields.next()?;
        (fields.nth(1)? == id.as_bytes()).then_some(())?;
        let home = PathBuf::from(OsStr::from_bytes(fields.nth(2)?));
        let name = String::from_utf8_lossy(name).into_owned();
        Some(User { name, home: home.is_absolute().then_some(home) })
    })
}
