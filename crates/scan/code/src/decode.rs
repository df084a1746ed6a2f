//! Encodings that hide code. What they give is cut at a bound.

use std::io::Read;

use crate::limits::LONGEST_DECODED;

/// Both alphabets, with or without padding; spaces are passed over. `None` for what is none.
pub(crate) fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let (mut made, mut bits, mut held) = (Vec::with_capacity(text.len() / 4 * 3), 0_u32, 0);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            b' ' | b'\n' | b'\r' | b'\t' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            made.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
        if made.len() >= LONGEST_DECODED {
            break;
        }
    }
    Some(made)
}

pub(crate) fn base32(text: &[u8]) -> Option<Vec<u8>> {
    let (mut made, mut bits, mut held) = (Vec::new(), 0_u64, 0);
    for byte in text {
        let value = match byte.to_ascii_uppercase() {
            upper @ b'A'..=b'Z' => upper - b'A',
            digit @ b'2'..=b'7' => digit - b'2' + 26,
            b'=' => break,
            _ => return None,
        };
        bits = bits << 5 | u64::from(value);
        held += 5;
        if held >= 8 {
            held -= 8;
            made.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
        if made.len() >= LONGEST_DECODED {
            break;
        }
    }
    Some(made)
}

pub(crate) fn hexadecimal(text: &[u8]) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .iter()
        .filter(|byte| !b" \n\t:".contains(byte))
        .take(LONGEST_DECODED * 2)
        .map(|byte| char::from(*byte).to_digit(16).map(|digit| digit as u8))
        .collect();
    Some(digits?.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

pub(crate) fn rot13(text: &[u8]) -> Vec<u8> {
    let turn = |byte: u8, first: u8| (byte - first + 13) % 26 + first;
    text.iter()
        .take(LONGEST_DECODED)
        .map(|byte| match byte {
            b'a'..=b'z' => turn(*byte, b'a'),
            b'A'..=b'Z' => turn(*byte, b'A'),
            other => *other,
        })
        .collect()
}

/// `%41`.
pub(crate) fn percent(text: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let pair = text.get(at + 1..at + 3).and_then(hexadecimal).filter(|made| made.len() == 1);
        match (byte, pair) {
            (b'%', Some(pair)) => {
                made.extend_from_slice(&pair);
                at += 3;
            }
            (byte, _) => {
                made.push(*byte);
                at += 1;
            }
        }
    }
    made
}

/// zlib, gzip or bare deflate, whichever it is.
pub(crate) fn inflated(bytes: &[u8]) -> Option<Vec<u8>> {
    let bound = LONGEST_DECODED as u64;
    let mut made = Vec::new();
    let read = if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::GzDecoder::new(bytes).take(bound).read_to_end(&mut made)
    } else if bytes.first().is_some_and(|first| first & 0x0f == 8) {
        flate2::read::ZlibDecoder::new(bytes).take(bound).read_to_end(&mut made)
    } else {
        flate2::read::DeflateDecoder::new(bytes).take(bound).read_to_end(&mut made)
    };
    // What came before the end was broken is code all the same.
    (read.is_ok() || !made.is_empty()).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_comes_back() {
        assert_eq!(base64(b"cHJpbnQoMSk=").as_deref(), Some(b"print(1)".as_slice()));
        assert_eq!(base64(b"cHJp\nbnQoMSk").as_deref(), Some(b"print(1)".as_slice()));
        assert_eq!(base64(b"not base64!"), None);
        assert_eq!(base32(b"OBZGS3TUFAYSS===").as_deref(), Some(b"print(1)".as_slice()));
        assert_eq!(hexadecimal(b"7072696e74").as_deref(), Some(b"print".as_slice()));
        assert_eq!(rot13(b"cevag(1)"), b"print(1)");
        assert_eq!(percent(b"%65val%"), b"eval%");
    }

    #[test]
    fn a_bomb_is_cut() {
        let mut bomb = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut bomb, &vec![b'a'; 16 << 20]).expect("it is written");
        let bomb = bomb.finish().expect("it ends");
        assert_eq!(inflated(&bomb).map(|made| made.len()), Some(LONGEST_DECODED));
    }
}
