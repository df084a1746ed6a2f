//! Lines for a shell: each command that they start is asked about, and where its input comes from is followed by line.

use std::collections::HashMap;

use shell::{Origin, Reading, Script, Simple, Word};

use crate::evaluate::{Evaluated, Hit, Piece};
use crate::limits::{FINDINGS, PIECES};
use crate::rules::{Entry, Rules, Which};
use crate::value::{CREDENTIAL_PATH, DECODED, Labels, NETWORK, SECRET, WRITTEN};
use crate::{Language, credentials, one_liners};

const ENVIRONMENT: Labels = 1 << 2;

/// Programs that only say something of what they are given.
const LOOKERS: &[&str] = &[
    "chmod", "chown", "ls", "stat", "mkdir", "touch", "test", "[", "echo", "printf", "ssh-keygen", "ssh-add", "rm",
    "grep", "exit", "cd",
];
/// Programs that put what they read into another file.
const PACKERS: &[&str] = &["tar", "zip", "cp", "gzip", "openssl", "gpg", "7z", "dd", "rsync", "xz", "install", "mv"];

/// How many bytes are looked at, in all, to find where commands stand.
const LOOKING: usize = 16 << 20;

pub(crate) fn script(text: &str, rules: &Rules) -> Evaluated {
    let mut readings: Vec<(usize, Reading)> = Vec::new();
    let whole = shell::of_line(text);
    let broken = whole.commands.is_empty() && !whole.unclear.is_empty();
    let mut found = Evaluated::default();
    if broken {
        // What is not understood as a whole may be understood line by line.
        let mut at = 0;
        for line in text.split_inclusive('\n').take(50_000) {
            let trimmed = line.trim();
            if !trimmed.is_empty() && !trimmed.starts_with('#') {
                readings.push((at, shell::of_line(line)));
            }
            at += line.len();
        }
        found.wrong = text.len();
        found.left.too_many = at < text.len();
    } else {
        readings.push((0, whole));
    }
    let mut looking = LOOKING;
    let mut placed: Vec<(usize, &Simple)> = Vec::new();
    for (from, reading) in &readings {
        let mut cursor = *from;
        for simple in &reading.commands {
            let at = place_of(text, simple, cursor, &mut looking).unwrap_or(cursor);
            // Substitutions come first: the next may stand before this one, on the same line.
            cursor = text[..at].rfind('\n').map_or(0, |line| line + 1).max(cursor.min(at));
            placed.push((at, simple));
        }
    }
    judge(text, &placed, rules, &mut found);
    // Where a command was not found, its place is a guess; it stays within the text.
    for hit in &mut found.hits {
        hit.end = hit.end.min(text.len()).max(hit.start);
    }
    found
}

pub(crate) fn words(words: &[String], rules: &Rules) -> Evaluated {
    let reading = shell::of_words(words);
    let placed: Vec<(usize, &Simple)> = reading.commands.iter().map(|simple| (0, simple)).collect();
    let mut found = Evaluated::default();
    let line = words.join(" ");
    judge(&line, &placed, rules, &mut found);
    for hit in &mut found.hits {
        hit.end = hit.end.min(line.len()).max(hit.start);
    }
    found
}

fn place_of(text: &str, simple: &Simple, cursor: usize, looking: &mut usize) -> Option<usize> {
    let needle = simple.program.text();
    if needle.is_empty() || needle == ":" {
        return None;
    }
    // Lines that begin alike are told apart by what comes later; a word may be written otherwise than it is read.
    let arguments: Vec<&str> = simple.arguments.iter().take(4).map(|word| beginning(word.text(), 40)).collect();
    let first: Vec<&str> = arguments.iter().take(1).map(|word| beginning(word, 12)).collect();
    for (start, arguments) in [(cursor, &arguments), (cursor, &first), (0, &first)] {
        let mut from = start;
        while let Some(at) = text.get(from..).and_then(|rest| rest.find(needle)).map(|at| at + from) {
            *looking = looking.checked_sub(at - from + needle.len())?;
            let end = at + needle.len();
            let bare =
                |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"_-.".contains(byte));
            let is_word = bare(text.as_bytes().get(end)) && (at == 0 || bare(text.as_bytes().get(at - 1)));
            let line_end = text[end..].find('\n').map_or(text.len(), |length| end + length);
            let fits = arguments.iter().all(|argument| text[end..line_end].contains(*argument));
            if is_word && fits {
                return Some(at);
            }
            from = end;
        }
        *looking = looking.checked_sub(text.len().saturating_sub(start))?;
    }
    None
}

