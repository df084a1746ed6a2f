//! What sandboxes of a tenant can be made from, by name: files, and what else whoever wrote it down asks for. A file each, in the
//! tenant's own place.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Of one tenant.
const MOST: usize = 128;
const LONGEST_NAME: usize = 64;
const ENDING: &str = ".json";

#[derive(Debug, thiserror::Error)]
pub enum BadTemplate {
    #[error("`{}` is no name of a template: letters, digits, `-` and `_`, at most {LONGEST_NAME}", .0.escape_debug())]
    Name(String),
    #[error("there are {MOST} templates already, which are the most")]
    TooMany,
    #[error("cannot keep templates in `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the template `{name}` can't be understood: {source}")]
    Broken { name: String, source: serde_json::Error },
}

pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(plain)
}

/// Their names, in order.
pub fn list(folder: &Path) -> Result<Vec<String>, BadTemplate> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(BadTemplate::Io { path: folder.to_owned(), source }),
    };
    let mut names = Vec::new();
    for entry in listed {
        let entry = entry.map_err(|source| BadTemplate::Io { path: folder.to_owned(), source })?;
        let name = entry.file_name().to_string_lossy().strip_suffix(ENDING).map(str::to_owned);
        names.extend(name.filter(|name| is_name(name)));
    }
    names.sort();
    Ok(names)
}

/// Nothing, if there is none of that name.
pub fn read(folder: &Path, name: &str) -> Result<Option<Value>, BadTemplate> {
    if !is_name(name) {
        return Ok(None);
    }
    let path = place(folder, name);
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|source| BadTemplate::Broken { name: name.to_owned(), source }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BadTemplate::Io { path, source }),
    }
}

/// Whole or not at all: whoever makes a sandbox at this moment has the old one or the new one.
pub fn write(folder: &Path, name: &str, template: &Value) -> Result<(), BadTemplate> {
    if !is_name(name) {
        return Err(BadTemplate::Name(name.to_owned()));
    }
    let known = list(folder)?;
    if known.len() >= MOST && !known.iter().any(|known| known == name) {
        return Err(BadTemplate::TooMany);
    }
    let io = |source| BadTemplate::Io { path: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(template.to_string().as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, place(folder, name))
    })();
    if written.is_err() {
        // Why it failed is what whoever asked must hear.
        drop(fs::remove_file(&beside));
    }
    written.map_err(io)
}

/// Whether there was one.
pub fn remove(folder: &Path, name: &str) -> Result<bool, BadTemplate> {
    if !is_name(name) {
        return Ok(false);
    }
    let path = place(folder, name);
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(BadTemplate::Io { path, source }),
    }
}

fn place(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{ENDING}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_what_was_written_under_its_name_and_no_name_leads_elsewhere() {
        let folder = std::env::temp_dir().join(format!("belljar-templates-{}", std::process::id()));
        let one = serde_json::json!({"files": {"a": "b"}});
        assert_eq!(list(&folder).expect("a list"), Vec::<String>::new());
        write(&folder, "one", &one).expect("written");
        write(&folder, "one", &one).expect("written again");
        assert_eq!(read(&folder, "one").expect("read"), Some(one.clone()));
        assert_eq!(list(&folder).expect("a list"), ["one"]);
        for name in ["", "..", "../one", "a/b", ".one", "one.json", "a b", "ä", &"x".repeat(65)] {
            assert!(write(&folder, name, &one).is_err(), "{name}");
            assert_eq!(read(&folder, name).expect("none"), None, "{name}");
            assert!(!remove(&folder, name).expect("none"), "{name}");
        }
        assert!(remove(&folder, "one").expect("removed") && !remove(&folder, "one").expect("gone"));
        fs::remove_dir(&folder).expect("empty");
    }
}
