//! What a text looks like before anyone parses it: where its policies are, and that no parser will choke on it.
//!
//! Cedar's parser, and whatever frees what it made, goes as deep as a text nests, and a stack that overflows ends the
//! whole process. So depth is bounded here, by a reader that keeps only a few numbers.

/// Brackets within brackets, and choices (`if`) within choices.
const DEEPEST: usize = 20;
/// Of one policy. A chain `a && b && c` becomes a tree that is as deep as the chain is long.
const MOST_OPERATORS: usize = 1000;
/// Of one file. Each mistake costs the parser time, and it looks for all of them.
const MOST_POLICIES: usize = 5000;

/// Where one policy is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Of its first token, in bytes.
    pub start: usize,
    /// From one.
    pub line: usize,
    /// How often it says `principal`.
    pub principals: usize,
    /// Each annotation's name, and where it is.
    pub annotations: Vec<(String, usize)>,
}

/// What is wrong, and where in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    pub at: usize,
    pub message: String,
    pub hint: &'static str,
}

pub(crate) fn outline(text: &str) -> Result<Vec<Statement>, Unfit> {
    visible(text)?;
    let bytes = text.as_bytes();
    let (mut found, mut open) = (Vec::new(), None);
    let (mut depth, mut choices, mut operators) = (0_usize, 0, 0);
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let (start, first_line) = (at, line);
        at = end_of_token(bytes, at);
        let token = &bytes[start..at];
        line += token.iter().filter(|byte| **byte == b'\n').count();
        if is_blank(text, start) || token.starts_with(b"//") {
            continue;
        }
        if token == b";" {
            let Some(statement) = open.take() else {
                let message = "there is no policy before this `;`".to_owned();
                return Err(Unfit { at: start, message, hint: "remove it" });
            };
            found.push(statement);
            if found.len() > MOST_POLICIES {
                let message = format!("this file has more than {MOST_POLICIES} policies");
                return Err(Unfit { at: start, message, hint: "say it in fewer: sets and domains hold many names" });
            }
            (depth, choices, operators) = (0, 0, 0);
            continue;
        }
        let statement =
            open.get_or_insert_with(|| Statement { start, line: first_line, principals: 0, annotations: Vec::new() });
        match token {
            b"(" | b"[" | b"{" => (depth, operators) = (depth + 1, operators + 1),
            b")" | b"]" | b"}" => depth = depth.saturating_sub(1),
            b"principal" => statement.principals += 1,
            b"if" => choices += 1,
            b"@" => statement.annotations.push((word_after(text, at), start)),
            b"," | b":" => {}
            b"in" | b"has" | b"like" | b"is" => operators += 1,
            _ if token[0].is_ascii_alphanumeric() || matches!(token[0], b'_' | b'"' | b'?') => {}
            _ => operators += 1,
        }
        if depth + choices > DEEPEST {
            let message = format!("this nests deeper than {DEEPEST} levels");
            return Err(Unfit { at: start, message, hint: "write several policies instead" });
        }
        if operators > MOST_OPERATORS {
            let message = format!("this policy has more than {MOST_OPERATORS} operators");
            return Err(Unfit { at: start, message, hint: "write several policies, or a set: `[…].contains(…)`" });
        }
    }
    // What no semicolon ends is no policy; the parser says so, better than we could.
    found.extend(open);
    Ok(found)
}

/// No letter, not even in a comment, makes a text look like something else than it is.
fn visible(text: &str) -> Result<(), Unfit> {
    match text.char_indices().find(|(_, letter)| is_hidden(*letter) && !matches!(letter, '\n' | '\r' | '\t')) {
        None => Ok(()),
        Some((at, letter)) => {
            let message = format!("a letter that can't be seen: {}", letter.escape_unicode());
            Err(Unfit { at, message, hint: "remove it; in a string, write it as an escape" })
        }
    }
}

/// Commands to a terminal, letters that turn the direction of writing, and those without width.
pub(crate) fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

fn is_blank(text: &str, at: usize) -> bool {
    text[at..].chars().next().is_some_and(char::is_whitespace)
}

