//! Output that is safe to show on a person's terminal: text, colours and what progress bars need; nothing else acts.
//!
//! What could act is shown as what it is, such as `␛[2J` or `<U+202E>`; a few sequences that honest programs send all the
//! time and that nobody would miss are left out. The raw bytes are someone else's to keep.

/// A sequence with more between its beginning and its end is none.
const LONGEST: usize = 64;
/// A string that is sent to the terminal ends here at the latest, so that none swallows what follows.
const LONGEST_STRING: usize = 4096;
/// How much of such a string is shown.
const SHOWN: usize = 24;

/// Strings to the terminal that are left out: titles, links, the folder, marks of prompts, progress.
const QUIET_STRINGS: &[&[u8]] = &[b"0", b"1", b"2", b"7", b"8", b"133", b"9;4"];
/// Modes whose change is left out: the cursor's looks, line wrap, one picture at a time.
const QUIET_MODES: &[&[u8]] = &[b"?25", b"?12", b"?7", b"?2026", b"?1"];

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Text,
    /// Bytes of a letter that is not whole.
    Letter {
        needs: usize,
    },
    /// After ESC.
    Escape,
    /// After ESC and a letter that says which kind of charset follows.
    Designate,
    /// After `ESC [`.
    Control,
    /// After `ESC ]` and its like.
    Message {
        kind: u8,
        length: usize,
        escape: bool,
    },
}

/// Cleans a stream. What comes out does not depend on how it is cut into pieces; what is kept is a few bytes.
#[derive(Clone, Debug)]
pub struct Cleaner {
    state: State,
    kept: Vec<u8>,
    coloured: bool,
    /// Set for programs that draw on the whole screen.
    screen: Option<Screen>,
}

/// What a program that draws has changed, to be put back when it is gone.
#[derive(Clone, Debug, Default)]
struct Screen {
    /// Private modes that it set or took back last, by number.
    modes: std::collections::BTreeMap<Vec<u8>, bool>,
    /// Another set of letters, keys that say something else, or lines that do not move.
    letters: bool,
    keys: bool,
    region: bool,
}

/// Modes that are set where nobody draws.
const USUALLY_SET: &[&[u8]] = &[b"7", b"25"];
/// More are not kept in mind.
const MOST_MODES: usize = 64;

impl Screen {
    fn mode(&mut self, numbers: &[u8], set: bool) {
        for number in numbers.split(|byte| *byte == b';').filter(|number| !number.is_empty() && number.len() < 6) {
            if self.modes.len() < MOST_MODES || self.modes.contains_key(number) {
                self.modes.insert(number.to_vec(), set);
            }
        }
    }

    /// As it was before, where it is not so by now.
    fn put_back(&self, out: &mut Vec<u8>) {
        if self.letters {
            out.extend_from_slice(b"\x1b(B\x0f");
        }
        for (number, set) in &self.modes {
            let usual = USUALLY_SET.contains(&number.as_slice());
            if *set != usual {
                out.extend_from_slice(b"\x1b[?");
                out.extend_from_slice(number);
                out.push(if usual { b'h' } else { b'l' });
            }
        }
        if self.region {
            // That moves the cursor too, which goes back to where it was.
            out.extend_from_slice(b"\x1b7\x1b[r\x1b8");
        }
        if self.keys {
            out.extend_from_slice(b"\x1b>");
        }
    }
}

impl Default for Cleaner {
    fn default() -> Cleaner {
        Cleaner::new()
    }
}

impl Cleaner {
    pub fn new() -> Cleaner {
        Cleaner { state: State::Text, kept: Vec::new(), coloured: false, screen: None }
    }

    /// For a program that has the terminal to itself, such as an editor: it may draw wherever it likes. What reaches
    /// beyond the screen (strings to the terminal, questions that it would answer as if somebody typed) is left out.
    pub fn of_a_screen() -> Cleaner {
        Cleaner { screen: Some(Screen::default()), ..Cleaner::new() }
    }

