//! What is known of a file that is kept, as a small file beside it. One form: what we would not write so is not read.

use super::LIFE;

/// Bytes of it, at most.
pub(super) const LONGEST: u64 = 8 << 10;
const KIND: &str = "belljar download 1";
const LONGEST_VALUE: usize = 512;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    /// Of its bytes: BLAKE3, in small letters. Also its name.
    pub digest: String,
    pub length: u64,
    /// When it came, in seconds since 1970.
    pub stored: u64,
    pub told: Told,
}

/// What the server told of it, as far as clients ask for that. Nothing is an empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub content_type: String,
    pub etag: String,
    pub last_modified: String,
}

impl Entry {
    pub fn read(bytes: &[u8]) -> Option<Entry> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= LONGEST)?;
        let lines: Vec<&str> = text.strip_suffix('\n')?.split('\n').collect();
        let [KIND, key, digest, length, stored, content_type, etag, last_modified] = lines[..] else { return None };
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let told = [content_type, etag, last_modified];
        if digest.len() != 64 || !digest.bytes().all(is_digit) || !told.into_iter().all(is_value) {
            return None;
        }
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let [content_type, etag, last_modified] = told.map(str::to_owned);
        let entry = Entry {
            key: key.to_owned(),
            digest: digest.to_owned(),
            length: length.parse().ok()?,
            stored: stored.parse().ok()?,
            told: Told { content_type, etag, last_modified },
        };
        // Numbers can be written in several ways.
        (entry.text() == text).then_some(entry)
    }

    pub fn text(&self) -> String {
        let Entry { key, digest, length, stored, told: Told { content_type, etag, last_modified } } = self;
        format!("{KIND}\n{key}\n{digest}\n{length}\n{stored}\n{content_type}\n{etag}\n{last_modified}\n")
    }

    /// A clock that was set back makes it no younger.
    pub fn is_fresh(&self, now: u64) -> bool {
        now.checked_sub(self.stored).is_some_and(|age| age < LIFE.as_secs())
    }
}

/// What can stand in a header, and in a line.
pub(super) fn is_value(text: &str) -> bool {
    text.len() <= LONGEST_VALUE && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}
