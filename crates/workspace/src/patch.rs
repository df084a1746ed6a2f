//! A change as a unified patch that `git apply` and `patch` accept.

use crate::text::{self, Change, Walk};
use flate2::{Compression, write::ZlibEncoder};
use std::{
    io::{self, Write as _},
    ops::Range,
};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;
/// A binary above it is only said to differ: nobody mails such a patch.
const LARGEST_BINARY: usize = 64 << 20;
/// Bytes of a binary in one line: as many as its first letter can count.
const BINARY_LINE: usize = 52;
const DIGITS: &[u8; 85] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

pub struct Side<'a> {
    pub path: &'a [u8],
    /// As git writes it: 0o100644, 0o100755 or 0o120000.
    pub mode: u32,
    /// Of a link: its target.
    pub content: &'a [u8],
}

pub struct Patch<'a> {
    pub old: Option<Side<'a>>,
    pub new: Option<Side<'a>>,
}

/// The most that either side may have for both to be written out.
pub const LARGEST: u64 = 256 << 20;

/// Says that something changed that is too large to be shown, or that nobody has any more.
pub fn write_unshown(old: Option<&[u8]>, new: Option<&[u8]>, out: &mut Vec<u8>) {
    let (Some(first), Some(last)) = (old.or(new), new.or(old)) else { return };
    write_line(&[b"diff --git ", &quoted_beside(b"a/", first), b" ", &quoted_beside(b"b/", last)], out);
    let label = |prefix: &[u8], path: Option<&[u8]>| path.map_or(b"/dev/null".to_vec(), |path| quoted(prefix, path));
    write_line(&[b"Binary files ", &label(b"a/", old), b" and ", &label(b"b/", new), b" differ"], out);
}

/// Adds the patch to `out`; nothing if nothing changed.
pub fn write(patch: &Patch<'_>, out: &mut Vec<u8>) {
    let Patch { old, new } = patch;
    match (old, new) {
        // A file cannot be edited into a link, and `patch` renames none: one goes, the other comes.
        (Some(old), Some(new)) if old.is_link() != new.is_link() || old.is_link() && old.path != new.path => {
            write_section(Section::Deleted(old), out);
            write_section(Section::Added(new), out);
        }
        (Some(old), Some(new)) if old.is(new) => {}
        (Some(old), Some(new)) => write_section(Section::Changed(old, new), out),
        (Some(old), None) => write_section(Section::Deleted(old), out),
        (None, Some(new)) => write_section(Section::Added(new), out),
        (None, None) => {}
    }
}

impl Side<'_> {
    fn is_link(&self) -> bool {
        self.mode & 0o170000 == 0o120000
    }

    fn is(&self, other: &Side<'_>) -> bool {
        self.path == other.path && self.mode == other.mode && self.content == other.content
    }
}

#[derive(Clone, Copy)]
enum Section<'a> {
    Added(&'a Side<'a>),
    Deleted(&'a Side<'a>),
    Changed(&'a Side<'a>, &'a Side<'a>),
}

impl<'a> Section<'a> {
    fn paths(self) -> (&'a [u8], &'a [u8]) {
        match self {
            Section::Added(side) | Section::Deleted(side) => (side.path, side.path),
            Section::Changed(old, new) => (old.path, new.path),
        }
    }

    fn contents(self) -> (&'a [u8], &'a [u8]) {
        match self {
            Section::Added(new) => (b"", new.content),
            Section::Deleted(old) => (old.content, b""),
            Section::Changed(old, new) => (old.content, new.content),
        }
    }

    /// Without the tab that follows them above hunks.
    fn labels(self) -> (Vec<u8>, Vec<u8>) {
        let (old, new) = self.paths();
        let nothing = || b"/dev/null".to_vec();
        match self {
            Section::Added(_) => (nothing(), quoted(b"b/", new)),
            Section::Deleted(_) => (quoted(b"a/", old), nothing()),
            Section::Changed(..) => (quoted(b"a/", old), quoted(b"b/", new)),
        }
    }
}

fn write_section(section: Section<'_>, out: &mut Vec<u8>) {
    let (old, new) = section.contents();
    write_header(section, out);
    if old == new {
        return;
    }
    if text::is_text(old) && text::is_text(new) {
        write_names(section, out);
        write_hunks(old, new, out);
    } else {
        write_binary(section, out);
    }
}

fn write_header(section: Section<'_>, out: &mut Vec<u8>) {
    let (old_path, new_path) = section.paths();
    write_line(&[b"diff --git ", &quoted_beside(b"a/", old_path), b" ", &quoted_beside(b"b/", new_path)], out);
    match section {
        Section::Added(new) => {
            write_line(&[b"new file mode ", &mode(new)], out);
            write_line(&[b"index ", &no_hash(), b"..", &hash(new)], out);
        }
        Section::Deleted(old) => {
            write_line(&[b"deleted file mode ", &mode(old)], out);
            write_line(&[b"index ", &hash(old), b"..", &no_hash()], out);
        }
        Section::Changed(old, new) => {
            if old.mode != new.mode {
                write_line(&[b"old mode ", &mode(old)], out);
                write_line(&[b"new mode ", &mode(new)], out);
            }
            if old.path != new.path {
                write_line(&[b"similarity index ", percent_kept(old.content, new.content).as_bytes(), b"%"], out);
                write_line(&[b"rename from ", &quoted(b"", old.path)], out);
                write_line(&[b"rename to ", &quoted(b"", new.path)], out);
            }
            if old.content != new.content {
                let hashes = [&hash(old)[..], b"..", &hash(new)].concat();
                match old.mode == new.mode {
                    true => write_line(&[b"index ", &hashes, b" ", &mode(new)], out),
                    false => write_line(&[b"index ", &hashes], out),
                }
            }
        }
    }
}

