//! What would run, read: what the words name, and what that takes in from the workspace, nearest first and within bounds.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use code::{Language, Manifest, Script, Wanted};
use model::Request;
use policy::Facts;

use super::eyes::Eyes;
use super::input::{Begun, Follows};
use super::{Hook, Piece, Pieces};
use crate::survey::by_letter;

/// Of one file. The scanner says itself what it leaves out of what is longer.
const LARGEST: u64 = 32 << 20;
/// By this much of a file is told whether it is a script.
const START: u64 = 4096;
/// Of all code of one command.
const LARGEST_OF_ALL: u64 = 64 << 20;
/// Of files that nobody named, but that others take in: so many, and so much of them together. Scanning more would make
/// every run of a large program wait.
const MOST_TAKEN_IN: usize = 64;
const LARGEST_TAKEN_IN: u64 = 1 << 20;
/// So often it is looked whether there is a file of a name.
const MOST_LOOKS: usize = 4096;
/// So far into a text is looked for what it takes in.
const LONGEST_LOOKED_THROUGH: usize = 4 << 20;
/// Entries of a folder that `*` stands for.
const MOST_ENTRIES: usize = 256;
/// Variables that make interpreters take in files.
const VARIABLES: &[&str] = &["BASH_ENV", "ENV", "PYTHONPATH", "NODE_OPTIONS", "RUBYOPT", "RUBYLIB"];

/// The code that a request would run, as far as its words tell and the host's files say.
pub fn gather(request: &Request, facts: &Facts, input: &Begun, eyes: &Eyes<'_>) -> Pieces {
    let folders: Vec<PathBuf> = facts.workspaces.iter().map(|place| place.path.clone()).collect();
    of_words(&with_variables(request, words(request, facts)), &facts.start, &folders, input, eyes)
}

/// The same for the words of a command that would start there, with these workspaces.
pub fn of_words(words: &[String], start: &Path, folders: &[PathBuf], input: &Begun, eyes: &Eyes<'_>) -> Pieces {
    let mut gathering = Gathering::new(start, folders, eyes, input);
    gathering.all(code::wanted(words));
    gathering.found
}

/// As they would be executed.
pub fn words(request: &Request, facts: &Facts) -> Vec<String> {
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

/// Variables that are given with the request are to the command as if `env` set them.
fn with_variables(request: &Request, words: Vec<String>) -> Vec<String> {
    let set: Vec<String> = request
        .environment
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, value.as_ref()?.to_string_lossy())))
        .filter(|(name, _)| VARIABLES.contains(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if set.is_empty() {
        return words;
    }
    std::iter::once("env".to_owned()).chain(set).chain(words).collect()
}

/// Who wants a file: whoever asks for the run, or code that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    ByWords,
    ByCode,
}

struct Gathering<'a> {
    start: &'a Path,
    folders: &'a [PathBuf],
    eyes: &'a Eyes<'a>,
    input: &'a Begun,
    found: Pieces,
    queue: VecDeque<Wanted>,
    /// What was looked at, and whether it was there.
    seen: HashSet<PathBuf>,
    there: HashSet<PathBuf>,
    total: u64,
    taken_in: usize,
    taken_in_bytes: u64,
    looks: usize,
    /// Files beyond the bounds.
    left: usize,
}

enum Tried {
    Read,
    /// There, but beyond the bounds, which is said at the end.
    Left,
    Missing,
    Failed(String),
}

