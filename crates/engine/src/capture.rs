//! What a run says, kept for its result while it passes on: the beginning and the end of each stream, without secrets.
//!
//! What goes to a person's terminal is shown without what commands it. What is kept here is the other form: all bytes as
//! they were said, but for secrets. Whoever writes it somewhere escapes it there.

use std::cell::RefCell;
use std::rc::Rc;

use model::{Captured, CapturedPart, CapturedStream, Outlet, Streams};
use secrets::kept::{HeadAndTail, Kept};
use secrets::text::Lossless;

use crate::release::Release;

/// Keeps so many bytes of each stream: half of them from its beginning, half from its end.
pub struct Capture {
    most: Option<usize>,
    output: Shared,
    error: Shared,
}

type Shared = Rc<RefCell<HeadAndTail>>;

impl Capture {
    pub fn new(most: Option<u64>) -> Capture {
        let most = most.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        Capture { most, output: empty(0), error: empty(0) }
    }

    /// The same streams, listened to. Whoever begins anew begins with nothing.
    pub fn around(&self, streams: Streams, release: &Release) -> Streams {
        let Some(most) = self.most else { return streams };
        for kept in [&self.output, &self.error] {
            kept.replace(HeadAndTail::new(most.div_ceil(2), most / 2));
        }
        let Streams { input, output, error, terminal, apart: _, witness, outside } = streams;
        let (stdout, stderr) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let listening = |inner: Option<Box<dyn Outlet>>, is_changed: bool, kept: &Shared| -> Option<Box<dyn Outlet>> {
            // What passes is what is kept, unless it is changed for a terminal or let through unseen.
            let raw = (is_changed || inner.is_none()).then(|| release.apart());
            Some(Box::new(Listening { inner, raw, kept: kept.clone(), between: Vec::new() }))
        };
        Streams {
            witness,
            input,
            output: listening(output, rustix::termios::isatty(stdout), &self.output),
            error: listening(error, rustix::termios::isatty(stderr), &self.error),
            // A terminal of its own has one stream.
            terminal: listening(terminal, true, &self.output),
            outside,
            apart: true,
        }
    }

    /// What was kept so far, if anything was to be.
    pub fn captured(&self) -> Option<Captured> {
        let most = self.most?;
        let taken = |kept: &Shared| stream(kept.replace(HeadAndTail::new(0, 0)).finish(), most);
        Some(Captured { stdout: taken(&self.output), stderr: taken(&self.error) })
    }
}

fn empty(most: usize) -> Shared {
    Rc::new(RefCell::new(HeadAndTail::new(most, most)))
}

fn stream(kept: Kept, limit: usize) -> CapturedStream {
    let Kept { mut head, tail, left_out, total } = kept;
    let tail = match left_out {
        0 => {
            head.extend(tail);
            None
        }
        _ => Some(part(tail)),
    };
    CapturedStream { head: part(head), left_out, tail, total, limit: limit as u64 }
}

fn part(bytes: Vec<u8>) -> CapturedPart {
    // As text where it is text: the form is that of `Lossless`, which is tried with all kinds of bytes.
    let written = serde_json::to_value(Lossless(bytes)).unwrap_or_default();
    CapturedPart {
        text: written["text"].as_str().unwrap_or_default().to_owned(),
        base64: written["base64"].as_str().map(str::to_owned),
    }
}

struct Listening {
    inner: Option<Box<dyn Outlet>>,
    /// Where what passes is not what is kept: what that goes through, which may be nothing.
    raw: Option<Option<Box<dyn Outlet>>>,
    kept: Shared,
    between: Vec<u8>,
}

impl Listening {
    /// Keeps what came, by itself; `passed` is what came of it on the other way.
    fn keep(&mut self, passed: &[u8], raw: impl FnOnce(&mut dyn Outlet, &mut Vec<u8>), plain: &[u8]) {
        self.between.clear();
        let kept = match &mut self.raw {
            None => passed,
            Some(None) => plain,
            Some(Some(outlet)) => {
                raw(outlet.as_mut(), &mut self.between);
                &self.between
            }
        };
        self.kept.borrow_mut().push(kept);
    }
}

impl Outlet for Listening {
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let before = out.len();
        match &mut self.inner {
            Some(inner) => inner.pass(bytes, out),
            None => out.extend_from_slice(bytes),
        }
        self.keep(&out[before..], |outlet, into| outlet.pass(bytes, into), bytes);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let before = out.len();
        if let Some(inner) = &mut self.inner {
            inner.end(out);
        }
        self.keep(&out[before..], |outlet, into| outlet.end(into), &[]);
    }

    fn holds(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.holds())
    }

    fn rest(&mut self, out: &mut Vec<u8>) {
        let before = out.len();
        if let Some(inner) = &mut self.inner {
            inner.rest(out);
        }
        // Nobody waits for what is kept: there, what is held stays held.
        self.keep(&out[before..], |_, _| {}, &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "fish-under-glass-9137";

    fn said(inner: bool, raw: bool, chunks: &[&[u8]], most: u64) -> (Vec<u8>, CapturedStream) {
        let release = Release::new(true, &[("DEPLOY_TOKEN".into(), TOKEN.into())], None, Vec::new());
        let capture = Capture::new(Some(most));
        let streams = capture.around(Streams::default(), &release);
        assert!(streams.apart);
        let mut listening = Listening {
            inner: inner.then(|| release.apart()).flatten(),
            raw: (raw || !inner).then(|| release.apart()),
            kept: capture.output.clone(),
            between: Vec::new(),
        };
        let mut out = Vec::new();
        chunks.iter().for_each(|chunk| listening.pass(chunk, &mut out));
        listening.end(&mut out);
        (out, capture.captured().expect("it was asked for").stdout)
    }

    #[test]
    fn what_is_kept_holds_no_secret_and_every_other_byte() {
        let chunks: &[&[u8]] = &[b"\x1b[31ma fish-un", b"der-glass-9137 ", b"\xff b\n"];
        for (inner, raw) in [(true, false), (true, true), (false, true)] {
            let (_, kept) = said(inner, raw, chunks, 1000);
            assert_eq!(kept.head.text, "\u{1b}[31ma [redacted:DEPLOY_TOKEN] \u{fffd} b\n");
            assert!(kept.head.base64.is_some() && kept.tail.is_none() && kept.left_out == 0, "{kept:?}");
        }
    }

    #[test]
    fn the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
        let long = "0123456789\n".repeat(1000);
        let (out, kept) = said(true, false, &[long.as_bytes()], 100);
        assert_eq!(out, long.as_bytes());
        let tail = kept.tail.expect("it was cut").text;
        assert!(kept.head.text.starts_with("0123") && tail.ends_with("789\n"));
        assert_eq!(kept.head.text.len() as u64 + kept.left_out + tail.len() as u64, kept.total);
        assert_eq!(kept.total, 11_000);
    }
}