fn mode(side: &Side<'_>) -> Vec<u8> {
    format!("{:06o}", side.mode).into_bytes()
}

/// The name git's store gives to such content.
fn hash(side: &Side<'_>) -> Vec<u8> {
    let mut hash = sha1_smol::Sha1::new();
    hash.update(format!("blob {}\0", side.content.len()).as_bytes());
    hash.update(side.content);
    hash.digest().to_string().into_bytes()
}

fn no_hash() -> Vec<u8> {
    vec![b'0'; 40]
}

fn percent_kept(old: &[u8], new: &[u8]) -> String {
    if old == new {
        return "100".to_owned();
    }
    let removed: usize = text::changes(old, new).iter().map(|change| change.old.len()).sum();
    let (old, new) = (text::lines(old).count(), text::lines(new).count());
    // A hundred is for what is the same.
    (old.saturating_sub(removed) * 100 / old.max(new).max(1)).min(99).to_string()
}

fn write_names(section: Section<'_>, out: &mut Vec<u8>) {
    let (old, new) = section.labels();
    write_line(&[b"--- ", &old, end_of_label(&old)], out);
    write_line(&[b"+++ ", &new, end_of_label(&new)], out);
}

/// Readers take what follows a space for a date, unless a tab says where the name ends.
fn end_of_label(label: &[u8]) -> &'static [u8] {
    if label.contains(&b' ') { b"\t" } else { b"" }
}

fn write_hunks(old: &[u8], new: &[u8], out: &mut Vec<u8>) {
    let changes = text::changes(old, new);
    let (mut old_lines, mut new_lines) = (Walk::over(old), Walk::over(new));
    let old_end = text::lines(old).count();
    let share_context = |change: &Change, next: &Change| next.old.start - change.old.end <= 2 * CONTEXT;
    for hunk in changes.chunk_by(share_context) {
        let [first, ..] = hunk else { continue };
        let [.., last] = hunk else { continue };
        let above = first.old.start.min(CONTEXT);
        let below = (old_end - last.old.end).min(CONTEXT);
        let old_range = span(&(first.old.start - above..last.old.end + below));
        let new_range = span(&(first.new.start - above..last.new.end + below));
        write_line(&[b"@@ -", old_range.as_bytes(), b" +", new_range.as_bytes(), b" @@"], out);

        old_lines.skip_to(first.old.start - above);
        for change in hunk {
            write_lines(old_lines.take_to(change.old.start), b' ', out);
            write_lines(old_lines.take_to(change.old.end), b'-', out);
            new_lines.skip_to(change.new.start);
            write_lines(new_lines.take_to(change.new.end), b'+', out);
        }
        write_lines(old_lines.take_to(last.old.end + below), b' ', out);
    }
}

/// Lines are counted from one; an empty range is named by the line above it.
fn span(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        length => format!("{},{length}", range.start + 1),
    }
}

fn write_lines<'a>(lines: impl Iterator<Item = &'a [u8]>, sign: u8, out: &mut Vec<u8>) {
    for line in lines {
        out.push(sign);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

fn write_binary(section: Section<'_>, out: &mut Vec<u8>) {
    let (old, new) = section.contents();
    let literals = match old.len().max(new.len()) <= LARGEST_BINARY {
        true => literal(new).and_then(|new| Ok([new, literal(old)?].concat())).ok(),
        false => None,
    };
    match literals {
        Some(literals) => {
            write_line(&[b"GIT binary patch"], out);
            out.extend_from_slice(&literals);
        }
        None => {
            let (old, new) = section.labels();
            write_line(&[b"Binary files ", &old, b" and ", &new, b" differ"], out);
        }
    }
}

fn literal(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut deflated = ZlibEncoder::new(Vec::new(), Compression::default());
    deflated.write_all(content)?;
    let mut out = format!("literal {}\n", content.len()).into_bytes();
    for line in deflated.finish()?.chunks(BINARY_LINE) {
        write_binary_line(line, &mut out);
    }
    out.push(b'\n');
    Ok(out)
}

fn write_binary_line(line: &[u8], out: &mut Vec<u8>) {
    // `A` counts one byte and `Z` twenty-six; the small letters count on.
    out.extend((b'A'..=b'Z').chain(b'a'..=b'z').nth(line.len().saturating_sub(1)));
    for four in line.chunks(4) {
        let mut value = (0..4).fold(0, |value, index| value << 8 | four.get(index).map_or(0, |byte| u32::from(*byte)));
        let mut five = [0; 5];
        for digit in five.iter_mut().rev() {
            *digit = DIGITS[(value % 85) as usize];
            value /= 85;
        }
        out.extend_from_slice(&five);
    }
    out.push(b'\n');
}

/// As git does with `core.quotePath`: in quotes if any byte of the name needs it. Also if it ends in a space, where
/// `patch` would read a shorter name.
fn quoted(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let plain = path.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
    match plain && !path.ends_with(b" ") {
        true => [prefix, path].concat(),
        false => in_quotes(prefix, path),
    }
}

/// A name that shares its line with another: git can tell where one with spaces ends, `patch` only in quotes.
fn quoted_beside(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    if path.contains(&b' ') { in_quotes(prefix, path) } else { quoted(prefix, path) }
}

fn in_quotes(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let mut name = [b"\"", prefix].concat();
    path.iter().for_each(|byte| write_escaped(*byte, &mut name));
    name.push(b'"');
    name
}

fn write_escaped(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        0x07 => b'a',
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0b => b'v',
        0x0c => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        b' '..=b'~' => return out.push(byte),
        _ => return out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

fn write_line(parts: &[&[u8]], out: &mut Vec<u8>) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.push(b'\n');
}
