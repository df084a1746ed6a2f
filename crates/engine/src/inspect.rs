//! The second stage: what scanners say of the code that would run. Findings raise a verdict, never lower one.
//!
//! Reading hostile code is itself done in a child that can only compute: a parser that falls over, or for hours, is a
//! finding too.

mod eyes;
mod gather;
mod input;

use std::time::Duration;

use code::{Language, Rules, Scanner, Source};
use malware::Kind;
use malware::archive::{self, Limits, Visitor};
use model::{Finding, Inspected, Severity, Spot, Trouble};
use sys::confined::{self, Confinement, Ended, Worker};

pub use eyes::Eyes;
pub use gather::{gather, of_words};
pub use input::{Begun, input};

use crate::rules;

/// What the reader may use. Ordinary scripts take a thousandth of both.
const CONFINEMENT: Confinement = Confinement { memory: 1 << 30, time: Duration::from_secs(20), answer: 16 << 20 };

/// Something to be scanned.
pub struct Piece {
    pub name: String,
    pub language: Option<Language>,
    pub bytes: Vec<u8>,
}

/// A file that an installer runs without being asked.
struct Hook {
    file: String,
    by: String,
}

/// What would run, read; and what could not be.
#[derive(Default)]
pub struct Pieces {
    pub pieces: Vec<Piece>,
    pub unread: Vec<String>,
    hooks: Vec<Hook>,
    /// More code may come than was read.
    endless: bool,
}

impl Pieces {
    /// What scanners say of it. `reader`: one that waits already.
    pub fn scan(self, reader: Option<&mut Reader>) -> Result<Inspected, Trouble> {
        let Pieces { pieces, unread, hooks, endless } = self;
        let mut findings: Vec<Finding> = hooks.into_iter().map(Hook::finding).collect();
        if endless {
            let at = Spot { name: "standard input".to_owned(), line: 1, column: 1, ..Spot::default() };
            let why = "more comes than is read before it runs";
            findings.push(not_scanned("scan.incomplete", Severity::Medium, at, why));
        }
        if !pieces.is_empty() {
            let rules = rules::load()?;
            // One that was begun when they were others would find less, or something else.
            let scanned = match reader.filter(|reader| std::ptr::eq(reader.rules, rules)) {
                Some(reader) => reader.answer(encoded(&pieces)),
                None => confined::run(&CONFINEMENT, || read(&pieces, rules)),
            };
            let read = scanned.map_err(|ended| ended.to_string()).and_then(|answer| {
                serde_json::from_slice::<Vec<Finding>>(&answer).map_err(|error| format!("its answer is none: {error}"))
            });
            match read {
                Ok(found) => findings.extend(found),
                Err(why) => findings.push(unreadable(&pieces, &why)),
            }
        }
        findings.sort_by(|left, right| right.severity.cmp(&left.severity).then_with(|| left.at.cmp(&right.at)));
        Ok(Inspected { findings, unread })
    }

    /// Of all that is looked at, if there is something.
    pub fn digest(&self) -> Option<String> {
        if self.pieces.is_empty() {
            return None;
        }
        let mut hasher = blake3::Hasher::new();
        for Piece { name, bytes, .. } in &self.pieces {
            for part in [name.as_bytes(), bytes] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        Some(hasher.finalize().to_hex().to_string())
    }
}

/// Reads the code of one request, in a child that was made before there was any.
pub struct Reader {
    worker: Worker,
    /// By which it reads.
    rules: &'static Rules,
    /// What it was given to read before anybody wanted to know.
    ahead: Option<Vec<u8>>,
}

/// One that has read what it was for is ended after the answer; where that takes longer, it ends by itself.
const LINGERS: Duration = Duration::from_secs(5);

/// More is read only once it is known that whoever asks may ask at all.
const MOST_AHEAD: usize = 256 << 10;

impl Reader {
    pub fn begin() -> Result<Reader, Trouble> {
        let rules = rules::load()?;
        let worker = Worker::start_for_one(CONFINEMENT, LINGERS, move |question| match decoded(question) {
            Some(pieces) => read(&pieces, rules),
            // No answer, which is a finding.
            None => Vec::new(),
        });
        let worker =
            worker.map_err(|ended| Trouble { message: ended.to_string(), fix: "see `belljar doctor`".to_owned() });
        worker.map(|worker| Reader { worker, rules, ahead: None })
    }

    /// Has it read what will be asked about in all likelihood, while whoever asks does something else.
    pub fn read_ahead(&mut self, pieces: &Pieces) {
        let size: usize = pieces.pieces.iter().map(|piece| piece.bytes.len()).sum();
        if !pieces.pieces.is_empty() && size <= MOST_AHEAD {
            let question = encoded(&pieces.pieces);
            self.worker.put(&question);
            self.ahead = Some(question);
        }
    }

    /// Now; that it has ended is waited for when this is dropped.
    pub fn end(&mut self) {
        self.worker.end();
    }

