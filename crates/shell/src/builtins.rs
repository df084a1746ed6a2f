//! The shell's own commands that run text, or change what later commands mean.

use crate::holes::{filled, of as with_holes};
use crate::interpreters::from_file;
use crate::parse::runs_when_counted;
use crate::read::{Around, Given, Reader};
use crate::sleeping::would_run;
use crate::start::assignment;

impl Reader {
    pub(crate) fn eval(&mut self, number: usize, rest: &[Given], around: &Around) {
        let rest = match rest.first().map(|given| given.word.known()) {
            Some(Some("--")) => &rest[1..],
            _ => rest,
        };
        if !rest.is_empty() {
            self.line_of(number, rest, &around.behind("eval"), true);
        }
    }

    pub(crate) fn source(&mut self, number: usize, rest: &[Given], around: &Around) {
        let rest = match rest.first().map(|given| given.word.known()) {
            Some(Some("--")) => &rest[1..],
            _ => rest,
        };
        if let Some(file) = rest.first() {
            self.code(number, "shell", "source", from_file(0, &file.word), rest, around);
        }
    }

    pub(crate) fn trap(&mut self, number: usize, rest: &[Given], around: &Around) {
        let is_option = |given: &&Given| given.word.known().is_some_and(|text| text.len() > 1 && text.starts_with('-'));
        let mut rest = rest;
        while let Some(option) = rest.first().filter(is_option) {
            rest = &rest[1..];
            match option.word.known() {
                // After it, even what begins with `-` is the action.
                Some("--") => break,
                _ if rest.is_empty() => return,
                _ => {}
            }
        }
        let Some(action) = rest.first().filter(|given| !matches!(given.word.known(), Some("-" | ""))) else { return };
        if rest.len() > 1 || action.word.known().is_none() {
            self.line_of(number, std::slice::from_ref(action), &around.behind("trap"), true);
        }
    }

    pub(crate) fn alias(&mut self, number: usize, rest: &[Given], around: &Around) {
        for given in rest {
            let text = with_holes(&given.word);
            let Some((name, value)) = text.split_once('=') else { continue };
            self.aliases.push(name.to_owned());
            let value = given.with(filled(value.to_owned(), false));
            self.line_of(number, &[value], &around.behind("alias"), true);
        }
    }

    pub(crate) fn declare(&mut self, name: &str, rest: &[Given]) {
        let is_counted = rest.iter().any(|given| has_option(given, &['i', 'n']));
        for given in rest {
            if let Some((variable, value)) = assignment(&given.word) {
                if is_counted && value.known().is_some_and(is_watched) {
                    self.doubt(format!("what `{name}` makes of `{}` is not known", given.word.text()));
                }
                self.assign(&variable, &given.with(value.clone()));
                self.keep(&variable, &value);
            }
        }
        if is_counted {
            self.sleeping.counts(name);
        }
        self.counts(name, rest);
    }

    /// Builtins that expand the index of an array again, or put something into a variable.
    pub(crate) fn counts(&mut self, name: &str, rest: &[Given]) {
        let names = match name {
            "test" | "[" => rest.iter().any(|given| matches!(given.word.known(), Some("-v" | "-R"))),
            "printf" => rest.first().is_some_and(|given| given.word.may_start_with("-v")),
            _ => true,
        };
        for given in rest {
            let text = with_holes(&given.word);
            if runs_when_counted(&text) || (name == "let" && would_run(&text)) {
                self.doubt(format!("`{name}` may run what is in `{}`", given.word.text()));
            }
            if names && (given.word.known().is_none() || matches!(name, "let" | "test" | "[")) {
                self.sleeping.counts(name);
            }
            if names && matches!(name, "read" | "printf" | "getopts" | "mapfile" | "readarray" | "wait") {
                self.names_variable(name, text.strip_prefix("-v").unwrap_or(&text));
            }
        }
    }

    /// Options with which these change what a name means, or run a command.
    pub(crate) fn rare_builtin(&mut self, name: &str, rest: &[Given]) {
        let risky: &[char] = match name {
            "hash" => &['p'],
            "enable" => &['f', 'n'],
            "bind" | "jobs" => &['x'],
            "complete" | "compgen" | "mapfile" | "readarray" => &['C', 'F'],
            "fc" => &['s', 'e'],
            // All that it takes come after `set -`.
            "set" => &['H', 'k'],
            _ => &[],
        };
        let is_risky = |given: &&Given| match given.word.known() {
            None => name != "set" && given.word.may_start_with("-") && given.word.may_be_many() || given.hides_option(),
            Some(text) => {
                matches!(text, "expand_aliases" | "histexpand" | "keyword")
                    || has_option(given, risky)
                    || (matches!(name, "complete" | "compgen") && would_run(text))
            }
        };
        if let Some(given) = rest.iter().find(is_risky) {
            self.doubt(format!("`{name} {}` may change what commands mean, or run some", given.word.text()));
        }
        if matches!(name, "mapfile" | "readarray") {
            self.counts(name, rest);
        }
    }
}

/// Is it an option with one of these letters, be it among others?
fn has_option(given: &Given, letters: &[char]) -> bool {
    let option = given.word.known().and_then(|text| text.strip_prefix('-')).filter(|text| !text.starts_with('-'));
    option.is_some_and(|text| text.contains(letters))
}

fn is_watched(name: &str) -> bool {
    name.starts_with("PS") || name.starts_with("BASH_") || name == "PROMPT_COMMAND"
}
