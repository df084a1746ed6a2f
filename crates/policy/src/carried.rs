//! Commands within the words of others: `npx npm publish`, `uv run twine upload`, `git rebase --exec 'git push'`.
//!
//! Shells and wrappers of the system are read by the shell's reader; here is what developers' tools start. A command that is
//! found here only adds questions: a rule that allows `npx` also allows what it starts, unless a rule speaks of that.

mod git;
mod runners;

use shell::{Reading, Simple, Word};

/// Commands within commands within commands; what is deeper is asked about.
const DEEPEST: usize = 8;

/// What a command would start beside itself, as far as its words tell.
pub fn by(command: &Simple) -> Reading {
    let mut found = Reading::default();
    follow(command, 0, &mut found);
    found
}

fn follow(command: &Simple, depth: usize, found: &mut Reading) {
    let Some(name) = command.name() else { return };
    let carried = match name {
        "git" => git::carried(command),
        name => match name.strip_prefix("git-").filter(|rest| !rest.is_empty()) {
            // `/usr/lib/git-core/git-push` is what `git push` starts.
            Some(subcommand) => {
                let words = [Word::Known("git".to_owned()), Word::Known(subcommand.to_owned())];
                vec![Carried::Words(words.into_iter().chain(command.arguments.iter().cloned()).collect())]
            }
            None => runners::carried(name, &command.arguments),
        },
    };
    if carried.is_empty() {
        return;
    }
    if depth >= DEEPEST {
        return found.unclear.push("commands that start commands are nested too deeply".to_owned());
    }
    for carried in carried {
        let reading = match carried {
            Carried::Line(Word::Known(line)) => shell::of_line(&line),
            Carried::Line(word) | Carried::Unknown(word) => {
                found.unclear.push(format!("what `{name}` starts is only known when it runs: `{}`", word.text()));
                continue;
            }
            Carried::Words(words) => shell::of_line(&written(&words)),
        };
        // Whoever trusts what a line prints has not seen that it is in another command's words.
        found.unclear.extend(reading.unclear);
        for command in reading.commands {
            follow(&command, depth + 1, found);
            found.commands.push(command);
        }
    }
}

/// What a command has in its words for another.
#[derive(Debug, PartialEq, Eq)]
enum Carried {
    /// A program and its arguments.
    Words(Vec<Word>),
    /// A line for a shell.
    Line(Word),
    /// A program that is only known when it runs.
    Unknown(Word),
}

/// As somebody would have written it, so that what is only known when it runs stays so.
fn written(words: &[Word]) -> String {
    let one = |word: &Word| match word {
        Word::Known(text) => shell::quoted(text),
        word => word.text().to_owned(),
    };
    words.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// One word is a line for a shell; several are a command, as they are.
fn line_or_words(words: &[Word]) -> Option<Carried> {
    match words {
        [] => None,
        [line] => Some(Carried::Line(line.clone())),
        words => Some(Carried::Words(words.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All commands that are carried, as people would write them.
    pub(super) fn carried(line: &str) -> Vec<String> {
        let reading = shell::of_line(line);
        let found = reading.commands.iter().flat_map(|command| by(command).commands);
        found.map(|command| command.text).collect()
    }

    pub(super) fn is_unclear(line: &str) -> bool {
        shell::of_line(line).commands.iter().any(|command| !by(command).unclear.is_empty())
    }

    #[test]
    fn what_is_carried_may_carry_itself() {
        assert!(carried("npx npm exec -- git push").contains(&"git push".to_owned()));
        assert!(carried("uv run poetry run twine upload x").contains(&"twine upload x".to_owned()));
        assert!(carried("git submodule foreach 'npx -y git rebase -x \"git push\"'").contains(&"git push".to_owned()));
    }

    #[test]
    fn too_deep_is_unclear_and_takes_no_long_time() {
        let line = format!("{}git push", "npx ".repeat(5000));
        assert!(is_unclear(&line));
        let line = format!("git rebase {}", "-x 'npx npx git push' ".repeat(2000));
        assert!(carried(&line).contains(&"git push".to_owned()));
    }

    #[test]
    fn a_part_of_git_is_git() {
        assert_eq!(carried("/usr/lib/git-core/git-push origin"), ["git push origin"]);
        assert_eq!(carried("git-lfs push --all"), ["git lfs push --all"]);
    }

    #[test]
    fn what_is_only_known_when_it_runs_stays_so() {
        assert!(is_unclear("npx \"$X\""));
        assert!(is_unclear("git rebase -x \"$X\" main"));
        assert_eq!(carried("uv run git push \"$X\""), ["git push \"$X\""]);
        assert!(!is_unclear("uv run pytest \"$X\""));
    }
}
