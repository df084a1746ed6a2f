//! One source, and the code within it, to findings.

use model::{Finding, Inside, Severity, Spot};

use crate::evaluate::{Evaluated, Left, Piece};
use crate::found::Places;
use crate::limits::{DEPTH_OF_CODE, FINDINGS, LONGEST_PARSED, PIECES, PIECES_BYTES, WINDOW, WRONG_SHARE};
use crate::rules::Rules;
use crate::{Language, commands, evaluate, language, manifest, parse, text};

/// What is to be scanned.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// A file's path, or what else people would call it.
    pub name: &'a str,
    /// `None`: told by the name and the first bytes.
    pub language: Option<Language>,
    pub bytes: &'a [u8],
}

/// What was found, and what was not looked at.
#[derive(Clone, Debug, Default)]
pub struct Scanned {
    /// In the order of the text.
    pub findings: Vec<Finding>,
    /// `None` for what is no text.
    pub language: Option<Language>,
    /// Sentences: what was left out. Each has a finding, too.
    pub left_out: Vec<String>,
}

impl Scanned {
    /// Was everything looked at?
    pub fn is_complete(&self) -> bool {
        self.left_out.is_empty()
    }
}

/// Scans sources with one set of rules. Cheap to make.
#[derive(Clone, Copy)]
pub struct Scanner<'r> {
    rules: &'r Rules,
}

struct Work<'a> {
    name: String,
    bytes: std::borrow::Cow<'a, [u8]>,
    language: Option<Language>,
    words: Option<Vec<String>>,
    depth: usize,
    /// Where it stands in what was given, and what it is; nothing for that itself.
    around: Option<(Spot, &'static str)>,
}

impl Work<'_> {
    /// A place in this text, as one in what was given.
    fn placed(&self, at: Spot) -> Spot {
        let Some((around, via)) = &self.around else { return at };
        let mut outer = around.clone();
        outer.inside.push(Inside { what: (*via).to_owned(), line: at.line, column: at.column });
        outer
    }
}

