//! Progress, for whoever sits at a terminal: a line that goes again, and only when it takes long.

use std::cell::Cell;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::words;

/// Nothing is said of what takes less.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(100);

/// Standard error, if somebody looks at it.
#[derive(Default)]
pub struct Terminal {
    began: Cell<Option<Instant>>,
    said: Cell<Option<Instant>>,
}

impl model::Watch for Terminal {
    fn progress(&self, what: &str, done: u64, total: u64) {
        let now = Instant::now();
        if done == 0 || self.began.get().is_none() {
            self.began.set(Some(now));
        }
        let long = self.began.get().is_some_and(|began| now - began >= PATIENCE);
        let due = self.said.get().is_none_or(|said| now - said >= PAUSE);
        if done >= total {
            return self.clear();
        }
        if long && due && rustix::termios::isatty(rustix::stdio::stderr()) {
            self.said.set(Some(now));
            show(&format!("\r\x1b[Kbelljar: {} {done} of {total}", words::line(what)));
        }
    }

    fn warn(&self, text: &str) {
        self.clear();
        words::say(&format!("belljar: {text}"));
    }
}

impl Terminal {
    fn clear(&self) {
        if self.said.take().is_some() {
            show("\r\x1b[K");
        }
        self.began.set(None);
    }
}

fn show(text: &str) {
    let mut out = std::io::stderr();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) | Err(_) => {}
    }
}
