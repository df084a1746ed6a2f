//! The beginning and the end of a stream that is too long, and how much was left out between them.

use std::collections::VecDeque;

/// How far a cut may be moved to a line's or letter's border.
const SLACK: usize = 256;

/// Keeps the first `head` and the last `tail` bytes. Its memory is bounded by the two, its time by what is pushed.
#[derive(Clone, Debug)]
pub struct HeadAndTail {
    head: Vec<u8>,
    most_head: usize,
    tail: VecDeque<u8>,
    most_tail: usize,
    total: u64,
}

/// What was kept. If nothing was left out, `head` and `tail` together are everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    pub left_out: u64,
    pub total: u64,
}

impl HeadAndTail {
    pub fn new(head: usize, tail: usize) -> HeadAndTail {
        HeadAndTail { head: Vec::new(), most_head: head, tail: VecDeque::new(), most_tail: tail, total: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.most_head - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        if rest.len() >= self.most_tail {
            self.tail.clear();
            self.tail.extend(&rest[rest.len() - self.most_tail..]);
            return;
        }
        let over = (self.tail.len() + rest.len()).saturating_sub(self.most_tail);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// How much was pushed.
    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn finish(self) -> Kept {
        let HeadAndTail { mut head, tail, total, .. } = self;
        let mut tail = Vec::from(tail);
        let kept = (head.len() + tail.len()) as u64;
        if kept < total {
            head.truncate(end_of_head(&head));
            tail.drain(..start_of_tail(&tail));
        }
        let left_out = total - (head.len() + tail.len()) as u64;
        Kept { head, tail, left_out, total }
    }
}

impl Kept {
    /// As one text, with a line that says what is missing.
    pub fn joined(&self) -> Vec<u8> {
        let Kept { head, tail, left_out, .. } = self;
        let mut text = head.clone();
        if *left_out > 0 {
            if text.last().is_some_and(|last| *last != b'\n') {
                text.push(b'\n');
            }
            text.extend(format!("[… {left_out} bytes left out …]\n").into_bytes());
        }
        text.extend_from_slice(tail);
        text
    }
}

/// After its last line if that is near, else after its last whole letter.
fn end_of_head(head: &[u8]) -> usize {
    let near = head.len().saturating_sub(SLACK.min(head.len() / 4));
    if let Some(line) = memchr::memrchr(b'\n', &head[near..]) {
        return near + line + 1;
    }
    let back = head.iter().rev().take(4).position(|byte| (*byte & 0xc0) != 0x80);
    let Some(back) = back else { return head.len() };
    let start = head.len() - 1 - back;
    let needs = match head[start] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if back + 1 < needs { start } else { head.len() }
}

/// At its first line if that is near, else at its first whole letter.
fn start_of_tail(tail: &[u8]) -> usize {
    let near = SLACK.min(tail.len() / 4);
    if let Some(line) = memchr::memchr(b'\n', &tail[..near]) {
        return line + 1;
    }
    tail.iter().take(3).take_while(|byte| (**byte & 0xc0) == 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_is_kept_whole() {
        let mut kept = HeadAndTail::new(4, 4);
        kept.push(b"abc");
        kept.push(b"defgh");
        assert_eq!(kept.finish().joined(), b"abcdefgh");
    }

    #[test]
    fn the_middle_is_left_out_and_counted() {
        let mut kept = HeadAndTail::new(4, 4);
        kept.push(b"abcdefghijkl");
        assert_eq!(String::from_utf8(kept.finish().joined()).unwrap(), "abcd\n[… 4 bytes left out …]\nijkl");
    }

    #[test]
    fn cuts_are_at_lines_where_one_is_near() {
        let text: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        let mut kept = HeadAndTail::new(1000, 1000);
        kept.push(text.as_bytes());
        let kept = kept.finish();
        assert!(kept.head.ends_with(b"\n") && kept.tail.starts_with(b"line "));
        assert_eq!(kept.head.len() as u64 + kept.left_out + kept.tail.len() as u64, kept.total);
    }

    #[test]
    fn no_letter_is_cut() {
        for (head, tail) in [(5, 5), (6, 6), (7, 7), (8, 8)] {
            let mut kept = HeadAndTail::new(head, tail);
            kept.push("€".repeat(50).as_bytes());
            let kept = kept.finish();
            assert!(std::str::from_utf8(&kept.head).is_ok() && std::str::from_utf8(&kept.tail).is_ok());
        }
    }

    #[test]
    fn nothing_may_be_kept() {
        let mut kept = HeadAndTail::new(0, 0);
        kept.push(b"abc");
        assert_eq!(kept.finish().left_out, 3);
    }

    proptest! {
        #[test]
        fn any_cutting_keeps_the_same(text in prop::collection::vec(any::<u8>(), 0..600), at in 0usize..600, head in 0usize..300, tail in 0usize..300) {
            let mut one = HeadAndTail::new(head, tail);
            one.push(&text);
            let mut two = HeadAndTail::new(head, tail);
            let (first, rest) = text.split_at(at.min(text.len()));
            two.push(first);
            rest.iter().for_each(|byte| two.push(&[*byte]));
            let (one, two) = (one.finish(), two.finish());
            prop_assert_eq!(&one, &two);
            prop_assert!(text.starts_with(&one.head) && text.ends_with(&one.tail));
            prop_assert_eq!(one.head.len() as u64 + one.left_out + one.tail.len() as u64, text.len() as u64);
            prop_assert!(one.left_out > 0 || one.joined() == text);
        }
    }
}
