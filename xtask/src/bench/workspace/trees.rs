//! Projects of some sizes, made once and kept beside the peers: folders of text files, the same in each.

use std::fs;
use std::io::Write;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use testkit::Who;
use testkit::contestant::peers_folder;

const BYTES: usize = 20_000;
const MOST_FOLDERS: usize = 100;

/// The first file in each folder: these are the ones that get changed.
const FIRST: &str = "file-0000.txt";

pub struct Tree {
    pub path: PathBuf,
    pub files: usize,
}

impl Tree {
    /// Finds the one with so many files, or makes it.
    pub fn find(files: usize) -> Result<Tree, String> {
        let tree = Tree { path: kept().join(format!("tree-{files}")), files };
        if tree.path.is_dir() {
            return Ok(tree);
        }
        println!("making {}, once: {}", tree.path.display(), tree.size());
        // Under another name until it is whole.
        let unfinished = kept().join(format!("unfinished-{files}"));
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(cannot("remove", &unfinished))?;
        }
        make(&unfinished, files, BYTES)?;
        fs::rename(&unfinished, &tree.path).map_err(cannot("name", &tree.path))?;
        Ok(tree)
    }

    pub fn size(&self) -> String {
        let megabytes = self.files * BYTES / 1_000_000;
        match megabytes {
            0 => format!("{} files", counted(self.files)),
            _ => format!("{} files, {megabytes} MB", counted(self.files)),
        }
    }

    pub fn name(&self) -> String {
        format!("{} files", counted(self.files))
    }

    /// Makes it this user's, whole.
    pub fn hand_to(&self, who: Who) -> Result<(), String> {
        let mut waiting = vec![self.path.clone()];
        while let Some(path) = waiting.pop() {
            lchown(&path, Some(who.user_id()), Some(who.user_id())).map_err(cannot("hand over", &path))?;
            if path.is_dir() {
                for entry in fs::read_dir(&path).map_err(cannot("list", &path))? {
                    waiting.push(entry.map_err(cannot("list", &path))?.path());
                }
            }
        }
        Ok(())
    }
}

/// Where what takes long to make is kept.
pub fn kept() -> PathBuf {
    peers_folder().join("bench")
}

/// Text files of so many bytes, spread over folders.
pub fn make(path: &Path, files: usize, bytes: usize) -> Result<(), String> {
    let folders = files.min(MOST_FOLDERS);
    for folder in 0..folders {
        let below = path.join(format!("folder-{folder:02}"));
        fs::create_dir_all(&below).map_err(cannot("make", &below))?;
        for number in 0..files / folders {
            let file = below.join(format!("file-{number:04}.txt"));
            let name = folder * (files / folders) + number;
            fs::File::create(&file)
                .and_then(|mut open| open.write_all(text(name, bytes).as_bytes()))
                .map_err(cannot("write", &file))?;
        }
        if files >= 10_000 && (folder + 1) % 10 == 0 {
            println!("  {} of {folders} folders", folder + 1);
        }
    }
    Ok(())
}

/// Its first line can be overwritten in place with another of the same length: see `Change`.
fn text(number: usize, bytes: usize) -> String {
    let mut text = Change { stamp: 0 }.line() + "\n";
    let mut line = 1;
    while text.len() < bytes {
        text += &format!("{number:06} {line:04} {:016x}\n", number.wrapping_mul(line).wrapping_mul(0x9e37_79b9_7f4a));
        line += 1;
    }
    text.truncate(bytes);
    text
}

/// Another first line for the first files of folders, never the same twice: what was taken before is in the tree.
pub struct Change {
    stamp: u128,
}

impl Change {
    pub fn new() -> Change {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Change { stamp: since.map_or(0, |since| since.as_micros()) }
    }

    /// A shell command that changes so many files without starting a process for each.
    pub fn command(&self, files: usize) -> String {
        format!(
            "number=0; for folder in folder-*; do [ $number = {files} ] && break; number=$((number + 1)); \
             echo '{}' 1<> $folder/{FIRST}; done",
            self.line()
        )
    }

    /// Whether it has reached the real files.
    pub fn is_in(&self, tree: &Tree) -> Result<bool, String> {
        let file = tree.path.join("folder-00").join(FIRST);
        Ok(fs::read_to_string(&file).map_err(cannot("read", &file))?.starts_with(&self.line()))
    }

    fn line(&self) -> String {
        format!("change {:020}", self.stamp)
    }
}

fn counted(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}

pub fn cannot<'a>(what: &'a str, path: &'a Path) -> impl Fn(std::io::Error) -> String + 'a {
    move |error| format!("cannot {what} {}: {error}", path.display())
}
