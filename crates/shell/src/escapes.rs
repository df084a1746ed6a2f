//! `$'…'`: text with escapes.

use crate::draft::Draft;
use crate::parse::{Parser, Stop};

impl Parser<'_> {
    /// `$'…'`, of which the opening was taken.
    pub(crate) fn escaped(&mut self, draft: &mut Draft) -> Result<(), Stop> {
        let from = self.at;
        let mut bytes = Vec::new();
        let mut is_known = true;
        loop {
            let letter = self.rest().chars().next().ok_or("a single quote is not closed")?;
            self.at += letter.len_utf8();
            match letter {
                '\'' => break,
                '\\' => match self.escape(&mut bytes) {
                    Some(true) => {}
                    Some(false) => is_known = false,
                    None => return Err("a single quote is not closed".to_owned()),
                },
                letter => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        self.literal.push((from, self.at - 1));
        // A zero byte ends it early, and other bytes may be no text: both are left open.
        match String::from_utf8(bytes) {
            Ok(text) if is_known && !text.contains('\0') => text.chars().for_each(|letter| draft.push_quoted(letter)),
            _ => draft.any(false),
        }
        Ok(())
    }

    /// One escape after its backslash. `None` at the end of the text, `false` where its meaning is not certain.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Option<bool> {
        let letter = self.rest().chars().next()?;
        self.at += letter.len_utf8();
        let number = |parser: &mut Self, radix: u32, most: usize| {
            let digits: String = parser.rest().chars().take(most).take_while(|digit| digit.is_digit(radix)).collect();
            parser.at += digits.len();
            u32::from_str_radix(&digits, radix).ok()
        };
        let plain = match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\x07',
            'b' => '\x08',
            'e' | 'E' => '\x1b',
            'f' => '\x0c',
            'v' => '\x0b',
            '\\' | '\'' | '"' | '?' => letter,
            '0'..='7' => {
                self.at -= 1;
                bytes.push(number(self, 8, 3)? as u8);
                return Some(true);
            }
            'x' => match number(self, 16, 2) {
                Some(value) => {
                    bytes.push(value as u8);
                    return Some(true);
                }
                None => return Some(false),
            },
            'u' | 'U' => match number(self, 16, if letter == 'u' { 4 } else { 8 }).and_then(char::from_u32) {
                Some(letter) => letter,
                None => return Some(false),
            },
            _ => return Some(false),
        };
        bytes.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
        Some(true)
    }
}
