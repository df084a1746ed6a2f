//! What an attack can use while it runs, inside a sandbox or bare.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What the attacker knows: paths on the host, and where to leave its loot. Never the secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inside {
    /// Granted, writable, the current folder.
    pub workspace: PathBuf,
    /// Not granted; `outside/secret` holds the secret, `outside/target` is to stay as it is.
    pub outside: PathBuf,
    /// Whatever `prepare` wants to tell: numbers of processes, ports, names.
    pub hints: Vec<(String, String)>,
}

impl Inside {
    /// Shows what the attack gained: copied to the workspace, where the host looks.
    pub fn loot(&self, gained: impl AsRef<[u8]>) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.workspace.join("loot"))?;
        io::Write::write_all(&mut file, gained.as_ref())
    }

    pub fn secret_file(&self) -> PathBuf {
        self.outside.join("secret")
    }

    pub fn target_file(&self) -> PathBuf {
        self.outside.join("target")
    }

    pub fn hint(&self, name: &str) -> io::Result<&str> {
        let found = self.hints.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).ok_or_else(|| io::Error::other(format!("no hint {name}")))
    }

    /// Reads a file and leaves it as loot.
    pub fn steal(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.loot(fs::read(path)?)
    }
}

/// The proof that an attack was tried to its end, whatever came of it. Written by the runner after `inside`.
pub const TRIED: &str = "tried";
/// What the attacker is told, in the workspace.
pub const BRIEF: &str = "brief.json";

/// A raw system call: the number and six arguments; the kernel's word as a Rust result.
pub fn call(number: libc::c_long, arguments: [u64; 6]) -> io::Result<u64> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: an attack. Callers pass pointers that live through the call, or bad ones on purpose.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as u64) }
}