fn beginning(text: &str, letters: usize) -> &str {
    text.char_indices().nth(letters).map_or(text, |(end, _)| &text[..end])
}

fn judge(text: &str, placed: &[(usize, &Simple)], rules: &Rules, found: &mut Evaluated) {
    let mut known: HashMap<String, Labels> = loops(text);
    // Commands of one logical line, in order.
    let mut place = 0;
    let mut by_place: Vec<(usize, &Simple)> = placed.to_vec();
    by_place.sort_by_key(|(at, _)| *at);
    while place < by_place.len() {
        let (from, to) = logical_line(text, by_place[place].0);
        let end = by_place[place..]
            .iter()
            .position(|(at, _)| *at >= to)
            .map_or(by_place.len(), |length| place + length)
            .max(place + 1);
        let line = &text[from..to];
        let flows = line.contains('|') || line.contains("$(") || line.contains('`') || line.contains("<(");
        let mut own: Vec<Labels> = Vec::new();
        for (_, simple) in &by_place[place..end] {
            let labels = labels_of(simple, &known);
            // A later command of the same line may use what this one fills.
            keep(simple, labels, labels, &mut known);
            own.push(labels);
        }
        let all = own.iter().fold(0, |all, labels| all | labels);
        for ((at, simple), own) in by_place[place..end].iter().zip(&own) {
            // Only the command itself runs a file.
            let labels = if flows { all & !WRITTEN | own & WRITTEN } else { *own };
            ask(*at, simple, labels, line, rules, found);
            if labels != 0 {
                keep(simple, labels, *own, &mut known);
            }
        }
        if all != 0 {
            assigned(line, all, &mut known);
        }
        place = end;
    }
}

/// From the beginning of a line to its end, with the lines that continue it.
fn logical_line(text: &str, at: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let at = at.min(text.len());
    let mut from = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |line| line + 1);
    for _ in 0..16 {
        if from < 2 || bytes[from - 2] != b'\\' {
            break;
        }
        from = bytes[..from - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |line| line + 1);
    }
    let mut to = at;
    for _ in 0..64 {
        to = bytes[to..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |length| to + length);
        let line = text[from..to].trim_end();
        if to >= text.len() || !(line.ends_with('\\') || line.ends_with('|')) {
            break;
        }
        to += 1;
    }
    (from, to.max(from))
}

/// Where what a command handles comes from, by its own words.
fn labels_of(simple: &Simple, known: &HashMap<String, Labels>) -> Labels {
    let name = simple.name().unwrap_or("");
    let mut labels = match name {
        "env" | "printenv" | "export" | "set" if simple.arguments.is_empty() => ENVIRONMENT,
        "curl" | "wget" => NETWORK,
        "base64" | "base32"
            if simple.arguments.iter().any(|word| matches!(word.text(), "-d" | "--decode" | "-D" | "-di")) =>
        {
            DECODED
        }
        "xxd" if simple.arguments.iter().any(|word| word.text().starts_with("-r")) => DECODED,
        "rev" | "tr" | "uudecode" => DECODED,
        _ => 0,
    };
    for word in simple.arguments.iter().chain(&simple.reads) {
        let text = word.text();
        if !LOOKERS.contains(&name) && credentials::path(text.as_bytes()) {
            labels |= SECRET | CREDENTIAL_PATH;
        }
        if text.contains('$') || text.contains('@') || text.starts_with(['/', '.', '~']) || !known.is_empty() {
            for (name, of) in known {
                let is_variable = text.contains(&format!("${name}")) || text.contains(&format!("${{{name}"));
                if is_variable || (name.contains(['/', '.']) && text.contains(name.as_str())) {
                    labels |= of;
                }
            }
        }
    }
    if runs_fetched(simple, known) {
        labels |= WRITTEN;
    }
    labels
}

