//! What a command prints, where that can be told: `echo 'rm x' | sh` is a line as good as any.

use crate::LONGEST;
use crate::holes::{filled, of as with_holes};
use crate::read::Given;
use crate::{Simple, Word};

/// Only of programs that print their arguments or their input.
pub(crate) fn printed(simple: &Simple, document: Option<&Given>) -> Option<Given> {
    if !simple.is_standard() {
        return None;
    }
    let words: Vec<String> = simple.arguments.iter().map(with_holes).collect();
    let text = match simple.name()? {
        "echo" => echoed(&words)?,
        "printf" => formatted(&simple.arguments)?,
        "cat" if words.iter().all(|word| word == "-") && words.len() < 2 => return document.cloned(),
        _ => return None,
    };
    Some(Given::of(filled(text, false)))
}

/// Shells disagree on backslashes and options, so with those nothing is told.
fn echoed(words: &[String]) -> Option<String> {
    let words = match words.first().map(String::as_str) {
        Some("-n") => &words[1..],
        _ => words,
    };
    let is_plain = |word: &String| !word.contains('\\');
    let is_option = words.first().is_some_and(|word| word.starts_with('-'));
    (words.iter().all(is_plain) && !is_option).then(|| format!("{}\n", words.join(" ")))
}

fn formatted(arguments: &[Word]) -> Option<String> {
    let (format, words) = arguments.split_first()?;
    let format = format.known().filter(|format| !format.starts_with('-'))?;
    let mut words = words.iter().map(with_holes).peekable();
    let mut text = String::new();
    loop {
        let had = words.peek().is_some();
        let before = words.len();
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '%' => match letters.next()? {
                    's' => text.push_str(&words.next().unwrap_or_default()),
                    '%' => text.push('%'),
                    _ => return None,
                },
                '\\' => match letters.next()? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    '\\' => text.push('\\'),
                    _ => return None,
                },
                letter => text.push(letter),
            }
            if text.len() > LONGEST {
                return None;
            }
        }
        // The format is used again for what is left; one that takes nothing is used once.
        if !had || words.peek().is_none() || words.len() == before {
            return Some(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::of_line;

    fn code(line: &str) -> Option<String> {
        of_line(line).commands.into_iter().find_map(|simple| simple.code).map(|code| code.text)
    }

    #[test]
    fn what_is_printed_is_told_only_where_it_is_certain() {
        for (line, wanted) in [
            ("echo 'a b' c | sh", Some("a b c\n")),
            ("echo -n a | sh", Some("a\n")),
            ("echo -e 'a\\n' | sh", None),
            ("echo 'a\\tb' | sh", None),
            ("printf '%s;' a b | sh", Some("a;b;")),
            ("printf 'a %%\\n' | sh", Some("a %\n")),
            ("printf 'a%sb' | sh", Some("ab")),
            ("printf '%d' 1 | sh", None),
            ("printf a b c | sh", Some("a")),
            ("cat <<E | sh\na\nE\n", Some("a\n")),
            ("cat - x <<E | sh\na\nE\n", None),
            ("./echo a | sh", None),
            ("PATH=x echo a | sh", None),
            ("echo() { rm x; }; echo a | sh", None),
        ] {
            assert_eq!(code(line).as_deref(), wanted, "{line}");
        }
    }
}
