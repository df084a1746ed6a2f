//! Readers of our own for languages that are scanned most: many times as fast as a parser that must understand anything.
//!
//! A reader takes only what is plainly its language, all of it, and makes the very tree that the parser would make
//! (`tests::a_reader_sees_what_the_parser_sees`). Where it stumbles, it says nothing and the parser is asked: what is
//! wrong, odd or nested too deeply costs more, and loses nothing.

mod javascript;
mod python;

use crate::Language;
use crate::grammar::{Role, Roles};
use crate::tree::Tree;

/// Numbers for kinds of nodes, and their names in the same order.
macro_rules! kinds {
    ($($constant:ident $name:literal)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(u16)]
        enum Number { $($constant),* }
        $(pub const $constant: u16 = Number::$constant as u16;)*
        const NAMES: &[&str] = &[$($name),*];
    };
}
use kinds;

/// `None` for what is not plain, and for languages without a reader.
pub(crate) fn read(bytes: &[u8], language: Language) -> Option<Tree> {
    match language {
        Language::Python if has_plain_lines(bytes) => python::read(bytes),
        Language::JavaScript if has_plain_lines(bytes) => javascript::read(bytes),
        _ => None,
    }
}

/// What ends a line for some readers and not for others, or ends a text, is for the parser.
fn has_plain_lines(bytes: &[u8]) -> bool {
    let is_plain = |at: usize| bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
    memchr::memchr2_iter(0, b'\r', bytes).all(is_plain)
}

/// The roles of kinds, from the table that also serves the parser.
const fn roles<const COUNT: usize>(names: &[&str], known: Roles) -> [Role; COUNT] {
    let mut roles = [Role::Plain; COUNT];
    let mut at = 0;
    while at < COUNT {
        let mut other = 0;
        while other < known.len() {
            if same(names[at].as_bytes(), known[other].0.as_bytes()) {
                roles[at] = known[other].1;
            }
            other += 1;
        }
        at += 1;
    }
    roles
}

