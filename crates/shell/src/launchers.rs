//! Programs that start others in a way of their own, so that no table of options is enough.

use crate::holes::{filled, of as with_holes};
use crate::interpreters::Source;
use crate::options::{SCREEN, START_STOP_DAEMON, wrapper};
use crate::read::{Around, Given, Reader};

/// Names that are looked at here.
pub(crate) const LAUNCHERS: &[&str] = &[
    "setarch", "capsh", "perf", "start-stop-daemon", "split", "gsplit", "machinectl", "sg", "newgrp", "bwrap",
    "screen", "ssh", "gdb", "lldb", "rr", "argv0",
];

impl Reader {
    pub(crate) fn launch(&mut self, number: usize, name: &str, rest: &[Given], around: &Around) {
        match name {
            "setarch" => self.setarch(number, rest, around),
            "capsh" => self.capsh(number, rest, around),
            "perf" | "rr" => self.after_subcommand(name, rest, around),
            "start-stop-daemon" => self.start_stop_daemon(rest, around),
            "split" | "gsplit" => self.split(number, rest, around),
            "machinectl" => self.machinectl(rest, around),
            "sg" | "newgrp" => self.other_group(number, name, rest, around),
            "bwrap" => self.bwrap(rest, around),
            "screen" => self.screen(rest, around),
            "ssh" => self.ssh(number, rest, around),
            "gdb" | "lldb" => self.debugger(name, rest, around),
            // The name that it goes by stands between.
            "argv0" if rest.len() > 1 => {
                let given = rest.iter().take(1).chain(rest.iter().skip(2)).cloned().collect();
                self.start(given, Vec::new(), &around.behind(name));
            }
            _ => {}
        }
    }

    fn setarch(&mut self, number: usize, rest: &[Given], around: &Around) {
        let has_name = rest.first().is_some_and(|given| given.word.known().is_none_or(|text| !text.starts_with('-')));
        let rest = &rest[usize::from(has_name)..];
        match wrapper("linux64") {
            Some(wrapper) if !rest.is_empty() => self.wrapped(number, "setarch", &wrapper, rest, around),
            _ => self.code(number, "shell", "setarch", Source::Input, &[], around),
        }
    }

    /// What stands after `--` are the arguments of a shell.
    fn capsh(&mut self, number: usize, rest: &[Given], around: &Around) {
        let is_end = |given: &Given| matches!(given.word.known(), Some("--" | "==" | "=" | "-+" | "=+"));
        if let Some(place) = rest.iter().position(is_end) {
            self.shell(number, "bash", &rest[place + 1..], &around.behind("capsh"));
        }
        if let Some(given) = rest.iter().find(|given| given.hides_option()) {
            self.doubt(format!("what `capsh` starts depends on `{}`", given.word.text()));
        }
        if rest.iter().any(|given| given.word.may_start_with("--shell")) {
            self.doubt("`capsh` starts another shell".to_owned());
        }
    }

    /// `perf stat make`: options that are not known may have values.
    fn after_subcommand(&mut self, name: &str, rest: &[Given], around: &Around) {
        const STARTING: &[&str] =
            &["stat", "record", "trace", "mem", "c2c", "sched", "lock", "kvm", "kmem", "timechart", "ftrace", "iostat"];
        let is_starting = rest.first().is_some_and(|given| STARTING.iter().any(|word| given.word.may_be(word)));
        let Some(rest) = rest.get(1..).filter(|rest| is_starting && !rest.is_empty()) else {
            if rest.first().is_some_and(|given| given.word.may_start_with("-")) {
                self.doubt(format!("what `{name}` starts is not known"));
            }
            return;
        };
        let around = around.behind(name);
        if let Some(place) = rest.iter().position(|given| given.word.known() == Some("--")) {
            return self.start(rest[place + 1..].to_vec(), Vec::new(), &around);
        }
        if rest[0].word.may_start_with("-") {
            self.doubt(format!("the option `{}` of `{name}` is not known", rest[0].word.text()));
        }
        self.start(rest.to_vec(), Vec::new(), &around);
    }

    fn start_stop_daemon(&mut self, rest: &[Given], around: &Around) {
        let before = self.before("start-stop-daemon", &START_STOP_DAEMON, rest);
        let program = before.value(&["a", "startas"]).or(before.value(&["x", "exec"]));
        if let Some(program) = program.filter(|_| before.has(&["S", "start"])) {
            let given = std::iter::once(program.clone()).chain(rest[before.at..].iter().cloned()).collect();
            self.start(given, Vec::new(), &around.behind("start-stop-daemon"));
        }
    }

    /// `--filter` may stand anywhere, and be shortened.
    fn split(&mut self, number: usize, rest: &[Given], around: &Around) {
        for (place, given) in rest.iter().enumerate() {
            if given.hides_option() && given.word.may_start_with("--f") {
                self.doubt(format!("what `split` starts depends on `{}`", given.word.text()));
            }
            let text = with_holes(&given.word);
            let (option, value) =
                text.split_once('=').map_or((text.as_str(), None), |(name, value)| (name, Some(value)));
            if option.len() < 3 || !"--filter".starts_with(option) {
                continue;
            }
            let line = match value {
                Some(value) => Some(given.with(filled(value.to_owned(), false))),
                None => rest.get(place + 1).cloned(),
            };
            if let Some(line) = line {
                self.line_of(number, &[line], &around.behind("split --filter"), false);
            }
        }
    }

