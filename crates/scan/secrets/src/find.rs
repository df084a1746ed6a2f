//! Bytes to findings: where something has the format of a secret. Never says what.

use model::{Finding, Spot};

use crate::formats::Formats;
use crate::search::{Piece, Search};
use crate::stream::Label;

/// CWE-798, use of hard-coded credentials.
const CWE: u32 = 798;
/// More findings in one text say no more.
const MOST: usize = 10_000;

/// Everything in `bytes` that has the format of a secret.
pub fn find(bytes: &[u8], formats: &Formats) -> Vec<Finding> {
    find_in("", bytes, formats)
}

/// The same for something with a name.
pub fn find_in(name: &str, bytes: &[u8], formats: &Formats) -> Vec<Finding> {
    let index = formats.index();
    let mut places = Vec::new();
    let mut note = |piece: Piece<'_>| {
        if let Piece::Secret { start, label, covered } = piece
            && places.len() < MOST
        {
            places.push((start, start + covered.len() as u64, label));
        }
    };
    let mut search = Search::new(index);
    search.push(bytes, &mut note);
    search.finish(&mut note);
    let mut lines = Lines { bytes, at: 0, line: 1, line_start: 0 };
    places
        .into_iter()
        .filter_map(|(start, end, label)| {
            let Label::Format(format) = label else { return None };
            let format = index.format(format)?;
            let (line, column) = lines.of(start as usize);
            let secret = bytes.get(start as usize..end as usize).unwrap_or_default();
            let prefix = format.keywords.iter().find(|word| !format.has_lead() && secret.starts_with(word.as_bytes()));
            let letters = secret.len();
            Some(Finding {
                rule: format.id.to_string(),
                class: "secret".to_owned(),
                severity: format.severity,
                cwe: Some(CWE),
                message: format!("{} in plain text", format.title),
                fix: "revoke it, and hand it over as a named secret instead".to_owned(),
                at: Spot { name: name.to_owned(), line, column, start, end, inside: Vec::new() },
                excerpt: format!("{}…({letters} letters)", prefix.map_or("", |word| word)),
            })
        })
        .collect()
}

/// Lines and columns of places that come in their order.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
    line_start: usize,
}

impl Lines<'_> {
    fn of(&mut self, place: usize) -> (u32, u32) {
        for newline in memchr::memchr_iter(b'\n', &self.bytes[self.at..place]) {
            self.line = self.line.saturating_add(1);
            self.line_start = self.at + newline + 1;
        }
        self.at = place;
        // Letters: every byte that does not go on with one.
        let letters = self.bytes[self.line_start..place].iter().filter(|byte| (**byte & 0xc0) != 0x80).count();
        (self.line, letters as u32 + 1)
    }
}
