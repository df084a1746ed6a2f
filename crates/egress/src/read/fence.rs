//! A fence before the parser of HTTP/1.1: it knows where each request begins and ends, and lets only bytes through that
//! everybody reads in the same way. Pure: bytes in, bytes out, and one answer however they were cut.
//!
//! Requests are smuggled where two readers disagree about where one ends. Whatever leaves room for that is refused here,
//! also where a specification would let it pass: lines that end in anything but CRLF, lengths said twice, extensions of
//! chunks, lines that go on.

mod chunks;
mod head;
mod host;

use model::Endpoint;

use {chunks::Chunks, head::Follows};
pub(super) use {head::may_trail, host::is_host};

/// Headers of a request, at most.
pub(super) const MOST_HEADERS: usize = 100;
/// Bytes of the head of a request, at most.
pub(super) const LARGEST_HEAD: usize = 64 << 10;

/// What is wrong with a request, in a few words for whoever sent it. Never what they wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation(pub &'static str);

pub struct Fence {
    endpoint: Endpoint,
    state: State,
    /// What has come of a head. It goes through whole, or not at all.
    head: Vec<u8>,
    heads: u64,
}

enum State {
    Head,
    Length(u64),
    Chunks(Chunks),
    /// After a request that wants to speak something else: whether it may is for the server to say.
    Held,
    Raw,
    /// And what a reader behind the fence needs to come to an end of the body that it is in.
    Closed(Violation, Option<&'static [u8]>),
}

impl Fence {
    /// For requests to one place, and no other.
    pub fn new(endpoint: Endpoint) -> Fence {
        Fence { endpoint, state: State::Head, head: Vec::new(), heads: 0 }
    }

    /// Takes bytes, adds what is sound to `out`, and says how many were taken: less than all only if they must wait for the
    /// answer to a request that wants to speak something else.
    pub fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Violation> {
        let mut at = 0;
        while at < bytes.len() {
            let left = &bytes[at..];
            let taken = match &mut self.state {
                State::Head => self.take_of_head(left, out),
                State::Length(length) => {
                    let now = left.len().min(usize::try_from(*length).unwrap_or(usize::MAX));
                    out.extend_from_slice(&left[..now]);
                    *length -= now as u64;
                    Ok(now)
                }
                State::Chunks(chunks) => chunks.take(left, out),
                State::Held => return Ok(at),
                State::Raw => {
                    out.extend_from_slice(left);
                    Ok(left.len())
                }
                State::Closed(violation, _) => return Err(*violation),
            };
            match taken {
                Ok(taken) => at += taken,
                Err(violation) => return Err(self.close(violation)),
            }
            self.ends();
        }
        Ok(at)
    }

    /// How many bytes may pass now without being looked at.
    pub fn open_for(&self) -> u64 {
        match &self.state {
            State::Length(length) => *length,
            State::Chunks(chunks) => chunks.open_for(),
            State::Raw => u64::MAX,
            State::Head | State::Held | State::Closed(..) => 0,
        }
    }

    /// So many of them have passed; never more than it was open for.
    pub fn passed(&mut self, bytes: u64) {
        match &mut self.state {
            State::Length(length) => *length = length.saturating_sub(bytes),
            State::Chunks(chunks) => chunks.passed(bytes),
            State::Raw | State::Head | State::Held | State::Closed(..) => {}
        }
        self.ends();
    }

    /// How many heads have passed.
    pub fn heads(&self) -> u64 {
        self.heads
    }

    /// Whether it waits for an answer.
    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Held)
    }

    /// The answer: whether both speak something else from now on.
    pub fn answered(&mut self, switched: bool) {
        if self.is_held() {
            self.state = if switched { State::Raw } else { State::Head };
        }
    }

    /// Whether the last request has come whole, and nothing of another.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Head) && self.head.is_empty()
    }

    /// Whether a head has begun and not ended.
    pub fn is_in_head(&self) -> bool {
        matches!(self.state, State::Head) && !self.head.is_empty()
    }

    /// Nothing passes any more.
    pub fn close(&mut self, violation: Violation) -> Violation {
        let way_out = if let State::Chunks(chunks) = &self.state { Some(chunks.way_out()) } else { None };
        self.state = State::Closed(violation, way_out);
        violation
    }

    /// When it is closed: what a reader behind it needs to come to an end of the body that it is in, if it is in one.
    pub fn way_out_of_body(&self) -> Option<&'static [u8]> {
        if let State::Closed(_, way_out) = self.state { way_out } else { None }
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(..))
    }

    fn take_of_head(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Violation> {
        for (at, &byte) in bytes.iter().enumerate() {
            let before = self.head.last().copied();
            match byte {
                b'\n' if before != Some(b'\r') => return Err(Violation("a line ends without a carriage return")),
                b'\n' => {}
                _ if before == Some(b'\r') => return Err(Violation("a carriage return that ends no line")),
                b'\r' | b'\t' => {}
                0 => return Err(Violation("a byte that is zero")),
                0x01..=0x1f | 0x7f => return Err(Violation("a byte that is no letter")),
                _ => {}
            }
            if self.head.len() >= LARGEST_HEAD {
                return Err(Violation("a head that is too large"));
            }
            self.head.push(byte);
            if byte == b'\n' && (self.head.ends_with(b"\r\n\r\n") || self.head == b"\r\n") {
                let follows = head::read(&self.head, &self.endpoint)?;
                out.append(&mut self.head);
                self.heads += 1;
                self.state = match follows {
                    Follows::Nothing => State::Head,
                    Follows::Length(length) => State::Length(length),
                    Follows::Chunks => State::Chunks(Chunks::new()),
                    Follows::Another => State::Held,
                };
                return Ok(at + 1);
            }
        }
        Ok(bytes.len())
    }

    fn ends(&mut self) {
        let ended = match &self.state {
            State::Length(length) => *length == 0,
            State::Chunks(chunks) => chunks.is_over(),
            _ => false,
        };
        if ended {
            self.state = State::Head;
        }
    }
}
