//! Secrets in streams: the same comes out however a stream is cut, no value does in any form, and little waits.

use std::sync::OnceLock;

use arbitrary::Arbitrary;
use secrets::{Added, Formats, Redactor, Values, find};

use crate::made_of;

/// The longest that may wait: a private key's body, and what is not judged yet.
const HELD: usize = 64 << 10;
/// For texts as long as the fuzzer's; in a build without optimisation too.
const SECONDS: u64 = 10;

#[derive(Arbitrary, Debug)]
struct Case {
    values: Vec<Vec<u8>>,
    pieces: Vec<Piece>,
    cuts: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
enum Piece {
    Bytes(Vec<u8>),
    Value(u8),
    Half(u8),
    Hex(u8),
    Keyword(u8),
    Letters(u8),
    Line,
    /// The value with something unseen between its letters.
    Painted(u8, u8),
    Dumped(u8),
}

pub fn law(bytes: &[u8]) {
    let began = std::time::Instant::now();
    findings_are_in_the_text(bytes);
    nothing_is_lost(bytes);
    if let Some(case) = made_of(bytes) {
        streams_are_redacted(case);
    }
    assert!(began.elapsed().as_secs() < SECONDS, "it takes {:?}", began.elapsed());
}

fn findings_are_in_the_text(bytes: &[u8]) {
    let mut last = 0;
    for found in find(bytes, formats()) {
        let (start, end) = (found.at.start as usize, found.at.end as usize);
        assert!(last <= start && start < end && end <= bytes.len(), "{last} {start} {end}");
        let told = found.excerpt.as_bytes();
        assert!(!contains(told, &bytes[start..end]), "the excerpt tells it");
        last = end;
    }
}

fn nothing_is_lost(bytes: &[u8]) {
    let mut redactor = Redactor::new(&Values::new(), None);
    assert_eq!(whole(&mut redactor, bytes), bytes);
}

fn streams_are_redacted(case: Case) {
    let Case { values: written, pieces, cuts } = case;
    let mut values = Values::new();
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for (number, value) in written.into_iter().take(4).enumerate() {
        if values.add(&format!("S{number}"), &value) == Added::Kept {
            let end = value.iter().rposition(|byte| !b"\n\r".contains(byte)).map_or(0, |last| last + 1);
            kept.push(value[..end].to_vec());
        }
    }
    let text: Vec<u8> = pieces.iter().flat_map(|piece| spelled(piece, &kept)).take(32 << 10).collect();
    let mut redactor = Redactor::new(&values, Some(formats()));
    let expected = whole(&mut redactor, &text);
    let mut out = Vec::new();
    let mut rest = text.as_slice();
    let mut cuts = cuts.iter().map(|cut| usize::from(*cut)).cycle();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(cuts.next().unwrap_or(1).clamp(1, rest.len()));
        redactor.push(piece, &mut out);
        assert!(redactor.held() <= HELD, "{} bytes wait", redactor.held());
        rest = after;
    }
    redactor.finish(&mut out);
    // Where something is not seen as what it is, two secrets side by side may be one; and a letter that a backspace takes
    // back later may be shown before. Then less is taken out, and never the value less.
    let is_painted = text.iter().any(|byte| !matches!(byte, b' '..=b'~' | b'\n' | b'\t'));
    let same = out == expected || is_painted;
    assert!(same, "cut, it is {}\nand whole {}", out.escape_ascii(), expected.escape_ascii());
    for value in &kept {
        // What stands in the place of a secret may look like one.
        let is_a_name =
            value.iter().any(|byte| b"[]".contains(byte)) || names().iter().any(|name| contains(name, value));
        for text in [&expected, &out] {
            assert!(is_a_name || !contains(text, value), "{} is in {}", value.escape_ascii(), text.escape_ascii());
        }
    }
}

fn spelled(piece: &Piece, values: &[Vec<u8>]) -> Vec<u8> {
    let value = |number: &u8| values.get(usize::from(*number) % values.len().max(1)).cloned().unwrap_or_default();
    const KEYWORDS: &[&str] = &[
        "ghp_", "password=", "token: ", "-----BEGIN RSA PRIVATE KEY-----", "-----END", "eyJhbGciOiJIUzI1NiJ9.", "AKIA",
        "sk-proj-", "https://a:", "@b", "Bearer ", "xoxb-", "\"kty\":", "-----BEGIN PRIVATE KEY-----\n",
        "1234567890:AA", "abc8Q~",
    ];
    match piece {
        Piece::Bytes(bytes) => bytes.clone(),
        Piece::Value(number) => value(number),
        Piece::Half(number) => {
            let value = value(number);
            value[..value.len() / 2].to_vec()
        }
        Piece::Hex(number) => value(number).iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
        Piece::Keyword(number) => KEYWORDS[usize::from(*number) % KEYWORDS.len()].as_bytes().to_vec(),
        Piece::Letters(count) => (0..*count).map(|at| b"q7Rz2LmX9kVb4TnW"[usize::from(at ^ count) % 16]).collect(),
        Piece::Line => b"\n".to_vec(),
        Piece::Painted(number, paint) => {
            const PAINT: &[&str] = &["\x1b[31m", "\u{200b}", "\r", "\0", "\n", "\x1b]0;t\x07", "\x1b", "\u{feff}"];
            let columns = 1 + usize::from(*paint) / PAINT.len();
            let paint = PAINT[usize::from(*paint) % PAINT.len()];
            value(number).chunks(columns).collect::<Vec<_>>().join(paint.as_bytes())
        }
        Piece::Dumped(number) => {
            let cells = |part: &[u8]| part.iter().map(|byte| format!(" {byte:02x}")).collect::<String>();
            value(number).chunks(16).flat_map(|part| format!("0000000{}\n", cells(part)).into_bytes()).collect()
        }
    }
}

fn whole(redactor: &mut Redactor, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    redactor.push(text, &mut out);
    redactor.finish(&mut out);
    out
}

fn formats() -> &'static Formats {
    static FORMATS: OnceLock<Formats> = OnceLock::new();
    FORMATS.get_or_init(Formats::built_in)
}

fn names() -> &'static [Vec<u8>] {
    static NAMES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let ids = formats().iter().map(|format| format.id.to_string()).chain((0..4).map(|number| format!("S{number}")));
        ids.map(|id| format!("[redacted:{id}]").into_bytes()).collect()
    })
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|window| window == part)
}
