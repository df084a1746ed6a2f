//! Escapes in texts: what most languages agree on.

use crate::limits::LONGEST_TEXT;

/// `\n`, `\x41`, `\u0041`, `\u{41}`, `\101`; anything else after a backslash stands for itself.
pub(crate) fn undone(raw: &[u8]) -> Vec<u8> {
    if !raw.contains(&b'\\') {
        return raw[..raw.len().min(LONGEST_TEXT)].to_vec();
    }
    let mut made = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        at += 1;
        if *byte != b'\\' {
            made.push(*byte);
            continue;
        }
        let Some(kind) = raw.get(at) else { break };
        at += 1;
        match kind {
            b'n' => made.push(b'\n'),
            b't' => made.push(b'\t'),
            b'r' => made.push(b'\r'),
            b'0'..=b'7' => {
                let digits = raw[at - 1..].iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                let value =
                    raw[at - 1..at - 1 + digits].iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                at += digits - 1;
                push(&mut made, value);
            }
            b'x' => at += hexadecimal(raw, at, 2, &mut made),
            b'u' if raw.get(at) == Some(&b'{') => {
                let digits = raw[at + 1..].iter().take(8).take_while(|byte| byte.is_ascii_hexdigit()).count();
                hexadecimal(raw, at + 1, digits, &mut made);
                at += (digits + 2).min(raw.len() - at);
            }
            b'u' => at += hexadecimal(raw, at, 4, &mut made),
            b'U' => at += hexadecimal(raw, at, 8, &mut made),
            b'\n' => {}
            other => made.push(*other),
        }
    }
    made
}

/// How many digits it was made of.
fn hexadecimal(raw: &[u8], at: usize, most: usize, made: &mut Vec<u8>) -> usize {
    let digits = raw[at.min(raw.len())..].iter().take(most).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let text = std::str::from_utf8(&raw[at.min(raw.len())..][..digits]).unwrap_or("");
    if let Ok(value) = u32::from_str_radix(text, 16) {
        push(made, value);
    }
    digits
}

fn push(made: &mut Vec<u8>, value: u32) {
    match value {
        // A byte that no text holds alone: payloads in bytes are written like this.
        0x80..=0xff => made.push(value as u8),
        _ => made.extend_from_slice(char::from_u32(value).unwrap_or('\u{fffd}').encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::undone;

    #[test]
    fn escapes_become_what_they_stand_for() {
        for (raw, text) in [
            (r"\x65\x76al", "eval"),
            (r"\145val", "eval"),
            (r"\u0065val", "eval"),
            (r"\u{65}val", "eval"),
            (r"a\nb\\", "a\nb\\"),
            (r"\", ""),
            (r"\x", ""),
            (r"\u{", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(&undone(raw.as_bytes())), text, "{raw}");
        }
    }
}
