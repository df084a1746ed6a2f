//! `belljar serve --config FILE`: the words of the command line, in TOML. What is said there wins over what is written here.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind as Wrong;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::de::{DeTable, DeValue};

use crate::words;

/// No settings of ours are nearly as long.
const LARGEST: u64 = 64 << 10;
/// Words that are about the file itself, or that are no settings.
const NOT_IN_A_FILE: [&str; 4] = ["config", "print-config", "help", "version"];
/// A relative path in the file starts where the file is: nobody knows where a service is started from.
const PATHS: [&str; 3] = ["state", "tls-cert", "tls-key"];

/// One line of the file.
#[derive(Debug)]
struct Setting {
    key: String,
    /// What would stand on the command line; nothing for a flag that is not raised.
    word: Option<OsString>,
}

/// The same matches, with what the file says where the command line says nothing.
pub fn joined(words: &[OsString], matches: &ArgMatches, version: &'static str) -> Result<ArgMatches, String> {
    let command = words::serve();
    let Some(settings) = read(matches, &command)? else { return Ok(matches.clone()) };
    let said = |key: &str| matches.value_source(key) == Some(ValueSource::CommandLine);
    let more = settings.into_iter().filter(|setting| !said(&setting.key)).filter_map(|setting| setting.word);
    let (before, after) = words.split_at(words.len().min(2));
    let all = before.iter().cloned().chain(more).chain(after.iter().cloned());
    let joined = words::command(version).try_get_matches_from(all).map_err(|error| in_one_line(&error))?;
    joined.subcommand_matches("serve").cloned().ok_or_else(|| "there is no such command".to_owned())
}

/// Where the file says that state is, for those who only need that.
pub fn state(matches: &ArgMatches) -> Result<Option<PathBuf>, String> {
    let settings = read(matches, &words::serve())?.unwrap_or_default();
    let state = settings.into_iter().find(|setting| setting.key == "state").and_then(|setting| setting.word);
    Ok(state.and_then(|word| word.to_str()?.strip_prefix("--state=").map(PathBuf::from)))
}

/// What it would serve with, as a file of this kind.
pub fn printed(matches: &ArgMatches, state: &Path) -> String {
    let mut text = String::new();
    for argument in words::serve().get_arguments() {
        let key = argument.get_id().as_str();
        if NOT_IN_A_FILE.contains(&key) {
            continue;
        }
        let value = if is_flag(argument) {
            Some(matches.get_flag(key).to_string())
        } else if key == "state" {
            Some(quoted(state.as_os_str()))
        } else {
            let raw = matches.get_raw(key).and_then(|mut raw| raw.next());
            raw.map(|raw| if is_number(raw) { raw.to_string_lossy().into_owned() } else { quoted(raw) })
        };
        text.extend(value.map(|value| format!("{key} = {value}\n")));
    }
    text
}

fn is_number(text: &OsStr) -> bool {
    text.to_str().is_some_and(|text| text.parse::<u32>().is_ok())
}

/// As a string of TOML; letters that would need more than this are in no path that anybody means.
fn quoted(text: &OsStr) -> String {
    format!("\"{}\"", text.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"").replace(char::is_control, "?"))
}

fn is_flag(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::SetTrue)
}

fn read(matches: &ArgMatches, command: &Command) -> Result<Option<Vec<Setting>>, String> {
    let said = matches.get_one::<PathBuf>("config").cloned();
    let Some(path) = said.clone().or_else(usual) else { return Ok(None) };
    let path = std::path::absolute(&path).map_err(|error| format!("cannot find `{}`: {error}", path.display()))?;
    match text(&path)? {
        Some(text) => settings(&path, &text, command).map(Some),
        None if said.is_none() => Ok(None),
        None => Err(format!("there is no file `{}`; fix: see `--config`", path.display())),
    }
}

/// Where it is looked for if nobody says.
fn usual() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")));
    folder.map(|folder| folder.join("belljar/service.toml"))
}

/// What others can write is no word of ours: they could have it serve beyond loopback, or with a state of theirs.
fn text(path: &Path) -> Result<Option<String>, String> {
    let shown = path.display();
    let cannot = |why: String| format!("cannot read `{shown}`: {why}");
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(cannot(error.to_string())),
    };
    let stat = file.metadata().map_err(|error| cannot(error.to_string()))?;
    if !stat.is_file() {
        return Err(cannot("it is no file".to_owned()));
    }
    let own = [0, rustix::process::geteuid().as_raw()].contains(&stat.uid());
    if !own || stat.mode() & 0o022 != 0 {
        return Err(format!("`{shown}` can be changed by others than you; fix: own it, and `chmod go-w {shown}`"));
    }
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| cannot(error.to_string()))?;
    if text.len() as u64 > LARGEST {
        return Err(cannot(format!("it has more than {LARGEST} bytes")));
    }
    Ok(Some(text))
}

