//! Which project files the user trusts: exactly these texts at exactly these places.

use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use model::{Outcome, Trouble};

use crate::user::User;

/// A line for each: digest, two spaces, path. In the user's folder of policies.
const FILE: &str = "trusted";
/// A path with a line break could forge a line.
const BREAKS: [char; 2] = ['\n', '\r'];

#[derive(Clone, Debug, Default)]
pub struct Trust {
    lines: Vec<(String, String)>,
}

impl Trust {
    pub fn read(user: &User) -> Result<Trust, Outcome> {
        let Some(file) = place(user) else { return Ok(Trust::default()) };
        let Some(super::Text { text, .. }) = super::read(&file)? else { return Ok(Trust::default()) };
        let line = |line: &str| line.split_once("  ").map(|(digest, path)| (digest.to_owned(), path.to_owned()));
        Ok(Trust { lines: text.lines().filter_map(line).collect() })
    }

    /// Exactly this text at this place.
    pub fn covers(&self, file: &Path, text: &str) -> bool {
        let digest = digest(text);
        let path = file.to_string_lossy();
        self.lines.iter().any(|(known, at)| *known == digest && *at == path)
    }

    /// Whether some text at this place is, or was, trusted.
    pub fn knows(&self, file: &Path) -> bool {
        let path = file.to_string_lossy();
        self.lines.iter().any(|(_, at)| *at == path)
    }

    /// From now on this text is trusted, and no other at this place; with none, nothing there is.
    pub fn set(&mut self, user: &User, file: &Path, text: Option<&str>) -> Result<(), Trouble> {
        let path = file.to_str().filter(|path| !path.contains(BREAKS)).ok_or_else(|| Trouble {
            message: format!("the path `{}` can't be written down", file.display()),
            fix: "rename the folder".to_owned(),
        })?;
        self.lines.retain(|(_, at)| at != path);
        self.lines.extend(text.map(|text| (digest(text), path.to_owned())));
        let place = place(user).ok_or_else(|| Trouble {
            message: "there is no folder for your settings".to_owned(),
            fix: "set HOME or XDG_CONFIG_HOME".to_owned(),
        })?;
        let lines: String = self.lines.iter().map(|(digest, path)| format!("{digest}  {path}\n")).collect();
        write(&place, &lines).map_err(|error| Trouble {
            message: format!("cannot write `{}`: {error}", place.display()),
            fix: "make its folder writable".to_owned(),
        })
    }
}

fn place(user: &User) -> Option<PathBuf> {
    super::settings_folder(user).map(|folder| folder.join(FILE))
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Whole or not at all.
fn write(place: &Path, text: &str) -> std::io::Result<()> {
    let folder = place.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder)?;
    let beside = place.with_extension(format!("{}.new", std::process::id()));
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.sync_all()?;
    std::fs::rename(&beside, place)
}
