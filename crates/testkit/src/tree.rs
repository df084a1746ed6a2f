//! What is in a folder, to be compared: as the host sees it, or as the guest's program told it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Paths below the folder.
pub type Tree = BTreeMap<Name, Leaf>;

/// A path of any bytes, shown readably.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(pub Vec<u8>);

impl std::fmt::Debug for Name {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = self.0.escape_ascii().to_string();
        match shown.len() > 80 {
            true => write!(out, "{}…{}", &shown[..40], &shown[shown.len() - 30..]),
            false => out.write_str(&shown),
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct Leaf {
    pub kind: Kind,
    /// Permission bits; those of a link mean nothing, and are none.
    pub mode: u32,
    /// Of a file, or where a link leads to.
    pub contents: Vec<u8>,
}

impl std::fmt::Debug for Leaf {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: String = self.contents.escape_ascii().to_string().chars().take(200).collect();
        write!(out, "{:?} {:o} `{shown}`", self.kind, self.mode)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    Link,
    Special,
}

/// All that can be told of one thing without changing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    pub leaf: Leaf,
    pub inode: u64,
    pub links: u64,
    pub owner: (u32, u32),
    pub modified: (i64, i64),
    pub changed: (i64, i64),
}

/// What is in a folder of the host.
pub fn of(folder: &Path) -> io::Result<Tree> {
    Ok(exact(folder)?.into_iter().filter(|(name, _)| !name.0.is_empty()).map(|(name, one)| (name, one.leaf)).collect())
}

/// The same, with everything that would tell whether somebody was there; the folder itself is the empty path.
pub fn exact(folder: &Path) -> io::Result<BTreeMap<Name, Exact>> {
    let mut found = BTreeMap::new();
    look(folder, Vec::new(), &mut found)?;
    Ok(found)
}

fn look(path: &Path, name: Vec<u8>, found: &mut BTreeMap<Name, Exact>) -> io::Result<()> {
    let seen = fs::symlink_metadata(path)?;
    let (kind, contents) = match seen.file_type() {
        kind if kind.is_dir() => (Kind::Folder, Vec::new()),
        kind if kind.is_file() => (Kind::File, fs::read(path)?),
        kind if kind.is_symlink() => (Kind::Link, fs::read_link(path)?.into_os_string().into_vec()),
        _ => (Kind::Special, Vec::new()),
    };
    let mode = if kind == Kind::Link { 0 } else { seen.permissions().mode() & 0o7777 };
    let leaf = Leaf { kind, mode, contents };
    let exact = Exact {
        leaf,
        inode: seen.ino(),
        links: seen.nlink(),
        owner: (seen.uid(), seen.gid()),
        modified: (seen.mtime(), seen.mtime_nsec()),
        changed: (seen.ctime(), seen.ctime_nsec()),
    };
    if kind == Kind::Folder {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let below = entry.file_name();
            let name = match name.is_empty() {
                true => below.as_bytes().to_vec(),
                false => [&name, b"/".as_slice(), below.as_bytes()].concat(),
            };
            look(&entry.path(), name, found)?;
        }
    }
    found.insert(Name(name), exact);
    Ok(())
}

/// What the guest's program said it sees; an error if it did not come to its end.
pub fn told(said: &[u8]) -> Result<Tree, String> {
    let text = std::str::from_utf8(said).map_err(|error| error.to_string())?;
    let mut tree = Tree::new();
    let mut ended = false;
    for line in text.lines().filter(|line| *line != "ready") {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["end"] => ended = true,
            [kind, mode, path, contents] => {
                let kind = match *kind {
                    "file" => Kind::File,
                    "folder" => Kind::Folder,
                    "link" => Kind::Link,
                    _ => Kind::Special,
                };
                let mode = u32::from_str_radix(mode, 8).map_err(|error| error.to_string())?;
                let mode = if kind == Kind::Link { 0 } else { mode };
                let contents = if *contents == "-" { Vec::new() } else { bytes(contents)? };
                tree.insert(Name(bytes(path)?), Leaf { kind, mode, contents });
            }
            _ => return Err(format!("not a line of a list: {line}")),
        }
    }
    if ended { Ok(tree) } else { Err(format!("the guest's program did not come to its end; it said:\n{text}")) }
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
    digits.map(|pair| u8::from_str_radix(pair, 16).map_err(|error| format!("{pair}: {error}"))).collect()
}

/// Where two differ, in words; nothing if they are the same.
pub fn difference<T: PartialEq + std::fmt::Debug>(
    one: &BTreeMap<Name, T>,
    other: &BTreeMap<Name, T>,
) -> Option<String> {
    let names: std::collections::BTreeSet<&Name> = one.keys().chain(other.keys()).collect();
    let differing = names.into_iter().filter(|name| one.get(name) != other.get(name));
    let lines: Vec<String> =
        differing.map(|name| format!("{name:?}:\n  {:?}\n  {:?}", one.get(name), other.get(name))).collect();
    if lines.is_empty() { None } else { Some(lines.join("\n")) }
}
