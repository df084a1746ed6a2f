//! The forms in which programs print a value: plain, base64 wherever it begins in it, hex and other numbers, for URLs,
//! JSON, HTML, shells; backwards, and spaced out.

use super::Form;
use crate::needles::Breaks;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Shorter forms would be found by chance.
const SHORTEST: usize = 6;

pub(super) fn of(value: &[u8], name: u32) -> Vec<Form> {
    let mut forms: Vec<Form> = vec![Form { bytes: value.to_vec(), name, open_end: false, breaks: Breaks::Anywhere }];
    let mut add = |bytes: Vec<u8>, open_end: bool, wraps: bool| {
        let breaks = if wraps { Breaks::Wrapped } else { Breaks::Never };
        if bytes.len() >= SHORTEST && !forms.iter().any(|known| known.bytes == bytes) {
            forms.push(Form { bytes, name, open_end, breaks });
        }
    };
    for text in [STANDARD_NO_PAD.encode(value), URL_SAFE_NO_PAD.encode(value)] {
        add(text.into_bytes(), false, true);
    }
    for skipped in 0..3 {
        let (standard, safe) = base64_from(value, skipped);
        add(standard, true, true);
        add(safe, true, true);
    }
    let hex = |between: &str, capital: bool| -> Vec<u8> {
        let parts: Vec<String> =
            value.iter().map(|byte| if capital { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect();
        parts.join(between).into_bytes()
    };
    // `xxd -p` and many hashes' tools break lines.
    add(hex("", false), false, true);
    add(hex("", true), false, true);
    add(hex(":", false), false, false);
    add(hex(":", true), false, false);
    add(hex(" ", false), false, false);
    add(hex(" ", true), false, false);
    add(hex("\\x", false), false, false);
    add(hex(", 0x", false), false, false);
    // As lists of numbers, and in the wrong order or spaced out, which a reader puts right at once.
    let decimals: Vec<String> = value.iter().map(u8::to_string).collect();
    add(decimals.join(", ").into_bytes(), false, false);
    add(value.iter().rev().copied().collect(), false, false);
    let spaced: Vec<u8> = value.iter().flat_map(|byte| [*byte, b' ']).collect();
    add(spaced[..spaced.len().saturating_sub(1)].to_vec(), false, false);
    for capital in [true, false] {
        add(percent(value, capital, is_unreserved), false, false);
        // As JavaScript does: these stay.
        add(percent(value, capital, |letter| is_unreserved(letter) || b"!'()*".contains(&letter)), false, false);
        // What may stand in a path or a query.
        add(
            percent(value, capital, |letter| is_unreserved(letter) || b"!$&'()*+,;=:@/?".contains(&letter)),
            false,
            false,
        );
        add(percent(value, capital, |letter| is_unreserved(letter) || letter == b'/'), false, false);
        add(percent(value, capital, |_| false), false, false);
        let form = percent(value, capital, |letter| is_unreserved(letter) || letter == b' ' || letter == b'*');
        add(form.iter().map(|letter| if *letter == b' ' { b'+' } else { *letter }).collect(), false, false);
    }
    add(json(value, false, false), false, false);
    add(json(value, true, false), false, false);
    add(json(value, false, true), false, false);
    add(html(value, "&#39;"), false, false);
    add(html(value, "&#x27;"), false, false);
    add(
        replaced(value, |letter, out| match letter {
            b'\'' => out.extend(b"'\\''"),
            _ => out.push(letter),
        }),
        false,
        false,
    );
    // In double quotes, and as `printf %q` writes it.
    add(escaped(value, b"\"$`\\"), false, false);
    add(escaped(value, b" \t!\"#$&'()*,;<>?[\\]^`{|}~"), false, false);
    add(
        replaced(value, |letter, out| match letter {
            b'\n' => out.extend(b"\r\n"),
            _ => out.push(letter),
        }),
        false,
        false,
    );
    forms
}

/// The letters that the value alone decides, if `skipped` other bytes stand before it.
fn base64_from(value: &[u8], skipped: usize) -> (Vec<u8>, Vec<u8>) {
    let mut padded = vec![0; skipped];
    padded.extend(value);
    // Bits before the value, and whole letters after its last bit.
    let first = (skipped * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    let cut = |text: String| text.into_bytes().get(first..last).unwrap_or_default().to_vec();
    (cut(STANDARD_NO_PAD.encode(&padded)), cut(URL_SAFE_NO_PAD.encode(&padded)))
}

fn is_unreserved(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || b"-._~".contains(&letter)
}

fn percent(value: &[u8], capital: bool, stays: impl Fn(u8) -> bool) -> Vec<u8> {
    replaced(value, |letter, out| match letter {
        letter if stays(letter) => out.push(letter),
        letter if capital => out.extend(format!("%{letter:02X}").into_bytes()),
        letter => out.extend(format!("%{letter:02x}").into_bytes()),
    })
}

fn json(value: &[u8], slashes: bool, ascii: bool) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(value) else { return Vec::new() };
    let mut out = Vec::with_capacity(value.len() * 2);
    for letter in text.chars() {
        match letter {
            '"' => out.extend(b"\\\""),
            '\\' => out.extend(b"\\\\"),
            '\n' => out.extend(b"\\n"),
            '\r' => out.extend(b"\\r"),
            '\t' => out.extend(b"\\t"),
            '/' if slashes => out.extend(b"\\/"),
            letter if (letter as u32) < 0x20 || (ascii && (!letter.is_ascii() || "<>&'".contains(letter))) => {
                let mut units = [0; 2];
                for unit in letter.encode_utf16(&mut units) {
                    out.extend(format!("\\u{unit:04x}").into_bytes());
                }
            }
            letter => out.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    out
}

fn html(value: &[u8], quote: &str) -> Vec<u8> {
    replaced(value, |letter, out| match letter {
        b'&' => out.extend(b"&amp;"),
        b'<' => out.extend(b"&lt;"),
        b'>' => out.extend(b"&gt;"),
        b'"' => out.extend(b"&quot;"),
        b'\'' => out.extend(quote.as_bytes()),
        _ => out.push(letter),
    })
}

fn escaped(value: &[u8], letters: &[u8]) -> Vec<u8> {
    replaced(value, |letter, out| {
        if letters.contains(&letter) {
            out.push(b'\\');
        }
        out.push(letter);
    })
}

fn replaced(value: &[u8], mut each: impl FnMut(u8, &mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() * 2);
    value.iter().for_each(|letter| each(*letter, &mut out));
    out
}
