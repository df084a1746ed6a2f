//! Names as the most forgiving file system or program compares them.
//!
//! Too much forgiveness only asks a question too many; too little takes a hook for a stranger.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use model::names::folded;

use super::table;

/// One spelling for all names that something, somewhere takes for the same.
pub(super) fn plain(name: &[u8]) -> Cow<'_, [u8]> {
    if is_plain(name) {
        return Cow::Borrowed(name);
    }
    let folded = match std::str::from_utf8(name) {
        Ok(text) if !text.is_ascii() => folded(text).into_bytes(),
        // No file system has a rule for bytes that are no text.
        _ => name.to_ascii_lowercase(),
    };
    let trimmed = without_tail(&folded);
    if let Some(long) = Short::read(trimmed).and_then(|short| short.long()) {
        return Cow::Borrowed(long);
    }
    if trimmed.len() == folded.len() { Cow::Owned(folded) } else { Cow::Owned(trimmed.to_vec()) }
}

/// Nearly every name is: it costs no memory.
fn is_plain(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase() && !matches!(byte, b':' | b'~'))
        && !matches!(name.last(), Some(b'.' | b' '))
}

/// Without the name of an NTFS stream, and without dots and spaces at the end, which Windows does not keep.
fn without_tail(name: &[u8]) -> &[u8] {
    let end = name.iter().position(|byte| *byte == b':').unwrap_or(name.len());
    let kept = name[..end].iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |last| last + 1);
    // A name that is all tail, such as `..` or `:x`, is left as it is: nothing is called by no name.
    if kept == 0 { name } else { &name[..kept] }
}

/// `git~1` for `.git`, `gitmod~1` for `.gitmodules`, `mcp~1.jso` for `.mcp.json`: what FAT and NTFS make of names that
/// are not eight letters and three.
struct Short<'a> {
    stem: &'a [u8],
    /// How many letters of a long name fit in front of the number.
    room: usize,
    extension: &'a [u8],
}

impl<'a> Short<'a> {
    fn read(name: &'a [u8]) -> Option<Short<'a>> {
        let (stem, extension) = split_at(name, name.iter().position(|byte| *byte == b'.'));
        let (stem, number) = split_at(stem, stem.iter().rposition(|byte| *byte == b'~'));
        let is_short = !stem.is_empty() && matches!(number.len(), 1..=6) && number.iter().all(u8::is_ascii_digit);
        is_short.then(|| Short { stem, room: 7 - number.len(), extension })
    }

    /// The protected name that this can be short for.
    fn long(&self) -> Option<&'static [u8]> {
        let candidates = LONG.get(self.stem.first()?)?;
        candidates.iter().find(|long| self.is_for(long)).map(|long| long.name)
    }

    fn is_for(&self, long: &Long) -> bool {
        let begin = &long.stem[..long.stem.len().min(self.room)];
        // From the fifth of one beginning on, NTFS keeps two letters and puts a checksum behind them.
        let is_checksum = || {
            self.stem.len() == 6
                && long.stem.starts_with(&self.stem[..2])
                && self.stem[2..].iter().all(u8::is_ascii_hexdigit)
        };
        self.extension == long.extension && (self.stem == begin || is_checksum())
    }
}

/// A protected name, and the letters of it that can be in a short one.
struct Long {
    name: &'static [u8],
    stem: Vec<u8>,
    extension: &'static [u8],
}

/// By their first letters, since whoever writes the tree can fill its paths with short names.
static LONG: LazyLock<HashMap<u8, Vec<Long>>> = LazyLock::new(|| {
    let mut by_letter: HashMap<u8, Vec<Long>> = HashMap::new();
    for long in table::names().map(long) {
        if let Some(first) = long.stem.first() {
            by_letter.entry(*first).or_default().push(long);
        }
    }
    by_letter
});

fn long(name: &'static str) -> Long {
    let visible = name.trim_start_matches('.').as_bytes();
    let (stem, extension) = split_at(visible, visible.iter().rposition(|byte| *byte == b'.'));
    let stem = stem.iter().filter(|byte| **byte != b'.').take(6).copied().collect();
    Long { name: name.as_bytes(), stem, extension: &extension[..extension.len().min(3)] }
}

/// What is before the byte at `place` and what is after it.
fn split_at(name: &[u8], place: Option<usize>) -> (&[u8], &[u8]) {
    place.map_or((name, &[]), |place| (&name[..place], &name[place + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str) -> String {
        String::from_utf8_lossy(&plain(name.as_bytes())).into_owned()
    }

    #[test]
    fn an_ordinary_name_is_not_copied() {
        for name in ["main.rs", ".git", "a b", "x-1_2"] {
            assert!(matches!(plain(name.as_bytes()), Cow::Borrowed(_)), "{name} was copied");
        }
    }

    #[test]
    fn case_and_compatible_letters_are_one() {
        for twin in [".GIT", ".Git", ".g\u{131}t", ".G\u{130}T", ".ｇｉｔ", "．git", ".gⅈt"] {
            assert_eq!(shown(twin), ".git", "{twin:?}");
        }
        assert_eq!(shown(".ſſh"), ".ssh");
        assert_eq!(shown(".ßh"), ".ssh");
        assert_eq!(shown(".\u{212a}shrc"), ".kshrc");
    }

    #[test]
    fn what_nobody_sees_is_not_there() {
        for hidden in ["\u{200c}", "\u{200d}", "\u{200e}", "\u{202e}", "\u{206a}", "\u{feff}", "\u{ad}", "\u{fe0f}"] {
            for twin in [format!("{hidden}.git"), format!(".g{hidden}it"), format!(".git{hidden}")] {
                assert_eq!(shown(&twin), ".git", "{twin:?}");
            }
        }
    }

    #[test]
    fn tails_that_windows_drops_are_dropped() {
        for twin in [".git.", ".git ", ".git. . ", ".git::$INDEX_ALLOCATION", ".git:x", ".git .:x", ".git\u{a0}"] {
            assert_eq!(shown(twin), ".git", "{twin:?}");
        }
        for name in ["..", ".", "", ":", " "] {
            assert_eq!(shown(name), name, "there is nothing else in {name:?}");
        }
    }

    #[test]
    fn short_names_are_long_names() {
        for (short, long) in [
            ("git~1", ".git"),
            ("GIT~12", ".git"),
            ("GITMOD~1", ".gitmodules"),
            ("GI7EBA~1", ".git"),
            ("MCP~1.JSO", ".mcp.json"),
            ("VSCODE~2", ".vscode"),
            ("PRE-CO~1.YAM", ".pre-commit-config.yaml"),
        ] {
            assert_eq!(shown(short), long, "{short}");
        }
        for name in ["git~", "main.rs~1", "~1", "git~x", "notes~1.txt", "git~1.txt"] {
            assert_eq!(shown(name), name, "{name} is short for nothing");
        }
    }

    #[test]
    fn bytes_that_are_no_text_differ_in_case_only() {
        assert_eq!(plain(b".GIT\xff"), b".git\xff".as_slice());
        assert_ne!(plain(b".git\xff"), plain(b".git"));
    }
}
