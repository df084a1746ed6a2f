//! The form of a file of formats, as people write it. Read by `build.rs` for ours, at load for a user's.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

/// The longest stretch that one format looks at.
const WIDEST: usize = 4096;
const NARROWEST: usize = 16;
/// If a format does not say.
const WINDOW: usize = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    format: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: Spanned<String>,
    title: Spanned<String>,
    severity: Spanned<String>,
    /// Literals with which a match begins; one of them must be there before the expression is tried.
    keywords: Spanned<Vec<String>>,
    /// The keywords also in capitals, in small letters, and with a capital at the beginning.
    #[serde(default)]
    ignore_case: bool,
    /// From the keyword on; the secret is its group `secret`, or all of it.
    regex: Option<Spanned<String>>,
    /// The secret alone, where the keyword is a service whose `…_key = ` or `…_token: ` stands before it.
    assigned: Option<Spanned<String>>,
    /// What must stand right before the keyword.
    before: Option<Spanned<String>>,
    window: Option<Spanned<usize>>,
    /// Bits a letter, at least.
    entropy: Option<Spanned<f64>>,
    check: Option<Spanned<String>>,
    /// Letters of a token, at least, from the keyword's beginning on. Less need not be tried.
    #[serde(default)]
    least: Option<Spanned<usize>>,
    /// One of these must follow in the line, or it need not be tried.
    needs: Option<Spanned<String>>,
    /// The secret is the base64 on the lines that follow.
    #[serde(default)]
    block: bool,
    /// Another format that finds the same tells more.
    #[serde(default)]
    generic: bool,
    matches: Spanned<Vec<String>>,
    passes: Spanned<Vec<String>>,
}

/// One format, checked as far as that is possible without its expression.
pub(crate) struct Written {
    pub id: String,
    pub title: String,
    pub severity: String,
    pub keywords: Vec<String>,
    pub regex: String,
    /// How much of the expression stands before the secret.
    pub lead: usize,
    pub before: Option<String>,
    pub window: usize,
    pub entropy: f64,
    pub check: Option<String>,
    pub least: usize,
    pub needs: String,
    pub block: bool,
    /// Which format names a secret that several find: the lowest.
    pub rank: u8,
    #[cfg_attr(not(test), allow(dead_code))]
    pub matches: Vec<String>,
    #[cfg_attr(not(test), allow(dead_code))]
    pub passes: Vec<String>,
    #[cfg_attr(not(test), allow(dead_code))]
    pub at: Places,
}

#[allow(dead_code)]
pub(crate) struct Places {
    pub id: Range<usize>,
    pub regex: Range<usize>,
    pub before: Range<usize>,
    pub matches: Range<usize>,
    pub passes: Range<usize>,
}

/// A file that is not understood: nothing of it is used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: `{key}` {why}; hint: {fix}")]
pub struct BadFormats {
    pub file: String,
    pub line: usize,
    pub key: String,
    pub why: String,
    pub fix: String,
}

impl BadFormats {
    pub(crate) fn new(file: &str, text: &str, at: usize, key: &str, why: String, fix: &str) -> BadFormats {
        let line = 1 + text.as_bytes().iter().take(at).filter(|letter| **letter == b'\n').count();
        BadFormats { file: file.to_owned(), line, key: key.to_owned(), why, fix: fix.to_owned() }
    }
}

pub(crate) fn read(file: &str, text: &str) -> Result<Vec<Written>, BadFormats> {
    let parsed: File = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let why = format!("is not understood: {}", error.message());
        BadFormats::new(file, text, at, "format", why, "see docs/secrets.md for the keys of a format")
    })?;
    parsed.format.into_iter().map(|entry| checked(file, text, entry)).collect()
}

