//! What comes back must not show a secret that was added on the way out: in a stream, wherever it is cut, its value is
//! replaced by what stands for it. Only what may be the beginning of a value waits for more, so that events arrive at once.

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use super::secrets::percent_encoded;
use super::value::SecretValue;

pub struct Conceal {
    values: Vec<Zeroizing<Vec<u8>>>,
    stand_ins: Vec<Vec<u8>>,
    search: AhoCorasick,
    longest: usize,
    /// The beginning of a value, perhaps.
    held: Zeroizing<Vec<u8>>,
}

impl Conceal {
    /// `None` if there is nothing to look for, or no way to look for it.
    /// `encoded`: what else was sent that has one in it, and what is shown instead.
    pub fn new<'a>(
        secrets: impl Iterator<Item = &'a SecretValue>,
        encoded: &[(Zeroizing<String>, String)],
    ) -> Option<Conceal> {
        let (mut values, mut stand_ins) = (Vec::new(), Vec::new());
        let mut known = |value: Vec<u8>, stand_in: String| {
            let value = Zeroizing::new(value);
            if !value.is_empty() && !values.contains(&value) {
                values.push(value);
                stand_ins.push(stand_in.into_bytes());
            }
        };
        for (sent, given) in encoded {
            known(sent.as_bytes().to_vec(), given.clone());
        }
        let each = secrets.flat_map(|secret| secret.all().into_iter().map(move |value| (value, &secret.stand_in)));
        for (value, stand_in) in each {
            let value = value.as_str();
            let stand_in = stand_in.as_str();
            known(value.as_bytes().to_vec(), stand_in.to_owned());
            known(percent_encoded(value).as_bytes().to_vec(), percent_encoded(stand_in).to_string());
            known(percent_encoded(value).to_lowercase().into_bytes(), percent_encoded(stand_in).to_string());
            known(in_json(value).into_bytes(), in_json(stand_in));
            for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                known(engine.encode(value).into_bytes(), engine.encode(stand_in));
            }
        }
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(values.iter().map(|v| &v[..]));
        let longest = values.iter().map(|value| value.len()).max()?;
        Some(Conceal { values, stand_ins, search: search.ok()?, longest, held: Zeroizing::default() })
    }

    /// What may pass of it and of what was held.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let (mut out, mut from) = (Vec::with_capacity(all.len()), 0);
        for found in self.search.find_iter(all.as_slice()) {
            out.extend_from_slice(&all[from..found.start()]);
            out.extend_from_slice(self.stand_ins.get(found.pattern().as_usize()).map_or(&b""[..], |s| s));
            from = found.end();
        }
        let rest = &all[from..];
        let beginning = self.beginning(rest);
        out.extend_from_slice(&rest[..rest.len() - beginning]);
        self.held.extend_from_slice(&rest[rest.len() - beginning..]);
        out
    }

    /// At the end: what was held was no value.
    pub fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut *std::mem::take(&mut self.held))
    }

    /// A whole text.
    pub fn whole(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.search.is_match(text).then(|| self.search.replace_all_bytes(text, &self.stand_ins))
    }

    /// How many bytes at the end of `rest` may be the beginning of a value.
    fn beginning(&self, rest: &[u8]) -> usize {
        let most = rest.len().min(self.longest - 1);
        let may = |length: usize| {
            let end = &rest[rest.len() - length..];
            self.values.iter().any(|value| value.len() > length && value.starts_with(end))
        };
        (1..=most).rev().find(|length| may(*length)).unwrap_or(0)
    }
}

fn in_json(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_replaced_wherever_the_stream_is_cut_and_nothing_else_waits() {
        let secret = SecretValue::new("token", "stand-in", "se+same/open");
        let text = b"x se+same/open y se%2Bsame%2Fopen c2Urc2FtZS9vcGVu se+same";
        for cut in 0..text.len() {
            for second in cut..text.len() {
                let mut conceal = Conceal::new(std::iter::once(&secret), &[]).expect("one to look for");
                let mut out = conceal.pass(&text[..cut]);
                out.extend(conceal.pass(&text[cut..second]));
                out.extend(conceal.pass(&text[second..]));
                out.extend(conceal.end());
                assert_eq!(String::from_utf8_lossy(&out), "x stand-in y stand-in c3RhbmQtaW4 se+same");
            }
        }
        let mut conceal = Conceal::new(std::iter::once(&secret), &[]).expect("one to look for");
        assert_eq!(conceal.pass(b"data: 1\n\n"), b"data: 1\n\n");
    }
}