    /// To this very question: what was read ahead counts only if it is the same to the last byte.
    fn answer(&mut self, question: Vec<u8>) -> Result<Vec<u8>, Ended> {
        match self.ahead.take() {
            Some(ahead) if ahead == question => self.worker.answer(),
            _ => self.worker.ask(&question),
        }
    }
}

/// Makes what a reader needs besides rules of the machine's and the user's, which may change: grammars, words, patterns. On lines
/// of our own, because nothing is confined here.
pub fn rehearse() {
    const LINES: [(Language, &str); 3] = [
        (Language::Python, "import os\nprint(len(os.sep), 'a')\n"),
        (Language::JavaScript, "const a = require('os');\nconsole.log(a.EOL, 'a');\n"),
        (Language::Shell, "echo \"$HOME\" | cat\n"),
    ];
    // Whoever scans hears of it, if they do not work here.
    if code::prepare() {
        for (language, line) in LINES {
            let source = Source { name: "rehearsal", language: Some(language), bytes: line.as_bytes() };
            Scanner::new(Rules::built_in()).scan(&source);
        }
    }
}

fn read(pieces: &[Piece], rules: &Rules) -> Vec<u8> {
    let found = pieces.iter().flat_map(|piece| of_piece(piece, rules)).collect::<Vec<_>>();
    serde_json::to_vec(&found).unwrap_or_default()
}

/// Of each piece its language, its name and its bytes.
fn encoded(pieces: &[Piece]) -> Vec<u8> {
    let mut question = Vec::new();
    for Piece { name, language, bytes } in pieces {
        let language = language.and_then(|language| Language::ALL.iter().position(|known| *known == language));
        question.push(language.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX));
        for part in [name.as_bytes(), bytes] {
            question.extend_from_slice(&(part.len() as u64).to_le_bytes());
            question.extend_from_slice(part);
        }
    }
    question
}

fn decoded(mut question: &[u8]) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    while let Some((language, rest)) = question.split_first() {
        let language = Language::ALL.get(usize::from(*language)).copied();
        let (name, rest) = part(rest)?;
        let (bytes, rest) = part(rest)?;
        pieces.push(Piece { name: String::from_utf8(name.to_vec()).ok()?, language, bytes: bytes.to_vec() });
        question = rest;
    }
    Some(pieces)
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

impl Hook {
    /// That there is one is ordinary; what its code does is said apart.
    fn finding(self) -> Finding {
        let Hook { file, by } = self;
        Finding {
            rule: "install.runs".to_owned(),
            class: "install".to_owned(),
            severity: Severity::Low,
            cwe: None,
            message: format!("`{by}` runs this file"),
            fix: "look at it first".to_owned(),
            at: Spot { name: file, line: 1, column: 1, ..Spot::default() },
            excerpt: String::new(),
        }
    }
}

fn of_piece(piece: &Piece, rules: &Rules) -> Vec<Finding> {
    let Piece { name, language, bytes } = piece;
    if *language == Some(Language::Python) && is_archive(bytes) {
        let contents = archive::look_as(Kind::Zip, bytes, name, &Limits::default(), &mut Modules { rules });
        let mut found = contents.findings;
        if !contents.complete {
            let at = Spot { name: name.clone(), line: 1, column: 1, ..Spot::default() };
            found.push(not_scanned("scan.incomplete", Severity::Medium, at, "not all of the archive was looked at"));
        }
        return found;
    }
    Scanner::new(rules).scan(&Source { name, language: *language, bytes }).findings
}

/// Python runs a zip, whatever stands before it.
fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || archive::runs_as_zip(bytes)
}

/// Looks at every module in an archive.
struct Modules<'r> {
    rules: &'r Rules,
}

impl Visitor for Modules<'_> {
    fn file(&mut self, name: &str, _: Kind, content: &[u8], _: bool) -> Vec<Finding> {
        match name.ends_with(".py") {
            true => {
                Scanner::new(self.rules)
                    .scan(&Source { name, language: Some(Language::Python), bytes: content })
                    .findings
            }
            false => Vec::new(),
        }
    }
}

/// Code at which the reader itself failed. Whoever writes such code means it.
fn unreadable(pieces: &[Piece], why: &str) -> Finding {
    let names: Vec<&str> = pieces.iter().take(4).map(|piece| piece.name.as_str()).collect();
    let at = Spot { name: names.join(", "), line: 1, column: 1, ..Spot::default() };
    not_scanned("scan.failed", Severity::High, at, why)
}

/// Also for whoever scans files.
pub fn not_scanned(rule: &str, severity: Severity, at: Spot, why: &str) -> Finding {
    Finding {
        rule: rule.to_owned(),
        class: "unreadable".to_owned(),
        severity,
        cwe: None,
        message: format!("it can't be scanned: {why}"),
        fix: "put it in a file, and write it so that it can be read".to_owned(),
        at,
        excerpt: String::new(),
    }
}
