//! What is run to measure: the same work for programs of a system and, as modules, for those that have none.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use model::{GroundKind, Trouble};

/// As many calls as `calls` makes.
pub const CALLS: f64 = 200_000.0;

pub struct Jobs {
    language: Option<Vec<&'static str>>,
    modules: PathBuf,
}

const MODULES: [(&str, &str); 4] = [
    ("nothing.wat", include_str!("modules/nothing.wat")),
    ("calls.wat", include_str!("modules/calls.wat")),
    ("wait.wat", include_str!("modules/wait.wat")),
    ("files.wat", include_str!("modules/files.wat")),
];

impl Jobs {
    pub fn new(language: Option<&str>, folder: &Path) -> Result<Jobs, Trouble> {
        let language = match language {
            None => None,
            Some("python") => Some(vec!["python3", "-c", "print(1)"]),
            Some("javascript") => Some(vec!["node", "-e", "console.log(1)"]),
            Some(other) => {
                return Err(Trouble {
                    message: format!("`{}` is no language to compare with", other.escape_debug()),
                    fix: "choose `python` or `javascript`".to_owned(),
                });
            }
        };
        let modules = folder.join("modules");
        for (name, text) in MODULES {
            std::fs::write(modules.join(name), text).map_err(|error| Trouble {
                message: format!("cannot write `{}`: {error}", modules.join(name).display()),
                fix: "free some space, or choose another folder with TMPDIR".to_owned(),
            })?;
        }
        Ok(Jobs { language, modules })
    }

    pub fn start(&self, ground: GroundKind) -> Vec<OsString> {
        match (&self.language, ground) {
            (Some(language), _) => language.iter().map(OsString::from).collect(),
            (None, GroundKind::Module) => self.module("nothing.wat"),
            (None, _) => words(&["true"]),
        }
    }

    pub fn wait(&self, ground: GroundKind) -> Vec<OsString> {
        match ground {
            GroundKind::Module => self.module("wait.wat"),
            _ => words(&["sh", "-c", "echo here; exec cat"]),
        }
    }

    pub fn files(&self, ground: GroundKind) -> Vec<OsString> {
        let script = "dd if=/dev/zero of=bench.dat bs=1048576 count=64 && dd if=bench.dat of=/dev/null bs=1048576";
        match ground {
            GroundKind::Module => self.module("files.wat"),
            _ => words(&["sh", "-c", script]),
        }
    }

    pub fn calls(&self, ground: GroundKind) -> Vec<OsString> {
        match ground {
            GroundKind::Module => self.module("calls.wat"),
            // One byte in and one out each time.
            _ => words(&["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=100000"]),
        }
    }

    fn module(&self, name: &str) -> Vec<OsString> {
        vec![self.modules.join(name).into()]
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
