//! What a command starts beside itself: wrappers, shells and the shell's own commands are looked into.

use crate::holes::{HOLE, filled, of as with_holes, punched, shown};
use crate::interpreters::{Source, interpreter, is_shell};
use crate::launchers::LAUNCHERS;
use crate::options::{ENV, FLOCK, PARALLEL, RUNUSER, SCRIPT, Starts, Taken, Wrapper, XARGS, wrapper};
use crate::read::{Around, Given, Reader, merge};
use crate::simple::last_part;
use crate::tools::TOOLS;
use crate::{Piece, Word};

/// Names of which `start` looks at the arguments, beside shells, interpreters and those with a table of options.
const LOOKED_INTO: &[&str] = &[
    "env", "xargs", "parallel", "find", "gfind", "fd", "fdfind", "flock", "su", "runuser", "script", "eval", "source",
    ".", "trap", "at", "batch", "crontab", "alias", "export", "declare", "typeset", "local", "readonly", "hash",
    "enable", "shopt", "bind", "complete", "compgen", "jobs", "fc", "mapfile", "readarray", "let", "read", "unset",
    "printf", "test", "[", "getopts", "wait", "set",
];
/// Without words, these start a shell.
const STARTING_SHELLS: &[&str] = &[
    "chroot", "unshare", "nsenter", "setarch", "linux32", "linux64", "i386", "x86_64", "proot", "firejail", "fakeroot",
    "fakechroot",
];
/// Options of `find` before a command.
const EXECUTES: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// Could a program of this name start others, or run code, by its arguments?
pub(crate) fn is_looked_into(name: &str) -> bool {
    LOOKED_INTO.contains(&name)
        || LAUNCHERS.contains(&name)
        || TOOLS.contains(&name)
        || is_shell(name)
        || wrapper(name).is_some()
        || interpreter(name).is_some()
}

/// What the options of a wrapper said.
#[derive(Default)]
pub(crate) struct Before {
    /// Options by name, with their values.
    options: Vec<(String, Option<Given>)>,
    set: Vec<(String, Word)>,
    /// The number of the first word after them.
    pub at: usize,
}

impl Before {
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    pub(crate) fn value(&self, names: &[&str]) -> Option<&Given> {
        self.options.iter().rev().find(|(name, _)| names.contains(&name.as_str()))?.1.as_ref()
    }
}

impl Reader {
    /// A command with these words would be started.
    pub(crate) fn start(&mut self, given: Vec<Given>, set: Vec<(String, Word)>, around: &Around) {
        let is_plain = given.first().and_then(|program| program.word.known()).is_some_and(|program| {
            let name = last_part(program);
            !is_looked_into(name) && !self.aliases.iter().any(|alias| alias == name)
        });
        if is_plain {
            // Nothing more is asked of its words: they are its own.
            self.found(given.into_iter().map(|given| given.word).collect(), set, around);
            return;
        }
        let words = given.iter().map(|given| given.word.clone()).collect();
        let Some(number) = self.found(words, set, around) else { return };
        let Some(program) = given.first() else { return };
        let Some(text) = program.word.known() else {
            return self.unknown_program(number, &given, around);
        };
        let name = last_part(text);
        if self.aliases.iter().any(|alias| alias == name) {
            self.doubt(format!("`{name}` is an alias made in the same line"));
        }
        if !is_looked_into(name) {
            return;
        }
        let rest = &given[1..];
        match name {
            "env" => self.env(number, rest, around),
            "xargs" => self.xargs(rest, around),
            "parallel" => self.parallel(number, rest, around),
            "find" | "gfind" => self.find(rest, around),
            "fd" | "fdfind" => self.fd(rest, around),
            "flock" => self.flock(number, rest, around),
            "su" | "runuser" => self.other_user(number, name, rest, around),
            "script" => self.script(number, rest, around),
            "eval" => self.eval(number, rest, around),
            "source" | "." => self.source(number, rest, around),
            "at" | "batch" | "crontab" => self.code(number, "shell", name, Source::Input, &[], around),
            "trap" => self.trap(number, rest, around),
            "alias" => self.alias(number, rest, around),
            "export" | "declare" | "typeset" | "local" | "readonly" => self.declare(name, rest),
            "hash" | "enable" | "shopt" | "bind" | "complete" | "compgen" | "jobs" | "fc" | "mapfile" | "readarray"
            | "set" => {
                self.rare_builtin(name, rest);
            }
            "let" | "read" | "unset" | "printf" | "test" | "[" | "getopts" | "wait" => self.counts(name, rest),
            name if LAUNCHERS.contains(&name) => self.launch(number, name, rest, around),
            name if TOOLS.contains(&name) => self.tool(number, name, rest, around),
            "busybox" | "toybox" if rest.is_empty() => {}
            name if is_shell(name) => self.shell(number, name, rest, around),
            name => {
                if let Some(wrapper) = wrapper(name) {
                    self.wrapped(number, name, &wrapper, rest, around);
                } else if let Some(found) = interpreter(name) {
                    let words: Vec<&Word> = rest.iter().map(|given| &given.word).collect();
                    let source = found.source(&words);
                    self.code(number, found.language, found.language, source, rest, around);
                }
            }
        }
    }

