//! What tool-chains the service's host has. The list of languages is `model`'s.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use model::Toolchains;

/// The service's own way to programs, which its sandboxes have too.
pub struct OfTheHost;

impl Toolchains for OfTheHost {
    fn has(&self, program: &str) -> bool {
        find(program).is_some()
    }

    fn version_of(&self, program: &str) -> Option<u32> {
        static KNOWN: Mutex<Option<HashMap<PathBuf, Option<u32>>>> = Mutex::new(None);
        let path = find(program)?;
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        *known.get_or_insert_default().entry(path.clone()).or_insert_with(|| ask(&path))
    }
}

fn find(program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|stat| stat.is_file() && stat.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(is_program)
}

/// Without a variable that would have it do anything else.
fn ask(program: &PathBuf) -> Option<u32> {
    let asked =
        Command::new(program).arg("--version").env_clear().current_dir("/").stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&asked.stdout);
    said.trim_start_matches('v').split('.').next()?.trim().parse().ok()
}
