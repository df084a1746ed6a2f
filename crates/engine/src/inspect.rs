//! The second stage: what scanners say of the code that would run. Findings raise a verdict, never lower one.
//!
//! Reading hostile code is itself done in a child that can only compute: a parser that falls over, or for hours, is a
//! finding too.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use code::{Language, Rules, Scanner, Source, Wanted};
use model::{Finding, Inspected, Request, Severity, Spot, Trouble};
use policy::Facts;
use sys::confined::{self, Confinement};

use crate::policies::recorded;
use crate::rules;
use crate::survey::by_letter;

/// Of one file. The scanner says itself what it leaves out of what is longer.
const LARGEST: u64 = 32 << 20;
/// Of all code of one command.
const LARGEST_OF_ALL: u64 = 64 << 20;
/// What the reader may use. Ordinary scripts take a thousandth of both.
const CONFINEMENT: Confinement = Confinement { memory: 1 << 30, time: Duration::from_secs(20), answer: 16 << 20 };

/// Something to be scanned.
pub struct Piece {
    pub name: String,
    pub language: Option<Language>,
    pub bytes: Vec<u8>,
}

/// What would run, read; and what could not be.
#[derive(Default)]
pub struct Pieces {
    pub pieces: Vec<Piece>,
    pub unread: Vec<String>,
}

/// The code that a request would run, as far as its words tell and the host's files say.
pub fn gather(request: &Request, facts: &Facts) -> Pieces {
    let mut words: Vec<String> = request.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // As it was found: a bare name can lead to a script too.
    let program = facts.program.path.to_string_lossy().into_owned();
    if let Some(first) = words.first_mut()
        && !first.contains('/')
        && !program.starts_with("/usr/")
        && !program.starts_with("/bin/")
    {
        *first = program;
    }
    let mut found = Pieces::default();
    let mut total = 0;
    for wanted in code::wanted(&words) {
        match wanted {
            Wanted::Text { name, language, text } => {
                let language = Language::named(language);
                found.pieces.push(Piece { name, language, bytes: text.into_bytes() });
            }
            Wanted::File { path, language } => {
                let language = language.and_then(Language::named);
                found.read(&full(facts, &path), path, language, &mut total, Missing::Said);
            }
            Wanted::Manifest { folder, name } => {
                let path = Path::new(&folder).join(name);
                found.read(&full(facts, &path), path.display().to_string(), None, &mut total, Missing::Ignored);
            }
            Wanted::Input { .. } => found.unread.push("what comes in on standard input".to_owned()),
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Said,
    Ignored,
}

impl Pieces {
    fn read(&mut self, path: &Path, name: String, language: Option<Language>, total: &mut u64, missing: Missing) {
        let cannot = |why: &str| format!("{name}: {why}");
        let opened = match recorded::open(path) {
            Ok(opened) => opened,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && missing == Missing::Ignored => return,
            Err(error) => return self.unread.push(cannot(&error.to_string())),
        };
        let most = LARGEST.min(LARGEST_OF_ALL.saturating_sub(*total));
        let mut bytes = Vec::new();
        if let Err(error) = opened.take(most + 1).read_to_end(&mut bytes) {
            return self.unread.push(cannot(&error.to_string()));
        }
        if bytes.len() as u64 > most {
            return self.unread.push(cannot("it is too large to be scanned"));
        }
        // A program that somebody compiled: there is no source to look at.
        if language.is_none() && (bytes.starts_with(b"\x7fELF") || bytes.contains(&0)) {
            return self.unread.push(cannot("a program without source"));
        }
        *total += bytes.len() as u64;
        self.pieces.push(Piece { name, language, bytes });
    }

    /// What scanners say of it.
    pub fn scan(self) -> Result<Inspected, Trouble> {
        let Pieces { pieces, unread } = self;
        let mut findings = Vec::new();
        if !pieces.is_empty() {
            let rules = rules::load()?;
            let scanned = confined::run(&CONFINEMENT, || {
                let found = pieces.iter().flat_map(|piece| of_piece(piece, rules)).collect::<Vec<_>>();
                serde_json::to_vec(&found).unwrap_or_default()
            });
            let read = scanned.map_err(|ended| ended.to_string()).and_then(|answer| {
                serde_json::from_slice::<Vec<Finding>>(&answer).map_err(|error| format!("its answer is none: {error}"))
            });
            match read {
                Ok(found) => findings = found,
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

fn of_piece(piece: &Piece, rules: &Rules) -> Vec<Finding> {
    let Piece { name, language, bytes } = piece;
    Scanner::new(rules).scan(&Source { name, language: *language, bytes }).findings
}

/// Code at which the reader itself failed. Whoever writes such code means it.
fn unreadable(pieces: &[Piece], why: &str) -> Finding {
    let names: Vec<&str> = pieces.iter().take(4).map(|piece| piece.name.as_str()).collect();
    Finding {
        rule: "scan.failed".to_owned(),
        class: "unreadable".to_owned(),
        severity: Severity::High,
        cwe: None,
        message: format!("it can't be scanned: {why}"),
        fix: "write it so that it can be read".to_owned(),
        at: Spot { name: names.join(", "), line: 1, column: 1, ..Spot::default() },
        excerpt: String::new(),
    }
}

fn full(facts: &Facts, path: impl AsRef<Path>) -> PathBuf {
    by_letter(&facts.start.join(path))
}
