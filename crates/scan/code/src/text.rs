//! Rules over any text: behind words that must occur, so that a text without them costs one look.

use crate::Language;
use crate::evaluate::Hit;
use crate::rule::Kind;
use crate::rules::{Rules, Which};

/// How far around a word its pattern may reach.
const AROUND: usize = 600;
/// Words that are followed, in one text.
const WORDS: usize = 20_000;

pub(crate) fn hits(bytes: &[u8], language: Language, rules: &Rules) -> Vec<Hit> {
    let mut hits: Vec<Hit> = Vec::new();
    let Some(hints) = rules.hints(language, Kind::Text) else { return hits };
    // A pattern is tried once for each stretch of text that its words stand in.
    let mut until = vec![0_usize; hints.rules.len()];
    for found in hints.words.within(bytes).take(WORDS) {
        let place = found.word;
        let rule = hints.rules[place];
        if found.start < until[place] {
            continue;
        }
        let (from, to) = (found.start.saturating_sub(AROUND), (found.end + AROUND).min(bytes.len()));
        let Some(pattern) = rules.pattern(rule, Which::Text) else { continue };
        let Some(matched) =
            pattern.find_iter(&bytes[from..to]).take(64).find(|matched| from + matched.end() > found.start)
        else {
            continue;
        };
        let (start, end) = (from + matched.start(), from + matched.end());
        until[place] = end.max(found.end);
        let line = line_around(bytes, start, end);
        if rules.pattern(rule, Which::Unless).is_some_and(|unless| unless.is_match(line)) {
            continue;
        }
        let hit = Hit { start, end, rule };
        if !hits.contains(&hit) {
            hits.push(hit);
        }
        if hits.len() > 2_000 {
            break;
        }
    }
    hits
}

fn line_around(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    let low = start.saturating_sub(AROUND);
    let high = (end + AROUND).min(bytes.len());
    let from = bytes[low..start].iter().rposition(|byte| *byte == b'\n').map_or(low, |at| low + at + 1);
    let to = bytes[end..high].iter().position(|byte| *byte == b'\n').map_or(high, |at| end + at);
    &bytes[from..to]
}