const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::limits::WRONG_SHARE;
    use crate::parse;
    use crate::tree::Node;

    /// A tree as it is walked: what nobody looks at is left out. And whether something in it is wrong, and how much.
    fn walked(tree: &Tree, bytes: &[u8]) -> (String, bool, usize) {
        let (mut text, mut is_wrong, mut wrong) = (String::new(), false, 0);
        let mut todo: Vec<(Node<'_>, usize)> = tree.root().map(|root| (root, 0)).into_iter().collect();
        while let Some((node, depth)) = todo.pop() {
            // The parser takes `type(a).b = c` for a new type, `*a()` for a call of `*a`, and `await (a)()` for one of `await`.
            if node.is_wrong() {
                wrong += node.byte_range().len().max(1);
            }
            is_wrong |= match node.kind() {
                "type_alias_statement" => true,
                "list_splat" => node.field() != 0,
                "identifier" => &bytes[node.byte_range()] == b"await",
                _ => node.is_wrong(),
            };
            let role = node.role();
            // Of a raw text of nothing but backslashes and quotes the parser sees no content.
            let is_blind =
                role == Role::Fragment && bytes[node.byte_range()].iter().all(|byte| b"\\\"'".contains(byte));
            if role == Role::Skip || is_blind {
                continue;
            }
            write!(text, "{:depth$}{} {}", "", node.kind(), node.field()).expect("text");
            // Of what is plain only the parts matter; blocks and statements end where one likes.
            match role {
                Role::Plain | Role::Function | Role::Each => writeln!(text).expect("text"),
                _ if node.kind().ends_with("_statement") => writeln!(text, " {}", node.start_byte()).expect("text"),
                _ => writeln!(text, " {:?}", node.byte_range()).expect("text"),
            }
            let is_leaf = matches!(role, Role::Name | Role::Fragment | Role::Escape | Role::Quoted | Role::Number);
            if !is_leaf {
                let children: Vec<Node<'_>> = node.children().collect();
                todo.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
            }
        }
        (text, is_wrong, wrong)
    }

    /// Was it read, and as the parser reads it?
    fn compare(bytes: &[u8], language: Language) -> Result<bool, String> {
        let Some(ours) = read(bytes, language) else { return Ok(false) };
        let theirs = parse::parsed(bytes, language).expect("the parser is not stopped");
        let ((ours, ..), (theirs, is_wrong, wrong)) = (walked(&ours, bytes), walked(&theirs, bytes));
        if wrong * 1000 > bytes.len() * WRONG_SHARE {
            return Err(format!("{wrong} bytes of it are wrong"));
        }
        if is_wrong || ours == theirs {
            return Ok(true);
        }
        let differs = ours.lines().zip(theirs.lines()).position(|(ours, theirs)| ours != theirs).unwrap_or(0);
        let around = |text: &str| text.lines().skip(differs.saturating_sub(6)).take(12).collect::<Vec<_>>().join("\n");
        Err(format!("ours\n{}\ntheirs\n{}", around(&ours), around(&theirs)))
    }

    fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
        let (mut todo, mut files) = (vec![folder.to_path_buf()], Vec::new());
        while let Some(path) = todo.pop() {
            for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    todo.push(path);
                } else if path.extension().is_some_and(|found| extensions.iter().any(|known| found == *known)) {
                    files.push(path);
                }
            }
        }
        files.sort();
        files
    }

    /// `READ_FOLDER=/usr/lib/python3 cargo nextest run … a_reader_sees` compares all of a folder, too.
    #[test]
    fn a_reader_sees_what_the_parser_sees() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let more = std::env::var_os("READ_FOLDER").map(PathBuf::from);
        let mut unlike = Vec::new();
        for folder in std::iter::once(corpus).chain(more) {
            for (language, extensions) in
                [(Language::Python, &["py"][..]), (Language::JavaScript, &["js", "mjs", "cjs"])]
            {
                let (mut others, mut all) = (Vec::new(), 0);
                for path in files(&folder, extensions) {
                    let bytes = std::fs::read(&path).expect("a file");
                    all += 1;
                    match compare(&bytes, language) {
                        Ok(true) => {}
                        Ok(false) => others.push(path),
                        Err(difference) => unlike.push(format!("{}\n{difference}", path.display())),
                    }
                }
                assert!(others.len() * 10 <= all, "of {all} these are not read: {others:#?}");
            }
        }
        assert!(unlike.is_empty(), "{} unlike\n{}", unlike.len(), unlike.join("\n"));
    }

    /// Files of the corpus in a language that is read.
    fn corpus() -> Vec<(Language, Vec<u8>)> {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let of = |language, extension| {
            let read = move |path: PathBuf| (language, std::fs::read(path).expect("a file"));
            files(&corpus, &[extension]).into_iter().map(read)
        };
        of(Language::Python, "py").chain(of(Language::JavaScript, "js")).collect()
    }

    /// One text made of two, cut, joined, doubled or with a letter changed.
    fn changed(one: &[u8], other: &[u8], way: u8, from: usize, length: usize, letter: u8) -> Vec<u8> {
        let from = from % (one.len() + 1);
        let to = (from + length % 40).min(one.len());
        let (before, within, after) = (&one[..from], &one[from..to], &one[to..]);
        match way {
            0 => [one, other].concat(),
            1 => [before, other, after].concat(),
            2 => [before, after].concat(),
            3 => [before, within, within, after].concat(),
            4 => [before, &[letter], after].concat(),
            5 => [before, &[letter], within, after].concat(),
            _ => before.to_vec(),
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

        #[test]
        fn what_is_changed_is_seen_as_the_parser_sees_it(
            (one, other) in (0..1000_usize, 0..1000_usize),
            (way, from, length) in (0..7_u8, 0..100_000_usize, 0..1000_usize),
            letter in proptest::sample::select(b"()[]{}<>.,:;=+-*/\\\"'`#@!?&|^%~$ \tabcxyz01_rfbu\0\r\x0c".to_vec()),
        ) {
            static CORPUS: std::sync::OnceLock<Vec<(Language, Vec<u8>)>> = std::sync::OnceLock::new();
            let corpus = CORPUS.get_or_init(corpus);
            let (language, one) = &corpus[one % corpus.len()];
            let (_, other) = &corpus[other % corpus.len()];
            let text = changed(one, other, way, from, length, letter);
            let compared = compare(&text, *language);
            assert!(compared.is_ok(), "{}\n{compared:?}", String::from_utf8_lossy(&text));
        }
    }
}
