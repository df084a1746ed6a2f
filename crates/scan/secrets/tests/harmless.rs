//! Text that only looks random stays: logs, lockfiles, code, documents and placeholders without one hit.

use secrets::{Formats, Redactor, Values, find};

const CORPUS: &str = include_str!("harmless/corpus.txt");

#[test]
fn ordinary_text_has_no_secret() {
    assert!(CORPUS.lines().count() >= 200);
    let formats = Formats::built_in();
    let line = |number: u32| CORPUS.lines().nth(number as usize - 1).unwrap_or_default();
    let found = find(CORPUS.as_bytes(), &formats);
    let hits: Vec<String> = found.iter().map(|found| format!("{}: {}", found.rule, line(found.at.line))).collect();
    assert!(hits.is_empty(), "{} hits:\n{}", hits.len(), hits.join("\n"));
}

#[test]
fn ordinary_text_comes_out_as_it_went_in() {
    let mut redactor = Redactor::new(&Values::new(), Some(&Formats::built_in()));
    let mut out = Vec::new();
    redactor.push(CORPUS.as_bytes(), &mut out);
    let redacted = redactor.finish(&mut out);
    assert_eq!(redacted.total(), 0, "{redacted:?}");
    assert!(out == CORPUS.as_bytes());
}