fn settings(path: &Path, text: &str, command: &Command) -> Result<Vec<Setting>, String> {
    let place = |at: usize| {
        let line = text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
        format!("{}:{line}", path.display())
    };
    let table = DeTable::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        format!("{}: {}", place(start), error.message().replace('\n', " "))
    })?;
    let known: Vec<&Arg> =
        command.get_arguments().filter(|argument| !NOT_IN_A_FILE.contains(&argument.get_id().as_str())).collect();
    let mut found = Vec::new();
    for (key, value) in table.get_ref() {
        let name: &str = key.get_ref();
        let place = place(key.span().start);
        let Some(argument) = known.iter().find(|argument| argument.get_id() == name) else {
            return Err(format!("{place}: {}", unknown(name, &known)));
        };
        let word = word(path, argument, value.get_ref()).map_err(|why| format!("{place}: `{name}` {why}"))?;
        if let Some(word) = &word {
            check(command, word).map_err(|why| format!("{place}: `{name}`: {why}"))?;
        }
        found.push(Setting { key: name.to_owned(), word });
    }
    Ok(found)
}

fn unknown(name: &str, known: &[&Arg]) -> String {
    let names: Vec<&str> = known.iter().map(|argument| argument.get_id().as_str()).collect();
    let near = names.iter().map(|known| (strsim::osa_distance(name, known), *known)).min();
    let most = 1 + name.chars().count() / 4;
    let name = name.escape_debug();
    match near.filter(|(distance, _)| *distance <= most) {
        Some((_, meant)) => format!("`{name}` is no key here; did you mean `{meant}`?"),
        None => format!("`{name}` is no key here; there are: {}", names.join(", ")),
    }
}

fn word(path: &Path, argument: &Arg, value: &DeValue<'_>) -> Result<Option<OsString>, String> {
    let key = argument.get_id().as_str();
    if is_flag(argument) {
        let raised = value.as_bool().ok_or("is either `true` or `false`")?;
        return Ok(raised.then(|| format!("--{key}").into()));
    }
    let text = match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        other => return Err(format!("is a string or a number, and not a value of the kind {}", other.type_str())),
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let text = match (key, text.strip_prefix("unix:")) {
        ("listen", Some(socket)) if !socket.is_empty() => format!("unix:{}", folder.join(socket).display()),
        _ if PATHS.contains(&key) => folder.join(text).display().to_string(),
        _ => text,
    };
    Ok(Some(format!("--{key}={text}").into()))
}

/// Alone, so that what is wrong is said of the line that it is in.
fn check(command: &Command, word: &OsStr) -> Result<(), String> {
    let words = [OsStr::new("serve"), word];
    match command.clone().try_get_matches_from(words) {
        Ok(_) => Ok(()),
        // What else it needs may be in another line, or on the command line.
        Err(error) if error.kind() == Wrong::MissingRequiredArgument => Ok(()),
        Err(error) => Err(in_one_line(&error)),
    }
}

fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(text: &str) -> Result<Vec<(String, Option<String>)>, String> {
        let settings = settings(Path::new("/etc/b/service.toml"), text, &words::serve())?;
        let word = |word: OsString| word.to_string_lossy().into_owned();
        Ok(settings.into_iter().map(|setting| (setting.key, setting.word.map(word))).collect())
    }

    #[test]
    fn a_file_has_the_words_of_the_command_line() {
        let text = "jobs = 4\nbody = \"1M\"\ninsecure-listen = false\ntls-cert = \"a.pem\"\nlisten = \"unix:s\"\n";
        let mut read = read_as(text).expect("in order");
        read.sort();
        let said = |key: &str, word: &str| (key.to_owned(), Some(word.to_owned()));
        assert_eq!(
            read,
            [
                said("body", "--body=1M"),
                ("insecure-listen".to_owned(), None),
                said("jobs", "--jobs=4"),
                said("listen", "--listen=unix:/etc/b/s"),
                said("tls-cert", "--tls-cert=/etc/b/a.pem"),
            ]
        );
        assert_eq!(read_as("").expect("in order"), []);
    }

    #[test]
    fn what_is_not_understood_is_an_error_with_its_line() {
        for (text, place, why) in [
            ("jobs = 4\njbos = 3\n", ":2:", "did you mean `jobs`?"),
            ("\n\nxyzzy = 3\n", ":3:", "there are: "),
            ("jobs = 4\nqueue = 'many'\n", ":2:", "invalid value 'many'"),
            ("jobs = 0\n", ":1:", "0 is not in"),
            ("jobs = 0x10\n", ":1:", "is a string or a number"),
            ("jobs = [1]\n", ":1:", "is a string or a number"),
            ("insecure-listen = 'yes'\n", ":1:", "is either `true` or `false`"),
            ("config = 'other.toml'\n", ":1:", "is no key here"),
            ("[limits]\njobs = 3\n", ":1:", "is no key here"),
            ("jobs = 1\njobs = 2\n", ":2:", "duplicate key"),
            ("jobs = \n", ":1:", ""),
        ] {
            let error = read_as(text).expect_err(text);
            assert!(error.contains(place) && error.contains(why), "{text}: {error}");
        }
    }
}
