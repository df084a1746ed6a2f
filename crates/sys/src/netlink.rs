//! Messages to the kernel's network, as netlink wants them: built in a buffer, sent in one piece, answered at once.
//!
//! A message is a header, a fixed part of its kind's own, and attributes; an attribute is its length, its kind and its
//! value, and may have others in it. Everything begins at a multiple of four. Numbers are in the machine's order, but for
//! those of the packet filter, which are in the network's.

use std::io;

use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Whom messages are for.
#[derive(Clone, Copy)]
pub(crate) enum To {
    Routing,
    PacketFilter,
}

// From linux/netlink.h.
const REQUEST: u16 = 0x1;
const ANSWER: u16 = 0x4;
const NEW: u16 = 0x200 | 0x400; // exclusively, and make it
const APPEND: u16 = 0x800 | 0x400;
const HEADER: usize = 16;
const OUTCOME: u16 = 2;
const NESTED: u16 = 0x8000;

/// How what is told relates to what is there.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// A mark between messages, such as where a batch begins.
    Mark,
    /// It must not be there yet.
    New,
    /// After those that are there.
    Append,
}

/// Messages, one after the other.
#[derive(Default)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
    count: u32,
    /// The last that was no mark: where its flags are, and its number.
    last: Option<(usize, u32)>,
}

impl Messages {
    /// A message of this `kind`: its fixed part, then whatever attributes `fill` adds.
    pub(crate) fn add(&mut self, kind: u16, how: How, fixed: &[u8], fill: impl FnOnce(&mut Attributes<'_>)) {
        let start = self.bytes.len();
        self.count += 1;
        let flags = match how {
            How::Mark => REQUEST,
            How::New => REQUEST | NEW,
            How::Append => REQUEST | APPEND,
        };
        // struct nlmsghdr: length, kind, flags, number, and who sends it: 0, the kernel knows.
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&flags.to_ne_bytes());
        self.bytes.extend_from_slice(&self.count.to_ne_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(fixed);
        pad(&mut self.bytes);
        fill(&mut Attributes(&mut self.bytes));
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
        if !matches!(how, How::Mark) {
            self.last = Some((start + 6, self.count));
        }
    }

    /// Sends them all. The kernel answers what fails unasked, in order, and is asked to answer the last: so if the first
    /// answer says that the last was done, all were.
    pub(crate) fn send(mut self, to: To) -> io::Result<()> {
        let Some((flags_at, last)) = self.last else { return Ok(()) };
        if let Some(flags) = self.bytes.get_mut(flags_at..flags_at + 2) {
            let asked = u16::from_ne_bytes([flags[0], flags[1]]) | ANSWER;
            flags.copy_from_slice(&asked.to_ne_bytes());
        }
        let protocol = match to {
            To::Routing => None,
            To::PacketFilter => Some(rustix::net::netlink::NETFILTER),
        };
        let socket = open(protocol)?;
        let sent = rustix::net::send(&socket, &self.bytes, SendFlags::empty())?;
        if sent != self.bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        // It has done all of it by now, so there is nothing to wait for.
        let mut answer = [0u8; 64];
        let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
        read_answer(answer.get(..length).unwrap_or_default(), last)
    }
}

fn open(protocol: Option<Protocol>) -> Result<std::os::fd::OwnedFd, Errno> {
    rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
}

/// struct nlmsgerr after a header: an error below zero, or zero; then the header of what it is about.
fn read_answer(answer: &[u8], last: u32) -> io::Result<()> {
    let number = |at: usize| answer.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_ne_bytes);
    let kind = answer.get(4..6).and_then(|two| two.try_into().ok()).map(u16::from_ne_bytes);
    let about = number(HEADER + 4 + 8);
    match (kind, number(HEADER).map(u32::cast_signed)) {
        (Some(OUTCOME), Some(0)) if about == Some(last) => Ok(()),
        (Some(OUTCOME), Some(error)) if (-4095..0).contains(&error) => Err(io::Error::from_raw_os_error(-error)),
        _ => Err(Errno::PROTO.into()),
    }
}

/// The attributes of a message, or of another attribute.
pub(crate) struct Attributes<'a>(&'a mut Vec<u8>);