    /// Appends to `out` what is safe to show.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.state == State::Text {
                let plain = rest.iter().position(|byte| !PLAIN[usize::from(*byte)]).unwrap_or(rest.len());
                out.extend_from_slice(&rest[..plain]);
                rest = &rest[plain..];
            }
            if let Some((byte, after)) = rest.split_first() {
                // A byte that ends something may begin something else.
                while !self.takes(*byte, out) {}
                rest = after;
            }
        }
    }

    /// Shows what was begun and never ended, and takes back a colour. Afterwards another stream can begin.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match self.state.clone() {
            State::Text => {}
            State::Letter { .. } => self.show_bytes(out),
            State::Escape | State::Designate | State::Control => self.show_sequence(out),
            State::Message { kind, .. } => self.show_string(kind, out),
        }
        if self.coloured {
            out.extend_from_slice(b"\x1b[0m");
        }
        match &self.screen {
            Some(screen) => {
                screen.put_back(out);
                *self = Cleaner::of_a_screen();
            }
            None => *self = Cleaner::new(),
        }
    }

    /// Takes one byte; `false` if it ended something that it is no part of.
    fn takes(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match self.state.clone() {
            State::Text => self.text(byte, out),
            State::Letter { needs } => return self.letter(byte, needs, out),
            State::Escape => return self.escape(byte, out),
            State::Designate => match byte {
                0x20..=0x2f if self.kept.len() < LONGEST => self.kept.push(byte),
                0x30..=0x7e => {
                    // Back to plain letters is what every reset of colours sends.
                    let is_plain = self.kept == b"(" && byte == b'B';
                    let is_drawn = matches!(self.kept.as_slice(), b"(" | b")") && matches!(byte, b'B' | b'0');
                    self.kept.push(byte);
                    match &mut self.screen {
                        Some(screen) if is_drawn => {
                            screen.letters = true;
                            out.push(0x1b);
                            out.extend_from_slice(&self.kept);
                        }
                        _ if is_plain => {}
                        _ => self.show_sequence(out),
                    }
                    self.back_to_text();
                }
                _ => {
                    self.show_sequence(out);
                    return false;
                }
            },
            State::Control => return self.control(byte, out),
            State::Message { kind, length, escape } => return self.string(byte, kind, length, escape, out),
        }
        true
    }

    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            0x1b => self.state = State::Escape,
            // The bell, and another set of letters for lines and corners.
            0x07 if self.screen.is_some() => out.push(byte),
            0x0e | 0x0f if self.screen.is_some() => {
                self.screen.iter_mut().for_each(|screen| screen.letters = true);
                out.push(byte);
            }
            byte if PLAIN[usize::from(byte)] => out.push(byte),
            0..=0x1f => show(out, &String::from(char::from_u32(0x2400 + u32::from(byte)).unwrap_or('?'))),
            0x7f => show(out, "␡"),
            0xc2..=0xdf => self.begins_letter(byte, 2),
            0xe0..=0xef => self.begins_letter(byte, 3),
            0xf0..=0xf4 => self.begins_letter(byte, 4),
            _ => show(out, &format!("<{byte:02X}>")),
        }
    }

    fn begins_letter(&mut self, byte: u8, needs: usize) {
        self.kept.push(byte);
        self.state = State::Letter { needs };
    }

    fn letter(&mut self, byte: u8, needs: usize, out: &mut Vec<u8>) -> bool {
        if !(0x80..=0xbf).contains(&byte) {
            self.show_bytes(out);
            return false;
        }
        self.kept.push(byte);
        if self.kept.len() < needs {
            return true;
        }
        match std::str::from_utf8(&self.kept).ok().and_then(|text| text.chars().next()) {
            Some(letter) if misleads(letter) => show(out, &format!("<U+{:04X}>", letter as u32)),
            Some(_) => out.extend_from_slice(&self.kept),
            None => self.show_bytes(out),
        }
        self.back_to_text();
        true
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match byte {
            b'[' => {
                self.kept.push(byte);
                self.state = State::Control;
            }
            b']' | b'P' | b'X' | b'^' | b'_' => self.state = State::Message { kind: byte, length: 0, escape: false },
            0x20..=0x2f => {
                self.kept.push(byte);
                self.state = State::Designate;
            }
            // Where the cursor is kept, and lines that move.
            b'7' | b'8' | b'M' | b'D' | b'E' | b'=' | b'>' if self.screen.is_some() => {
                self.screen.iter_mut().for_each(|screen| screen.keys |= byte == b'=');
                out.extend_from_slice(&[0x1b, byte]);
                self.back_to_text();
            }
            // Keypads, and the end of a string that is over.
            b'=' | b'>' | b'\\' => self.back_to_text(),
            0x30..=0x7e => {
                self.kept.push(byte);
                self.show_sequence(out);
            }
            _ => {
                self.show_sequence(out);
                return false;
            }
        }
        true
    }

    fn control(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match byte {
            0x20..=0x3f if self.kept.len() < LONGEST => self.kept.push(byte),
            0x40..=0x7e => {
                let inside = &self.kept[1..];
                if let Some(screen) = &mut self.screen
                    && draws(inside, byte)
                {
                    out.extend_from_slice(b"\x1b[");
                    out.extend_from_slice(inside);
                    out.push(byte);
                    self.coloured |= byte == b'm';
                    screen.region |= byte == b'r';
                    if let (b'h' | b'l', Some(numbers)) = (byte, inside.strip_prefix(b"?")) {
                        screen.mode(numbers, byte == b'h');
                    }
                    self.back_to_text();
                } else if is_harmless(inside, byte) {
                    out.extend_from_slice(b"\x1b[");
                    out.extend_from_slice(inside);
                    out.push(byte);
                    if byte == b'm' {
                        self.coloured = !inside.is_empty() && inside != b"0";
                    }
                    self.back_to_text();
                } else if matches!(byte, b'h' | b'l') && QUIET_MODES.contains(&inside) {
                    self.back_to_text();
                } else {
                    self.kept.push(byte);
                    self.show_sequence(out);
                }
            }
            _ => {
                self.show_sequence(out);
                return false;
            }
        }
        true
    }

    fn string(&mut self, byte: u8, kind: u8, length: usize, escape: bool, out: &mut Vec<u8>) -> bool {
        if escape {
            self.show_string(kind, out);
            if byte == b'\\' {
                return true;
            }
            // Terminals give up a string when another sequence begins.
            self.state = State::Escape;
            return false;
        }
        match byte {
            0x1b => self.state = State::Message { kind, length, escape: true },
            0x07 | 0x18 | 0x1a => self.show_string(kind, out),
            b'\n' => {
                self.show_string(kind, out);
                return false;
            }
            _ if length >= LONGEST_STRING => {
                self.show_string(kind, out);
                return false;
            }
            _ => {
                if self.kept.len() <= SHOWN {
                    self.kept.push(byte);
                }
                self.state = State::Message { kind, length: length + 1, escape: false };
            }
        }
        true
    }

    fn back_to_text(&mut self) {
        self.kept.clear();
        self.state = State::Text;
    }

    fn show_bytes(&mut self, out: &mut Vec<u8>) {
        for byte in std::mem::take(&mut self.kept) {
            show(out, &format!("<{byte:02X}>"));
        }
        self.state = State::Text;
    }

    fn show_sequence(&mut self, out: &mut Vec<u8>) {
        // On a screen that somebody draws on, words in between would only be in the way.
        if self.screen.is_none() {
            show(out, "␛");
            // Only letters that are plain ever get in.
            out.extend_from_slice(&self.kept);
        }
        self.back_to_text();
    }

    fn show_string(&mut self, kind: u8, out: &mut Vec<u8>) {
        let is_quiet = |quiet: &&[u8]| {
            self.kept.strip_prefix(*quiet).is_some_and(|rest| rest.is_empty() || rest.starts_with(b";"))
        };
        if self.screen.is_none() && (kind != b']' || !QUIET_STRINGS.iter().any(is_quiet)) {
            show(out, "␛");
            out.push(kind);
            let plain = |byte: &u8| if (0x20..0x7f).contains(byte) { *byte } else { b'?' };
            out.extend(self.kept.iter().take(SHOWN).map(plain));
            if self.kept.len() > SHOWN {
                show(out, "…");
            }
        }
        self.back_to_text();
    }
}

