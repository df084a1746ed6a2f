//! Programs: any bytes, taken for any language, are scanned in short time, and what was not looked at is said.

use code::{Language, Rules, Scanner, Source};

const FINDINGS: usize = 1_001;
const EXCERPT: usize = 1_300;
const TAKEN_IN: usize = 257;
/// For texts as long as the fuzzer's, any scan takes less; in a build without optimisation too.
const SECONDS: u64 = 20;

pub fn law(bytes: &[u8]) {
    // The first byte chooses the language, so that seeds of one are tried as another.
    let Some((first, text)) = bytes.split_first() else { return };
    let language = Language::ALL[*first as usize % Language::ALL.len()];
    let scanner = Scanner::new(Rules::built_in());
    let source = Source { name: "x", language: Some(language), bytes: text };
    let began = std::time::Instant::now();
    let scanned = scanner.scan(&source);
    assert!(began.elapsed().as_secs() < SECONDS, "scanning it as {} takes {:?}", language.name(), began.elapsed());
    assert!(scanned.findings.len() <= FINDINGS, "{} findings", scanned.findings.len());
    for finding in &scanned.findings {
        assert!(!finding.rule.is_empty() && !finding.class.is_empty() && !finding.message.is_empty());
        assert!(finding.rule.starts_with(&finding.class), "{} is of class {}", finding.rule, finding.class);
        assert!(finding.at.start <= finding.at.end && finding.at.line >= 1 && finding.at.column >= 1);
        let inside = finding.at.name != "x" || finding.at.end <= text.len() as u64;
        assert!(inside, "{} ends beyond the text", finding.rule);
        assert!(finding.excerpt.len() <= EXCERPT && !finding.excerpt.chars().any(is_unsafe), "{:?}", finding.excerpt);
    }
    assert!(
        scanned.findings.is_sorted_by_key(|finding| (finding.at.clone(), finding.rule.clone()))
            || !scanned.is_complete()
    );
    // The same bytes, the same answer: no chance and no clock decides.
    assert_eq!(scanner.scan(&source).findings, scanned.findings);
    // What it takes in is looked for outside of the child that can only compute, so it is bounded all the more.
    let began = std::time::Instant::now();
    let letters = String::from_utf8_lossy(text);
    let taken_in = code::taken_in(&letters, language, Some("folder/x"), &["root".to_owned()]);
    assert!(taken_in.len() <= TAKEN_IN, "{} files are taken in", taken_in.len());
    for wanted in code::wanted(&["npm".to_owned(), "install".to_owned()]) {
        let code::Wanted::Manifest(manifest) = wanted else { continue };
        for name in ["package.json", "Makefile", "justfile", "pyproject.toml", "Cargo.toml", "x.gemspec"] {
            code::Manifest { name: name.to_owned(), ..manifest.clone() }.leads_to(&letters);
        }
    }
    assert!(began.elapsed().as_secs() < SECONDS, "following it takes {:?}", began.elapsed());
    // A name chooses manifests, which are read by other code.
    for name in ["package.json", "Makefile", "Dockerfile", ".github/workflows/a.yml", "a.py", "composer.json"] {
        let found = scanner.scan(&Source { name, language: None, bytes: text });
        assert!(found.findings.len() <= FINDINGS);
    }
}

fn is_unsafe(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
