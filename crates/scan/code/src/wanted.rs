//! Which code a command would run, as far as its words tell; and which files code that was read takes in.
//!
//! Nothing is parsed here: whoever asks does so outside of the child that can only compute. More may be named than will
//! run; what is not there costs one look.

mod imports;
mod installers;
mod loads;

use shell::{Origin, Simple, Word};

use crate::Language;

pub use imports::taken_in;
pub use installers::Manifest;

/// Code that should be looked at before the command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// In the words themselves: `python -c CODE`. `roots`: where it looks for modules of its own.
    Text {
        name: String,
        language: Option<Language>,
        text: String,
        roots: Vec<String>,
    },
    File(Script),
    /// What comes in on its standard input is code.
    Input {
        language: Option<Language>,
    },
    /// What an installer or builder obeys, if it is there.
    Manifest(Manifest),
    /// A sentence: this would run, and nobody here can look at it.
    Unfollowed(String),
}

/// A file that would run, or that what runs takes in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// As people call it: `x.py`, `python -m tools`.
    pub name: String,
    /// Where it may be, relative to where the command starts. Whatever of it is there counts.
    pub places: Vec<String>,
    pub language: Option<Language>,
    /// Where it looks for modules of its own; none: beside itself.
    pub roots: Vec<String>,
    /// What is said if it is nowhere; `None`: it was only a guess.
    pub missing: Option<&'static str>,
}

/// More scripts than this in one command are not looked for.
const MOST: usize = 64;
/// Folders that a line goes to.
const MOST_FOLDERS: usize = 8;

/// Of a command's words, as they would be executed.
pub fn wanted(words: &[String]) -> Vec<Wanted> {
    // The words themselves: what `bash -c` runs is code in the words of this command, whatever is in it.
    of_commands(&shell::of_words(words).commands, None)
}

/// Of a script for a shell, in this file or in none.
fn of_script(text: &str, file: Option<&str>) -> Vec<Wanted> {
    of_commands(&shell::of_line(text).commands, file)
}

fn of_commands(commands: &[Simple], file: Option<&str>) -> Vec<Wanted> {
    let mut found: Vec<Wanted> = Vec::new();
    let mut from = From { folders: vec![String::new()], script: file.map(folder_of) };
    for (place, command) in commands.iter().enumerate() {
        from.went(command);
        for wanted in of_command(command, &commands[..place], &from) {
            if !found.contains(&wanted) {
                found.push(wanted);
            }
        }
        if found.len() >= MOST {
            found.truncate(MOST);
            found.push(Wanted::Unfollowed(format!("more than {MOST} scripts in one command")));
            break;
        }
    }
    found
}

/// From where names are meant.
struct From {
    /// Where the line starts, and where it went; whether it came back, nobody looks at.
    folders: Vec<String>,
    /// Where the script itself lies, which scripts like to ask.
    script: Option<String>,
}

impl From {
    fn went(&mut self, command: &Simple) {
        if !matches!(command.name(), Some("cd" | "pushd")) || self.folders.len() >= MOST_FOLDERS {
            return;
        }
        let Some(to) = command.arguments.iter().find(|word| !matches!(word.known(), Some("--" | "-P" | "-L"))) else {
            return;
        };
        let last = self.folders.last().map_or("", String::as_str);
        let to = match (to.known(), &self.script) {
            (Some(to), _) => joined(last, to),
            (None, Some(script)) => joined(script, to.ending().trim_start_matches('/')),
            (None, None) => return,
        };
        if to != "." && !self.folders.contains(&to) {
            self.folders.push(to);
        }
    }

    /// Where a file of this name may be.
    fn places(&self, path: &str) -> Vec<String> {
        match path.starts_with('/') {
            true => vec![path.to_owned()],
            false => self.folders.iter().map(|folder| joined(folder, path)).collect(),
        }
    }

    /// The same for a word that is only known when it runs: `"$(dirname "$0")"/lib.sh`.
    fn guesses(&self, word: &Word) -> Vec<String> {
        match word.ending().strip_prefix('/') {
            None | Some("") => Vec::new(),
            Some(rest) => self.script.iter().chain(&self.folders).map(|folder| joined(folder, rest)).collect(),
        }
    }
}

