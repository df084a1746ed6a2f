//! Text that only looks random stays: what the usual tools print and write, without one hit.

use secrets::{Formats, Redactor, Values, find};

/// By hand: lines that have the looks of a secret, one of each kind.
const CORPUS: &str = include_str!("harmless/corpus.txt");

/// As the tools wrote it, with made-up names of hosts and people.
const TOOLS: &[(&str, &[u8])] = &[
    ("Cargo.lock", include_bytes!("../../../../Cargo.lock")),
    ("cargo tree, cargo metadata", include_bytes!("harmless/cargo.txt")),
    ("package-lock.json", include_bytes!("harmless/package-lock.json.txt")),
    ("npm ls, UUIDs, stacks", include_bytes!("harmless/npm-and-node.txt")),
    ("minified code with its source map", include_bytes!("harmless/bundle.min.js.txt")),
    ("git log --stat, git log -p", include_bytes!("harmless/git.txt")),
    ("pip list, pip debug, hashes, an image in base64", include_bytes!("harmless/pip-and-python.txt")),
    ("certificates, public keys, sums, logs, dumps", include_bytes!("harmless/system.txt")),
];

fn line(text: &[u8], number: u32) -> String {
    let line = text.split(|byte| *byte == b'\n').nth(number as usize - 1).unwrap_or_default();
    String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned()
}

#[test]
fn ordinary_text_has_no_secret() {
    assert!(CORPUS.lines().count() >= 200);
    let formats = Formats::built_in();
    for (name, text) in TOOLS.iter().chain(&[("by hand", CORPUS.as_bytes())]) {
        let found = find(text, &formats);
        let hits: Vec<String> =
            found.iter().map(|found| format!("{}: {}", found.rule, line(text, found.at.line))).collect();
        assert!(hits.is_empty(), "{name}: {} hits:\n{}", hits.len(), hits.join("\n"));
    }
}

#[test]
fn ordinary_text_comes_out_as_it_went_in() {
    let mut values = Values::new();
    assert_eq!(values.add("DEPLOY_KEY", b"fish-under-glass-9137"), secrets::Added::Kept);
    let mut redactor = Redactor::new(&values, Some(&Formats::built_in()));
    for (name, text) in TOOLS.iter().chain(&[("by hand", CORPUS.as_bytes())]) {
        let mut out = Vec::new();
        text.chunks(997).for_each(|piece| redactor.push(piece, &mut out));
        let redacted = redactor.finish(&mut out);
        assert_eq!(redacted.total(), 0, "{name}: {redacted:?}");
        assert!(out == *text, "{name}");
    }
}
