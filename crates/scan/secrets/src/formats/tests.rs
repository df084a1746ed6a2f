use std::path::Path;

use super::*;

/// Ours as their files say it, with the examples that the constants leave out.
fn ours() -> Vec<file::Written> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("our formats") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        all.extend(file::read(&path.display().to_string(), &text).expect("our own file is understood"));
    }
    all
}

#[test]
fn there_are_many_formats_and_each_has_its_own_name() {
    let mut ids: Vec<String> = Formats::built_in().iter().map(|format| format.id.to_string()).collect();
    let count = ids.len();
    assert!(count >= 170, "only {count}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
    assert_eq!(ours().len(), count);
}

#[test]
fn every_format_holds_on_its_own_examples() {
    let mut bad = Vec::new();
    for written in ours() {
        let complain = |_: usize, key: &str, why: String, _: &str| BadFormats::new(&written.id, "", 0, key, why, "");
        if let Err(error) = tried(&written, &complain) {
            bad.push(error.to_string());
        }
    }
    assert!(bad.is_empty(), "{}", bad.join(""));
}

#[test]
fn what_one_format_finds_all_together_find() {
    let all = Formats::built_in();
    for written in ours() {
        for example in &written.matches {
            let text = examples::spelled_out(example).expect("a kind");
            let found = crate::find(text.as_bytes(), &all);
            assert!(!found.is_empty(), "{}: {example}", written.id);
        }
    }
}

#[test]
fn a_service_is_named_rather_than_a_guess() {
    let all = Formats::built_in();
    for written in ours().iter().filter(|written| written.rank == 1) {
        let text = examples::spelled_out(&written.matches[0]).expect("a kind");
        let found = crate::find(text.as_bytes(), &all);
        assert!(found.iter().any(|found| !found.rule.starts_with("generic.")), "{}: {:?}", written.id, found);
    }
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    let text = "[[format]]\nid = \"a.b\"\ntitle = \"A\"\nseverity = \"high\"\nkeywords = [\"abcd\"]\nregexp = 'abcd'\n";
    let error = Formats::with(&[("mine.toml", text)]).err().expect("it is refused");
    assert_eq!((error.file.as_str(), error.line), ("mine.toml", 6));
    assert!(error.why.contains("regexp"), "{error}");
}

#[test]
fn a_file_is_refused_for_whatever_would_not_work() {
    let file = |lines: &str| {
        let base = "[[format]]\ntitle = \"A\"\n";
        let mut text = base.to_owned();
        let defaults = [
            ("id", "\"acme.token\""),
            ("severity", "\"high\""),
            ("keywords", "[\"acme_\"]"),
            ("regex", "'acme_[a-z0-9]{8}'"),
            ("matches", "[\"acme_⟨lower 8⟩\"]"),
            ("passes", "[\"acme_\"]"),
        ];
        for (key, value) in defaults {
            match lines.strip_prefix(&format!("{key} = ")) {
                Some(other) => text += &format!("{key} = {other}\n"),
                None => text += &format!("{key} = {value}\n"),
            }
        }
        if !defaults.iter().any(|(key, _)| lines.starts_with(&format!("{key} = "))) {
            text += lines;
        }
        text
    };
    assert!(Formats::with(&[("mine.toml", &file(""))]).is_ok());
    for (lines, key, line) in [
        ("id = \"Acme Token\"", "id", 3),
        ("severity = \"bad\"", "severity", 4),
        ("keywords = []", "keywords", 5),
        ("keywords = [\"ab\"]", "keywords", 5),
        ("regex = 'acme_['", "regex", 6),
        ("regex = 'acme_(?:x|(?<secret>[a-z]{8}))'", "regex", 6),
        ("regex = 'acm(?<secret>e_[a-z0-9]{8})'", "regex", 6),
        ("regex = 'acme_(?:[a-z]{1000}){1000}'", "regex", 6),
        ("matches = [\"acme_1\"]", "matches", 7),
        ("matches = [\"acme_⟨nothing 8⟩\"]", "matches", 7),
        ("matches = []", "matches", 7),
        ("passes = [\"acme_a1b2c3d4\"]", "passes", 8),
        ("window = 100000", "window", 9),
        ("entropy = 9.0", "entropy", 9),
        ("check = \"luck\"", "check", 3),
    ] {
        let error = Formats::with(&[("mine.toml", &file(lines))]).err().unwrap_or_else(|| panic!("accepted: {lines}"));
        assert_eq!((error.key.as_str(), error.line), (key, line), "{lines}: {error}");
        assert!(!error.fix.is_empty());
    }
    let twice = file("").repeat(2);
    assert!(Formats::with(&[("mine.toml", &twice)]).is_err());
}

#[test]
fn a_users_format_is_found_and_takes_over_ours() {
    let text = "[[format]]\nid = \"acme.token\"\ntitle = \"Acme token\"\nseverity = \"low\"\nkeywords = [\"acme_\"]\n\
                regex = '\\bacme_[a-z0-9]{16}\\b'\nmatches = [\"acme_⟨lower 16⟩\"]\npasses = [\"acme_corp\"]\n";
    let formats = Formats::with(&[("mine.toml", text)]).expect("it is understood");
    let secret = examples::spelled_out("acme_⟨lower 16⟩").expect("a kind");
    let found = crate::find(format!("a\n  é {secret}\n").as_bytes(), &formats);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].excerpt, "acme_…(21 letters)");
    assert_eq!((found[0].at.line, found[0].at.column), (2, 5));
    let over = text.replace("acme.token", "npm.token");
    let formats = Formats::with(&[("mine.toml", &over)]).expect("it is understood");
    assert_eq!(formats.iter().count(), Formats::built_in().iter().count());
}

#[test]
fn no_finding_tells_a_secret() {
    let all = Formats::built_in();
    for written in ours() {
        let text = examples::spelled_out(&written.matches[0]).expect("a kind");
        for found in crate::find(text.as_bytes(), &all) {
            let secret = &text.as_bytes()[found.at.start as usize..found.at.end as usize];
            let told = format!("{found:?}").into_bytes();
            assert!(memchr::memmem::find(&told, secret).is_none(), "{} tells", written.id);
            // No more than the prefix that everyone knows.
            let hidden = &secret[secret.len() / 2..];
            assert!(memchr::memmem::find(&told, hidden).is_none(), "{} tells half", written.id);
        }
    }
}

#[test]
fn a_checksum_is_that_of_the_service() {
    // From the article that explains them; it was never a token that opened anything.
    assert_eq!(&checks::checksum(b"zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ"), b"0mLq17");
}