    fn unknown_program(&mut self, number: usize, given: &[Given], around: &Around) {
        let Some((program, rest)) = given.split_first() else { return };
        self.doubt(format!("`{}` is only known when it runs", program.word.text()));
        merge(&mut self.commands[number].fed_by, program.from.clone());
        // It may come out as nothing, or as a wrapper: `$SUDO rm x`.
        if program.word.may_be_many()
            && let Some(next) = rest.iter().position(|given| given.word.known().is_some())
            && !rest[next].word.may_start_with("-")
        {
            self.start(rest[next..].to_vec(), Vec::new(), &around.behind(program.word.text()));
        }
    }

    /// Options and what may stand with them before the program.
    pub(crate) fn before(&mut self, name: &str, wrapper: &Wrapper, rest: &[Given]) -> Before {
        let mut before = Before::default();
        let mut skipped = 0;
        while let Some(given) = rest.get(before.at) {
            let Some(text) = given.word.known() else {
                if given.hides_option() || (skipped < wrapper.before && given.word.may_be_many()) {
                    self.doubt(format!("what `{name}` starts depends on `{}`", given.word.text()));
                }
                if let (true, Some((variable, value))) = (wrapper.assigns, environment(name, &given.word)) {
                    before.set.push((variable, value));
                    before.at += 1;
                    continue;
                }
                if skipped < wrapper.before {
                    (skipped, before.at) = (skipped + 1, before.at + 1);
                    continue;
                }
                break;
            };
            if text == "--" && skipped == 0 {
                before.at += 1;
                // Only once, and none after it is an option.
                while skipped < wrapper.before && before.at < rest.len() {
                    (skipped, before.at) = (skipped + 1, before.at + 1);
                }
                while let (true, Some((variable, value))) =
                    (wrapper.assigns, rest.get(before.at).and_then(|given| environment(name, &given.word)))
                {
                    before.set.push((variable, value));
                    before.at += 1;
                }
                break;
            }
            if text.len() > 1 && text.starts_with('-') && skipped == 0 {
                let mut found = Vec::new();
                let kind = wrapper.option(text, |option, value| {
                    let value = value.map(|value| given.with(Word::Known(value.to_owned())));
                    found.push((option.to_owned(), value));
                });
                let splits = name == "env" && found.iter().any(|(option, _)| option == "S" || option == "split-string");
                before.options.extend(found);
                before.at += 1;
                match kind {
                    Taken::Alone => {}
                    Taken::Next => {
                        let value = rest.get(before.at).cloned();
                        if let Some(value) = value.as_ref().filter(|value| value.word.may_be_many()) {
                            self.doubt(format!("what `{name}` starts depends on `{}`", value.word.text()));
                        }
                        before.options.last_mut().into_iter().for_each(|(_, taken)| taken.clone_from(&value));
                        before.at += 1;
                    }
                    Taken::Unknown(option) => {
                        self.doubt(format!("the option `{option}` of `{name}` is not known"));
                    }
                }
                // What is split stands before the rest, and may hold options itself.
                if splits {
                    break;
                }
                continue;
            }
            if text == "-" && name == "env" {
                before.at += 1;
            } else if let (true, Some((variable, value))) = (wrapper.assigns, environment(name, &given.word)) {
                before.set.push((variable, value));
                before.at += 1;
            } else if skipped < wrapper.before {
                (skipped, before.at) = (skipped + 1, before.at + 1);
            } else {
                break;
            }
        }
        before.at = before.at.min(rest.len());
        for (variable, value) in &mut before.set {
            if variable.contains(HOLE) {
                *variable = shown(variable);
                self.doubt(format!("which variables `{name}` sets is only known when it runs"));
            }
            self.assign(variable, &Given::of(value.clone()));
        }
        before
    }

