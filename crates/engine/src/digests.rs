//! What left a run through the release gate, by its hash: whoever has the output can compare it with the record.

use std::cell::RefCell;
use std::rc::Rc;

use model::{Outlet, Streams};
use serde_json::{Value, json};

/// Of each stream, what passed so far.
#[derive(Default)]
pub struct Digests {
    output: Shared,
    error: Shared,
    terminal: Shared,
}

type Shared = Rc<RefCell<Passed>>;

#[derive(Default)]
struct Passed {
    bytes: u64,
    /// Made when something comes: most streams say nothing.
    hasher: Option<Box<blake3::Hasher>>,
}

impl Digests {
    /// The same streams, digested. Those that nobody reads stay as they are. Whoever begins anew begins with nothing.
    pub fn around(&self, streams: Streams) -> Streams {
        let Streams { input, output, error, terminal, witness, outside, apart } = streams;
        let digested = |inner: Option<Box<dyn Outlet>>, passed: &Shared| -> Option<Box<dyn Outlet>> {
            passed.replace(Passed::default());
            inner.map(|inner| -> Box<dyn Outlet> { Box::new(Digested { inner, passed: passed.clone() }) })
        };
        Streams {
            input,
            output: digested(output, &self.output),
            error: digested(error, &self.error),
            terminal: digested(terminal, &self.terminal),
            witness,
            outside,
            apart,
        }
    }

    /// Of the streams that said something.
    pub fn told(&self) -> Vec<(&'static str, Value)> {
        let streams = [("stdout", &self.output), ("stderr", &self.error), ("terminal", &self.terminal)];
        let said = streams.into_iter().filter_map(|(name, passed)| {
            let passed = passed.borrow();
            let digest = passed.hasher.as_ref()?.finalize().to_hex();
            Some((name, json!({"bytes": passed.bytes, "blake3": digest.as_str()})))
        });
        said.collect()
    }
}

struct Digested {
    inner: Box<dyn Outlet>,
    passed: Shared,
}

impl Digested {
    fn count(&self, passed: &[u8]) {
        if passed.is_empty() {
            return;
        }
        let mut count = self.passed.borrow_mut();
        count.bytes += passed.len() as u64;
        count.hasher.get_or_insert_default().update(passed);
    }
}

impl Outlet for Digested {
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let before = out.len();
        self.inner.pass(bytes, out);
        self.count(&out[before..]);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let before = out.len();
        self.inner.end(out);
        self.count(&out[before..]);
    }

    fn holds(&self) -> bool {
        self.inner.holds()
    }

    fn rest(&mut self, out: &mut Vec<u8>) {
        let before = out.len();
        self.inner.rest(out);
        self.count(&out[before..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain;

    impl Outlet for Plain {
        fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
            out.extend_from_slice(bytes);
        }
        fn end(&mut self, out: &mut Vec<u8>) {
            out.extend_from_slice(b"end");
        }
        fn holds(&self) -> bool {
            false
        }
        fn rest(&mut self, _: &mut Vec<u8>) {}
    }

    #[test]
    fn what_passes_is_what_is_digested_and_silence_has_none() {
        let digests = Digests::default();
        let streams = Streams { output: Some(Box::new(Plain)), error: Some(Box::new(Plain)), ..Streams::default() };
        let mut streams = digests.around(streams);
        let mut out = b"what was there before ".to_vec();
        let output = streams.output.as_mut().expect("it has one");
        output.pass(b"a", &mut out);
        output.pass(b"b", &mut out);
        output.end(&mut out);
        let expected = blake3::hash(b"abend").to_hex();
        assert_eq!(digests.told(), [("stdout", json!({"bytes": 5, "blake3": expected.as_str()}))]);
        assert!(streams.terminal.is_none());
    }
}
