//! The place a benchmark runs in: projects of root's and of the ordinary user's, removed afterwards.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use testkit::Who;

pub struct Field {
    pub root: PathBuf,
}

impl Field {
    pub fn make() -> Result<Field, String> {
        // Not below /tmp or a home: sandboxes replace those.
        let field = Field { root: PathBuf::from(format!("/srv/belljar-bench-{}", std::process::id())) };
        for who in [Who::Root, Who::Ordinary] {
            for folder in [field.project(who), field.home(who)] {
                field.folder(&folder, who)?;
            }
        }
        let settings = serde_json::json!({
            "network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": { "denyRead": [], "allowWrite": [], "denyWrite": [] }
        });
        field.write(&field.srt_settings(), &settings.to_string(), Who::Root)?;
        Ok(field)
    }

    /// An empty folder of this user's.
    pub fn project(&self, who: Who) -> PathBuf {
        self.root.join(format!("{}-project", who.name()))
    }

    /// A home for peers that write to it.
    pub fn home(&self, who: Who) -> PathBuf {
        self.root.join(format!("{}-home", who.name()))
    }

    pub fn srt_settings(&self) -> PathBuf {
        self.root.join("srt.json")
    }

    pub fn folder(&self, path: &Path, who: Who) -> Result<(), String> {
        fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        give(path, who)
    }

    pub fn write(&self, path: &Path, contents: &str, who: Who) -> Result<(), String> {
        fs::write(path, contents).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        give(path, who)
    }
}

fn give(path: &Path, who: Who) -> Result<(), String> {
    let id = who.user_id();
    chown(path, Some(id), Some(id)).map_err(|error| format!("cannot hand over {}: {error}", path.display()))
}

impl Drop for Field {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.root) {
            eprintln!("left behind: {}: {error}", self.root.display());
        }
    }
}