impl<'r> Scanner<'r> {
    pub fn new(rules: &'r Rules) -> Scanner<'r> {
        Scanner { rules }
    }

    pub fn scan(&self, source: &Source<'_>) -> Scanned {
        let mut scanned = Scanned {
            language: source.language.or_else(|| Language::of(source.name, source.bytes)),
            ..Scanned::default()
        };
        let (mut pieces, mut piece_bytes) = (0, 0);
        let mut todo = vec![Work {
            name: source.name.to_owned(),
            bytes: source.bytes.into(),
            language: scanned.language,
            words: None,
            depth: 0,
            around: None,
        }];
        while let Some(work) = todo.pop() {
            let before = scanned.findings.len();
            let inner = self.one(&work, &mut scanned);
            for finding in &mut scanned.findings[before..] {
                finding.at = work.placed(std::mem::take(&mut finding.at));
            }
            if let Some((around, via @ ("base64" | "hexadecimal" | "compressed"))) = &work.around
                && scanned.findings[before..].iter().any(|finding| finding.severity >= Severity::Medium)
            {
                let places = Places::of(source.name, &[]);
                let message = format!("code is hidden in {via}, and it does what a rule warns of");
                let mut finding =
                    places.note("obfuscation.hidden-code", Severity::High, message, "write the code plainly", 0);
                finding.cwe = Some(506);
                finding.at = around.clone();
                scanned.findings.push(finding);
            }
            if work.depth >= DEPTH_OF_CODE {
                if !inner.is_empty() {
                    left_out(
                        &mut scanned, &work.name, "too-deep", "code within code is nested deeper than is looked at",
                    );
                }
                continue;
            }
            let places = Places::of(&work.name, &work.bytes);
            for piece in inner {
                pieces += 1;
                piece_bytes += piece.bytes.len();
                if pieces > PIECES || piece_bytes > PIECES_BYTES {
                    left_out(&mut scanned, &work.name, "too-many", "it holds more pieces of code than are looked at");
                    break;
                }
                let (line, column) = places.line_and_column(piece.start);
                todo.push(Work {
                    name: format!("{} > {} at {line}:{column}", work.name, piece.via),
                    language: piece.language,
                    around: Some((work.placed(places.spot(piece.start, piece.start)), piece.via)),
                    words: piece.words,
                    bytes: piece.bytes.into(),
                    depth: work.depth + 1,
                });
            }
        }
        finish(&mut scanned, source.name);
        scanned
    }

    /// One text, without the code within it, which is given back.
    fn one(&self, work: &Work<'_>, scanned: &mut Scanned) -> Vec<Piece> {
        let bytes: &[u8] = &work.bytes;
        if let Some(words) = &work.words {
            let line = words.join(" ");
            let found = commands::words(words, self.rules);
            self.add(&Places::of(&work.name, line.as_bytes()), &found, scanned);
            return found.pieces;
        }
        let Some(language) = work.language.filter(|_| language::is_text(bytes)) else {
            if work.depth == 0 {
                scanned.language = None;
                left_out(scanned, &work.name, "binary", "it is no text, and was not looked at as code");
            }
            return Vec::new();
        };
        let places = Places::of(&work.name, bytes);
        if bytes.len() > LONGEST_PARSED {
            // The beginning and the end are where code hides in what is too long to be read.
            let tail = bytes.len() - WINDOW;
            for (from, window) in [(0, &bytes[..WINDOW]), (tail, &bytes[tail..])] {
                for hit in text::hits(window, language, self.rules) {
                    scanned.findings.push(places.finding(self.rules.rule(hit.rule), from + hit.start, from + hit.end));
                }
            }
            let message = format!(
                "it is longer than {} MiB: only rules on text looked at its beginning and its end",
                LONGEST_PARSED >> 20
            );
            left_out(scanned, &work.name, "too-large", &message);
            return Vec::new();
        }
        for hit in text::hits(bytes, language, self.rules) {
            scanned.findings.push(places.finding(self.rules.rule(hit.rule), hit.start, hit.end));
        }
        let mut pieces = manifest::pieces(&work.name, bytes, work.depth);
        for finding in manifest::findings(&places, &work.name, &pieces) {
            scanned.findings.push(finding);
        }
        let found = match language {
            Language::Text => return pieces,
            Language::Shell => match std::str::from_utf8(bytes) {
                Ok(text) => commands::script(text, self.rules),
                Err(_) => commands::script(&String::from_utf8_lossy(bytes), self.rules),
            },
            _ => match parse::tree(bytes, language) {
                Some(tree) => evaluate::tree(bytes, language, self.rules, &tree),
                None => {
                    left_out(scanned, &work.name, "too-slow", "the parser needed too long for it, and was stopped");
                    return pieces;
                }
            },
        };
        self.add(&places, &found, scanned);
        if found.wrong * 1000 > bytes.len() * WRONG_SHARE && work.depth == 0 {
            let share = (found.wrong * 100 / bytes.len().max(1)).min(100);
            let message = format!(
                "{share} % of it is not understood as {}: what stands there was not looked at",
                language.name()
            );
            let fix = "mend the syntax, or say which language it is";
            scanned.findings.push(places.note("unparsable.syntax", Severity::Low, message, fix, 0));
            scanned.left_out.push(format!("{}: its syntax is wrong", work.name));
        }
        let Left { too_deep, too_many } = found.left;
        if too_deep {
            left_out(scanned, &work.name, "too-deep", "it is nested deeper than is looked at");
        }
        if too_many {
            left_out(scanned, &work.name, "too-many", "it holds more than is looked at");
        }
        pieces.extend(found.pieces);
        pieces
    }

    fn add(&self, places: &Places<'_>, found: &Evaluated, scanned: &mut Scanned) {
        let mut hits = found.hits.clone();
        hits.sort_unstable();
        hits.dedup();
        for hit in hits {
            scanned.findings.push(places.finding(self.rules.rule(hit.rule), hit.start, hit.end));
        }
    }
}

fn left_out(scanned: &mut Scanned, name: &str, kind: &str, message: &str) {
    let sentence = format!("{name}: {message}");
    if scanned.left_out.contains(&sentence) {
        return;
    }
    let severity = if kind == "binary" { Severity::Low } else { Severity::Medium };
    let fix = "look at it yourself, or make it smaller and plainer";
    scanned.findings.push(Places::of(name, &[]).note(
        &format!("unparsable.{kind}"),
        severity,
        message.to_owned(),
        fix,
        0,
    ));
    scanned.left_out.push(sentence);
}

/// Sorted, each once, and not more than anyone reads.
fn finish(scanned: &mut Scanned, name: &str) {
    let findings = &mut scanned.findings;
    findings.sort_by(|one, other| (&one.at, &one.rule).cmp(&(&other.at, &other.rule)));
    findings.dedup_by(|one, other| one.at == other.at && one.rule == other.rule);
    if findings.len() > FINDINGS {
        let left = findings.len() - FINDINGS;
        // The gravest stay.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings.truncate(FINDINGS);
        findings.sort_by(|one, other| (&one.at, &one.rule).cmp(&(&other.at, &other.rule)));
        left_out(scanned, name, "too-many", &format!("{left} more findings are not listed"));
    }
}
