//! Questions to people: whatever is asked is shown whole and safe to look at, and no bytes are taken for an answer in part.

use arbitrary::Arbitrary;
use cli::hostile::{block, line, question};
use engine::approvals::hostile;
use model::{Action, LONGEST_REASON, LONGEST_VALUE, Offers, Parked, Principal, Question, Reason, Ruling};

use crate::{made_of, shown};

#[derive(Arbitrary, Debug)]
struct Case {
    width: u8,
    user: String,
    agent: Option<String>,
    shown: Vec<(String, String)>,
    reasons: Vec<(String, String, String)>,
    findings: Vec<String>,
}

pub fn law(bytes: &[u8]) {
    no_file_is_understood_in_part(bytes);
    let Some(case) = made_of(bytes) else { return };
    let (parked, width) = asked(case);
    let Some(lines) = question(&parked, width) else {
        assert!(parked.question.too_long().is_some(), "a question that is short enough is not shown");
        return;
    };
    let page = lines.join("\n");
    for text in &lines {
        shown::is_one_line(text);
        assert_eq!(line(text), *text, "the line is changed on its way out");
        let unseen = text.chars().find(|letter| is_unseen(*letter));
        assert_eq!(unseen, None, "nobody sees it: {text:?}");
        let columns = text.chars().filter(|letter| !is_mark(*letter)).count();
        assert!(columns <= width.clamp(40, 120), "wider than the terminal: {text:?}");
    }
    for (name, value) in parked.question.texts().filter(|(name, _)| !matches!(*name, "grant" | "revision" | "digest")) {
        // A few stand in one block with others.
        let in_its_own = !matches!(name, "user" | "agent" | "rule" | "place" | "name");
        let block = block(value, width);
        assert_eq!(text_of(&block), value, "it can't be made again from what is shown");
        if in_its_own && !(name == "why" && value.is_empty()) {
            assert!(page.contains(&block.join("\n")), "{name} is not shown: {value:?}");
        }
    }
}

fn asked(case: Case) -> (Parked, usize) {
    let Case { width, user, agent, shown, reasons, findings } = case;
    let reason = |(rule, about, why): (String, String, String)| Reason {
        ruling: Ruling::Ask,
        place: rule.clone(),
        rule,
        why,
        action: Action::Exec,
        about,
        grant: String::new(),
    };
    let question = Question {
        principal: Principal { user, agent },
        shown,
        reasons: reasons.into_iter().map(reason).collect(),
        findings,
        revision: "a".repeat(64),
        digest: "b".repeat(64),
    };
    let parked = Parked {
        id: "0a1b2c3d".to_owned(),
        digest: "c".repeat(64),
        approvers: Vec::new(),
        asked: 0,
        until: 1,
        offers: Offers::default(),
        of: None,
        question,
    };
    (parked, usize::from(width))
}

/// From a block back to the text: rows without a number go on with the one before.
fn text_of(block: &[String]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (at, row) in block.iter().enumerate() {
        let (margin, text) = row.split_once(" │ ").unwrap_or_else(|| panic!("no margin: {row:?}"));
        match margin.trim() {
            "" => lines.last_mut().unwrap_or_else(|| panic!("row {at} goes on with nothing")).push_str(text),
            number => {
                lines.push(text.to_owned());
                assert_eq!(number.parse(), Ok(lines.len()), "another number: {row:?}");
            }
        }
    }
    lines.iter().map(|line| read_back(line)).collect::<Vec<_>>().join("\n")
}

fn read_back(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '·' => text.push(' '),
            '⟨' => {
                let (inner, after) = rest.split_once('⟩').expect("what is opened is closed");
                rest = after;
                if let Some(code) = inner.strip_prefix("U+") {
                    let code = u32::from_str_radix(code, 16).expect("a number");
                    text.push(char::from_u32(code).expect("a letter"));
                } else if let Some(count) = inner.strip_suffix(" spaces") {
                    text.push_str(&" ".repeat(count.parse().expect("a number")));
                } else {
                    match inner {
                        "tab" => text.push('\t'),
                        "nothing" => {}
                        other => panic!("not known: {other}"),
                    }
                }
            }
            letter => text.push(letter),
        }
    }
    text
}

/// Unicode's format characters, selectors, fillers and spaces that are not the plain one.
fn is_unseen(letter: char) -> bool {
    matches!(letter,
        '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
        | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{1680}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}' | '\u{3164}'
        | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..)
}

fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

/// Files that others may have written.
fn no_file_is_understood_in_part(bytes: &[u8]) {
    match hostile::answer(bytes) {
        Ok(answer) => {
            assert!(answer.reason.chars().count() <= LONGEST_REASON, "a reason that is too long");
            let object: serde_json::Value = serde_json::from_slice(bytes).expect("what is accepted is JSON");
            let known = ["version", "id", "nonce", "digest", "session", "decision", "reason"];
            let keys = object.as_object().expect("an object").keys();
            assert!(keys.into_iter().all(|key| known.contains(&key.as_str())), "a key was passed over: {object}");
            assert_eq!(object["version"], 1, "another version was accepted");
        }
        Err(why) => shown::is_one_line(&line(&why)),
    }
    if let Err(why) = hostile::question(bytes) {
        shown::is_one_line(&line(&why));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        match hostile::standing(text) {
            Ok(entries) => {
                let table: toml::Table = text.parse().expect("what is accepted is TOML");
                let written =
                    table.get("approved").and_then(|approved| approved.as_array()).map_or(0, |list| list.len());
                assert_eq!(entries.len(), written, "an entry was passed over");
            }
            Err(why) => shown::is_one_line(&line(&why)),
        }
        if text.chars().count() <= LONGEST_VALUE {
            assert_eq!(text_of(&block(text, 80)), text, "it can't be made again from what is shown");
        }
    }
}
