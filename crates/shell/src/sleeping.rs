//! Text that sleeps: quotes keep it from running, until bash takes it for a number, a name or a prompt. `x='a[$(rm y)]'`
//! does nothing, and `$((x))` does nothing bad; together they run `rm`.

use crate::Word;
use crate::holes::{HOLE, seen, shown};
use crate::read::{Given, MOST_NAMES, Reader};

/// What was seen of it in a line, in whatever order: loops and functions have another one.
#[derive(Default)]
pub(crate) struct Sleeping {
    /// Text that would run.
    text: Option<String>,
    /// What would make it run.
    counts: Option<String>,
    /// A value that ends with `$`, and one that begins with `(`.
    halves: (Option<String>, bool),
    /// Variables whose value may begin with `-`. `None` stands for any.
    options: Vec<Option<String>>,
    /// Variables that were asked for when they were not among those; and that there are more of them.
    missed: Vec<String>,
    missed_more: bool,
}

impl Sleeping {
    pub(crate) fn sentence(&self) -> Option<String> {
        let (ends, begins) = &self.halves;
        let text = self.text.as_ref().or(ends.as_ref().filter(|_| *begins))?;
        Some(format!("`{}` may run what is in `{}`", start(self.counts.as_ref()?), start(text)))
    }

    /// Something looks at variables as at numbers or names.
    pub(crate) fn counts(&mut self, what: &str) {
        self.counts.get_or_insert_with(|| what.to_owned());
    }

    /// Words of one command. Only with the index of an array do they run later.
    pub(crate) fn words<'w>(&mut self, words: impl Iterator<Item = &'w Word>) {
        if self.text.is_some() {
            return;
        }
        let (mut has_index, mut sleeps) = (false, None);
        for word in words {
            if matches!(word.known(), Some("[" | "]")) {
                continue;
            }
            let text = seen(word);
            has_index |= text.contains('[');
            if sleeps.is_none() && would_run(&text) {
                sleeps = Some(text.into_owned());
            }
        }
        self.text = sleeps.filter(|_| has_index);
    }

    fn value(&mut self, name: &str, value: &Word) {
        let text = seen(value);
        if self.text.is_none() && would_run(&text) {
            self.text = Some(text.clone().into_owned());
        }
        if self.halves.0.is_none() && is_cut(&text) {
            self.halves.0 = Some(text.clone().into_owned());
        }
        self.halves.1 |= text.starts_with('(');
        if value.may_start_with("-") && !self.may_be_option(name) {
            self.options.push((self.options.len() < MOST_NAMES).then(|| name.to_owned()));
        }
    }

    /// Nothing but the variables that may be options, if somebody who knows them would read the line in another way.
    pub(crate) fn options_alone(&mut self) -> Option<Sleeping> {
        let options = std::mem::take(&mut self.options);
        let alone = Sleeping { options, ..Sleeping::default() };
        let differs = self.missed_more && !alone.options.is_empty()
            || self.missed.iter().any(|variable| alone.may_be_option(variable));
        differs.then_some(alone)
    }

    #[cfg(test)]
    pub(crate) fn all_options(&mut self) -> Sleeping {
        Sleeping { options: std::mem::take(&mut self.options), ..Sleeping::default() }
    }

    /// Asked by a word that holds the variable.
    pub(crate) fn finds_option(&mut self, variable: &str) -> bool {
        let found = self.may_be_option(variable);
        if !found && !self.missed_more && !self.missed.iter().any(|missed| missed == variable) {
            match self.missed.len() < MOST_NAMES {
                true => self.missed.push(variable.to_owned()),
                false => self.missed_more = true,
            }
        }
        found
    }

    fn may_be_option(&self, variable: &str) -> bool {
        self.options.iter().any(|name| name.as_ref().is_none_or(|name| name == variable))
    }
}

impl Reader {
    /// A variable gets a value.
    pub(crate) fn assign(&mut self, name: &str, value: &Given) {
        self.remember(name, value.from.clone());
        self.sleeping.value(name, &value.word);
        let text = seen(&value.word);
        let runs = would_run(&text) || is_cut(&text);
        let doubtful = match name {
            "PS0" | "PS1" | "PS2" | "PS3" | "PS4" => runs || value.word.known().is_none(),
            "PROMPT_COMMAND" | "BASH_ENV" => !text.is_empty(),
            // Of other programs it is the name of a place, such as `production`.
            "ENV" => runs || text.contains('/') || text.starts_with('~'),
            "BASHOPTS" => text.contains("aliases"),
            "MAILPATH" => runs,
            name if NUMBERS.contains(&name) => runs,
            "BASH_ALIASES" | "BASH_CMDS" => true,
            name => name.starts_with("BASH_FUNC_"),
        };
        if doubtful {
            self.doubt(format!("what `{name}` holds may run later"));
        }
    }

    /// `read`, `for` and the like give this variable a value that is not seen here.
    pub(crate) fn names_variable(&mut self, by: &str, name: &str) {
        let name = name.split('[').next().unwrap_or(name);
        let runs = name.len() == 3 && name.starts_with("PS")
            || ["PROMPT_COMMAND", "BASH_ENV", "BASH_ALIASES", "BASH_CMDS"].contains(&name);
        if runs {
            self.doubt(format!("what `{by}` puts into `{name}` may run later"));
        }
    }
}

/// Bash counts with what is put into these.
const NUMBERS: &[&str] =
    &["RANDOM", "SECONDS", "LINENO", "HISTCMD", "OPTIND", "BASHPID", "PPID", "UID", "EUID", "SRANDOM", "EPOCHSECONDS"];

/// Does it hold what would be run if it were expanded?
pub(crate) fn would_run(text: &str) -> bool {
    // One look for all: most words have none of these.
    text.contains(['$', '`', '@', '\\'])
        && (text.contains("$(") || text.contains('`') || text.contains("@P}") || hides_sign(text))
}

/// Is a `$` its last letter, so that what follows may be a parenthesis from elsewhere?
fn is_cut(text: &str) -> bool {
    text.ends_with('$') || text.match_indices('$').any(|(at, _)| text[at + 1..].starts_with(HOLE))
}

/// Does it hold `$` or a backquote as an escape, as `printf` takes them?
fn hides_sign(text: &str) -> bool {
    text.split('\\').skip(1).any(|rest| {
        let (digits, radix) = match rest.chars().next() {
            Some('x' | 'u' | 'U') => (&rest[1..], 16),
            Some('0'..='7') => (rest, 8),
            _ => return false,
        };
        let digits: String = digits.chars().take(8).take_while(|digit| digit.is_digit(radix)).collect();
        // `\x24b` is `$b` where only two digits count.
        (1..=digits.len()).any(|length| {
            matches!(u32::from_str_radix(digits.get(..length).unwrap_or_default(), radix), Ok(0x24 | 0x60))
        })
    })
}

fn start(text: &str) -> String {
    let text = shown(text);
    match text.char_indices().nth(30) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