/// Colours, and moves within the line: what progress bars need.
fn is_harmless(inside: &[u8], last: u8) -> bool {
    let digits = |most: usize| inside.len() <= most && inside.iter().all(u8::is_ascii_digit);
    match last {
        b'm' => inside.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':')) && !conceals(inside),
        b'K' => matches!(inside, b"" | b"0" | b"1" | b"2"),
        b'C' | b'D' | b'G' => digits(4),
        _ => false,
    }
}

/// What only changes the screen. Not in it: questions (`c`, `n`, `x`), windows (`t`), printers (`i`), keyboards (`>u`),
/// and whatever a terminal may know besides.
fn draws(inside: &[u8], last: u8) -> bool {
    let numbers = |inside: &[u8]| inside.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':'));
    let private = inside.strip_prefix(b"?");
    match last {
        b'A'..=b'H'
        | b'J'..=b'M'
        | b'P'
        | b'S'
        | b'T'
        | b'X'
        | b'Z'
        | b'@'
        | b'`'
        | b'a'
        | b'b'
        | b'd'
        | b'e'
        | b'f'
        | b'g'
        | b'r'
        | b's'
        | b'u'
        | b'm' => numbers(inside),
        b'h' | b'l' => numbers(private.unwrap_or(inside)),
        // The cursor's looks.
        b'q' => inside.ends_with(b" ") && numbers(&inside[..inside.len() - 1]),
        _ => false,
    }
}

/// Text that is there and can't be seen.
fn conceals(inside: &[u8]) -> bool {
    let mut parts =
        inside.split(|byte| *byte == b';').map(|part| part.split(|byte| *byte == b':').next().unwrap_or_default());
    let number = |part: &[u8]| std::str::from_utf8(part).ok().and_then(|part| part.parse::<u32>().ok());
    while let Some(part) = parts.next() {
        match number(part) {
            Some(8) => return true,
            // A colour by number or by its parts: those are no attributes.
            Some(38 | 48 | 58) => {
                let skipped = match parts.next().and_then(number) {
                    Some(5) => 1,
                    Some(2) => 3,
                    _ => 0,
                };
                for _ in 0..skipped {
                    parts.next();
                }
            }
            _ => {}
        }
    }
    false
}

/// Letters that change what others look like, or can't be seen.
fn misleads(letter: char) -> bool {
    matches!(letter,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

fn show(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Bytes that are themselves, wherever they stand in a text.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0x20;
    while byte < 0x7f {
        plain[byte] = true;
        byte += 1;
    }
    plain[b'\n' as usize] = true;
    plain[b'\t' as usize] = true;
    plain[b'\r' as usize] = true;
    plain[0x08] = true;
    plain
};

#[cfg(test)]
mod tests;