fn checked(file: &str, text: &str, entry: Spanned<Entry>) -> Result<Written, BadFormats> {
    let whole = entry.span();
    let entry = entry.into_inner();
    let bad =
        |at: &Range<usize>, key: &str, why: String, fix: &str| BadFormats::new(file, text, at.start, key, why, fix);
    let id = entry.id.get_ref();
    let is_named = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || ".-".contains(letter);
    if id.is_empty() || id.len() > 64 || !id.chars().all(is_named) {
        let why = "is no name of a format".to_owned();
        return Err(bad(&entry.id.span(), "id", why, "small letters, digits, `.` and `-`, such as `acme.token`"));
    }
    if !["low", "medium", "high", "critical"].contains(&entry.severity.get_ref().as_str()) {
        let why = format!("is `{}`", entry.severity.get_ref());
        return Err(bad(&entry.severity.span(), "severity", why, "one of low, medium, high, critical"));
    }
    let keywords = entry.keywords.get_ref();
    if keywords.is_empty() || keywords.iter().any(|word| word.len() < 3 || word.len() > 64 || !word.is_ascii()) {
        let why = "needs literals of 3 to 64 plain letters".to_owned();
        return Err(bad(&entry.keywords.span(), "keywords", why, "name what each match begins with"));
    }
    let window = entry.window.as_ref().map_or(WINDOW, |window| *window.get_ref());
    if !(NARROWEST..=WIDEST).contains(&window) {
        let at = entry.window.as_ref().map_or(whole.clone(), |window| window.span());
        return Err(bad(&at, "window", format!("is {window}"), "from 16 to 4096 bytes"));
    }
    let entropy = entry.entropy.as_ref().map_or(0.0, |bits| *bits.get_ref());
    if !(0.0..=8.0).contains(&entropy) {
        let at = entry.entropy.as_ref().map_or(whole.clone(), |bits| bits.span());
        return Err(bad(&at, "entropy", format!("is {entropy}"), "from 0 to 8 bits a letter"));
    }
    let least = entry.least.as_ref().map_or(0, |least| *least.get_ref());
    if least > window {
        let at = entry.least.as_ref().map_or(whole.clone(), |least| least.span());
        return Err(bad(&at, "least", format!("is {least}, more than the window of {window}"), "at most the window"));
    }
    let needs = entry.needs.as_ref().map_or("", |needs| needs.get_ref());
    if needs.len() > 3 || !needs.is_ascii() {
        let at = entry.needs.as_ref().map_or(whole.clone(), |needs| needs.span());
        return Err(bad(&at, "needs", format!("is `{needs}`"), "up to three plain letters, such as \"=:\""));
    }
    let (regex, regex_at) = match (entry.regex, entry.assigned) {
        (Some(regex), None) => (regex.get_ref().clone(), regex.span()),
        (None, Some(value)) => (assigned(keywords, value.get_ref()), value.span()),
        _ => return Err(bad(&whole, "regex", "is missing, or `assigned` is there too".to_owned(), "give one of them")),
    };
    let is_assigned = regex.starts_with("(?i:");
    let Ok(lead) = lead_of(&regex) else {
        let why = "has its group `secret` inside of another group".to_owned();
        return Err(bad(&regex_at, "regex", why, "take the group out: (?:a|b)(?<secret>…)"));
    };
    for (examples, key) in [(&entry.matches, "matches"), (&entry.passes, "passes")] {
        if examples.get_ref().is_empty() {
            let why = "has no example".to_owned();
            return Err(bad(&examples.span(), key, why, "give at least one text that is found, and one that is not"));
        }
    }
    let at = Places {
        id: entry.id.span(),
        regex: regex_at,
        before: entry.before.as_ref().map_or(whole, |before| before.span()),
        matches: entry.matches.span(),
        passes: entry.passes.span(),
    };
    Ok(Written {
        keywords: spelled(keywords, entry.ignore_case),
        id: entry.id.into_inner(),
        title: entry.title.into_inner(),
        severity: entry.severity.into_inner(),
        regex,
        lead,
        before: entry.before.map(Spanned::into_inner),
        window,
        entropy,
        check: entry.check.map(Spanned::into_inner),
        least,
        needs: entry.needs.map(Spanned::into_inner).unwrap_or_default(),
        block: entry.block,
        rank: if entry.generic {
            3
        } else if is_assigned {
            2
        } else {
            1
        },
        matches: entry.matches.into_inner(),
        passes: entry.passes.into_inner(),
        at,
    })
}

/// `SERVICE_API_KEY = "…"`, `service.token: …`, `--service-token …` and their like.
fn assigned(keywords: &[String], value: &str) -> String {
    let names: Vec<String> = keywords.iter().map(|word| escaped(word)).collect();
    let lead = concat!(
        r#")[\w.\-\[\]"' ]{0,24}(?i:key|token|secret|auth|pass|pwd|pat|credential|api|sid)[\w.\-]{0,12}["'\]]{0,2}"#,
        r#"[ \t]{0,3}(?:=>|:=|[=:, \t])[ \t]{0,3}["'`]?"#
    );
    format!("(?i:{}{lead}(?<secret>{value})(?:[^A-Za-z0-9_\\-]|$)", names.join("|"))
}

fn escaped(word: &str) -> String {
    word.chars()
        .flat_map(|letter| (!letter.is_ascii_alphanumeric()).then_some('\\').into_iter().chain([letter]))
        .collect()
}

fn spelled(keywords: &[String], ignore_case: bool) -> Vec<String> {
    let mut all = Vec::new();
    for word in keywords {
        let mut add = |word: String| {
            if !all.contains(&word) {
                all.push(word);
            }
        };
        add(word.clone());
        if ignore_case {
            add(word.to_ascii_lowercase());
            add(word.to_ascii_uppercase());
            let mut letters = word.to_ascii_lowercase();
            if let Some(first) = letters.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            add(letters);
        }
    }
    all
}

/// How much of an expression stands before the group `secret`; an error if that is inside of another group.
fn lead_of(regex: &str) -> Result<usize, ()> {
    let bytes = regex.as_bytes();
    let (mut at, mut depth, mut in_class) = (0, 0usize, false);
    while at < bytes.len() {
        let rest = &regex.as_bytes()[at..];
        match bytes[at] {
            b'\\' => at += 1,
            b'[' if !in_class => {
                in_class = true;
                // A bracket right after the opening one is a letter.
                if rest.starts_with(b"[]") || rest.starts_with(b"[^]") {
                    at += if rest[1] == b'^' { 2 } else { 1 };
                }
            }
            b']' if in_class => in_class = false,
            b'(' if !in_class => {
                if rest.starts_with(b"(?<secret>") || rest.starts_with(b"(?P<secret>") {
                    return if depth == 0 { Ok(at) } else { Err(()) };
                }
                depth += 1;
            }
            b')' if !in_class => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(0)
}
