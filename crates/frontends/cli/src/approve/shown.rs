//! A question as a person sees it: lines, in which everything of others stands behind a bar and nothing is left out.

use model::{Offers, Parked, Question, Reason, Standing};

use super::letters::{self, Piece};

/// A terminal that is narrower breaks our lines where it likes.
const NARROWEST: usize = 40;
const WIDEST: usize = 120;
/// Before each line of other people's text: its number and a bar.
const MARGIN: usize = 8;
/// More warnings about letters than this are counted: the letters themselves are shown anyway.
const WARNINGS: usize = 10;

/// Everything that the answer depends on. Nothing if it is too long to be judged: then only a no can be given.
pub fn lines(parked: &Parked, width: usize) -> Option<Vec<String>> {
    let Parked { id, digest, approvers: _, asked: _, until: _, offers: _, of: _, question } = parked;
    let Question { principal, shown, reasons, findings, revision, digest: _ } = question;
    if question.too_long().is_some() {
        return None;
    }
    let mut lines = vec![format!("question {}", letters::inline(id)), String::new()];
    lines.push("who".to_owned());
    lines.extend(block(&principal.to_string(), width));
    for (name, value) in shown {
        if is_plain(name) {
            lines.push(name.clone());
        } else {
            // A name could look like a line of ours.
            lines.push("something called".to_owned());
            lines.extend(block(name, width));
            lines.push("which is".to_owned());
        }
        lines.extend(block(value, width));
    }
    lines.extend(reasons.iter().flat_map(|reason| why(reason, width)));
    for finding in findings {
        lines.push("found".to_owned());
        lines.extend(block(finding, width));
    }
    let warnings = warnings(question);
    if !warnings.is_empty() {
        let ours = |warning: &String| letters::pieces(warning).into_iter().map(unescaped).collect();
        lines.push("careful".to_owned());
        lines.extend(rows(warnings.iter().take(WARNINGS).map(ours).collect(), width));
    }
    if warnings.len() > WARNINGS {
        lines.push(format!("  and {} more words like these", warnings.len() - WARNINGS));
    }
    lines.push(String::new());
    lines.push(format!("policy {}", start(revision)));
    lines.push(format!("digest {}", start(digest)));
    Some(lines)
}

fn why(reason: &Reason, width: usize) -> Vec<String> {
    // `grant` is for whoever asks; the question is not about it.
    let Reason { ruling: _, rule, place, why, action, about, grant: _ } = reason;
    let mut lines = vec![format!("asked because of {action}")];
    lines.extend(block(about, width));
    lines.push("by the rule".to_owned());
    lines.extend(block(&if place.is_empty() { rule.clone() } else { format!("{rule} ({place})") }, width));
    if !why.is_empty() {
        lines.push("which says".to_owned());
        lines.extend(block(why, width));
    }
    lines
}

/// What `always` would write down.
pub fn standing(entries: &[Standing], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in entries {
        let Standing { id, rule, action, about, principal, workspaces, exactly: _, on, by } = entry;
        lines.push(format!(
            "{}   {action}, by {} on {}",
            letters::inline(id),
            letters::inline(by),
            letters::inline(on)
        ));
        for (name, value) in [("rule", rule), ("about exactly", about), ("asked by", principal)] {
            lines.push(format!("  {name}"));
            lines.extend(block(value, width));
        }
        for workspace in workspaces {
            lines.push("  in".to_owned());
            lines.extend(block(workspace, width));
        }
    }
    lines
}

/// The choices, with what each means.
pub fn choices(offers: Offers) -> String {
    let mut choices = vec!["[o]nce"];
    if offers.session {
        choices.push("[s]ession");
    }
    if offers.always {
        choices.push("[a]lways");
    }
    choices.push("[n]o");
    choices.join(", ") + "? "
}

/// Text in a block of its own: each of its lines has a number, what continues one has none.
pub fn block(text: &str, width: usize) -> Vec<String> {
    if text.is_empty() {
        return rows(vec![vec![Piece { text: "⟨nothing⟩".to_owned(), columns: 9 }]], width);
    }
    rows(text.split('\n').map(letters::pieces).collect(), width)
}

fn rows(lines: Vec<Vec<Piece>>, width: usize) -> Vec<String> {
    let most = width.clamp(NARROWEST, WIDEST) - MARGIN - 1;
    let mut rows = Vec::new();
    for (number, pieces) in lines.into_iter().enumerate() {
        let mut row = format!("{:>5} │ ", number + 1);
        let mut columns = 0;
        for Piece { text, columns: more } in pieces {
            if columns + more > most {
                rows.push(std::mem::replace(&mut row, format!("{:>5} │ ", "")));
                columns = 0;
            }
            row += &text;
            columns += more;
        }
        rows.push(row);
    }
    rows
}

/// Words of ours about letters have these written out already.
fn unescaped(piece: Piece) -> Piece {
    match piece.text.as_str() {
        "⟨U+27E8⟩" => Piece { text: "⟨".to_owned(), columns: 1 },
        "⟨U+27E9⟩" => Piece { text: "⟩".to_owned(), columns: 1 },
        _ => piece,
    }
}

fn warnings(question: &Question) -> Vec<String> {
    // Where a letter that only looks plain starts another program, or reaches another host.
    let strict = |name: &str| matches!(name, "command" | "program" | "shell" | "host" | "about" | "user" | "agent");
    let all = question.texts().flat_map(|(name, text)| letters::suspicious(text, strict(name)));
    let mut warnings: Vec<String> = Vec::new();
    for warning in all {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

/// A name that can be nothing but a name.
fn is_plain(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b" -_".contains(&byte);
    (1..=24).contains(&name.len()) && name.bytes().all(known) && name.trim() == name
}

/// As many digits as a person compares.
fn start(digest: &str) -> String {
    let start: String = digest.chars().take(12).collect();
    if start.is_empty() { "none".to_owned() } else { letters::inline(&start) }
}
