//! However a stream is cut into pieces, the same comes out, and no value in any of its forms is in it.

use proptest::prelude::*;
use secrets::formats::examples::spelled_out;
use secrets::{Added, Formats, Redactor, Values};

fn whole(redactor: &mut Redactor, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    redactor.push(text, &mut out);
    redactor.finish(&mut out);
    out
}

fn cut(redactor: &mut Redactor, text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    for cut in cuts.iter().cycle().take(text.len() + 1) {
        let (piece, after) = rest.split_at((*cut).min(rest.len()));
        redactor.push(piece, &mut out);
        rest = after;
    }
    redactor.push(rest, &mut out);
    redactor.finish(&mut out);
    out
}

const VALUES: &[&str] = &[
    "correct horse/battery&staple", "pa$$'w\"ord\\9x", "aaaaaaab", "aaaaaaabaaaaaaab", "zeilenümbruch§12",
    "0123456789abcdefghij",
];

fn values() -> Values {
    let mut values = Values::new();
    for (number, value) in VALUES.iter().enumerate() {
        assert_eq!(values.add(&format!("NAME_{number}"), value.as_bytes()), Added::Kept);
    }
    values
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let examples: Vec<String> = [
        "ghp_⟨github 36⟩",
        "AKIA⟨base32 16⟩",
        "password = \"⟨alnum 28⟩\"",
        "Enter password: ",
        "postgres://a:⟨alnum 12⟩@b/c",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJ⟨alnum 30⟩.⟨base64url 43⟩",
        "sk-proj-⟨alnum 600⟩",
        "token=",
        "-----BEGIN RSA PRIVATE KEY-----\n⟨pem 3⟩\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----",
        "⟨pem 2⟩",
        "CLOUDFLARE_API_TOKEN=⟨alnum 40⟩",
        "⟨digits 10⟩:AA⟨alnum 33⟩",
        "Authorization: Bearer ⟨alnum 40⟩",
        "-----END",
        "abc8Q~⟨alnum 33⟩",
        "task-",
        "sk-",
        "⟨base64 70⟩",
    ]
    .iter()
    .map(|example| spelled_out(example).expect("a kind"))
    .collect();
    use base64::Engine;
    let engine = base64::engine::general_purpose::STANDARD;
    let mut known: Vec<Vec<u8>> = Vec::new();
    for value in VALUES {
        known.push(value.as_bytes().to_vec());
        known.push(engine.encode(format!("{}{value}{value}\n", "x".repeat(40))).into_bytes());
        let wrapped = engine.encode(format!("{}{value}", "y".repeat(41)));
        known.push(wrapped.as_bytes().chunks(64).collect::<Vec<_>>().join(&b"\n"[..]));
        known.push(wrapped.as_bytes().chunks(60).collect::<Vec<_>>().join(&b"\r\n  "[..]));
        known.push(value.bytes().map(|byte| format!("{byte:02X}")).collect::<String>().into_bytes());
    }
    let paint = ["\x1b[31m", "\u{200b}", "\x08", "\r", "\0", "\n", "\x1b]0;t\x07", "\x1b"];
    let mut painted: Vec<Vec<u8>> = Vec::new();
    for text in known.iter().chain(examples.iter().map(String::as_bytes).map(<[u8]>::to_vec).collect::<Vec<_>>().iter())
    {
        for (number, paint) in paint.iter().enumerate() {
            let parts: Vec<&[u8]> = text.chunks(1 + (number * 5 + text.len()) % 13).collect();
            painted.push(parts.join(paint.as_bytes()));
        }
        let cells = |part: &[u8]| part.iter().map(|byte| format!(" {byte:02x}")).collect::<String>();
        painted.push(text.chunks(16).map(|part| format!("0000000{}\n", cells(part))).collect::<String>().into_bytes());
    }
    prop_oneof![
        3 => prop::sample::select(painted),
        4 => prop::sample::select(known.clone()),
        3 => (prop::sample::select(known), 1usize..30).prop_map(|(text, cut)| text[..cut.min(text.len())].to_vec()),
        4 => prop::sample::select(examples.clone()).prop_map(String::into_bytes),
        2 => (prop::sample::select(examples), 1usize..60).prop_map(|(text, cut)| text.as_bytes()[..cut.min(text.len())].to_vec()),
        2 => prop::sample::select(vec!["\n", "\r\n", " ", "a", "\"", "=", "\\", "\\n", "-", "\n  ", "\x1b[0m", "\x08", "\u{200b}", "\r", "\x1b"]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => "[ -~]{0,60}".prop_map(String::into_bytes),
    ]
}

#[derive(Clone)]
struct Shown(Vec<u8>);

impl std::fmt::Debug for Shown {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.0.escape_ascii())
    }
}

fn text() -> impl Strategy<Value = Shown> {
    prop::collection::vec(piece(), 0..14).prop_map(|pieces| Shown(pieces.concat()))
}

/// Two secrets side by side may be one, where what lies between them is not seen.
fn joined(out: &[u8]) -> String {
    let text = String::from_utf8_lossy(out).replace("\x1b[31m", "").replace("\x1b[0m", "");
    let mut joined = String::new();
    let mut parts = text.split("[redacted:");
    joined.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (_, after) = part.split_once(']').unwrap_or(("", part));
        if !joined.ends_with('§') {
            joined.push('§');
        }
        joined.push_str(after);
    }
    joined
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cutting_gives_the_same(Shown(text) in text(), cuts in prop::collection::vec(1usize..80, 1..6)) {
        let mut redactor = Redactor::new(&values(), Some(&Formats::built_in()));
        let expected = whole(&mut redactor, &text);
        for cuts in [cuts.as_slice(), &[1]] {
            let out = cut(&mut redactor, &text, cuts);
            prop_assert_eq!(joined(&out), joined(&expected), "cut {:?}", cuts);
        }
    }

    #[test]
    fn no_value_comes_out(Shown(text) in text()) {
        let mut redactor = Redactor::new(&values(), Some(&Formats::built_in()));
        let out = whole(&mut redactor, &text);
        for value in VALUES {
            prop_assert!(!out.windows(value.len()).any(|part| part == value.as_bytes()), "{} in {:?}", value, String::from_utf8_lossy(&out));
        }
    }
}