impl<'a> Gathering<'a> {
    fn new(start: &'a Path, folders: &'a [PathBuf], eyes: &'a Eyes<'a>, input: &'a Begun) -> Gathering<'a> {
        Gathering {
            start,
            folders,
            eyes,
            input,
            found: Pieces::default(),
            queue: VecDeque::new(),
            seen: HashSet::new(),
            there: HashSet::new(),
            total: 0,
            taken_in: 0,
            taken_in_bytes: 0,
            looks: 0,
            left: 0,
        }
    }

    /// First what the words name, then what that takes in, then what that takes in.
    fn all(&mut self, wanted: Vec<Wanted>) {
        for wanted in wanted {
            self.one(wanted, Named::ByWords);
        }
        while let Some(wanted) = self.queue.pop_front() {
            self.one(wanted, Named::ByCode);
        }
        if self.left > 0 {
            let (left, most, bytes) = (self.left, MOST_TAKEN_IN, LARGEST_TAKEN_IN >> 20);
            let why = format!("{left} more files that it takes in: beyond {most} files, or {bytes} MiB of them");
            self.found.unread.push(why);
        }
        if self.looks > MOST_LOOKS {
            self.found.unread.push("more names of files than are looked for".to_owned());
        }
    }

    fn one(&mut self, wanted: Wanted, named: Named) {
        match wanted {
            Wanted::Text { name, language, text, roots } => {
                self.follow(&text, language, None, &roots);
                // Code within code is looked at where it stands.
                if named == Named::ByWords {
                    self.found.pieces.push(Piece { name, language, bytes: text.into_bytes() });
                }
            }
            Wanted::File(script) => self.script(&script, named),
            Wanted::Manifest(manifest) => self.manifest(&manifest, named),
            Wanted::Input { .. } => self.input(),
            Wanted::Unfollowed(why) => self.found.not_read(why),
        }
    }

    fn script(&mut self, script: &Script, named: Named) {
        let Script { name, places, language, roots, missing } = script;
        let (mut is_there, mut trouble) = (false, None);
        for place in places {
            match self.file(place, *language, named) {
                Tried::Read => {
                    is_there = true;
                    self.follow_last(place, roots);
                }
                Tried::Left => is_there = true,
                Tried::Missing => {}
                Tried::Failed(why) => trouble = trouble.or(Some(format!("{place}: {why}"))),
            }
        }
        match (is_there, trouble, missing) {
            (true, ..) | (false, None, None) => {}
            (false, Some(why), _) => self.found.not_read(why),
            (false, None, Some(why)) => self.found.not_read(format!("{name}: {why}")),
        }
    }

    fn manifest(&mut self, manifest: &Manifest, named: Named) {
        for manifest in self.spread(manifest) {
            let Manifest { by, folder, name, runs, .. } = &manifest;
            let place = Path::new(folder).join(name).display().to_string();
            match self.file(&place, None, named) {
                Tried::Read => {}
                Tried::Left | Tried::Missing => continue,
                Tried::Failed(why) => {
                    self.found.not_read(format!("{place}: {why}"));
                    continue;
                }
            }
            if *runs {
                self.found.hooks.push(Hook { file: place.clone(), by: by.clone() });
            }
            let leads_to = self.found.pieces.last().map(|piece| manifest.leads_to(&beginning(&piece.bytes)));
            self.queue.extend(leads_to.into_iter().flatten());
            self.follow_last(&place, &[]);
        }
    }

    /// `*` as a folder, or at the beginning of a name, is what the host has there.
    fn spread(&mut self, manifest: &Manifest) -> Vec<Manifest> {
        let Manifest { folder, name, .. } = manifest;
        let entries = |folder: &str| -> Vec<String> {
            let entries = std::fs::read_dir(by_letter(&self.start.join(folder))).into_iter().flatten().flatten();
            let mut names: Vec<String> =
                entries.take(MOST_ENTRIES).filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            names
        };
        if let Some(around) = folder.strip_suffix("/*") {
            let each = entries(around).into_iter();
            return each.map(|entry| Manifest { folder: format!("{around}/{entry}"), ..manifest.clone() }).collect();
        }
        match name.strip_prefix('*') {
            None => vec![manifest.clone()],
            Some(end) => {
                let each = entries(folder).into_iter().filter(|entry| entry.ends_with(end)).take(16);
                each.map(|name| Manifest { name, ..manifest.clone() }).collect()
            }
        }
    }

    fn input(&mut self) {
        let Begun { bytes, follows, language } = self.input;
        if !bytes.is_empty() {
            self.follow(&beginning(bytes), *language, None, &[String::new()]);
            let name = "standard input".to_owned();
            self.found.pieces.push(Piece { name, language: *language, bytes: bytes.clone() });
        }
        if *follows != Follows::Nothing {
            let read = bytes.len();
            self.found.unread.push(format!("standard input: what comes after the first {read} bytes"));
            self.found.endless = *follows == Follows::More;
        }
    }

    /// What the file that was read last takes in.
    fn follow_last(&mut self, place: &str, roots: &[String]) {
        let Some(piece) = self.found.pieces.last() else { return };
        let language = piece.language.or_else(|| Language::of(&piece.name, &piece.bytes));
        let text = beginning(&piece.bytes).into_owned();
        self.follow(&text, language, Some(place), roots);
    }

    fn follow(&mut self, text: &str, language: Option<Language>, file: Option<&str>, roots: &[String]) {
        if let Some(language) = language {
            self.queue.extend(code::taken_in(text, language, file, roots));
        }
    }

    /// Reads a file into a piece, once.
    fn file(&mut self, place: &str, language: Option<Language>, named: Named) -> Tried {
        let path = by_letter(&self.start.join(place));
        if !self.seen.insert(path.clone()) {
            return if self.there.contains(&path) { Tried::Left } else { Tried::Missing };
        }
        self.looks += 1;
        if self.looks > MOST_LOOKS {
            return Tried::Missing;
        }
        let opened = match named {
            Named::ByWords => self.eyes.open(&path),
            Named::ByCode => match self.folders.iter().find(|folder| path.starts_with(folder)) {
                Some(folder) => self.eyes.open_beneath(folder, &path),
                // What lies elsewhere is the system's, or nobody sees it inside.
                None => return Tried::Missing,
            },
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Tried::Missing;
            }
            Err(error) => return Tried::Failed(error.to_string()),
        };
        self.there.insert(path);
        let most = match named {
            Named::ByWords => LARGEST.min(LARGEST_OF_ALL.saturating_sub(self.total)),
            Named::ByCode if self.taken_in >= MOST_TAKEN_IN => 0,
            Named::ByCode => LARGEST_TAKEN_IN.saturating_sub(self.taken_in_bytes),
        };
        if named == Named::ByCode && opened.metadata().is_ok_and(|stat| stat.len() > most) {
            self.left += 1;
            return Tried::Left;
        }
        match read(opened, language, most) {
            Ok(bytes) => {
                match named {
                    Named::ByWords => self.total += bytes.len() as u64,
                    Named::ByCode => {
                        self.taken_in += 1;
                        self.taken_in_bytes += bytes.len() as u64;
                    }
                }
                self.found.pieces.push(Piece { name: place.to_owned(), language, bytes });
                Tried::Read
            }
            Err(why) => Tried::Failed(why),
        }
    }
}

