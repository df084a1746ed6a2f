//! What a person is asked to agree to: for each path what is on the host, what would stand there, and a digest of both.

use model::{Proposed, Shown, Thing, ThingKind, Unshown};

use crate::base::Kind;
use crate::changes::{Part, Read, Side, Version, hash_of, patch_mode, read_side, shown, write_sides};
use crate::error::{Result, cannot};
use crate::gate::{Decision, Judged};
use crate::text;

/// Characters of diffs that a person is shown, in all and of one change: more is not read by anybody.
const MOST_SHOWN: usize = 60_000;
const MOST_OF_ONE: usize = 18_000;
/// However many changes there are, the first of them are shown so far.
const LEAST_OF_ONE: usize = 200;

/// Of every path that a person is asked about, what is there and what would be written; nothing if nobody is asked.
pub fn digest(side: &Side, judged: &[(usize, Judged<'_>)]) -> Result<Option<String>> {
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    let mut anything = false;
    for (part, one) in asked(side, judged) {
        anything = true;
        let path = one.difference.path;
        let written = |version: Version<'_>| -> Result<String> {
            let hash = hash_of(path, version).map_err(cannot("look at", shown(path)))?;
            Ok(format!("{:?} {:?} {}", version.kind(), hash, version.mode()))
        };
        add(part.place.as_os_str().as_encoded_bytes());
        add(path);
        // What is shown is a difference, so it has two sides.
        match one.host {
            None => add(b"nothing"),
            Some(seen) => add(written(Version::In(&part.host, seen))?.as_bytes()),
        }
        match (&one.decision, one.difference.is) {
            (Decision::Merge { contents, mode }, _) => {
                add(b"merged");
                add(contents);
                add(&mode.to_le_bytes());
            }
            (_, None) => add(b"deleted"),
            (_, Some(is)) => {
                add(b"written");
                add(written(is)?.as_bytes());
            }
        }
    }
    Ok(anything.then(|| hasher.finalize().to_hex().to_string()))
}

/// The same to be looked at. Each change gets its share of what a person reads: a long one hides no other.
pub fn proposed(side: &Side, judged: &[(usize, Judged<'_>)]) -> Result<Vec<Proposed>> {
    let mut left = MOST_SHOWN;
    let mut changes = asked(side, judged).count();
    let mut proposed = Vec::with_capacity(changes);
    for (part, one) in asked(side, judged) {
        let share = (left / changes.max(1)).clamp(LEAST_OF_ONE, MOST_OF_ONE).min(left);
        let change = propose(part, one, share)?;
        left -= change.diff.chars().count().min(left);
        changes -= 1;
        proposed.push(change);
    }
    Ok(proposed)
}

fn asked<'a, 'b>(
    side: &'a Side,
    judged: &'a [(usize, Judged<'b>)],
) -> impl Iterator<Item = (&'a Part, &'a Judged<'b>)> {
    let asked = judged.iter().filter(|(_, one)| one.asks.is_some());
    asked.filter_map(|(number, one)| Some((side.parts.get(*number)?, one)))
}

fn propose(part: &Part, one: &Judged<'_>, share: usize) -> Result<Proposed> {
    let path = one.difference.path;
    let host = one.host.map(|seen| Version::In(&part.host, seen));
    let old = read_side(host, path)?;
    let (is, new): (Option<Thing>, Read) = match &one.decision {
        Decision::Merge { contents, mode } => {
            let thing = Thing { kind: ThingKind::File, mode: *mode, size: contents.len() as u64, target: None };
            (Some(thing), Some((patch_mode(*mode), Some(contents.clone()))))
        }
        _ => (one.difference.is.map(|is| is.thing(path)), read_side(one.difference.is, path)?),
    };
    let is_file = |version: Version<'_>| version.kind() == Kind::File;
    let files = host.is_none_or(is_file) && is.as_ref().is_none_or(|is| is.kind == ThingKind::File);
    let texts = text_of(&old).zip(text_of(&new));
    let lines = texts.filter(|_| files).map(|(old, new)| text::count(old, new));
    // Nobody reads what is no text.
    let is_read = texts.is_some();
    let read = |side: Read| side.map(|(mode, contents)| (mode, contents.filter(|_| is_read)));
    let mut patch = Vec::new();
    write_sides((path, read(old)), (path, read(new)), &mut patch);
    let (diff, unshown) = readable(&patch, share);
    Ok(Proposed {
        workspace: Shown(part.place.clone()),
        path: Shown::of(path),
        was: host.map(|host| host.thing(path)),
        is,
        lines: lines.map(|lines| (lines.added, lines.removed)),
        diff,
        unshown,
    })
}

fn text_of(side: &Read) -> Option<&[u8]> {
    match side {
        None => Some(b""),
        Some((_, contents)) => contents.as_deref().filter(|contents| text::is_text(contents)),
    }
}

/// The first `most` characters, and what is left.
fn readable(patch: &[u8], most: usize) -> (String, Option<Unshown>) {
    let mut text = String::new();
    let mut characters = 0;
    let mut bytes = 0;
    'all: for chunk in patch.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if characters == most {
                break 'all;
            }
            text.push(letter);
            characters += 1;
            bytes += letter.len_utf8();
        }
        for byte in chunk.invalid() {
            let written = format!("\\x{byte:02x}");
            if characters + written.len() > most {
                break 'all;
            }
            text += &written;
            characters += written.len();
            bytes += 1;
        }
    }
    let rest = patch.get(bytes..).unwrap_or_default();
    if text.ends_with('\n') {
        text.pop();
    }
    let unshown = (!rest.is_empty()).then(|| Unshown {
        lines: rest.split_inclusive(|byte| *byte == b'\n').count(),
        bytes: rest.len(),
        digest: blake3::hash(patch).to_hex().to_string(),
    });
    (text, unshown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_counted_and_bound() {
        let (text, unshown) = readable(b"one\ntwo\nthree\n", 7);
        assert_eq!(text, "one\ntwo");
        let unshown = unshown.expect("it was cut");
        assert_eq!((unshown.lines, unshown.bytes), (2, 7));
        let (_, other) = readable(b"one\ntwo\nthrex\n", 7);
        assert_ne!(other.expect("it was cut").digest, unshown.digest);
        assert_eq!(readable(b"one\n", 7), ("one".to_owned(), None));
    }

    #[test]
    fn bytes_that_are_no_text_are_written_out_and_never_in_halves() {
        assert_eq!(readable(b"a\xff\xfeb", 100).0, "a\\xff\\xfeb");
        let (text, unshown) = readable(b"a\xff\xfeb", 8);
        assert_eq!((text.as_str(), unshown.map(|rest| rest.bytes)), ("a\\xff", Some(2)));
    }
}
