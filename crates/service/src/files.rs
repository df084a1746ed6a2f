//! Files that come with a job: made in a folder that is new and nobody else's, from names that are hostile.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat_with};

use crate::job::{Contents, Files};

/// Files with one job.
const MOST: usize = 2_000;
/// Of a path, in bytes, and how deep it goes.
const LONGEST: usize = 1_024;
const DEEPEST: usize = 32;

/// What a folder ends in until it is held.
const NEW: &str = ".new";

/// Why files can't be made.
#[derive(Debug, thiserror::Error)]
pub enum BadFiles {
    #[error("{0}")]
    Wrong(String),
    #[error("cannot make `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Makes the folder, which must not be there yet, and everything in it. As long as the second is kept, somebody works there.
pub fn make(work: &Path, folder: &str, files: &Files) -> Result<(PathBuf, File), BadFiles> {
    if !is_name(folder) {
        return Err(BadFiles::Wrong("the folder has no plain name".to_owned()));
    }
    let checked = check(files)?;
    let folder = spelled(folder);
    let (place, new) = (work.join(&folder), work.join(format!("{folder}{NEW}")));
    DirBuilder::new().recursive(true).mode(0o700).create(work).map_err(io(work))?;
    // Whoever sweeps waits until nobody is between making a folder and holding it: what has no name yet then, nobody will give one.
    let making = File::open(work).and_then(|work| Ok(flock(&work, FlockOperation::LockShared).map(|()| work)?));
    let making = making.map_err(io(work))?;
    // Not the recursive kind: one that is there already is somebody's.
    DirBuilder::new().mode(0o700).create(&new).map_err(io(&new))?;
    // Held before it has its name: whoever sweeps never sees one that nobody seems to work in.
    let held = (|| {
        let held = File::open(&new)?;
        flock(&held, FlockOperation::NonBlockingLockExclusive)?;
        renameat_with(CWD, &new, CWD, &place, RenameFlags::NOREPLACE)?;
        Ok(held)
    })();
    let held = held.map_err(|error: io::Error| {
        drop(fs::remove_dir(&new));
        io(&place)(error)
    })?;
    drop(making);
    let made = put(&place, checked);
    match made {
        Ok(()) => Ok((place, held)),
        Err(bad) => {
            // What is left of it is swept later; why it failed is what whoever asked must hear.
            drop(fs::remove_dir_all(&place));
            Err(bad)
        }
    }
}

/// The same name without digits. A word of letters and digits may be a token: whoever writes down where something ran would look
/// at each such path for all formats of secrets, which takes a millisecond.
fn spelled(folder: &str) -> String {
    folder.bytes().map(|byte| if byte.is_ascii_digit() { byte - b'0' + b'g' } else { byte }).map(char::from).collect()
}

/// Puts files into a folder that was made for them, and is empty.
pub fn fill(place: &Path, files: &Files) -> Result<(), BadFiles> {
    put(place, check(files)?)
}

fn put(place: &Path, checked: Vec<(&Path, Vec<u8>)>) -> Result<(), BadFiles> {
    checked.into_iter().try_for_each(|(name, bytes)| {
        let path = place.join(name);
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(io(parent))?;
        }
        // Never through something that is there: no two names lead to one file.
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path).map_err(io(&path))?;
        file.write_all(&bytes).map_err(io(&path))
    })
}

fn io(path: &Path) -> impl FnOnce(io::Error) -> BadFiles {
    let path = path.to_owned();
    move |source| BadFiles::Io { path, source }
}

pub(crate) fn check(files: &Files) -> Result<Vec<(&Path, Vec<u8>)>, BadFiles> {
    if files.len() > MOST {
        return Err(BadFiles::Wrong(format!("{} files come with it, and {MOST} are the most", files.len())));
    }
    files.iter().map(|(name, contents)| Ok((check_name(name)?, bytes(name, contents)?))).collect()
}

fn check_name(name: &str) -> Result<&Path, BadFiles> {
    let path = Path::new(name);
    let wrong = |why: &str| Err(BadFiles::Wrong(format!("`{}` can't be made: {why}", name.escape_debug())));
    if name.is_empty() || name.len() > LONGEST {
        return wrong("a path has between 1 and 1024 bytes");
    }
    if name.contains('\0') {
        return wrong("it has a null byte");
    }
    if name.ends_with('/') || name.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return wrong("it must be a path below the workspace, without `.`, `..` or empty parts");
    }
    if name.split('/').count() > DEEPEST || name.split('/').any(|part| part.len() > 255) {
        return wrong("it has too many parts, or one that is too long");
    }
    match path.components().all(|part| matches!(part, Component::Normal(_))) {
        true => Ok(path),
        false => wrong("it must be a path below the workspace"),
    }
}

