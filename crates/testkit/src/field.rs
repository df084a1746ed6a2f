//! A battlefield of its own for each trial: a workspace, a place outside it, a secret; removed afterwards.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use crate::contestant::Who;
use crate::inside::Inside;

pub struct Field {
    pub root: PathBuf,
    pub workspace: PathBuf,
    pub outside: PathBuf,
    /// Random for each field, in `outside/secret`.
    pub secret: String,
    pub who: Who,
    hints: RefCell<Vec<(String, String)>>,
    /// Kept alive while the attack runs: listeners, processes, locks.
    keep: RefCell<Vec<Box<dyn std::any::Any>>>,
}

/// What happened when the attack ran.
pub struct Run {
    pub status: Option<ExitStatus>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub took: Duration,
    /// Of belljar's `--result-file`; null for others.
    pub result: serde_json::Value,
}

impl Field {
    pub fn make(who: Who) -> io::Result<Field> {
        let mut random = [0u8; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        // Not in /tmp or a home: sandboxes replace those, and the attack would miss for the wrong reason.
        let root = Path::new("/srv/belljar-escapes").join(&secret[..12]);
        let field = Field {
            workspace: root.join("workspace"),
            outside: root.join("outside"),
            root,
            secret: format!("secret-{secret}"),
            who,
            hints: RefCell::default(),
            keep: RefCell::default(),
        };
        for folder in [&field.root, &field.workspace, &field.outside] {
            fs::create_dir_all(folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
            field.give(folder)?;
        }
        field.put("secret", &field.secret, 0o600)?;
        field.put("target", "untouched", 0o644)?;
        Ok(field)
    }

    /// Makes a file outside the grant that belongs to the user of the trial.
    pub fn put(&self, name: &str, contents: &str, mode: u32) -> io::Result<PathBuf> {
        let path = self.outside.join(name);
        fs::write(&path, contents)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        self.give(&path)?;
        Ok(path)
    }

    /// Hands something over to the user of the trial.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        let id = self.who.user_id();
        chown(path, Some(id), Some(id))
    }

    pub fn tell(&self, name: &str, value: impl ToString) {
        self.hints.borrow_mut().push((name.to_owned(), value.to_string()));
    }

    pub fn hint(&self, name: &str) -> Option<String> {
        self.hints.borrow().iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// Keeps something alive until the trial is over.
    pub fn keep(&self, thing: impl std::any::Any) {
        self.keep.borrow_mut().push(Box::new(thing));
    }

    pub fn brief(&self) -> Inside {
        Inside { workspace: self.workspace.clone(), outside: self.outside.clone(), hints: self.hints.borrow().clone() }
    }

    pub fn loot(&self) -> Vec<u8> {
        fs::read(self.workspace.join("loot")).unwrap_or_default()
    }

    pub fn looted(&self) -> bool {
        let loot = self.loot();
        loot.windows(self.secret.len()).any(|window| window == self.secret.as_bytes())
    }

    pub fn target_is_untouched(&self) -> bool {
        fs::read(self.outside.join("target")).is_ok_and(|contents| contents == b"untouched")
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        self.keep.borrow_mut().clear();
        if let Err(error) = fs::remove_dir_all(&self.root) {
            eprintln!("left behind: {}: {error}", self.root.display());
        }
    }
}
