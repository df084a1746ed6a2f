//! The second stage: what scanners say of the code that would run. Findings raise a verdict, never lower one.
//!
//! Reading hostile code is itself done in a child that can only compute: a parser that falls over, or for hours, is a
//! finding too.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use code::{Language, Rules, Scanner, Source, Wanted};
use model::{Finding, Inspected, Request, Severity, Spot, Trouble};
use policy::Facts;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sys::confined::{self, Confinement};
use workspace::{Sight, Workspaces};

use crate::policies::recorded;
use crate::rules;
use crate::survey::by_letter;

/// Of one file. The scanner says itself what it leaves out of what is longer.
const LARGEST: u64 = 32 << 20;
/// By this much of a file is told whether it is a script.
const START: u64 = 4096;
/// Of all code of one command.
const LARGEST_OF_ALL: u64 = 64 << 20;
/// What the reader may use. Ordinary scripts take a thousandth of both.
const CONFINEMENT: Confinement = Confinement { memory: 1 << 30, time: Duration::from_secs(20), answer: 16 << 20 };

/// Of code that comes in on standard input: so much is read before anything runs, and so long is waited for it.
const LARGEST_INPUT: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_millis(900);

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
    /// More code may come than was read.
    endless: bool,
}

/// What was read of the caller's input because it is code; it still has to reach whoever reads it.
#[derive(Default)]
pub struct Begun {
    pub bytes: Vec<u8>,
    follows: Follows,
    language: Option<Language>,
}

/// What comes after that.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Follows {
    /// Nobody looked, or somebody types it: that is told, and no more can be said of it.
    #[default]
    Unknown,
    Nothing,
    /// More than is read before it runs: whoever wants to hide code puts it there.
    More,
}

/// Reads what comes in on standard input, if the command would run that: to its end, or as far as the bounds go.
pub fn input(request: &Request, facts: &Facts) -> Begun {
    let wanted = code::wanted(&words(request, facts)).into_iter().find_map(|wanted| match wanted {
        Wanted::Input { language } => Some(language),
        _ => None,
    });
    let stdin = rustix::stdio::stdin();
    match wanted {
        None => Begun::default(),
        Some(_) if rustix::termios::isatty(stdin) => Begun::default(),
        // Through a terminal of its own nothing can be put first, so nothing is read.
        Some(_) if request.terminal => Begun { follows: Follows::More, ..Begun::default() },
        Some(language) => {
            let (bytes, whole) = begun(stdin);
            let follows = if whole { Follows::Nothing } else { Follows::More };
            Begun { bytes, follows, language }
        }
    }
}

/// As much as comes within the bounds, and whether that is all.
fn begun(from: BorrowedFd<'_>) -> (Vec<u8>, bool) {
    let end = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    while bytes.len() < LARGEST_INPUT {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let mut list = [PollFd::from_borrowed_fd(from, PollFlags::IN)];
        match poll(&mut list, Some(&left)) {
            Ok(0) => return (bytes, false),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return (bytes, false),
        }
        bytes.reserve(64 << 10);
        match rustix::io::read(from, spare_capacity(&mut bytes)) {
            // Closed is empty, too.
            Ok(0) | Err(Errno::BADF) => return (bytes, true),
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return (bytes, false),
        }
    }
    (bytes, false)
}

/// The code that a request would run, as far as its words tell and the host's files say.
pub fn gather(request: &Request, facts: &Facts, input: &Begun, eyes: &Eyes<'_>) -> Pieces {
    of_words(&words(request, facts), &facts.start, input, eyes)
}

/// The same for the words of a command that would start there.
pub fn of_words(words: &[String], start: &Path, input: &Begun, eyes: &Eyes<'_>) -> Pieces {
    let mut found = Pieces::default();
    let mut total = 0;
    for wanted in code::wanted(words) {
        match wanted {
            Wanted::Text { name, language, text } => {
                found.pieces.push(Piece { name, language, bytes: text.into_bytes() });
            }
            Wanted::File { path, language } => {
                let opened = eyes.open(&by_letter(&start.join(&path)));
                found.read(opened, path, language, &mut total, Missing::Said);
            }
            Wanted::Manifest { folder, name } => {
                let path = Path::new(&folder).join(name);
                let opened = eyes.open(&by_letter(&start.join(&path)));
                found.read(opened, path.display().to_string(), None, &mut total, Missing::Ignored);
            }
            Wanted::Input { .. } => found.input(input),
        }
    }
    found
}

