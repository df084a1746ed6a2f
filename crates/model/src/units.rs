//! Sizes, times and counts as people write them: `512M`, `1.5s`, `0.5`. One reader for flags and files.

use std::fmt;
use std::time::Duration;

/// Why a word is not a quantity, with an example of one that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadQuantity {
    word: String,
    why: &'static str,
    example: &'static str,
}

impl fmt::Display for BadQuantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadQuantity { word, why, example } = self;
        write!(out, "`{}` {why}; write it like {example}", word.escape_debug())
    }
}

impl std::error::Error for BadQuantity {}

/// `0` is refused: a limit of nothing stops everything, and is more likely meant as none.
fn positive<T: Default + PartialEq>(
    value: Option<T>,
    word: &str,
    what: &'static str,
    example: &'static str,
) -> Result<T, BadQuantity> {
    let bad = |why| BadQuantity { word: word.to_owned(), why, example };
    match value {
        None => Err(bad(what)),
        Some(value) if value == T::default() => Err(bad("is zero, and a limit must be more")),
        Some(value) => Ok(value),
    }
}

/// Number and unit: `12.5MiB` is (`12.5`, `MiB`).
fn split(word: &str) -> (&str, &str) {
    let end = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(word.len());
    word.split_at(end)
}

/// `number × scale`, exactly for whole numbers, without a detour over floating point.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || number.ends_with('.') || fraction.len() > 9 {
        return None;
    }
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let whole = whole.checked_mul(scale)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let parts = u128::from(fraction.parse::<u64>().ok()?) * u128::from(scale) / 10u128.pow(fraction.len() as u32);
    whole.checked_add(u64::try_from(parts).ok()?)
}

/// Bytes: `1000`, `64K`, `512M`, `1.5GiB`; powers of 1024.
pub fn bytes(word: &str) -> Result<u64, BadQuantity> {
    let (number, unit) = split(word);
    let power = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(1),
        "m" | "mb" | "mib" => Some(2),
        "g" | "gb" | "gib" => Some(3),
        "t" | "tb" | "tib" => Some(4),
        _ => None,
    };
    let value = power.and_then(|power| scaled(number, 1024u64.pow(power)));
    positive(value, word, "is not a size", "`512M` or `2GiB`")
}

/// Times: `30` (seconds), `1.5s`, `500ms`, `2m`, `1h`.
pub fn duration(word: &str) -> Result<Duration, BadQuantity> {
    let (number, unit) = split(word);
    let nanoseconds = match unit {
        "" | "s" => Some(1_000_000_000),
        "ms" => Some(1_000_000),
        "m" | "min" => Some(60 * 1_000_000_000),
        "h" => Some(3600 * 1_000_000_000),
        "d" => Some(24 * 3600 * 1_000_000_000),
        _ => None,
    };
    let value = nanoseconds.and_then(|scale| scaled(number, scale)).map(Duration::from_nanos);
    positive(value, word, "is not a time", "`30s`, `500ms` or `2m`")
}

/// Processors in thousandths: `2`, `0.5`.
pub fn processors(word: &str) -> Result<u32, BadQuantity> {
    let value = scaled(word, 1000).and_then(|value| u32::try_from(value).ok());
    positive(value, word, "is not a number of processors", "`2` or `0.5`")
}

/// A plain count.
pub fn count(word: &str) -> Result<u64, BadQuantity> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    positive(word.parse().ok().filter(|_| digits), word, "is not a whole number", "`100`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_sizes_in_many_ways() {
        for (word, expected) in
            [("1", 1), ("1k", 1024), ("1.5K", 1536), ("512M", 512 << 20), ("2GiB", 2 << 30), (".5m", 1 << 19)]
        {
            assert_eq!(bytes(word), Ok(expected), "{word}");
        }
    }

    #[test]
    fn what_is_no_size_is_said_to_be_none() {
        for word in [
            "", "0", "0M", "12XB", "M", "-1", "1.", "1..5", "1e9", "٣", "99999999999999999999", "20000000T", "1 M",
            "nan",
        ] {
            assert!(bytes(word).is_err(), "{word:?} was taken for a size");
            assert!(duration(word).is_err(), "{word:?} was taken for a time");
            assert!(processors(word).is_err(), "{word:?} was taken for processors");
            assert!(count(word).is_err(), "{word:?} was taken for a count");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(processors("0.5"), Ok(500));
    }
}