    pub(crate) fn wrapped(&mut self, number: usize, name: &str, wrapper: &Wrapper, rest: &[Given], around: &Around) {
        let before = self.before(name, wrapper, rest);
        if name == "command" && before.has(&["v", "V"]) {
            return;
        }
        let given = &rest[before.at..];
        // What it writes, it may write to a command.
        let output = before.value(&["o", "output"]).map(|value| with_holes(&value.word));
        if let Some(line) =
            output.as_deref().filter(|_| name == "strace").and_then(|text| text.strip_prefix(['|', '!']))
        {
            let line = Given::of(filled(line.to_owned(), false));
            self.line_of(number, &[line], &around.behind("strace -o"), false);
        }
        if given.is_empty() {
            let is_shell = match name {
                "sudo" | "doas" => before.has(&["s", "i", "shell", "login"]),
                "systemd-run" => before.has(&["S", "shell"]),
                "exec" => {
                    let is_another = around.document.is_some() || around.other_input.is_some();
                    if is_another || !around.feeding.is_empty() {
                        self.doubt("`exec` gives another input to what follows".to_owned());
                    }
                    false
                }
                name => STARTING_SHELLS.contains(&name),
            };
            if is_shell {
                self.code(number, "shell", name, Source::Input, &[], around);
            }
            return;
        }
        let is_line = match name {
            "watch" => !before.has(&["x", "exec"]),
            "entr" => before.has(&["s"]),
            _ => wrapper.starts == Starts::Line,
        };
        match is_line {
            true => self.line_of(number, given, &around.behind(name), false),
            false => self.start(given.to_vec(), before.set, &around.behind(name)),
        }
    }

    fn env(&mut self, number: usize, rest: &[Given], around: &Around) {
        let mut given = rest.to_vec();
        let mut set = Vec::new();
        // Once more for what `-S` splits; further is not looked.
        for _ in 0..2 {
            let mut before = self.before("env", &ENV, &given);
            set.append(&mut before.set);
            let split = before.value(&["S", "split-string"]).cloned();
            given.drain(..before.at);
            let Some(split) = split else {
                if !given.is_empty() {
                    self.start(given, set, &around.behind("env"));
                }
                return;
            };
            let Some(text) = split.word.known().filter(|text| !text.contains(['\\', '\'', '"', '$', '#'])) else {
                self.doubt(format!("what `env -S` makes of `{}` is not known", split.word.text()));
                return self.line_of(number, &[split], &around.behind("env"), true);
            };
            let words = text.split_ascii_whitespace().map(|word| Given::of(Word::Known(word.to_owned())));
            given = words.chain(given).collect();
        }
        self.doubt("`env -S` within `env -S` is not read".to_owned());
    }

