//! Arguments in rules: spellings that a word of a command is held against, and what can be told of them.

use shell::{Piece, Word};

use crate::pattern::wild;

/// An argument that a command must have, or must not have: one of several spellings, kept as they are written. Far more of
/// them are read at each start than are ever compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentPattern(String);

/// What can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Told {
    No,
    /// Only when it runs.
    Maybe,
    Yes,
}

impl Told {
    pub fn opposite(self) -> Told {
        match self {
            Told::No => Told::Yes,
            Told::Maybe => Told::Maybe,
            Told::Yes => Told::No,
        }
    }
}

impl From<bool> for Told {
    fn from(known: bool) -> Told {
        if known { Told::Yes } else { Told::No }
    }
}

impl ArgumentPattern {
    pub fn read(written: &str) -> Result<ArgumentPattern, String> {
        match written.split('|').any(str::is_empty) {
            true => Err(format!("`{written}` has an empty spelling; write `--force|-f`")),
            false => Ok(ArgumentPattern(written.to_owned())),
        }
    }

    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        self.0.split('|')
    }

    pub fn is_flag(&self) -> bool {
        self.spellings().all(|spelling| spelling.starts_with('-'))
    }

    /// `**`: in a subcommand, any number of words.
    pub fn is_any(&self) -> bool {
        self.0 == "**"
    }

    pub fn matches(&self, argument: &Word) -> Told {
        self.compare(argument, spelled)
    }

    /// The same, and whatever a program may take for it: GNU's and git's take the beginning of a long option for all of it.
    pub fn may_be_meant(&self, argument: &Word) -> Told {
        self.compare(argument, |spelling, argument| spelled(spelling, argument) || abbreviates(argument, spelling))
    }

    /// Neither among other flags nor with a value.
    pub fn is_exactly(&self, argument: &Word) -> Told {
        self.compare(argument, wild)
    }

    /// The same, for what must not slip by: of `-n"$X"` nobody can tell which letters follow.
    pub fn may_slip_by(&self, argument: &Word) -> Told {
        let is_letter = |spelling: &str| spelling.len() == 2 && spelling.starts_with('-');
        let hides = argument.known().is_none() && argument.may_start_with("-") && !argument.may_start_with("--");
        let hidden = if hides && self.spellings().any(is_letter) { Told::Maybe } else { Told::No };
        self.may_be_meant(argument).max(hidden)
    }

    /// Among these words. Of an option with its value (`-c alias.*`) the option must be known: whatever is only known when it runs
    /// could be one.
    pub fn stands_in(&self, given: &[Word]) -> Told {
        let pairs = self.spellings().filter_map(with_value);
        let pairs = pairs.flat_map(|pair| (0..given.len()).map(move |at| value_at(pair, given, at))).max();
        let alone = given.iter().map(|word| self.may_be_meant(word)).max();
        pairs.max(alone).unwrap_or(Told::No)
    }

    fn compare(&self, argument: &Word, same: impl Fn(&str, &str) -> bool) -> Told {
        let mut alone = self.spellings().filter(|spelling| with_value(spelling).is_none());
        match argument.known() {
            Some(known) => alone.any(|spelling| same(spelling, known)).into(),
            None if alone.any(|spelling| possible(spelling, argument)) => Told::Maybe,
            None => Told::No,
        }
    }
}

/// `-f` is also in `-xf`, and `--force` in `--force=yes`.
fn spelled(spelling: &str, argument: &str) -> bool {
    if wild(spelling, argument) {
        return true;
    }
    if spelling.starts_with("--") && spelling.len() > 2 {
        return argument.split_once('=').is_some_and(|(flag, _)| wild(spelling, flag));
    }
    let letter = spelling.strip_prefix('-').filter(|letter| letter.chars().count() == 1 && *letter != "-");
    let cluster = argument.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'));
    match (letter, cluster) {
        // What follows a sign belongs to a flag, as in `-o./x`. What follows a digit need not: `git grep -3O`.
        (Some(letter), Some(cluster)) => {
            let end = cluster.find(|other: char| !other.is_ascii_alphanumeric()).unwrap_or(cluster.len());
            cluster[..end].contains(letter)
        }
        _ => false,
    }
}

/// An option with its value: `-X GET` is `-X` and `GET`.
pub fn with_value(spelling: &str) -> Option<(&str, &str)> {
    spelling.split_once(' ').filter(|_| spelling.starts_with('-'))
}

/// Whether the option stands here with such a value, in the next word or attached. Names of settings have no case.
pub fn value_at((option, value): (&str, &str), given: &[Word], at: usize) -> Told {
    let same = |text: &str| wild(&value.to_ascii_lowercase(), &text.to_ascii_lowercase()).into();
    let Some(text) = given.get(at).and_then(Word::known) else { return Told::No };
    if text == option {
        return match given.get(at + 1) {
            Some(Word::Known(next)) => same(next),
            Some(next) if possible(value, next) => Told::Maybe,
            _ => Told::No,
        };
    }
    let attached = match option.starts_with("--") {
        true => text.strip_prefix(option).and_then(|rest| rest.strip_prefix('=')),
        false => text.strip_prefix(option),
    };
    attached.map_or(Told::No, same)
}

