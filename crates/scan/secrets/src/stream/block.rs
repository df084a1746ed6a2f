//! The body of a private key: lines of base64 after a header, however they are indented, quoted or joined.

use crate::needles::is_base64;

/// A body is swallowed up to here.
const LONGEST: usize = 16 * 1024;
/// Letters that make lines a body. Less is an example or a name in a program.
const ENOUGH: usize = 16;
/// A run of base64 that no word is, wherever it stands in its line.
const RUN: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Prefix,
    Body,
    /// After the body: quotes, commas, a `\` that goes on in the next line.
    Suffix,
    Escape,
    /// `Proc-`: the name of a header, or dashes of the end.
    Name,
    /// `Proc-Type: …`
    Header,
}

/// Reads a body as its bytes come; the places are those of the buffer.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub start: usize,
    /// What is certainly of the body.
    pub end: usize,
    read: usize,
    length: usize,
    line: Line,
    /// Letters of whole lines, of this line, and in a row.
    letters: usize,
    in_line: usize,
    run: usize,
    run_end: usize,
    pub finished: bool,
}

impl Block {
    pub fn after(start: usize) -> Block {
        let line = Line::Prefix;
        Block {
            start,
            end: start,
            read: start,
            length: 0,
            line,
            letters: 0,
            in_line: 0,
            run: 0,
            run_end: start,
            finished: false,
        }
    }

    /// Enough of it to be a key.
    pub fn is_body(&self) -> bool {
        self.letters >= ENOUGH
    }

    pub fn moved(&mut self, by: usize) {
        for place in [&mut self.start, &mut self.end, &mut self.read, &mut self.run_end] {
            *place = place.saturating_sub(by);
        }
    }

    /// Goes on to the end of `text`, which is the end of everything if `last`.
    pub fn read(&mut self, text: &[u8], last: bool) {
        while !self.finished && self.read < text.len() {
            if self.length >= LONGEST {
                self.commit(self.read);
                self.finished = true;
                return;
            }
            self.step(text[self.read]);
            self.read += 1;
            self.length += 1;
        }
        if last && !self.finished {
            self.commit(text.len());
            self.finished = true;
        }
    }

    fn step(&mut self, letter: u8) {
        let place = self.read;
        if self.line == Line::Escape {
            match letter {
                b'n' | b'r' | b'\n' => self.breaks(place + 1),
                // Escaped twice.
                b'\\' => {}
                b'\r' | b'"' | b'\'' => self.line = Line::Suffix,
                _ => self.ends(),
            }
            return;
        }
        match (self.line, letter) {
            (_, b'\n') => self.breaks(place + 1),
            (Line::Header, 0x20..=0x7e | b'\t' | b'\r') if letter != b'\\' => {}
            (_, b'\r') => self.line = Line::Suffix,
            (_, b'\\') => self.line = Line::Escape,
            (Line::Body, b'-') => self.line = Line::Name,
            (Line::Body | Line::Name, b':') => self.line = Line::Header,
            (Line::Name, letter) if letter.is_ascii_alphabetic() => {}
            (Line::Prefix | Line::Body, letter)
                if letter != b'-' && letter != b'_' && (is_base64(letter) || letter == b'=') =>
            {
                self.body(place);
            }
            (Line::Suffix, letter) if self.run >= RUN && is_base64(letter) && letter != b'-' => {
                // Lines that someone joined with spaces.
                self.breaks(place);
                self.body(place);
            }
            (Line::Prefix, b' ' | b'\t' | b'>' | b'|' | b'"' | b'\'' | b'#' | b'*' | b'`' | b',') => {}
            (Line::Body | Line::Suffix, b' ' | b'\t' | b'"' | b'\'' | b',' | b';' | b')' | b'`' | b'|' | b'+') => {
                self.line = Line::Suffix;
            }
            _ => self.ends(),
        }
    }

    fn body(&mut self, place: usize) {
        if self.line == Line::Prefix {
            self.run = 0;
        }
        self.line = Line::Body;
        self.run += 1;
        self.in_line += 1;
        self.run_end = place + 1;
    }

    fn breaks(&mut self, next: usize) {
        self.commit(next);
        self.line = Line::Prefix;
        self.run = 0;
    }

    fn commit(&mut self, end: usize) {
        self.end = end;
        self.letters += self.in_line;
        self.in_line = 0;
    }

    /// Something that is no body. What stood before it in the line is one if it is long, or if dashes follow.
    fn ends(&mut self) {
        if self.run >= RUN || (self.line == Line::Name && self.in_line > 0 && self.letters + self.in_line >= RUN) {
            self.commit(self.run_end);
        }
        self.finished = true;
    }
}
