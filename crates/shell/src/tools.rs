//! Programs that do something else, and run a line of their arguments on the way.

use crate::holes::{HOLE, filled, of as with_holes};
use crate::interpreters::is_descriptor_of;
use crate::options::TMUX;
use crate::read::{Around, Given, Reader};

/// Names that are looked at here.
pub(crate) const TOOLS: &[&str] = &[
    "tmux", "make", "gmake", "vi", "vim", "nvim", "view", "ex", "ed", "red", "tar", "gtar", "sort", "gsort", "zip",
    "man", "rsync",
];

impl Reader {
    pub(crate) fn tool(&mut self, number: usize, name: &str, rest: &[Given], around: &Around) {
        match name {
            "tmux" => self.tmux(number, rest, around),
            "make" | "gmake" => self.make(name, rest),
            "tar" | "gtar" => {
                let long =
                    ["--to-command", "--use-compress-program", "--info-script", "--new-volume-script", "--rsh-command"];
                self.lines_of_options(number, name, (&long, &['I', 'F']), rest, around);
                self.checkpoints(number, rest, around);
            }
            "sort" | "gsort" => self.lines_of_options(number, name, (&["--compress-program"], &[]), rest, around),
            "zip" => self.lines_of_options(number, name, (&["--unzip-command", "-TT"], &[]), rest, around),
            "man" => self.lines_of_options(number, name, (&["--pager"], &['P']), rest, around),
            "rsync" => self.lines_of_options(number, name, (&["--rsh"], &['e']), rest, around),
            _ => self.editor(number, name, rest, around),
        }
    }

    /// Options whose value is a line. They may stand anywhere, the long ones be shortened, the short ones stand together.
    fn lines_of_options(
        &mut self,
        number: usize,
        name: &str,
        (long, short): (&[&str], &[char]),
        rest: &[Given],
        around: &Around,
    ) {
        for (place, given) in rest.iter().enumerate() {
            let text = with_holes(&given.word);
            let (option, value) =
                text.split_once('=').map_or((text.as_str(), None), |(name, value)| (name, Some(value)));
            let is_long =
                option.len() > 3 && long.iter().any(|known| known.starts_with(option)) || long.contains(&option);
            let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            let attached = letters.and_then(|letters| letters.split_once(short)).map(|(_, value)| value);
            let next = || rest.get(place + 1).map(|given| with_holes(&given.word));
            let line = match (is_long, value, attached) {
                (true, Some(value), _) | (false, _, Some(value)) if !value.is_empty() => Some(value.to_owned()),
                (true, ..) | (false, _, Some(_)) => next(),
                _ => None,
            };
            if let Some(line) = line {
                let around = around.behind(format!("{name} {option}"));
                self.line_of(number, &[given.with(filled(line, false))], &around, false);
            }
            let may_be = |option: &&str| given.word.may_start_with(option);
            if given.hides_option() && (long.iter().any(may_be) || !short.is_empty()) {
                self.doubt(format!("what `{name}` starts depends on `{}`", given.word.text()));
            }
        }
    }

    /// `tar --checkpoint-action=exec=LINE`.
    fn checkpoints(&mut self, number: usize, rest: &[Given], around: &Around) {
        for (place, given) in rest.iter().enumerate() {
            let text = with_holes(&given.word);
            let (option, value) =
                text.split_once('=').map_or((text.as_str(), None), |(name, value)| (name, Some(value)));
            if option.len() < 13 || !"--checkpoint-action".starts_with(option) {
                continue;
            }
            let next = || rest.get(place + 1).map(|given| with_holes(&given.word)).unwrap_or_default();
            let action = value.map_or_else(next, str::to_owned);
            if let Some(line) = action.strip_prefix("exec=") {
                let line = given.with(filled(line.to_owned(), false));
                self.line_of(number, &[line], &around.behind("tar --checkpoint-action"), false);
            } else if action.contains(HOLE) {
                self.doubt("what `tar` does at a checkpoint is only known when it runs".to_owned());
            }
        }
    }

