//! What a person's lines mean. Only a clear yes is one.

use model::{Answer, Decision, Offers};

/// A person may press a key too much; then it is a no.
const TRIES: usize = 3;

pub struct Dialogue {
    offers: Offers,
    stage: Stage,
    empty: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Which of all answers?
    Choose,
    /// Really this one?
    Confirm(Decision),
}

/// What comes after a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Answer(Decision),
    Ask,
}

impl Dialogue {
    pub fn new(offers: Offers) -> Dialogue {
        Dialogue { offers, stage: Stage::Choose, empty: 0 }
    }

    /// Only to be told that this is meant.
    pub fn about(decision: Decision) -> Dialogue {
        Dialogue { offers: Offers::default(), stage: Stage::Confirm(decision), empty: 0 }
    }

    pub fn stage(&self) -> Stage {
        self.stage
    }

    pub fn prompt(&self) -> String {
        match self.stage {
            Stage::Choose => super::shown::choices(self.offers),
            Stage::Confirm(Decision::Always) => "write this down, and say yes to it from now on? [yes/no] ".to_owned(),
            Stage::Confirm(decision) => format!("say yes ({})? [yes/no] ", decision.name()),
        }
    }

    pub fn hear(&mut self, line: &str) -> Next {
        let word = line.trim().to_ascii_lowercase();
        if word.is_empty() {
            self.empty += 1;
            return if self.empty < TRIES { Next::Ask } else { Next::Answer(Decision::Deny) };
        }
        match (self.stage, word.as_str()) {
            (Stage::Choose, "o" | "once") => Next::Answer(Decision::Once),
            (Stage::Choose, "s" | "session") if self.offers.session => Next::Answer(Decision::Session),
            (Stage::Choose, "a" | "always") if self.offers.always => {
                self.stage = Stage::Confirm(Decision::Always);
                Next::Ask
            }
            (Stage::Confirm(decision), "yes") => Next::Answer(decision),
            _ => Next::Answer(Decision::Deny),
        }
    }
}

/// What was decided, in a person's name.
pub fn answer(decision: Decision) -> Answer {
    Answer { decision, reason: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Offers = Offers { session: true, always: true };

    fn said(offers: Offers, lines: &[&str]) -> Option<Decision> {
        let mut dialogue = Dialogue::new(offers);
        lines.iter().find_map(|line| match dialogue.hear(line) {
            Next::Answer(decision) => Some(decision),
            Next::Ask => None,
        })
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        assert_eq!(said(ALL, &["o\n"]), Some(Decision::Once));
        assert_eq!(said(ALL, &[" Session \r\n"]), Some(Decision::Session));
        assert_eq!(said(ALL, &["a", "yes"]), Some(Decision::Always));
        for unclear in ["n", "no", "y", "yes", "oo", "once please", "\u{1b}[A", "о" /* Cyrillic */, "1"] {
            assert_eq!(said(ALL, &[unclear]), Some(Decision::Deny), "{unclear:?}");
        }
        assert_eq!(said(ALL, &["a", "y"]), Some(Decision::Deny));
    }

    #[test]
    fn what_is_not_offered_is_no() {
        let none = Offers::default();
        assert_eq!(said(none, &["s"]), Some(Decision::Deny));
        assert_eq!(said(none, &["a"]), Some(Decision::Deny));
        assert_eq!(said(none, &["o"]), Some(Decision::Once));
    }

    #[test]
    fn an_empty_line_asks_again_and_then_is_no() {
        assert_eq!(said(ALL, &["", "\n", "o"]), Some(Decision::Once));
        assert_eq!(said(ALL, &["", "", "", "o"]), Some(Decision::Deny));
    }

    #[test]
    fn what_is_meant_has_to_be_said_in_full() {
        let mut dialogue = Dialogue::about(Decision::Once);
        assert_eq!(dialogue.hear("yes\n"), Next::Answer(Decision::Once));
        assert_eq!(Dialogue::about(Decision::Once).hear("o"), Next::Answer(Decision::Deny));
    }
}
