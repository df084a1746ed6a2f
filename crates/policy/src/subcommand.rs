//! Which subcommand a command is: the first words that are neither options nor their values.
//!
//! `git -C sub push` is a push; `git stash push` and `git log --grep push` are not. Of an option that is not known, nobody
//! can tell whether the next word is its value; then it may be either.

use shell::{Piece, Word};

use crate::argument::{ArgumentPattern, Told};
use crate::options::{self, is_option};
use crate::pattern::Care;

/// Words one after another: `push`, `remote add|set-url`. `**` is any number of words: `** deploy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subcommand(Vec<ArgumentPattern>);

impl Subcommand {
    pub fn read(written: &str) -> Result<Subcommand, String> {
        let words: Vec<&str> = written.split_whitespace().collect();
        if words.is_empty() {
            return Err("a subcommand is empty; write `push` or `remote set-url`".to_owned());
        }
        if let Some(option) = words.iter().find(|word| word.starts_with('-')) {
            return Err(format!("`{option}` is an option, and no subcommand; put it under `args`"));
        }
        words.into_iter().map(ArgumentPattern::read).collect::<Result<_, _>>().map(Subcommand)
    }

    /// Whether `program` with these arguments is this subcommand.
    pub fn matches(&self, program: &str, arguments: &[Word], care: Care) -> Told {
        let mut options = options::of(program);
        // reached[i]: how surely the first i words of ours are all the plain words that were read.
        let mut reached = vec![Told::No; self.0.len() + 1];
        reached[0] = Told::Yes;
        self.skip_any(&mut reached);
        let mut told = Told::No;
        // Whether the next word is the value of an option.
        let mut value = Told::No;
        let mut only_words = false;
        for (at, word) in arguments.iter().enumerate() {
            let after = self.after(&reached, word);
            match word.known() {
                Some("--") if !only_words => {
                    only_words = true;
                    value = Told::No;
                    continue;
                }
                Some(option) if !only_words && value != Told::Yes && is_option(option) => {
                    value = options.takes_value(option, arguments.get(at + 1));
                    continue;
                }
                Some(_) => reached = joined(&reached, &after, value),
                // As a value it could bring more words along, so nothing is surely allowed any more. But to take
                // `git -C $X log` for whatever git can do would be to ask about everything.
                None if value == Told::Yes => {
                    let most = if word.may_be_many() && care == Care::Exact { Told::Maybe } else { Told::Yes };
                    reached.iter_mut().for_each(|reached| *reached = (*reached).min(most));
                }
                // `-j$(nproc)` is an option. It could bring more words along, too: as above.
                None if care == Care::Forgiving && begins_as_option(word) => continue,
                None => {
                    reached = self.after_unknown(&reached, after, word);
                    told = told.max(reached[self.0.len()]);
                    value = if may_vanish(word) { Told::Maybe } else { Told::No };
                    continue;
                }
            }
            if value != Told::Yes {
                options = options::after_first(program);
            }
            value = Told::No;
            told = told.max(reached[self.0.len()]);
            if told == Told::Yes || reached.iter().all(|reached| *reached == Told::No) {
                break;
            }
        }
        told
    }

    /// With `word` as the next plain word.
    fn after(&self, reached: &[Told], word: &Word) -> Vec<Told> {
        let found = self.0.iter().zip(reached).map(|(pattern, reached)| (*reached).min(pattern.matches(word)));
        let mut after: Vec<Told> = std::iter::once(Told::No).chain(found).collect();
        for (at, pattern) in self.0.iter().enumerate() {
            if pattern.is_any() {
                after[at] = after[at].max(reached[at]);
            }
        }
        self.skip_any(&mut after);
        after
    }

    /// `**` can stand for no word at all.
    fn skip_any(&self, reached: &mut [Told]) {
        for (at, pattern) in self.0.iter().enumerate() {
            if pattern.is_any() {
                reached[at + 1] = reached[at + 1].max(reached[at]);
            }
        }
    }

    /// A word that is only known when it runs may be nothing, an option, or several words.
    fn after_unknown(&self, reached: &[Told], after: Vec<Told>, word: &Word) -> Vec<Told> {
        if !may_vanish(word) {
            return after;
        }
        let mut next: Vec<Told> =
            reached.iter().zip(after).map(|(stay, go)| (*stay).max(go).min(Told::Maybe)).collect();
        if word.may_be_many() {
            let first = next.iter().position(|reached| *reached != Told::No).unwrap_or(next.len());
            next[first..].fill(Told::Maybe);
        }
        next
    }
}

/// A word that may be the value of an option was read.
fn joined(before: &[Told], after: &[Told], value: Told) -> Vec<Told> {
    match value {
        Told::Yes => before.to_vec(),
        Told::No => after.to_vec(),
        Told::Maybe => before.iter().zip(after).map(|(stay, go)| (*stay).max(*go).min(Told::Maybe)).collect(),
    }
}

