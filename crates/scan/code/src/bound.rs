//! Does a call fit what a rule asks of its arguments?

use crate::rules::{Rules, Which};
use crate::value::{HOLE, Item, Value};

const LONGEST_SHOWN: usize = 16 * 1024;

pub(crate) fn fits(rules: &Rules, place: u16, items: &[Item], base: &Value) -> bool {
    let when = &rules.rule(place).when;
    if !when.keyword.is_empty() && !keyword_fits(rules, place, items) {
        return false;
    }
    let mut candidates: Vec<&Value> = match when.argument {
        Some(argument) => items
            .iter()
            .filter(|item| item.key.is_none())
            .nth(argument as usize)
            .map(|item| &item.value)
            .into_iter()
            .collect(),
        None => items.iter().map(|item| &item.value).collect(),
    };
    // What a keyword brings was asked about above.
    if when.from != 0 && when.keyword.is_empty() {
        if when.argument.is_none() {
            candidates.push(base);
        }
        if !candidates.iter().any(|value| value.labels & when.from != 0) {
            return false;
        }
    }
    if let Some(constant) = when.constant {
        let asked: Vec<&&Value> =
            candidates.iter().take(if when.argument.is_some() { 1 } else { usize::MAX }).collect();
        let all_known = asked.iter().all(|value| value.is_known());
        if asked.is_empty() || all_known != constant {
            return false;
        }
    }
    // A path is an object in many languages: `path.write_text(…)`.
    if when.argument.is_none() && when.from == 0 && base.text.is_some() {
        candidates.push(base);
    }
    if !when.matches.is_empty() && !candidates.iter().any(|value| rules.fits(place, Which::Matches, &shown(value))) {
        return false;
    }
    when.unless.is_empty() || !candidates.iter().any(|value| rules.fits(place, Which::Unless, &shown(value)))
}

fn keyword_fits(rules: &Rules, place: u16, items: &[Item]) -> bool {
    let when = &rules.rule(place).when;
    let is_meant =
        |item: &&Item| item.key.as_deref().is_some_and(|key| when.keyword.split('|').any(|name| name == key));
    let nested = items.iter().filter_map(|item| item.value.items.as_ref()).flat_map(|inner| inner.iter());
    items.iter().chain(nested).filter(is_meant).any(|item| {
        (when.value.is_empty() || rules.fits(place, Which::Value, &shown(&item.value)))
            && (when.from == 0 || item.value.labels & when.from != 0)
    })
}

/// A value as patterns see it: its text, its words, or its name.
pub(crate) fn shown(value: &Value) -> Vec<u8> {
    if let Some(bytes) = value.bytes() {
        return bytes[..bytes.len().min(LONGEST_SHOWN)].to_vec();
    }
    if let Some(number) = value.number {
        return number.to_string().into_bytes();
    }
    match &value.items {
        Some(items) => {
            let mut all = Vec::new();
            for item in items.iter().take(256) {
                if !all.is_empty() {
                    all.push(b' ');
                }
                item.value.append_to(&mut all);
                if all.len() > LONGEST_SHOWN {
                    break;
                }
            }
            all
        }
        None => value.name.as_deref().unwrap_or(HOLE).as_bytes().to_vec(),
    }
}

/// The words of a command, from arguments that are words or lists of words; what is not known is a hole.
pub(crate) fn words(items: &[Item]) -> Vec<String> {
    let mut words = Vec::new();
    for item in items.iter().filter(|item| item.key.is_none()) {
        match &item.value.items {
            Some(inner) if inner.iter().all(|item| item.key.is_none()) => {
                words.extend(inner.iter().take(256).map(|item| word(&item.value)));
            }
            Some(_) => {}
            None => words.push(word(&item.value)),
        }
        if words.len() > 256 {
            break;
        }
    }
    match words.first() {
        Some(first) if first != HOLE => words,
        _ => Vec::new(),
    }
}

fn word(value: &Value) -> String {
    value.shown().map_or_else(|| HOLE.to_owned(), str::to_owned)
}