impl Attributes<'_> {
    pub(crate) fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.inner(kind, |bytes| bytes.extend_from_slice(value))
    }

    /// Terminated, as the kernel wants names.
    pub(crate) fn name(&mut self, kind: u16, name: &str) -> &mut Self {
        self.inner(kind, |bytes| {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
        })
    }

    /// In the network's order.
    pub(crate) fn number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Attributes<'_>)) -> &mut Self {
        self.inner(kind | NESTED, |bytes| fill(&mut Attributes(bytes)))
    }

    fn inner(&mut self, kind: u16, fill: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        let start = self.0.len();
        // struct nlattr: length with this head and without the padding, kind.
        self.0.extend_from_slice(&[0; 2]);
        self.0.extend_from_slice(&kind.to_ne_bytes());
        fill(self.0);
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        pad(self.0);
        self
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_laid_out_as_the_kernel_reads_it() {
        let mut messages = Messages::default();
        messages.add(20, How::New, &[2, 32, 0, 0], |attributes| {
            attributes.bytes(2, &[198, 18, 0, 1]).nest(4, |inner| {
                inner.name(1, "nat");
            });
        });
        let mut expected = Vec::new();
        expected.extend_from_slice(&40u32.to_ne_bytes());
        expected.extend_from_slice(&20u16.to_ne_bytes());
        expected.extend_from_slice(&0x601u16.to_ne_bytes());
        expected.extend_from_slice(&1u32.to_ne_bytes());
        expected.extend_from_slice(&[0, 0, 0, 0, 2, 32, 0, 0]);
        expected.extend_from_slice(&8u16.to_ne_bytes());
        expected.extend_from_slice(&2u16.to_ne_bytes());
        expected.extend_from_slice(&[198, 18, 0, 1]);
        expected.extend_from_slice(&12u16.to_ne_bytes());
        expected.extend_from_slice(&0x8004u16.to_ne_bytes());
        expected.extend_from_slice(&8u16.to_ne_bytes());
        expected.extend_from_slice(&1u16.to_ne_bytes());
        expected.extend_from_slice(b"nat\0");
        assert_eq!(messages.bytes, expected);
    }

    #[test]
    fn what_is_no_multiple_of_four_is_padded_and_not_counted() {
        let mut messages = Messages::default();
        messages.add(1, How::Mark, &[], |attributes| {
            attributes.name(1, "redir").number(2, 1);
        });
        let attributes = &messages.bytes[HEADER..];
        assert_eq!(attributes[..2], 10u16.to_ne_bytes());
        assert_eq!(attributes[10..12], [0, 0]);
        assert_eq!(attributes[16..20], [0, 0, 0, 1]);
        assert_eq!(messages.bytes.len() % 4, 0);
    }

    #[test]
    fn only_the_word_that_the_last_was_done_is_success() {
        let answer = |kind: u16, error: i32, about: u32| {
            let mut answer = vec![0u8; 36];
            answer[4..6].copy_from_slice(&kind.to_ne_bytes());
            answer[16..20].copy_from_slice(&error.to_ne_bytes());
            answer[28..32].copy_from_slice(&about.to_ne_bytes());
            answer
        };
        assert!(read_answer(&answer(2, 0, 7), 7).is_ok());
        assert_eq!(read_answer(&answer(2, -1, 3), 7).map_err(|error| error.raw_os_error()), Err(Some(1)));
        assert!(read_answer(&answer(2, 0, 6), 7).is_err());
        assert!(read_answer(&answer(3, 0, 7), 7).is_err());
        assert!(read_answer(&answer(2, i32::MIN, 7), 7).is_err());
        let whole = answer(2, 0, 7);
        assert!((0..32).all(|length| read_answer(&whole[..length], 7).is_err()));
    }

    #[test]
    fn without_the_right_to_it_nothing_is_changed_and_that_is_said() {
        let socket = open(None).expect("anybody may ask");
        drop(socket);
        let mut messages = Messages::default();
        // A route over a device that there is not.
        messages.add(24, How::New, &[2, 0, 0, 0, 255, 3, 254, 2, 0, 0, 0, 0], |attributes| {
            attributes.bytes(4, &i32::MAX.to_ne_bytes());
        });
        assert!(messages.send(To::Routing).is_err());
    }
}