/// A path as it is compared: without quotes, and without the folder that we are in.
fn bare(path: &str) -> &str {
    path.trim_matches('"').trim_start_matches("./")
}

/// Is the program, or the script that it reads, a file that was fetched before?
fn runs_fetched(simple: &Simple, known: &HashMap<String, Labels>) -> bool {
    let is_fetched =
        |path: &str| known.iter().any(|(name, of)| of & NETWORK != 0 && bare(name) == bare(path) && !path.is_empty());
    let is_variable = |path: &str| {
        let name = path.trim_matches('"').trim_start_matches(['$', '{']).trim_end_matches('}');
        path.contains('$') && known.get(path).or_else(|| known.get(name)).is_some_and(|of| of & NETWORK != 0)
    };
    let program = simple.program.text();
    // What has no folder is looked up where the system keeps programs.
    if program.contains('/') && is_fetched(program) || is_variable(program) {
        return true;
    }
    let script = match &simple.script {
        Some(Script { origin: Origin::File(word), .. }) => Some(word.text()),
        Some(Script { origin: Origin::Input, .. }) => simple.reads.first().map(Word::text),
        // A word that is not known might be an option: then no script is told.
        None | Some(Script { origin: Origin::Printed, .. })
            if matches!(simple.name(), Some("source" | "." | "sh" | "bash" | "zsh" | "dash" | "ksh" | "python3")) =>
        {
            simple.arguments.first().map(Word::text)
        }
        None | Some(Script { origin: Origin::Printed, .. }) => None,
    };
    script.is_some_and(|path| is_fetched(path) || is_variable(path))
}