    fn xargs(&mut self, rest: &[Given], around: &Around) {
        let before = self.before("xargs", &XARGS, rest);
        let mut given = rest[before.at..].to_vec();
        if given.is_empty() {
            return;
        }
        let replaces = before.has(&["I", "i", "replace"]);
        let mark = match before.value(&["I", "i", "replace"]).map(|value| with_holes(&value.word)) {
            Some(mark) => mark,
            None => "{}".to_owned(),
        };
        let mut from = around.feeding.clone();
        if let Some(file) = before.value(&["a", "arg-file"]) {
            merge(&mut from, file.from.clone());
        }
        for word in &mut given {
            if replaces && with_holes(&word.word).contains(&mark) {
                word.word = punched(&word.word, &mark);
                merge(&mut word.from, from.clone());
            }
        }
        if !replaces {
            let known = vec![Piece::Any];
            given.push(Given {
                from: from.clone(),
                ..Given::of(Word::Partly { text: "…".to_owned(), known, many: true })
            });
        }
        self.filled_from_input(given, &from, &around.behind("xargs"));
    }

    /// A command whose words come partly from the input: for an interpreter, that is as good as code.
    fn filled_from_input(&mut self, given: Vec<Given>, from: &[String], around: &Around) {
        let first = self.commands.len();
        // What `xargs` starts does not read the pipe itself.
        let inner = Around { feeding: Vec::new(), document: None, ..around.clone() };
        self.start(given, Vec::new(), &inner);
        for simple in &mut self.commands[first..] {
            let runs_code = simple.name().is_some_and(|name| is_shell(name) || interpreter(name).is_some());
            if runs_code || matches!(simple.name(), Some("eval" | "source" | ".")) {
                merge(&mut simple.fed_by, from.to_vec());
            }
        }
    }

    fn parallel(&mut self, number: usize, rest: &[Given], around: &Around) {
        let before = self.before("parallel", &PARALLEL, rest);
        let is_end = |given: &&Given| !matches!(given.word.known(), Some(":::" | "::::" | ":::+" | "::::+"));
        let mut given: Vec<Given> = rest[before.at..].iter().take_while(is_end).cloned().collect();
        merge(&mut self.commands[number].fed_by, around.feeding.clone());
        if given.is_empty() {
            return self.doubt("`parallel` runs what it reads".to_owned());
        }
        for word in &mut given {
            for mark in ["{}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{%}"] {
                word.word = punched(&word.word, mark);
            }
        }
        given.push(Given::of(filled(HOLE.to_string(), true)));
        let inner = Around { feeding: Vec::new(), document: None, ..around.behind("parallel") };
        self.line_of(number, &given, &inner, false);
    }

    fn find(&mut self, rest: &[Given], around: &Around) {
        let mut at = 0;
        while let Some(given) = rest.get(at) {
            at += 1;
            match given.word.known() {
                None if given.hides_option() && EXECUTES.iter().any(|option| given.word.may_be(option)) => {
                    self.doubt(format!("what `find` starts depends on `{}`", given.word.text()));
                }
                Some(option) if EXECUTES.contains(&option) => {
                    let is_end = |given: &Given| matches!(given.word.known(), Some(";"));
                    let is_plus =
                        |pair: &[Given]| pair[0].word.known() == Some("{}") && pair[1].word.known() == Some("+");
                    let left = &rest[at..];
                    let end = left.iter().position(is_end).unwrap_or(left.len());
                    let plus = left.windows(2).position(is_plus).map_or(left.len(), |place| place + 1);
                    let length = end.min(plus);
                    self.started_by(&left[..length], "{}", &around.behind(format!("find {option}")));
                    at += length + 1;
                }
                _ => {}
            }
        }
    }

    fn fd(&mut self, rest: &[Given], around: &Around) {
        let is_exec = |given: &Given| {
            let options = ["-x", "--exec", "-X", "--exec-batch"];
            given.word.known().is_some_and(|text| options.contains(&text))
        };
        if rest.iter().any(|given| given.hides_option() && given.word.may_be("-x")) {
            self.doubt("what `fd` starts depends on words that are only known when it runs".to_owned());
        }
        let attached = |given: &Given| {
            given.word.known().is_some_and(|text| {
                text.starts_with("--exec=")
                    || text.starts_with("--exec-batch=")
                    || (text.starts_with('-') && !text.starts_with("--") && text.len() > 2 && text.contains(['x', 'X']))
            })
        };
        let plain = rest.iter().position(is_exec);
        if let Some(odd) = rest.iter().take(plain.unwrap_or(rest.len())).find(|given| attached(given)) {
            self.doubt(format!("the option `{}` of `fd` is not known", odd.word.text()));
        }
        let Some(place) = plain else { return };
        let left = &rest[place + 1..];
        let end = left.iter().position(|given| given.word.known() == Some(";")).unwrap_or(left.len());
        let mut given = left[..end].to_vec();
        for word in &mut given {
            for mark in ["{/}", "{//}", "{.}", "{/.}"] {
                word.word = punched(&word.word, mark);
            }
        }
        self.started_by(&given, "{}", &around.behind("fd -x"));
    }

