//! The command line: words to requests, outcomes to words. No logic: whatever is decided is decided elsewhere.

mod agents;
mod apply;
mod approve;
mod arguments;
mod artifacts;
mod bench;
mod branches;
mod check;
mod code;
mod cp;
mod diff;
mod doctor;
mod explain;
mod export;
mod forward;
mod image;
mod kept;
mod ledger;
mod log;
mod net;
mod new_file;
mod policy;
mod receipt;
mod result_file;
mod run;
mod sarif;
mod scan;
mod secret;
mod serve;
mod sparkline;
mod watch;
mod words;

pub use approve::Prompt;
pub use watch::Terminal;

use std::ffi::OsString;
use std::io::Write;

use clap::error::ErrorKind;
use model::Service;

/// What makes words of other people's bytes. Not for use: for those who try it with all kinds of bytes.
#[doc(hidden)]
pub mod hostile {
    pub use crate::approve::{block, question};
    pub use crate::explain::lines as explained;
    pub use crate::run::summary;
    pub use crate::words::{Layout, json, line, page};
    pub use wire::{code, object};

    /// The request that words make, or the complaint about them.
    pub fn request(words: Vec<std::ffi::OsString>) -> Result<Option<model::Request>, String> {
        match crate::arguments::command("0").try_get_matches_from(words) {
            Ok(matches) => Ok(match matches.subcommand() {
                Some(("run" | "explain", matches)) => Some(crate::arguments::request(matches)),
                _ => None,
            }),
            Err(error) => Err(crate::complaint(&error)),
        }
    }
}

/// Could not be set up, or wrong usage.
const NOT_SET_UP: u8 = 125;

/// What is begun ahead is of no use to those. Only a guess: the words are read properly later.
fn names_another_backend(words: &[OsString]) -> bool {
    let ours = words.iter().take_while(|word| *word != "--");
    let mut named = ours.zip(words.iter().skip(1)).filter_map(|(word, next)| match word.to_str()? {
        "--backend" => next.to_str(),
        word => word.strip_prefix("--backend="),
    });
    named.any(|name| !matches!(name, "native" | "auto"))
}

/// Does what the words say and returns the exit code.
pub fn answer(words: impl IntoIterator<Item = OsString>, service: &dyn Service, version: &'static str) -> u8 {
    let words: Vec<OsString> = words.into_iter().collect();
    // Most calls are this one, and begin a sandbox that somebody waits for: some of it takes as long as to read what is wanted.
    if words.get(1).is_some_and(|word| word == "run") && !names_another_backend(&words) {
        service.expect();
    }
    if let Some(matches) = arguments::of_run(version, &words)
        && let Some(("run", matches)) = matches.subcommand()
    {
        return run::run(matches, service);
    }
    // What it says, and to whom, is up to the program that serves.
    if words.get(1).is_some_and(|word| serve::knows(word)) {
        return serve::hand_over(&words);
    }
    let matches = match arguments::command(version).try_get_matches_from(&words) {
        Ok(matches) => matches,
        // Of `check`, the other codes are answers.
        Err(error) if error.use_stderr() && words.get(1).is_some_and(|word| word == "check") => {
            complain(&error);
            return check::USAGE;
        }
        Err(error) => return complain(&error),
    };
    match matches.subcommand() {
        Some(("run", matches)) => run::run(matches, service),
        Some(("explain", matches)) => explain::explain(matches, service),
        Some(("check", matches)) => check::check(matches, service.policies()),
        Some(("policy", matches)) => policy::policy(matches, service.policies()),
        Some(("scan", matches)) => scan::scan(matches, service.scans()),
        Some(("doctor", matches)) => doctor::doctor(matches, service),
        Some(("bench", matches)) => bench::bench(matches, service),
        Some(("diff", matches)) => diff::diff(matches, service.sandboxes()),
        Some(("apply", matches)) => apply::apply(matches, service.sandboxes()),
        Some(("approve", matches)) => approve::approve(matches, service.approvals()),
        Some(("artifacts", matches)) => artifacts::artifacts(matches, service.artifacts()),
        Some(("net", matches)) => net::net(matches, service.records()),
        Some(("forward", matches)) => forward::forward(matches, service.visits()),
        Some(("log", matches)) => log::log(matches, service.records()),
        Some(("export", matches)) => export::export(matches, service),
        Some(("receipt", matches)) => receipt::receipt(matches, service.records()),
        Some(("ledger", matches)) => ledger::ledger(matches, service.records()),
        Some(("agents", matches)) => agents::agents(matches, service.agents()),
        Some(("image", matches)) => image::image(matches, service.images()),
        Some(("secret", matches)) => secret::secret(matches, service.secrets()),
        Some(("exec", matches)) => kept::exec(matches, service),
        Some(("code", matches)) => code::code(matches, service),
        Some(("cp", matches)) => cp::copy(matches, service.sandboxes()),
        Some((name, matches)) if kept::knows(name) => kept::answer(name, matches, service.sandboxes()),
        Some(("completions", matches)) => completions(matches, version),
        _ => NOT_SET_UP,
    }
}

/// Help is an answer; anything else is one line, with what to do about it.
fn complain(error: &clap::Error) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match error.print() {
            Ok(()) => 0,
            Err(_) => 1,
        };
    }
    complaint(error).lines().for_each(words::say);
    NOT_SET_UP
}

/// One line, or the help where nothing was asked for.
fn complaint(error: &clap::Error) -> String {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return text;
    }
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let line: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information")).collect();
    let line = line.join("; ");
    format!("belljar: {}; see `belljar --help`", line.strip_prefix("error: ").unwrap_or(&line))
}

fn completions(matches: &clap::ArgMatches, version: &'static str) -> u8 {
    let Some(shell) = matches.get_one::<clap_complete::Shell>("shell") else {
        return NOT_SET_UP;
    };
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut arguments::command(version), "belljar", &mut script);
    match std::io::stdout().write_all(&script) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_backend_is_seen_before_the_command() {
        let named = |words: &[&str]| names_another_backend(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(named(&["belljar", "run", "--backend", "gvisor", "--", "true"]));
        assert!(named(&["belljar", "run", "--backend=wasm", "a.wasm"]));
        assert!(!named(&["belljar", "run", "--backend", "native", "--", "true"]));
        assert!(!named(&["belljar", "run", "--", "x", "--backend", "gvisor"]));
        assert!(!named(&["belljar", "run", "true"]) && !named(&["belljar", "run", "--backend"]));
    }
}