    fn machinectl(&mut self, rest: &[Given], around: &Around) {
        let Some(place) = rest.iter().position(|given| given.word.may_be("shell")) else { return };
        if rest[place..].iter().any(|given| given.word.may_start_with("-")) || place > 0 {
            self.doubt("which options of `machinectl` have values is not known".to_owned());
        }
        if let Some(given) = rest.get(place + 2..).filter(|given| !given.is_empty()) {
            self.start(given.to_vec(), Vec::new(), &around.behind("machinectl shell"));
        }
    }

    fn other_group(&mut self, number: usize, name: &str, rest: &[Given], around: &Around) {
        let words = |given: &&Given| !matches!(given.word.known(), Some("-" | "-l" | "-c" | "--command" | "--"));
        let given: Vec<Given> = rest.iter().filter(words).skip(1).cloned().collect();
        match given.is_empty() {
            true => self.code(number, "shell", name, Source::Input, &[], around),
            false => self.line_of(number, &given, &around.behind(name), false),
        }
    }

    fn bwrap(&mut self, rest: &[Given], around: &Around) {
        let mut at = 0;
        while let Some(option) = rest.get(at) {
            let Some(text) = option.word.known() else {
                if option.hides_option() {
                    self.doubt(format!("what `bwrap` starts depends on `{}`", option.word.text()));
                }
                break;
            };
            at += 1;
            at += match text.strip_prefix("--") {
                Some("") => break,
                None => {
                    at -= 1;
                    break;
                }
                Some("args") => {
                    self.doubt("`bwrap --args` reads more options".to_owned());
                    1
                }
                Some("overlay") => 3,
                Some(
                    "bind" | "bind-try" | "dev-bind" | "dev-bind-try" | "ro-bind" | "ro-bind-try" | "bind-fd"
                    | "ro-bind-fd" | "symlink" | "setenv" | "file" | "bind-data" | "ro-bind-data" | "chmod",
                ) => 2,
                Some(
                    "chdir" | "unsetenv" | "proc" | "dev" | "tmpfs" | "mqueue" | "dir" | "uid" | "gid" | "hostname"
                    | "seccomp" | "add-seccomp-fd" | "block-fd" | "userns" | "userns2" | "pidns" | "info-fd"
                    | "json-status-fd" | "sync-fd" | "lock-file" | "remount-ro" | "exec-label" | "file-label"
                    | "cap-add" | "cap-drop" | "perms" | "size" | "argv0" | "overlay-src" | "tmp-overlay"
                    | "ro-overlay" | "userns-block-fd",
                ) => 1,
                Some(
                    "clearenv"
                    | "die-with-parent"
                    | "new-session"
                    | "as-pid-1"
                    | "share-net"
                    | "disable-userns"
                    | "assert-userns-disabled"
                    | "help"
                    | "version",
                ) => 0,
                Some(long) if long.starts_with("unshare-") => 0,
                Some(_) => {
                    self.doubt(format!("the option `{text}` of `bwrap` is not known"));
                    0
                }
            };
        }
        if let Some(given) = rest.get(at..).filter(|given| !given.is_empty()) {
            self.start(given.to_vec(), Vec::new(), &around.behind("bwrap"));
        }
    }

    fn screen(&mut self, rest: &[Given], around: &Around) {
        let before = self.before("screen", &SCREEN, rest);
        let given = &rest[before.at..];
        if before.has(&["X"]) {
            self.doubt("`screen -X` commands a session that runs elsewhere".to_owned());
        } else if !given.is_empty() {
            self.start(given.to_vec(), Vec::new(), &around.behind("screen"));
        }
    }

    /// What runs elsewhere is not looked at; some options run commands here.
    fn ssh(&mut self, number: usize, rest: &[Given], around: &Around) {
        let mut at = 0;
        while let Some(given) = rest.get(at) {
            at += 1;
            let text = with_holes(&given.word);
            let Some(after) = text.strip_prefix("-o") else { continue };
            let option = match after.is_empty() {
                true => rest.get(at).map(|given| with_holes(&given.word)).unwrap_or_default(),
                false => after.to_owned(),
            };
            let (name, value) = option.trim().split_once(['=', ' ']).unwrap_or((&option, ""));
            let name = name.trim().to_ascii_lowercase();
            let runs = ["proxycommand", "localcommand", "knownhostscommand"].contains(&name.as_str());
            if runs && !value.trim().eq_ignore_ascii_case("none") {
                let line = Given::of(filled(value.trim().to_owned(), false));
                self.line_of(number, &[line], &around.behind("ssh -o"), false);
            }
        }
    }

    fn debugger(&mut self, name: &str, rest: &[Given], around: &Around) {
        let commands =
            ["-ex", "--ex", "-iex", "--eval-command", "-eval-command", "-o", "--one-line", "-x", "--command"];
        let has_commands = |given: &&Given| {
            let text = with_holes(&given.word);
            let option = text.split('=').next().unwrap_or_default();
            commands.contains(&option)
        };
        if let Some(given) = rest.iter().find(has_commands) {
            self.doubt(format!("`{name} {}` may start more", given.word.text()));
        }
        if let Some(given) = rest.iter().find(|given| given.hides_option()) {
            self.doubt(format!("what `{name}` starts depends on `{}`", given.word.text()));
        }
        if around.document.is_some() || !around.feeding.is_empty() {
            self.doubt(format!("`{name}` does what its input says"));
        }
        let is_end = |given: &Given| matches!(given.word.known(), Some("--args" | "-args" | "--"));
        if let Some(place) = rest.iter().position(is_end)
            && place + 1 < rest.len()
        {
            self.start(rest[place + 1..].to_vec(), Vec::new(), &around.behind(name));
        }
    }
}