    fn started_by(&mut self, given: &[Given], mark: &str, around: &Around) {
        let punch = |given: &Given| given.with(punched(&given.word, mark));
        let given: Vec<Given> = given.iter().map(punch).collect();
        if !given.is_empty() {
            self.start(given, Vec::new(), around);
        }
    }

    fn flock(&mut self, number: usize, rest: &[Given], around: &Around) {
        let before = self.before("flock", &FLOCK, rest);
        let given = &rest[before.at..];
        match given.first().map(|given| given.word.known()) {
            None => {}
            Some(Some("-c" | "--command")) => self.line_of(number, &given[1..], &around.behind("flock -c"), false),
            Some(_) => self.start(given.to_vec(), Vec::new(), &around.behind("flock")),
        }
    }

    /// `su` and `runuser`: options may stand anywhere.
    fn other_user(&mut self, number: usize, name: &str, rest: &[Given], around: &Around) {
        let (mut at, mut asked, mut has_user) = (0, Vec::new(), false);
        while at < rest.len() {
            if rest[at].word.known() == Some("-") {
                at += 1;
                continue;
            }
            let before = self.before(name, &RUNUSER, &rest[at..]);
            for (option, value) in &before.options {
                match (option.as_str(), value) {
                    ("c" | "command" | "session-command", Some(value)) => asked.push(value.clone()),
                    ("u" | "user", _) => has_user = true,
                    _ => {}
                }
            }
            at += before.at;
            if has_user {
                break;
            }
            at += 1;
        }
        if name == "runuser" && has_user && at < rest.len() {
            return self.start(rest[at..].to_vec(), Vec::new(), &around.behind(name));
        }
        if rest.iter().any(|given| given.word.known() == Some("--")) {
            self.doubt(format!("what `{name}` starts after `--` is not known"));
        }
        if asked.is_empty() {
            self.code(number, "shell", name, Source::Input, &[], around);
        }
        for line in asked {
            self.line_of(number, &[line], &around.behind(format!("{name} -c")), false);
        }
    }

    fn script(&mut self, number: usize, rest: &[Given], around: &Around) {
        let (mut at, mut is_asked) = (0, false);
        while at < rest.len() {
            let before = self.before("script", &SCRIPT, &rest[at..]);
            if let Some(line) = before.value(&["c", "command"]).cloned() {
                is_asked = true;
                self.line_of(number, &[line], &around.behind("script -c"), false);
            }
            at += before.at + 1;
        }
        if !is_asked {
            self.code(number, "shell", "script", Source::Input, &[], around);
        }
    }
}

/// The name and value of a word for `env`, which takes any with a `=`.
fn environment(by: &str, word: &Word) -> Option<(String, Word)> {
    let text = with_holes(word);
    let (name, value) = text.split_once('=').filter(|(name, _)| by == "env" || !name.starts_with('/'))?;
    Some((name.to_owned(), filled(value.to_owned(), word.may_be_many())))
}

/// The name and value of a word such as `NAME=value`.
pub(crate) fn assignment(word: &Word) -> Option<(String, Word)> {
    let text = with_holes(word);
    let (name, value) = text.split_once('=')?;
    // `NAME+=` and `NAME[index]=` are about that variable, too.
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').filter(|_| name.ends_with(']')).map_or(name, |(name, _)| name);
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let plain =
        !name.is_empty() && name.chars().all(is_name) && !name.starts_with(|first: char| first.is_ascii_digit());
    plain.then(|| (name.to_owned(), filled(value.to_owned(), word.may_be_many())))
}