/// The tokens of Cedar, as far as they matter here: comments, strings, words, and single letters for all the rest.
fn end_of_token(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start..];
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = match rest[0] {
        b'/' if rest.get(1) == Some(&b'/') => rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')),
        b'"' => return start + length_of_string(rest),
        // The two letters of one operator.
        b'&' | b'|' | b'=' | b'!' | b'<' | b'>' if matches!(rest.get(1), Some(b'&' | b'|' | b'=')) => Some(2),
        first if word(&first) => rest.iter().position(|byte| !word(byte)),
        // The rest of a letter that is more than a byte belongs to it.
        _ => rest.iter().skip(1).position(|byte| byte & 0xc0 != 0x80).map(|more| more + 1),
    };
    start + length.unwrap_or(rest.len())
}

fn length_of_string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn word_after(text: &str, at: usize) -> String {
    let part = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
    text[at..].trim_start().chars().take_while(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_begin_at_their_first_token() {
        let text = "// one;\n@id(\"a;b\")\npermit(principal, action, resource); // two;\n\nforbid(principal,action,resource) when { principal is User }";
        let found = outline(text).expect("fit");
        let starts: Vec<&str> = found.iter().map(|one| &text[one.start..one.start + 3]).collect();
        assert_eq!(starts, ["@id", "for"]);
        assert_eq!([found[0].line, found[1].line], [2, 5]);
        assert_eq!([found[0].principals, found[1].principals], [1, 2]);
        assert_eq!(found[0].annotations, [("id".to_owned(), 8)]);
    }

    #[test]
    fn a_comment_ends_where_cedar_ends_it() {
        assert_eq!(outline("// a\rpermit();").expect("fit").len(), 1);
        assert_eq!(outline("// a permit();").expect("fit").len(), 0);
    }

    #[test]
    fn a_quote_that_is_escaped_does_not_end_a_string() {
        assert_eq!(outline(r#"a("\";"); b;"#).expect("fit").len(), 2);
        assert_eq!(outline(r#"a("\\"); b;"#).expect("fit").len(), 2);
        assert_eq!(outline(r#"a("\"#).expect("fit").len(), 1);
    }

    #[test]
    fn what_nests_too_deep_is_refused() {
        for (opening, closing) in [("(", ")"), ("[", "]"), ("{", "}"), ("if true then true else ", "")] {
            let nested = |depth| format!("{}{};", opening.repeat(depth), closing.repeat(depth));
            assert!(outline(&nested(DEEPEST)).is_ok());
            assert!(outline(&nested(DEEPEST + 1)).expect_err("deep").message.contains("deeper"));
        }
    }

    #[test]
    fn what_chains_too_long_is_refused() {
        for link in ["a && ", "a.", "!", "-", "1 + ", "a has ", "a()", "a[0]", "\u{2208}"] {
            assert!(outline(&link.repeat(MOST_OPERATORS)).is_ok(), "{link}");
            assert!(
                outline(&link.repeat(MOST_OPERATORS + 1)).expect_err("long").message.contains("operators"),
                "{link}"
            );
        }
    }

    #[test]
    fn too_many_policies_and_none_at_all_are_refused() {
        assert!(outline(&"a;".repeat(MOST_POLICIES)).is_ok());
        assert!(outline(&"a;".repeat(MOST_POLICIES + 1)).expect_err("many").message.contains("more than"));
        assert_eq!(outline("a; // b;\n;").expect_err("empty").at, 9);
    }

    #[test]
    fn a_long_list_is_no_chain() {
        assert!(outline(&format!("a in [{}]", "Domain::\"a\", ".repeat(5000))).is_ok());
    }

    #[test]
    fn hidden_letters_are_refused_even_in_comments() {
        for letter in ['\u{202e}', '\u{200b}', '\u{1b}', '\0', '\u{feff}', '\u{2028}'] {
            assert_eq!(outline(&format!("// a\n// {letter}")).expect_err("hidden").at, 8);
        }
    }
}
