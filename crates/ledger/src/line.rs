//! One entry as it is on disk: a line that anybody can check with `b3sum`.
//!
//! `HASH {"n":7,"prev":"HASH","at":"2026-11-16T14:20:01.123456Z","type":"run.judged",…,"data":{…}}`
//!
//! The first is the BLAKE3 of everything after the blank; `prev` is that of the entry before. Because an entry carries the
//! hash of its predecessor, one that was changed and hashed anew is told from the one after it, which still is what it was.

use serde_json::to_string;

use crate::{Error, Result};

pub type Hash = [u8; 32];
/// Before the first entry.
pub const NO_HASH: Hash = [0; 32];
/// Of one entry. Whoever has more to say says it by digest.
pub const LONGEST: usize = 1 << 20;

const DIGITS: usize = 64;
const TIME: usize = "2026-11-16T14:20:01.123456Z".len();

/// What is to become an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// Microseconds since 1970.
    pub at: u64,
    /// What kind of event: words with dots between them.
    pub kind: &'static str,
    /// Whether something was refused.
    pub denied: bool,
    pub run: Option<String>,
    pub user: Option<String>,
    pub agent: Option<String>,
    /// A JSON object, on one line.
    pub data: String,
}

impl Draft {
    pub fn now(kind: &'static str, data: String) -> Draft {
        Draft { at: micros_now(), kind, data, ..Draft::default() }
    }