    fn tmux(&mut self, number: usize, rest: &[Given], around: &Around) {
        const STARTING: &[&str] = &[
            "new-session", "new", "new-window", "neww", "split-window", "splitw", "respawn-window", "respawnw",
            "respawn-pane", "respawnp", "run-shell", "run", "display-popup", "popup",
        ];
        const HARMLESS: &[&str] = &[
            "ls", "list-sessions", "list-windows", "lsw", "list-panes", "lsp", "has-session", "has", "kill-session",
            "kill-server", "kill-window", "killw", "kill-pane", "killp", "capture-pane", "capturep", "attach",
            "attach-session", "a", "detach", "detach-client", "display-message", "display", "show-options", "info",
            "rename-session", "rename-window", "select-window", "select-pane", "wait-for", "-V",
        ];
        let mut at = 0;
        // Options of `tmux` itself.
        while let Some("-L" | "-S" | "-f" | "-T" | "-2" | "-u" | "-v" | "-l") =
            rest.get(at).and_then(|given| given.word.known())
        {
            at += if matches!(rest[at].word.known(), Some("-L" | "-S" | "-f" | "-T")) { 2 } else { 1 };
        }
        let Some(subcommand) = rest.get(at) else { return };
        let text = subcommand.word.known().unwrap_or_default();
        let joins = |given: &Given| given.word.known().is_some_and(|text| text.ends_with(';'));
        if rest[at..].iter().any(joins) || !(STARTING.contains(&text) || HARMLESS.contains(&text)) {
            self.doubt(format!("what `tmux {}` starts is not known", subcommand.word.text()));
        }
        if STARTING.contains(&text) {
            let rest = &rest[at + 1..];
            let before = self.before("tmux", &TMUX, rest);
            match &rest[before.at..] {
                [] => {}
                [line] => self.line_of(number, std::slice::from_ref(line), &around.behind("tmux"), false),
                words => self.start(words.to_vec(), Vec::new(), &around.behind("tmux")),
            }
        }
    }

    /// What a makefile holds is a matter of files; what stands in the arguments is looked at.
    fn make(&mut self, name: &str, rest: &[Given]) {
        let runs = |given: &&Given| {
            let text = with_holes(&given.word);
            ["SHELL", ".SHELLFLAGS", "MAKEFLAGS", "--eval"].iter().any(|start| {
                text.strip_prefix(start)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['=', ':', '+', '?', '!']))
            }) || (text.starts_with("-E") && text.len() < 3)
        };
        if let Some(given) = rest.iter().find(runs) {
            self.doubt(format!("`{name}` runs what `{}` says", given.word.text()));
        }
        let mut files =
            rest.windows(2).filter(|pair| matches!(pair[0].word.known(), Some("-f" | "--file" | "--makefile")));
        let is_fed = |given: &Given| given.word.known() == Some("-") || is_descriptor_of(&given.word);
        let attached = |given: &&Given| matches!(given.word.known(), Some("-f-" | "--file=-" | "--makefile=-"));
        if files.any(|pair| is_fed(&pair[1])) || rest.iter().any(|given| attached(&given)) {
            self.doubt(format!("`{name}` runs what it is given as a makefile"));
        }
    }

    /// Editors run lines after `!`.
    fn editor(&mut self, number: usize, name: &str, rest: &[Given], around: &Around) {
        const WORDS: &[&str] =
            &["system", "job", "term", "lua", "py", "perl", "ruby", "exe", "sou", "so ", "call", "mak", "norm"];
        for (place, given) in rest.iter().enumerate() {
            let text = with_holes(&given.word);
            let command = match text.as_str() {
                "-c" | "--cmd" | "-S" | "-s" => rest.get(place + 1).map(|given| with_holes(&given.word)),
                text => text.strip_prefix('+').or(text.strip_prefix("-c")).map(str::to_owned),
            };
            let Some(command) = command else { continue };
            if let Some((_, line)) = command.split_once('!').filter(|(_, line)| !line.is_empty()) {
                self.line_of(number, &[Given::of(filled(line.to_owned(), false))], &around.behind(name), false);
            }
            if command.contains('!') || WORDS.iter().any(|word| command.contains(word)) || given.hides_option() {
                self.doubt(format!("`{name} {}` may start more", given.word.text()));
            }
        }
        let input = around.document.as_ref().map(|document| with_holes(&document.word));
        let is_quiet = input.as_ref().is_some_and(|text| !text.contains(['!', HOLE]));
        if (input.is_some() && !is_quiet) || (input.is_none() && !around.feeding.is_empty()) {
            self.doubt(format!("`{name}` may run what its input says"));
        }
    }
}
