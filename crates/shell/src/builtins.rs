//! The shell's own commands that run text, or change what later commands mean.

use crate::holes::{filled, of as with_holes};
use crate::interpreters::is_descriptor;
use crate::parse::runs_when_counted;
use crate::read::{Around, Given, Reader, merge};
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
        let Some(file) = rest.first() else { return };
        let mut names = file.from.clone();
        if file.word.known().is_some_and(is_descriptor) {
            names.extend(around.feeding.clone());
        }
        merge(&mut self.commands[number].fed_by, names);
    }

    pub(crate) fn trap(&mut self, number: usize, rest: &[Given], around: &Around) {
        let action = rest.iter().find(|given| given.word.known() != Some("--"));
        let Some(action) = action.filter(|given| !given.word.known().is_some_and(|text| text.starts_with('-'))) else {
            return;
        };
        if action.word.known() != Some("") && rest.len() > 1 {
            self.line_of(number, std::slice::from_ref(action), &around.behind("trap"), true);
        }
    }

    pub(crate) fn alias(&mut self, number: usize, rest: &[Given], around: &Around) {
        for given in rest {
            let text = with_holes(&given.word);
            let Some((name, value)) = text.split_once('=') else { continue };
            self.aliases.push(name.to_owned());
            let value = Given { word: filled(value.to_owned(), false), from: given.from.clone() };
            self.line_of(number, &[value], &around.behind("alias"), true);
        }
    }

    pub(crate) fn declare(&mut self, name: &str, rest: &[Given]) {
        for given in rest {
            if let Some((variable, value)) = assignment(&given.word) {
                self.keep(&variable, &value);
            }
        }
        self.counts(name, rest);
    }

    /// Builtins that expand the index of an array again.
    pub(crate) fn counts(&mut self, name: &str, rest: &[Given]) {
        for given in rest {
            let text = with_holes(&given.word);
            if runs_when_counted(&text) || (name == "let" && (text.contains("$(") || text.contains('`'))) {
                self.doubt(format!("`{name}` may run what is in `{}`", given.word.text()));
            }
        }
    }

    /// Options with which these change what a name means, or run a command.
    pub(crate) fn rare_builtin(&mut self, name: &str, rest: &[Given]) {
        let risky: &[&str] = match name {
            "hash" => &["-p"],
            "enable" => &["-f"],
            "bind" | "jobs" => &["-x"],
            "complete" | "compgen" | "mapfile" | "readarray" => &["-C", "-F"],
            "fc" => &["-s", "-e"],
            _ => &["expand_aliases"],
        };
        let is_risky = |given: &&Given| match given.word.known() {
            None => given.word.may_start_with("-"),
            Some(text) => risky.iter().any(|risky| text.starts_with(risky)),
        };
        if let Some(given) = rest.iter().find(is_risky) {
            self.doubt(format!("`{name} {}` may change what commands mean, or run some", given.word.text()));
        }
    }
}
