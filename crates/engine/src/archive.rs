//! Files as an archive (tar, with pax headers where names are long): written here, so that whatever came from inside, what goes
//! out is a well-formed archive of plain files, folders and links.

use std::os::unix::ffi::OsStrExt;

use model::{FileEntry, ThingKind};

const BLOCK: usize = 512;

/// Each with its contents, whose length counts.
pub fn of(entries: &[(FileEntry, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (entry, content) in entries {
        let mut path = entry.path.as_os_str().as_bytes().to_vec();
        let target = entry.target.as_ref().map(|target| target.as_os_str().as_bytes().to_vec()).unwrap_or_default();
        // From below, and nowhere else: whoever unpacks it may be less careful than we are.
        if path.is_empty() || path.starts_with(b"/") || path.split(|byte| *byte == b'/').any(|part| part == b"..") {
            continue;
        }
        let (kind, content) = match entry.kind {
            ThingKind::File => (b'0', content.as_slice()),
            ThingKind::Folder => {
                path.push(b'/');
                (b'5', [].as_slice())
            }
            ThingKind::Link => (b'2', [].as_slice()),
            ThingKind::Special => continue,
        };
        let mut notes = Vec::new();
        if path.len() > 100 {
            notes.extend(note("path", &path));
        }
        if target.len() > 100 {
            notes.extend(note("linkpath", &target));
        }
        if !notes.is_empty() {
            out.extend(header(b"@PaxHeader", b"", b'x', 0o644, notes.len(), 0));
            pad(&mut out, &notes);
        }
        let modified = u64::try_from(entry.modified).unwrap_or_default();
        out.extend(header(&path, &target, kind, entry.mode, content.len(), modified));
        pad(&mut out, content);
    }
    out.extend([0; 2 * BLOCK]);
    out
}

fn pad(out: &mut Vec<u8>, content: &[u8]) {
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(BLOCK), 0);
}

/// Its length counts itself.
fn note(name: &str, value: &[u8]) -> Vec<u8> {
    let rest = name.len() + value.len() + 3;
    let mut length = rest + 1;
    while rest + length.to_string().len() != length {
        length = rest + length.to_string().len();
    }
    [format!("{length} {name}=").as_bytes(), value, b"\n"].concat()
}

fn header(path: &[u8], target: &[u8], kind: u8, mode: u32, size: usize, modified: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, most: usize, text: &[u8]| {
        let text = &text[..text.len().min(most)];
        block[at..at + text.len()].copy_from_slice(text);
    };
    put(0, 100, path);
    put(100, 8, format!("{:07o}\0", mode & 0o777).as_bytes());
    put(108, 8, b"0000000\0");
    put(116, 8, b"0000000\0");
    // Archives have far less than eight gibibytes.
    put(124, 12, format!("{size:011o}\0").as_bytes());
    put(136, 12, format!("{:011o}\0", modified.min(0o77_777_777_777)).as_bytes());
    put(148, 8, b"        ");
    put(156, 1, &[kind]);
    put(157, 100, target);
    put(257, 8, b"ustar\x0000");
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block[148..156].copy_from_slice(&format!("{sum:06o}\0 ").into_bytes()[..8]);
    block
}

#[cfg(test)]
mod tests {
    use model::Shown;

    use super::*;

    fn entry(path: &str, kind: ThingKind) -> FileEntry {
        let target = (kind == ThingKind::Link).then(|| Shown::of(b"a"));
        FileEntry { path: Shown::of(path.as_bytes()), kind, mode: 0o4755, size: 0, modified: 1, target }
    }

    #[test]
    fn an_archive_has_what_may_be_in_one() {
        let long = "d/".repeat(90) + "f";
        let made = of(&[
            (entry("a", ThingKind::File), b"hello".to_vec()),
            (entry("d", ThingKind::Folder), Vec::new()),
            (entry(&long, ThingKind::File), vec![7; 513]),
            (entry("l", ThingKind::Link), Vec::new()),
            (entry("s", ThingKind::Special), Vec::new()),
            (entry("../up", ThingKind::File), b"x".to_vec()),
            (entry("/abs", ThingKind::File), b"x".to_vec()),
        ]);
        assert_eq!(made.len() % BLOCK, 0);
        // a, its block; d; a note and its block, the long one and two; l; and the end.
        assert_eq!(made.len() / BLOCK, 2 + 1 + 2 + 3 + 1 + 2);
        assert_eq!(&made[..1], b"a");
        assert_eq!(&made[100..107], b"0000755");
        assert!(!made.windows(5).any(|letters| letters == b"../up"));
    }

    #[test]
    fn a_note_counts_itself() {
        for length in [1, 5, 80, 90, 91, 92, 93, 985, 990, 995] {
            let made = note("path", &vec![b'a'; length]);
            let said: usize = String::from_utf8_lossy(&made).split(' ').next().expect("a length").parse().expect("one");
            assert_eq!(said, made.len());
        }
    }
}
