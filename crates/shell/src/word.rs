//! One word of a command: what is known of it before it runs.

/// A word after quotes are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// It comes out as exactly this.
    Known(String),
    /// It holds something that is only known when it runs: `$X`, `$(…)`, `*.rs`, `~`, `{a,b}`.
    Partly {
        /// As it was written.
        text: String,
        /// What is known of it, in order.
        known: Vec<Piece>,
        /// Without quotes around it, it may come out as several words, or none; then only the first begins as `known` does.
        many: bool,
    },
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// Any text, also none.
    Any,
}

impl Word {
    /// What it is, if that is certain.
    pub fn known(&self) -> Option<&str> {
        match self {
            Word::Known(text) => Some(text),
            Word::Partly { .. } => None,
        }
    }

    /// For people: what it is, or else how it was written.
    pub fn text(&self) -> &str {
        match self {
            Word::Known(text) | Word::Partly { text, .. } => text,
        }
    }

    /// Could it come out as `wanted`? What is known at its start, in its middle and at its end is respected: `--fo$X` may
    /// be `--force`, `src/$X` may not.
    pub fn may_be(&self, wanted: &str) -> bool {
        match self {
            Word::Known(text) => text == wanted,
            Word::Partly { known, .. } => fits(known, wanted),
        }
    }

    /// Could it come out as something that begins with `start`?
    pub fn may_start_with(&self, start: &str) -> bool {
        match self {
            Word::Known(text) => text.starts_with(start),
            Word::Partly { known, .. } => match known.first() {
                Some(Piece::Text(text)) if known.len() == 1 => text.starts_with(start),
                Some(Piece::Text(text)) => text.starts_with(start) || start.starts_with(text.as_str()),
                _ => true,
            },
        }
    }

    /// What it surely ends with: `"$here"/lib.sh` with `/lib.sh`.
    pub fn ending(&self) -> &str {
        match self {
            Word::Known(text) => text,
            Word::Partly { known, .. } => match known.last() {
                Some(Piece::Text(text)) => text,
                _ => "",
            },
        }
    }

    /// May it come out as several words, or as none?
    pub fn may_be_many(&self) -> bool {
        matches!(self, Word::Partly { many: true, .. })
    }

    /// What is known of it, in order.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        match self {
            Word::Known(text) => vec![Piece::Text(text.clone())],
            Word::Partly { known, .. } => known.clone(),
        }
    }
}

fn fits(pieces: &[Piece], wanted: &str) -> bool {
    let mut rest = wanted;
    let mut loose = false;
    for (place, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Any => loose = true,
            Piece::Text(text) if !loose => match rest.strip_prefix(text.as_str()) {
                Some(after) => rest = after,
                None => return false,
            },
            // The last must be the end; the others are best found as early as possible.
            Piece::Text(text) if place + 1 == pieces.len() => return rest.ends_with(text.as_str()),
            Piece::Text(text) => match rest.split_once(text.as_str()) {
                Some((_, after)) => {
                    rest = after;
                    loose = false;
                }
                None => return false,
            },
        }
    }
    loose || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use crate::{Word, of_line};

    fn word(written: &str) -> Word {
        of_line(&format!("x {written}")).commands[0].arguments[0].clone()
    }

    #[test]
    fn an_ending_is_what_nothing_comes_after() {
        assert_eq!(word("\"$here\"/lib.sh").ending(), "/lib.sh");
        assert_eq!(word("a/$X").ending(), "");
        assert_eq!(word("'a b'").ending(), "a b");
    }

    #[test]
    fn what_is_known_of_a_word_is_respected() {
        for (written, may, may_not) in [
            ("--fo$X", "--force", "--fx"),
            ("src/$X", "src/", "--force"),
            ("$X.rs", "a.rs", "a.txt"),
            ("a${X}b${Y}c", "a-b-c", "acb"),
            ("a${X}b${Y}c", "abbcc", "ab"),
            ("a${X}aa", "aaa", "aa"),
            ("'*'", "*", "a"),
            ("a[bc]", "ab", "b"),
            ("a[!]]", "ax", "b"),
            ("a{b,c{d,e}}f", "abf", "ab"),
            ("~/x", "/root/x", "/root/y"),
        ] {
            assert!(word(written).may_be(may), "{written} may be {may}");
            assert!(!word(written).may_be(may_not), "{written} may not be {may_not}");
        }
    }

    #[test]
    fn a_start_that_may_come_is_told() {
        assert!(word("$X").may_start_with("-"));
        assert!(word("-$X").may_start_with("--"));
        assert!(!word("a$X").may_start_with("-"));
        assert!(word("-x").may_start_with("-"));
    }

    #[test]
    fn only_what_is_not_in_quotes_may_be_many() {
        for (written, many) in [
            ("$X", true),
            ("\"$X\"", false),
            ("\"$@\"", true),
            ("\"${a[@]}\"", true),
            ("*", true),
            ("{a,b}", true),
            ("~", false),
        ] {
            assert_eq!(word(written).may_be_many(), many, "{written}");
        }
    }

    #[test]
    fn braces_without_a_choice_are_plain() {
        for written in ["{}", "{a}", "a{}b", "}{", "{", "a,b"] {
            assert_eq!(word(written), Word::Known(written.to_owned()));
        }
    }
}
