//! Examples of formats say what stands in them instead of a token: `ghp_⟨github 36⟩`. So no file has a text that someone
//! could take for a real one, and each example is spelled out the same way every time.

use super::checks;

/// The longest part that is made up.
const LONGEST: usize = 4096;

const DIGITS: &[u8] = b"0123456789";
const HEX: &[u8] = b"0123456789abcdef";
const CAPITAL_HEX: &[u8] = b"0123456789ABCDEF";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const ALNUM: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE64: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";
const BASE64_URL: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

/// An example with all its `⟨kind length⟩` spelled out; an error says which is not understood.
pub fn spelled_out(example: &str) -> Result<String, String> {
    let mut text = String::with_capacity(example.len());
    let mut rest = example;
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15 ^ example.len() as u64);
    while let Some((before, after)) = rest.split_once('⟨') {
        text.push_str(before);
        let Some((inside, after)) = after.split_once('⟩') else { return Err("`⟨` is not closed".to_owned()) };
        let (kind, count) = inside.split_once(' ').unwrap_or((inside, "1"));
        let count = count.parse().ok().filter(|count| *count <= LONGEST);
        let Some(count) = count else { return Err(format!("`⟨{inside}⟩` has no length up to {LONGEST}")) };
        let made = made_up(kind, count, &mut chance).ok_or_else(|| format!("`⟨{inside}⟩` is of no known kind"))?;
        text.push_str(&made);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

fn made_up(kind: &str, count: usize, chance: &mut Chance) -> Option<String> {
    let letters = match kind {
        "digits" => DIGITS,
        "hex" => HEX,
        "HEX" => CAPITAL_HEX,
        "lower" => LOWER,
        "upper" => UPPER,
        "letters" => LETTERS,
        "alnum" => ALNUM,
        "base32" => BASE32,
        "base64" => BASE64,
        "base64url" => BASE64_URL,
        "github" => {
            let body = some(ALNUM, count.checked_sub(6)?, chance);
            let sum = checks::checksum(body.as_bytes());
            return Some(body + &String::from_utf8_lossy(&sum));
        }
        "uuid" => {
            let parts = [8, 4, 4, 4, 12].map(|length| some(HEX, length, chance));
            return Some(parts.join("-"));
        }
        "pem" => {
            let lines: Vec<String> = (0..count).map(|_| some(BASE64, 64, chance)).collect();
            return Some(lines.join("\n"));
        }
        "x" => return Some("x".repeat(count)),
        "newline" => return Some("\n".repeat(count)),
        _ => return None,
    };
    Some(some(letters, count, chance))
}

fn some(letters: &[u8], count: usize, chance: &mut Chance) -> String {
    // Never the same letter twice in a row, so that chance makes no placeholder.
    let mut last = 0;
    let mut text = String::with_capacity(count);
    while text.len() < count {
        let letter = letters[(chance.next() % letters.len() as u64) as usize];
        if letter != last {
            text.push(char::from(letter));
            last = letter;
        }
    }
    text
}

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 20
    }
}