/// As text, as far as anyone looks through it for names.
fn beginning(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_LOOKED_THROUGH)])
}

impl Pieces {
    /// One file by itself.
    pub fn of_file(path: &Path, name: String, language: Option<&str>) -> Pieces {
        let mut found = Pieces::default();
        let language = language.and_then(code::language);
        let bytes = super::eyes::host(path).map_err(|error| error.to_string());
        match bytes.and_then(|opened| read(opened, language, LARGEST)) {
            Ok(bytes) => found.pieces.push(Piece { name, language, bytes }),
            Err(why) => found.unread.push(format!("{name}: {why}")),
        }
        found
    }

    fn not_read(&mut self, why: String) {
        if !self.unread.contains(&why) {
            self.unread.push(why);
        }
    }
}

fn read(opened: File, language: Option<Language>, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut opened = opened.take(START);
    opened.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    // A program that somebody compiled: there is no source to look at.
    if language.is_none() && bytes.contains(&0) {
        return Err("a program without source".to_owned());
    }
    opened.set_limit((most + 1).saturating_sub(START));
    opened.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err("it is too large to be scanned".to_owned());
    }
    if language.is_some() && !super::is_archive(&bytes) {
        // Shells skip them, and others stop there: what is behind them must not be hidden by them.
        bytes.retain(|byte| *byte != 0);
    }
    Ok(bytes)
}