/// Where `curl` and `wget` put what they fetch.
fn fetched_to(simple: &Simple) -> Vec<String> {
    let is_curl = simple.name() == Some("curl");
    let mut files = Vec::new();
    let (mut address, mut is_named) = (None, false);
    let mut words = simple.arguments.iter().map(Word::text);
    while let Some(word) = words.next() {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        if let Some(file) = word
            .strip_prefix("--output=")
            .or_else(|| word.strip_prefix("--output-document="))
            .or_else(|| word.strip_prefix(if is_curl { "-o" } else { "-O" }).filter(|file| !file.is_empty()))
        {
            files.push(file.to_owned());
        } else if matches!(word, "--output" | "--output-document")
            || letters.is_some_and(|letters| letters.ends_with(if is_curl { 'o' } else { 'O' }))
        {
            files.extend(words.next().map(str::to_owned));
        } else if word == "--remote-name" || is_curl && letters.is_some_and(|letters| letters.contains('O')) {
            is_named = true;
        } else if !word.starts_with('-') {
            address = Some(word);
        }
    }
    if (is_named || !is_curl) && files.is_empty() {
        let last = address.and_then(|address| address.split(['?', '#']).next()?.rsplit('/').next());
        files.extend(last.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    files.retain(|file| file != "-" && file != "/dev/null" && !file.is_empty());
    files
}

/// Variables of loops over files in which secrets lie: `for f in ~/.ssh/id_*`.
fn loops(text: &str) -> HashMap<String, Labels> {
    let mut known = HashMap::new();
    for (at, _) in text.match_indices("for ").take(256) {
        let rest: &str = text[at + 4..].split(['\n', ';']).next().unwrap_or("");
        if let Some((name, words)) = rest.split_once(" in ")
            && name.len() < 64
            && name.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && words
                .split_whitespace()
                .take(64)
                .any(|word| credentials::path(word.trim_matches(['"', '\'']).as_bytes()))
            && known.len() < 64
        {
            known.insert(name.trim().to_owned(), SECRET | CREDENTIAL_PATH);
        }
    }
    known
}

/// Files that a command fills.
fn keep(simple: &Simple, labels: Labels, own: Labels, known: &mut HashMap<String, Labels>) {
    if known.len() > 64 {
        return;
    }
    if matches!(simple.name(), Some("curl" | "wget")) {
        for file in fetched_to(simple) {
            *known.entry(file).or_default() |= NETWORK;
        }
    }
    // A fetched file is the same under another name.
    if matches!(simple.name(), Some("mv" | "cp" | "ln" | "install"))
        && let Some((target, sources)) = simple.arguments.split_last()
        && sources.iter().any(|source| known.get(source.text()).is_some_and(|of| of & NETWORK != 0))
    {
        *known.entry(target.text().to_owned()).or_default() |= NETWORK;
    }
    if labels == 0 {
        return;
    }
    for word in &simple.writes {
        *known.entry(word.text().to_owned()).or_default() |= labels;
    }
    if own & SECRET != 0 && PACKERS.contains(&simple.name().unwrap_or("")) {
        for word in &simple.arguments {
            let text = word.text();
            if !text.starts_with('-') && text.len() > 3 && !credentials::path(text.as_bytes()) {
                *known.entry(text.to_owned()).or_default() |= SECRET;
            }
        }
    }
}

/// Variables that a line fills.
fn assigned(line: &str, labels: Labels, known: &mut HashMap<String, Labels>) {
    for word in line.split([' ', ';', '\t']).take(64) {
        if let Some((name, _)) = word.split_once('=')
            && !name.is_empty()
            && name.len() < 64
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && known.len() <= 64
        {
            *known.entry(name.to_owned()).or_default() |= labels;
        }
    }
}

fn ask(at: usize, simple: &Simple, labels: Labels, line: &str, rules: &Rules, found: &mut Evaluated) {
    let end = at + simple.program.text().len();
    let mut entries = Vec::new();
    if let Some(name) = simple.name() {
        rules.of_name(Language::Shell, "program ", name, &mut entries);
    }
    if simple.name() != Some("*") {
        rules.of_name(Language::Shell, "program ", "*", &mut entries);
    }
    for entry in entries {
        let Entry::Rule(place) = entry else { continue };
        let when = &rules.rule(place).when;
        let fits = (when.from == 0 || when.from & labels != 0)
            && when.fed.is_none_or(|fed| fed != simple.fed_by.is_empty())
            && (when.matches.is_empty() || rules.fits(place, Which::Matches, simple.text.as_bytes()))
            && (when.unless.is_empty() || !rules.fits(place, Which::Unless, simple.text.as_bytes()))
            && (when.value.is_empty() || rules.fits(place, Which::Value, line.as_bytes()))
            && (when.writes.is_empty()
                || simple.writes.iter().any(|word| rules.fits(place, Which::Writes, word.text().as_bytes())));
        if fits && found.hits.len() < FINDINGS * 4 {
            found.hits.push(Hit { start: at, end, rule: place });
        }
    }
    if let Some(code) = &simple.code
        && language_of(code.language).is_none()
        && code.language != "shell"
    {
        for line in one_liners::lines(&code.text) {
            if found.pieces.len() < PIECES {
                let bytes = line.into_bytes();
                found.pieces.push(Piece {
                    bytes,
                    language: Some(Language::Shell),
                    via: "shell",
                    start: at,
                    words: None,
                });
            }
        }
    }
    if let Some(code) = &simple.code
        && let Some(language) = language_of(code.language)
        && found.pieces.len() < PIECES
    {
        let bytes = code.text.clone().into_bytes();
        found.pieces.push(Piece { bytes, language: Some(language), via: language.name(), start: at, words: None });
    }
    for word in &simple.arguments {
        if let Some(text) = word.known()
            && found.pieces.len() < PIECES
            && let Some(piece) = crate::payload::within(text.as_bytes(), Language::Shell, at)
        {
            found.pieces.push(piece);
        }
    }
}

fn language_of(name: &str) -> Option<Language> {
    match name {
        "python" => Some(Language::Python),
        "node" => Some(Language::JavaScript),
        "ruby" => Some(Language::Ruby),
        "php" => Some(Language::Php),
        // Code for a shell is read where it stands.
        _ => None,
    }
}