fn of_command(command: &Simple, before: &[Simple], from: &From) -> Vec<Wanted> {
    let mut found = Vec::new();
    let name = command.name().unwrap_or_default();
    let roots = loads::roots(command, from);
    if let Some(code) = &command.code {
        let language = language(code.language);
        let text = code.text.clone();
        let name = match (name, language) {
            ("eval" | "trap" | "alias" | "xargs" | "parallel" | "at" | "batch", _) => format!("`{name}` code"),
            (name, _) => format!("`{name} {}` code", loads::option_for_code(name)),
        };
        let mut here = from.folders.clone();
        here.extend(roots.clone());
        found.push(Wanted::Text { name, language, text, roots: here });
        if !command.fed_by.is_empty() {
            found.extend(printed(command, before, language, from));
        }
    }
    if let Some(script) = &command.script {
        let language = language(script.language);
        match (&script.origin, command.reads.last()) {
            (Origin::File(Word::Known(path)), _) | (Origin::Input, Some(Word::Known(path))) => {
                found.push(Wanted::File(Script {
                    roots: roots.clone(),
                    missing: Some("it is not there"),
                    ..loads::script(path, language, from.places(path))
                }));
            }
            // Only known when it runs, but for its end.
            (Origin::File(word), _) | (Origin::Input, Some(word)) => {
                let places = from.guesses(word);
                if !places.is_empty() {
                    found.push(Wanted::File(loads::script(word.text(), language, places)));
                }
            }
            (Origin::Printed, _) => found.extend(printed(command, before, language, from)),
            (Origin::Input, None) if only_tells(&command.arguments) => {}
            (Origin::Input, None) => found.push(Wanted::Input { language }),
        }
    }
    // `./configure`: a script, or a program without source.
    if let Some(program) = command.program.known().filter(|program| program.contains('/') && !command.is_standard()) {
        let (name, places) = (program.to_owned(), from.places(program));
        found.push(Wanted::File(Script { name, places, missing: Some("it is not there"), ..Script::default() }));
    }
    found.extend(loads::beside(command, from));
    for folder in &from.folders {
        found.extend(installers::obeyed(name, &command.arguments, folder));
    }
    found
}

/// Programs that print what is in files, more or less as it is there.
const PRINTERS: &[&str] =
    &["cat", "tac", "head", "tail", "sed", "awk", "gawk", "mawk", "grep", "cut", "tr", "envsubst", "tee", "bat", "dd"];
/// Programs that print something else than what is there.
const MAKERS: &[&str] =
    &["base64", "base32", "xxd", "gunzip", "zcat", "gzip", "bzcat", "xzcat", "zstdcat", "openssl", "gpg", "uudecode"];

/// `cat FILE | sh`, `sh -c "$(cat FILE)"`: what the commands before it print, where that is in files.
fn printed(command: &Simple, before: &[Simple], language: Option<Language>, from: &From) -> Vec<Wanted> {
    let mut found = Vec::new();
    for printer in before.iter().filter(|one| one.name().is_some_and(|name| command.fed_by.iter().any(|by| by == name)))
    {
        let name = printer.name().unwrap_or_default();
        let operands = printer.arguments.iter().chain(&printer.reads).filter_map(Word::known);
        let operands =
            operands.map(|word| word.strip_prefix("if=").unwrap_or(word)).filter(|word| !word.starts_with('-'));
        let operands = operands.take(MOST);
        if PRINTERS.contains(&name) {
            let missing = (name == "cat").then_some("it is not there");
            found.extend(
                operands
                    .map(|path| Wanted::File(Script { missing, ..loads::script(path, language, from.places(path)) })),
            );
        } else if MAKERS.contains(&name) {
            let who = command.name().unwrap_or_default();
            found.extend(operands.map(|path| {
                Wanted::Unfollowed(format!(
                    "{path}: what `{name}` makes of it is run by `{who}`, and is only known then"
                ))
            }));
        }
    }
    found
}

/// `python3 --version` reads nothing.
fn only_tells(arguments: &[Word]) -> bool {
    let tells = |word: &Word| matches!(word.known(), Some("--version" | "-V" | "--help" | "-h" | "-v" | "-VV"));
    arguments.iter().any(tells)
}

/// By the name that policies, and the reader of shell, have for it.
pub fn language(name: &str) -> Option<Language> {
    match name {
        "node" => Some(Language::JavaScript),
        name => Language::named(name),
    }
}

/// The folder that a file is in; empty for where one is.
fn folder_of(file: &str) -> String {
    match file.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => String::new(),
    }
}

fn joined(folder: &str, path: &str) -> String {
    let path = if folder.is_empty() { path } else { path.strip_prefix("./").unwrap_or(path) };
    match folder {
        "" | "." => path.to_owned(),
        _ if path.starts_with('/') => path.to_owned(),
        _ if path.is_empty() => folder.to_owned(),
        folder => format!("{}/{path}", folder.trim_end_matches('/')),
    }
}

#[cfg(test)]
mod tests;
