//! Lines for a shell within one-liners of languages that are not parsed: `perl -e 'system("…")'`, `awk 'BEGIN{system("…")}'`.

/// What starts a line for a shell there, before a text in quotes.
const STARTERS: &[&str] = &["system", "exec", "execute", "popen", "qx", "shell", "getline"];
/// Lines that are taken out of one of them.
const MOST: usize = 16;
const LONGEST: usize = 64 * 1024;

pub(crate) fn lines(code: &str) -> Vec<String> {
    let mut end = code.len().min(LONGEST);
    while !code.is_char_boundary(end) {
        end -= 1;
    }
    let code = &code[..end];
    let mut found = Vec::new();
    for starter in STARTERS {
        for (at, _) in code.match_indices(starter) {
            let rest = code[at + starter.len()..].trim_start_matches([' ', '(', '\t', '+', '[']);
            if let Some(quote) = rest.chars().next().filter(|letter| "\"'`{|/!".contains(*letter)) {
                // `system` asks for quotes; the others after `qx` are for it alone.
                if *starter == "qx" || "\"'`".contains(quote) {
                    found.extend(quoted(&rest[quote.len_utf8()..], if quote == '{' { '}' } else { quote }));
                }
            }
            if found.len() >= MOST {
                return found;
            }
        }
    }
    // `"command" | getline`, and what stands in backticks.
    for part in code.split('`').skip(1).step_by(2).take(MOST) {
        found.push(part.to_owned());
    }
    for (at, _) in code.match_indices("| getline").take(MOST) {
        let before = code[..at].trim_end();
        if let Some(text) = before.strip_suffix('"').and_then(|text| text.rsplit('"').next()) {
            found.push(text.to_owned());
        }
    }
    found
}

/// The text up to its closing quote, its escapes undone.
fn quoted(rest: &str, close: char) -> Option<String> {
    let mut text = String::new();
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.push(letters.next().map(|next| if next == 'n' { '\n' } else { next })?),
            letter if letter == close => return Some(text),
            letter => text.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn lines_for_a_shell_are_found_in_one_liners() {
        for (code, line) in [
            ("system(\"rm -rf ~/\")", "rm -rf ~/"),
            ("BEGIN{system(\"rm -rf \\\"$HOME\\\"\")}", "rm -rf \"$HOME\""),
            ("print qx{id}", "id"),
            ("print `id`", "id"),
            ("os.execute('id')", "id"),
            ("BEGIN { \"id\" | getline x }", "id"),
        ] {
            assert_eq!(lines(code), [line], "{code}");
        }
        for code in ["print 1", "system($x)", "# the system", "system(\"open", ""] {
            assert_eq!(lines(code), Vec::<String>::new(), "{code}");
        }
    }
}