/// `--comp=x` is taken for `--compress-program=x`.
fn abbreviates(argument: &str, spelling: &str) -> bool {
    let name = argument.split('=').next().unwrap_or(argument);
    name.len() > 2 && name.starts_with("--") && spelling.trim_end_matches('*').starts_with(name)
}

/// What is only known when it runs can be anything that begins and ends as it does.
fn possible(spelling: &str, argument: &Word) -> bool {
    let Some(first) = spelling.find(['*', '?']) else { return argument.may_be(spelling) };
    // With wild letters in it, only what comes before and after them can be told apart.
    let end = spelling.rsplit(['*', '?']).next().unwrap_or_default();
    argument.may_start_with(&spelling[..first]) && may_end_with(argument, end)
}

fn may_end_with(word: &Word, end: &str) -> bool {
    match word {
        Word::Known(text) => text.ends_with(end),
        Word::Partly { known, .. } => match known.last() {
            Some(Piece::Text(text)) => text.ends_with(end) || end.ends_with(text.as_str()),
            _ => true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_flag_is_found_among_others() {
        let matches = |pattern: &str, argument: &str| {
            ArgumentPattern::read(pattern).expect("a pattern").matches(&Word::Known(argument.to_owned()))
        };
        assert_eq!(matches("--force|-f", "-xf"), Told::Yes);
        assert_eq!(matches("--force|-f", "--force"), Told::Yes);
        assert_eq!(matches("--force|-f", "--force=now"), Told::Yes);
        assert_eq!(matches("--force|-f", "--force-with-lease"), Told::No);
        assert_eq!(matches("-f", "--file"), Told::No);
        assert_eq!(matches("-j", "-j4"), Told::Yes);
    }

    #[test]
    fn exactly_is_neither_among_others_nor_with_a_value() {
        let exactly = |pattern: &str, argument: &str| {
            ArgumentPattern::read(pattern).expect("a pattern").is_exactly(&Word::Known(argument.to_owned()))
        };
        assert_eq!(exactly("--version|-V", "-V"), Told::Yes);
        assert_eq!(exactly("--version|-V", "-oVisual"), Told::No);
        assert_eq!(exactly("--dry-run", "--dry-run=none"), Told::No);
        assert_eq!(exactly("http://localhost:*", "http://localhost:80/x"), Told::Yes);
    }

    #[test]
    fn what_is_only_known_when_it_runs_fits_at_both_ends() {
        let matches = |pattern: &str, argument: &str| {
            let reading = shell::of_line(&format!("x {argument}"));
            ArgumentPattern::read(pattern).expect("a pattern").matches(&reading.commands[0].arguments[0])
        };
        assert_eq!(matches("-*XPOST", "\"$X\""), Told::Maybe);
        assert_eq!(matches("-*XPOST", "\"$X/health\""), Told::No);
        assert_eq!(matches("-*XPOST", "\"${X}POST\""), Told::Maybe);
        assert_eq!(matches("--data*", "\"$X/health\""), Told::Maybe);
        assert_eq!(matches("-d", "\"$X/health\""), Told::No);
    }

    #[test]
    fn the_beginning_of_a_long_option_may_be_meant() {
        let meant = |pattern: &str, argument: &str| {
            ArgumentPattern::read(pattern).expect("a pattern").may_be_meant(&Word::Known(argument.to_owned()))
        };
        for argument in ["--compress-program=sh", "--comp=sh", "--comp", "--c"] {
            assert_eq!(meant("--compress-program*", argument), Told::Yes, "{argument}");
        }
        for argument in ["--", "-c", "--check", "comp"] {
            assert_eq!(meant("--compress-program*", argument), Told::No, "{argument}");
        }
        assert_eq!(meant("-O", "-nOid"), Told::Yes);
        assert_eq!(meant("-O", "-3O./x"), Told::Yes);
        let reading = shell::of_line("git grep -n\"$X\" y");
        let pattern = ArgumentPattern::read("-O").expect("a pattern");
        assert_eq!(pattern.may_slip_by(&reading.commands[0].arguments[1]), Told::Maybe);
    }

    #[test]
    fn an_option_with_its_value_must_be_known() {
        let stands = |pattern: &str, line: &str| {
            let reading = shell::of_line(line);
            ArgumentPattern::read(pattern).expect("a pattern").stands_in(&reading.commands[0].arguments)
        };
        for line in ["git -c alias.p=x p", "git -c ALIAS.p=x p", "git -calias.p=x"] {
            assert_eq!(stands("-c alias.*", line), Told::Yes, "{line}");
        }
        for line in ["git alias.p=x", "git -c user.name=alias.p", "git commit -m \"$X\"", "git $X", "git -c"] {
            assert_eq!(stands("-c alias.*", line), Told::No, "{line}");
        }
        assert_eq!(stands("-c alias.*", "git -c \"$X\" log"), Told::Maybe);
        assert_eq!(stands("--config *alias.*", "cargo --config='alias.x=1' x"), Told::Yes);
    }
}