/// As they would be executed.
fn words(request: &Request, facts: &Facts) -> Vec<String> {
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
    words
}

/// With whose eyes files are seen: a kept sandbox may have versions of its own.
pub struct Eyes<'a> {
    pub workspaces: &'a Workspaces,
    pub kept: Option<&'a str>,
}

impl Eyes<'_> {
    fn open(&self, path: &Path) -> io::Result<File> {
        let Some(which) = self.kept else { return recorded::open(path) };
        match self.workspaces.sight(which, path).map_err(|trouble| io::Error::other(trouble.to_string()))? {
            Sight::Hosts => recorded::open(path),
            Sight::File(file) => Ok(file),
            Sight::Gone => Err(io::ErrorKind::NotFound.into()),
            Sight::Other => Err(io::Error::other("it is no file in the sandbox")),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Said,
    Ignored,
}

impl Pieces {
    /// One file by itself.
    pub fn of_file(path: &Path, name: String, language: Option<&str>) -> Pieces {
        let mut found = Pieces::default();
        found.read(recorded::open(path), name, language.and_then(code::language), &mut 0, Missing::Said);
        found
    }

    fn input(&mut self, input: &Begun) {
        let Begun { bytes, follows, language } = input;
        if !bytes.is_empty() {
            let name = "standard input".to_owned();
            self.pieces.push(Piece { name, language: *language, bytes: bytes.clone() });
        }
        if *follows != Follows::Nothing {
            let read = bytes.len();
            self.unread.push(format!("standard input: what comes after the first {read} bytes"));
            self.endless = *follows == Follows::More;
        }
    }

    fn read(
        &mut self,
        opened: io::Result<File>,
        name: String,
        language: Option<Language>,
        total: &mut u64,
        missing: Missing,
    ) {
        let cannot = |why: &str| format!("{name}: {why}");
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound && missing == Missing::Ignored => return,
            Err(error) => return self.unread.push(cannot(&error.to_string())),
        };
        let most = LARGEST.min(LARGEST_OF_ALL.saturating_sub(*total));
        let mut bytes = Vec::new();
        let mut opened = opened.take(START);
        if let Err(error) = opened.read_to_end(&mut bytes) {
            return self.unread.push(cannot(&error.to_string()));
        }
        // A program that somebody compiled: there is no source to look at.
        if language.is_none() && bytes.contains(&0) {
            return self.unread.push(cannot("a program without source"));
        }
        opened.set_limit((most + 1).saturating_sub(START));
        if let Err(error) = opened.read_to_end(&mut bytes) {
            return self.unread.push(cannot(&error.to_string()));
        }
        if bytes.len() as u64 > most {
            return self.unread.push(cannot("it is too large to be scanned"));
        }
        if language.is_some() {
            // Shells skip them, and others stop there: what is behind them must not be hidden by them.
            bytes.retain(|byte| *byte != 0);
        }
        *total += bytes.len() as u64;
        self.pieces.push(Piece { name, language, bytes });
    }

    /// What scanners say of it.
    pub fn scan(self) -> Result<Inspected, Trouble> {
        let Pieces { pieces, unread, endless } = self;
        let mut findings = Vec::new();
        if endless {
            let at = Spot { name: "standard input".to_owned(), line: 1, column: 1, ..Spot::default() };
            let why = "more comes than is read before it runs";
            findings.push(not_scanned("scan.incomplete", Severity::Medium, at, why));
        }
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

fn of_piece(piece: &Piece, rules: &Rules) -> Vec<Finding> {
    let Piece { name, language, bytes } = piece;
    Scanner::new(rules).scan(&Source { name, language: *language, bytes }).findings
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
