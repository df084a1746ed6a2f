//! What is kept of downloads: what a server tells of a file is written so that it is read as the same again and as nothing else,
//! what is not for everybody is not kept, and a note on the disk is understood in one way or not at all.

use egress::hostile::{Entry, fit};

const LENGTH: u64 = 5;
const NEVER: [&str; 5] = ["set-cookie", "content-encoding", "content-range", "transfer-encoding", "trailer"];

pub fn law(bytes: &[u8]) {
    if let Some(entry) = Entry::read(bytes) {
        assert_eq!(entry.text().as_bytes(), bytes, "two ways to write one note");
    }
    let Some((length, told)) = fit(bytes, LENGTH) else { return };
    assert_eq!(length, LENGTH);
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    for line in text.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        assert!(!NEVER.contains(&name), "{line:?} is kept");
        let private = ["no-store", "private", "no-cache"].iter().any(|word| value.contains(word));
        assert!(name != "cache-control" || !private, "{line:?} is kept");
        assert!(name != "vary" || !value.contains('*') && !value.contains("cookie"), "{line:?} is kept");
    }
    let entry = Entry { key: "https://a.test:443/b".to_owned(), digest: "0".repeat(64), length, stored: 1, told };
    assert_eq!(Entry::read(entry.text().as_bytes()).as_ref(), Some(&entry), "what is written is not what is read");
}