fn begins_as_option(word: &Word) -> bool {
    matches!(word, Word::Partly { known, .. } if matches!(known.first(), Some(Piece::Text(text)) if is_option(text)))
}

fn may_vanish(word: &Word) -> bool {
    word.may_start_with("-") || (word.may_be_many() && word.may_be(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(wanted: &str, line: &str) -> Told {
        told_with(wanted, line, Care::Forgiving)
    }

    fn told_with(wanted: &str, line: &str, care: Care) -> Told {
        let reading = shell::of_line(line);
        let command = reading.commands.last().expect("a command");
        let wanted = Subcommand::read(wanted).expect("a subcommand");
        wanted.matches(command.name().expect("a name"), &command.arguments, care)
    }

    #[test]
    fn the_first_plain_word_is_the_subcommand() {
        for line in [
            "git push", "git push origin main", "git -C sub push", "git -c a=b --no-pager push",
            "git --git-dir=x push", "git --git-dir x push", "git -- push",
        ] {
            assert_eq!(told("push", line), Told::Yes, "{line}");
        }
        for line in ["git", "git stash push", "git log push", "git log --grep push", "git -C push log", "git pushed"] {
            assert_eq!(told("push", line), Told::No, "{line}");
        }
    }

    #[test]
    fn several_words_stand_one_after_another() {
        assert_eq!(told("remote add|set-url", "git remote set-url origin x"), Told::Yes);
        assert_eq!(told("remote add|set-url", "git remote -v"), Told::No);
        assert_eq!(told("pr create", "gh -R a/b pr -R a/b create"), Told::Yes);
        assert_eq!(told("pr create", "gh pr view create"), Told::No);
        assert_eq!(told("compose push", "docker compose -f x.yml push"), Told::Yes);
        assert_eq!(told("* delete-*", "aws --region x ec2 delete-vpc"), Told::Yes);
    }

    #[test]
    fn two_stars_are_any_number_of_words() {
        for line in ["make deploy", "make a b c deploy", "make A=b deploy", "make -j deploy", "make -C x deploy"] {
            assert_eq!(told("** deploy", line), Told::Yes, "{line}");
        }
        for line in
            ["make", "make a b", "make -C deploy html", "make -j 4 all", "make -j $(nproc) all", "make -j$(nproc)"]
        {
            assert_eq!(told("** deploy", line), Told::No, "{line}");
        }
        assert_eq!(told("* ** delete", "gcloud compute instances delete list"), Told::Yes);
        assert_eq!(told("* ** delete", "gcloud delete"), Told::No);
    }

    #[test]
    fn an_option_of_git_is_not_the_same_after_its_subcommand() {
        assert_eq!(told("subtree push", "git subtree -P x push"), Told::Maybe);
        assert_eq!(told("subtree push", "git -P subtree push"), Told::Yes);
    }

    #[test]
    fn a_toolchain_is_no_subcommand() {
        assert_eq!(told("publish", "cargo +nightly publish"), Told::Yes);
    }

    #[test]
    fn an_option_that_is_not_known_may_have_a_value() {
        assert_eq!(told("push", "git --new push"), Told::Maybe);
        assert_eq!(told("push", "git --new x push"), Told::Maybe);
        assert_eq!(told("push", "git --new=x push"), Told::Yes);
        assert_eq!(told("push", "git --new x log push"), Told::No);
    }

    #[test]
    fn what_is_only_known_when_it_runs_may_be_it() {
        assert_eq!(told("push", "git $X"), Told::Maybe);
        assert_eq!(told("push", "git \"$X\""), Told::Maybe);
        assert_eq!(told("push", "git $X push"), Told::Maybe);
        assert_eq!(told("push", "git -C \"$X\" push"), Told::Yes);
        assert_eq!(told("push", "git -C $X push"), Told::Yes);
        assert_eq!(told_with("push", "git -C $X push", Care::Exact), Told::Maybe);
        assert_eq!(told("push", "git -C $X log"), Told::No);
        assert_eq!(told("push", "git pu$X"), Told::Maybe);
        assert_eq!(told("push", "git re$X"), Told::No);
        assert_eq!(told("remote add", "git $X"), Told::Maybe);
        assert_eq!(told("push", "git commit -m \"$X\""), Told::No);
        assert_eq!(told("push", "git checkout $X"), Told::No);
    }

    #[test]
    fn an_option_is_refused_as_a_subcommand() {
        assert!(Subcommand::read("--force").is_err());
        assert!(Subcommand::read(" ").is_err());
        assert!(Subcommand::read("push|").is_err());
    }
}