fn bytes(name: &str, contents: &Contents) -> Result<Vec<u8>, BadFiles> {
    match contents {
        Contents::Text(text) => Ok(text.as_bytes().to_vec()),
        Contents::Bytes { base64 } => STANDARD
            .decode(base64)
            .map_err(|error| BadFiles::Wrong(format!("`{}` is not in base64: {error}", name.escape_debug()))),
    }
}

/// Folders of jobs that nobody works in at this moment, and that nobody can begin to work in as long as they are held.
pub fn idle(work: &Path) -> io::Result<Vec<(PathBuf, File)>> {
    let all = match File::open(work) {
        Ok(all) => all,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // As long as this is held, nobody makes a folder: see `make`.
    flock(&all, FlockOperation::LockExclusive)?;
    let listed = fs::read_dir(work)?;
    let mut found = Vec::new();
    for entry in listed {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Those without their name yet were being made when their maker was killed.
        if !is_name(name.strip_suffix(NEW).unwrap_or(&name)) {
            continue;
        }
        let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
        // Gone meanwhile, or no folder: then it is not ours.
        let Ok(held) = File::options().read(true).custom_flags(flags).open(entry.path()) else { continue };
        if flock(&held, FlockOperation::NonBlockingLockExclusive).is_ok() {
            found.push((entry.path(), held));
        }
    }
    Ok(found)
}

/// Removes those that nothing refers to; says how many.
pub fn sweep(idle: Vec<(PathBuf, File)>, needed: &[PathBuf]) -> io::Result<u64> {
    let mut count = 0;
    for (path, _held) in idle {
        if needed.iter().any(|needed| needed.starts_with(&path)) {
            continue;
        }
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => count += 1,
        }
    }
    Ok(count)
}

/// As the server makes them: letters and digits.
pub fn is_name(name: &str) -> bool {
    (16..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Files {
        Files::from([(name.to_owned(), Contents::Text(String::new()))])
    }

    #[test]
    fn no_spelling_of_a_name_leads_out_of_the_folder() {
        for name in
            ["", "/etc/passwd", "../up", "a/../../up", "a/./b", "a//b", "a/", ".", "..", "./a", "a\0b", "/", "a/.."]
        {
            assert!(check(&named(name)).is_err(), "{name:?}");
        }
        for name in ["a", "a/b.py", "..a", "a..", "...", "ä/é", "%2e%2e/a", "..\\a", "~/a", "-rf"] {
            assert!(check(&named(name)).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn files_are_made_in_a_new_folder_and_a_bad_one_leaves_none() {
        let work = std::env::temp_dir().join(format!("belljar-files-{}", std::process::id()));
        let folder = "0123456789abcdef0123456789abcdef";
        let files = Files::from([
            ("src/a.py".to_owned(), Contents::Text("print(1)".to_owned())),
            ("b.bin".to_owned(), Contents::Bytes { base64: "AAE=".to_owned() }),
        ]);
        let (place, held) = make(&work, folder, &files).expect("made");
        assert_eq!(fs::read(place.join("b.bin")).expect("read"), [0, 1]);
        assert!(make(&work, folder, &files).is_err(), "a folder that is there is somebody's");
        let both = Files::from([
            ("a".to_owned(), Contents::Text(String::new())),
            ("a/b".to_owned(), Contents::Text(String::new())),
        ]);
        let other = "1123456789abcdef0123456789abcdef";
        assert!(make(&work, other, &both).is_err());
        assert!(!work.join(spelled(other)).exists());
        assert!(place.file_name().is_some_and(|name| !name.as_encoded_bytes().iter().any(u8::is_ascii_digit)));
        assert!(idle(&work).expect("looked").is_empty(), "somebody works there");
        drop(held);
        let swept = |needed: &[PathBuf]| sweep(idle(&work).expect("looked"), needed).expect("swept");
        assert_eq!(swept(std::slice::from_ref(&place)), 0);
        fs::create_dir(work.join("not-ours")).expect("made");
        assert_eq!((swept(&[]), swept(&[])), (1, 0));
        assert!(!place.exists() && work.join("not-ours").exists());
        fs::create_dir(work.join(format!("{folder}{NEW}"))).expect("as one leaves it who is killed while making it");
        assert_eq!((swept(&[]), swept(&[])), (1, 0));
        fs::remove_dir_all(&work).expect("removed");
    }
}