    /// All of the entry that does not depend on its place in the chain.
    pub(crate) fn body(&self) -> Result<String> {
        let Draft { at, kind, denied, run, user, agent, data } = self;
        let mut body = String::with_capacity(160 + data.len());
        body.push_str(r#""at":""#);
        body.push_str(&time_text(*at));
        body.push_str(r#"","type":""#);
        body.push_str(kind);
        body.push('"');
        if *denied {
            body.push_str(r#","denied":true"#);
        }
        for (name, value) in [("run", run), ("user", user), ("agent", agent)] {
            let Some(value) = value else { continue };
            body.push_str(",\"");
            body.push_str(name);
            body.push_str("\":");
            body.push_str(&quoted(value));
        }
        body.push_str(r#","data":"#);
        body.push_str(if data.is_empty() { "{}" } else { data });
        body.push('}');
        if body.len() > LONGEST {
            return Err(Error::TooLarge { bytes: body.len(), most: LONGEST });
        }
        // An entry is a line: JSON has no need of one within.
        debug_assert!(!body.contains('\n'));
        Ok(body.replace('\n', " "))
    }
}

/// As it stands in an entry.
pub fn quoted(text: &str) -> String {
    // Text always has a form in JSON.
    to_string(text).unwrap_or_default()
}

/// Adds the entry's line; its hash.
pub fn write(lines: &mut Vec<u8>, number: u64, before: &Hash, body: &str) -> Hash {
    let start = lines.len();
    lines.resize(start + DIGITS, b' ');
    lines.push(b' ');
    lines.extend_from_slice(b"{\"n\":");
    lines.extend_from_slice(number.to_string().as_bytes());
    lines.extend_from_slice(b",\"prev\":\"");
    lines.extend_from_slice(hex(before).as_bytes());
    lines.extend_from_slice(b"\",");
    lines.extend_from_slice(body.as_bytes());
    let hash = *blake3::hash(&lines[start + DIGITS + 1..]).as_bytes();
    lines[start..start + DIGITS].copy_from_slice(hex(&hash).as_bytes());
    lines.push(b'\n');
    hash
}

/// A line taken apart. That it is whole is `holds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub hash: Hash,
    pub number: u64,
    pub before: Hash,
    pub json: &'a [u8],
    /// What follows `prev`.
    pub rest: &'a [u8],
}

impl<'a> Line<'a> {
    /// Without its end of line.
    pub fn read(line: &'a [u8]) -> Option<Line<'a>> {
        let (digits, rest) = line.split_at_checked(DIGITS)?;
        let json = rest.strip_prefix(b" ")?;
        let rest = json.strip_prefix(b"{\"n\":")?;
        let end = rest.iter().position(|byte| !byte.is_ascii_digit()).filter(|end| (1..=20).contains(end))?;
        let mut number = 0u64;
        for digit in &rest[..end] {
            number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        }
        let rest = rest[end..].strip_prefix(b",\"prev\":\"")?;
        let (before, rest) = rest.split_at_checked(DIGITS)?;
        let rest = rest.strip_prefix(b"\",")?;
        Some(Line { hash: unhex(digits)?, number, before: unhex(before)?, json, rest })
    }

    /// It is what was hashed.
    pub fn holds(&self) -> bool {
        *blake3::hash(self.json).as_bytes() == self.hash
    }

    pub fn fields(&self) -> Option<Fields<'a>> {
        Fields::read(self.rest)
    }
}

/// What entries are looked for by. Values are as they stand in the line, quotes and all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    /// As text: it sorts as time does.
    pub at: &'a [u8],
    pub kind: &'a [u8],
    pub denied: bool,
    pub run: Option<&'a [u8]>,
    pub user: Option<&'a [u8]>,
    pub agent: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// They are always in one order, so nothing is parsed that nobody looks for.
    fn read(rest: &'a [u8]) -> Option<Fields<'a>> {
        let rest = rest.strip_prefix(b"\"at\":\"")?;
        let (at, rest) = rest.split_at_checked(TIME)?;
        let rest = rest.strip_prefix(b"\",\"type\":\"")?;
        let end = memchr::memchr(b'"', rest)?;
        let (kind, mut rest) = (&rest[..end], &rest[end + 1..]);
        let mut fields = Fields { at, kind, ..Fields::default() };
        if let Some(after) = rest.strip_prefix(b",\"denied\":true") {
            (fields.denied, rest) = (true, after);
        }
        for (name, place) in [
            (b",\"run\":".as_slice(), &mut fields.run),
            (b",\"user\":".as_slice(), &mut fields.user),
            (b",\"agent\":".as_slice(), &mut fields.agent),
        ] {
            if let Some(after) = rest.strip_prefix(name) {
                let end = text_end(after)?;
                (*place, rest) = (Some(&after[..end]), &after[end..]);
            }
        }
        rest.starts_with(b",\"data\":").then_some(fields)
    }
}

/// Where a JSON text that begins here ends, its quote included.
fn text_end(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'"') {
        return None;
    }
    let mut place = 1;
    loop {
        place += memchr::memchr2(b'"', b'\\', &text[place..])?;
        if text[place] == b'"' {
            return Some(place + 1);
        }
        place += 2;
        if place > text.len() {
            return None;
        }
    }
}

pub fn hex(hash: &Hash) -> String {
    const DIGIT: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(DIGITS);
    for byte in hash {
        text.push(char::from(DIGIT[usize::from(byte >> 4)]));
        text.push(char::from(DIGIT[usize::from(byte & 15)]));
    }
    text
}

/// Small letters only: a hash has one form, or a changed byte could hide in the other.
pub fn unhex(text: &[u8]) -> Option<Hash> {
    if text.len() != DIGITS {
        return None;
    }
    let mut hash = NO_HASH;
    let mut wrong = 0u8;
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        let (high, low) = (DIGIT_VALUES[usize::from(pair[0])], DIGIT_VALUES[usize::from(pair[1])]);
        wrong |= high | low;
        *byte = high << 4 | low & 15;
    }
    // A digit is below 16; anything else sets a high bit.
    (wrong < 16).then_some(hash)
}

/// 255 for what is no digit.
const DIGIT_VALUES: [u8; 256] = {
    let mut values = [255u8; 256];
    let mut digit = 0;
    while digit < 16 {
        values[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

/// Microseconds since 1970.
pub fn micros_now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

/// Always as long, so that it sorts as time does. What no calendar has is the latest that it has.
pub fn time_text(micros: u64) -> String {
    const LATEST: i64 = 253_402_207_199_999_999;
    let micros = i64::try_from(micros).unwrap_or(LATEST).min(LATEST);
    let time = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{time:.6}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft {
            at: 1_794_838_801_123_456,
            kind: "run.judged",
            denied: true,
            run: Some("0a".to_owned()),
            user: Some("li\"z\\".to_owned()),
            agent: Some("claude-code".to_owned()),
            data: r#"{"why":"because"}"#.to_owned(),
        }
    }

    #[test]
    fn a_line_says_what_went_in() {
        let mut lines = Vec::new();
        let hash = write(&mut lines, 7, &[9; 32], &draft().body().unwrap());
        let line = Line::read(lines.strip_suffix(b"\n").unwrap()).unwrap();
        assert!(line.holds());
        assert_eq!((line.hash, line.number, line.before), (hash, 7, [9; 32]));
        let fields = line.fields().unwrap();
        assert_eq!(fields.at, b"2026-11-16T14:20:01.123456Z");
        assert_eq!((fields.kind, fields.denied), (b"run.judged".as_slice(), true));
        assert_eq!(fields.user, Some(quoted("li\"z\\").as_bytes()));
        assert_eq!(fields.agent, Some(b"\"claude-code\"".as_slice()));
        let json: serde_json::Value = serde_json::from_slice(line.json).unwrap();
        assert_eq!(json["user"], "li\"z\\");
        assert_eq!(json["data"]["why"], "because");
    }

    #[test]
    fn every_changed_byte_is_seen() {
        let mut lines = Vec::new();
        write(&mut lines, 7, &[9; 32], &draft().body().unwrap());
        let line = lines.strip_suffix(b"\n").unwrap();
        for place in 0..line.len() {
            for changed in [line[place] ^ 1, line[place] ^ 0x20, 0, b'\n', 255] {
                let mut copy = line.to_vec();
                copy[place] = changed;
                assert!(
                    changed == line[place] || !Line::read(&copy).is_some_and(|line| line.holds()),
                    "{place} {changed}"
                );
            }
        }
    }

    #[test]
    fn times_that_no_calendar_has_are_still_as_long() {
        for micros in [0, 1, u64::MAX, 1 << 62] {
            assert_eq!(time_text(micros).len(), TIME, "{micros}");
        }
    }

    #[test]
    fn cut_lines_are_no_lines() {
        let mut lines = Vec::new();
        write(&mut lines, 7, &[9; 32], &draft().body().unwrap());
        for end in 0..lines.len() - 1 {
            assert!(!Line::read(&lines[..end]).is_some_and(|line| line.holds()), "{end}");
        }
    }
}
