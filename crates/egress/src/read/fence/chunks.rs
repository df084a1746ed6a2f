//! A body in chunks: sizes are plain digits, and after the last one come few and harmless trailers.

use super::{Violation, head};

const MOST_DIGITS: usize = 16;
const LARGEST_TRAILERS: usize = 8 << 10;

pub struct Chunks {
    state: State,
    /// Of a line that has not ended. Lines go through whole.
    line: Vec<u8>,
}

enum State {
    Size,
    Data(u64),
    /// The line end after data.
    After,
    /// And how long the line before them is, which goes through with them.
    Trailers(usize),
    Over,
}

impl Chunks {
    pub fn new() -> Chunks {
        Chunks { state: State::Size, line: Vec::new() }
    }

    pub fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Violation> {
        match &mut self.state {
            State::Size => self.size(bytes[0], out).map(|()| 1),
            State::Data(left) => {
                let now = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                out.extend_from_slice(&bytes[..now]);
                self.passed(now as u64);
                Ok(now)
            }
            State::After => {
                self.line.push(bytes[0]);
                match self.line.as_slice() {
                    b"\r" => {}
                    b"\r\n" => {
                        out.append(&mut self.line);
                        self.state = State::Size;
                    }
                    _ => return Err(Violation("a chunk that is longer than it says")),
                }
                Ok(1)
            }
            State::Trailers(before) => {
                let before = *before;
                self.trailers(bytes[0], before, out).map(|()| 1)
            }
            State::Over => Ok(0),
        }
    }

    pub fn open_for(&self) -> u64 {
        if let State::Data(left) = self.state { left } else { 0 }
    }

    pub fn passed(&mut self, bytes: u64) {
        if let State::Data(left) = &mut self.state {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.state = State::After;
            }
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    pub fn way_out(&self) -> &'static [u8] {
        match self.state {
            State::Size | State::Trailers(_) => b"0\r\n\r\n",
            State::After => b"\r\n0\r\n\r\n",
            // Nothing is refused in there.
            State::Data(_) | State::Over => b"",
        }
    }

    fn size(&mut self, byte: u8, out: &mut Vec<u8>) -> Result<(), Violation> {
        let odd = Violation("a size of a chunk that is no plain number");
        let digits = self.line.strip_suffix(b"\r").unwrap_or(&self.line).len();
        match byte {
            _ if digits < self.line.len() && byte != b'\n' => return Err(odd),
            b'\n' if digits == self.line.len() => return Err(odd),
            b'\r' if digits == 0 => return Err(odd),
            b'\r' => {}
            b'\n' => {
                let text = std::str::from_utf8(&self.line[..digits]).map_err(|_| odd)?;
                let size = u64::from_str_radix(text, 16).map_err(|_| odd)?;
                self.line.push(byte);
                if size == 0 {
                    // Goes through with the trailers: a body whose trailers are bad has not ended.
                    self.state = State::Trailers(self.line.len());
                } else {
                    out.append(&mut self.line);
                    self.state = State::Data(size);
                }
                return Ok(());
            }
            b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' if digits < MOST_DIGITS => {}
            _ => return Err(odd),
        }
        self.line.push(byte);
        Ok(())
    }

    fn trailers(&mut self, byte: u8, before_them: usize, out: &mut Vec<u8>) -> Result<(), Violation> {
        let before = self.line.last().copied();
        let returned = before == Some(b'\r');
        if (byte == b'\n') != returned || (byte < b' ' && !matches!(byte, b'\r' | b'\n' | b'\t')) || byte == 0x7f {
            return Err(Violation("a trailer with a byte that has no business there"));
        }
        if self.line.len() >= LARGEST_TRAILERS {
            return Err(Violation("trailers that are too large"));
        }
        self.line.push(byte);
        if self.line.ends_with(b"\r\n\r\n") {
            head::trailers(&self.line[before_them..])?;
            out.append(&mut self.line);
            self.state = State::Over;
        }
        Ok(())
    }
}
