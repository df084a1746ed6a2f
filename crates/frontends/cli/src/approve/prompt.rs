//! Asking the person who sits at this terminal, if there is one: where a command asks, and in `belljar approve`.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use model::{Answer, Conversation, Decision, Parked, Person, Standing, agents};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, isatty, tcflush, tcgetpgrp, tcgetwinsize};

use super::dialogue::{self, Dialogue, Next, Stage};
use super::shown;
use crate::words;

/// No clear answer is longer.
const LONGEST: usize = 256;
const WIDTH: usize = 80;

/// The person at the terminal that this process belongs to, whatever its input and output are.
pub struct Prompt;

impl Person for Prompt {
    fn ask(&self, parked: &Parked, standing: &[Standing]) -> Option<Box<dyn Conversation>> {
        if agents::is_inside(std::env::vars_os()) || agents::detected(std::env::vars_os()).is_some() {
            return None;
        }
        // Nobody looks where our words go to a file.
        if !isatty(rustix::stdio::stderr()) {
            return None;
        }
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let terminal = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()?;
        // In the background, another program has the person's attention, and their keys.
        if tcgetpgrp(&terminal).ok()? != rustix::process::getpgrp() {
            return None;
        }
        let mut lines = shown::lines(parked, width(&terminal))?;
        lines.push(format!("or answer elsewhere: belljar approve {}", parked.id));
        let mut asked = Asked {
            dialogue: Dialogue::new(parked.offers),
            standing: shown::standing(standing, width(&terminal)),
            terminal,
            heard: Vec::new(),
        };
        asked.show(&words::page(lines)).ok()?;
        asked.prompt().ok()?;
        Some(Box::new(asked))
    }
}

struct Asked {
    terminal: OwnedFd,
    dialogue: Dialogue,
    /// What `always` would write down, as it is shown.
    standing: Vec<String>,
    heard: Vec<u8>,
}

impl Conversation for Asked {
    fn input(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }

    fn heard(&mut self) -> Option<Answer> {
        let no = Some(dialogue::answer(Decision::Deny));
        let mut bytes = [0; LONGEST];
        match rustix::io::read(&self.terminal, &mut bytes) {
            // The end of input: the person is gone.
            Ok(0) => return no,
            Ok(length) => self.heard.extend_from_slice(&bytes[..length]),
            Err(Errno::WOULDBLOCK | Errno::INTR) => return None,
            Err(_) => return no,
        }
        if self.heard.len() > LONGEST {
            return no;
        }
        let line = first_line(&self.heard)?;
        self.heard.clear();
        match self.dialogue.hear(&line) {
            Next::Answer(decision) => Some(dialogue::answer(decision)),
            // Whoever can't be asked has not said yes.
            Next::Ask => self.prompt().err().and(no),
        }
    }

    fn end(self: Box<Self>, said: Option<&str>) {
        if let Some(said) = said {
            // Who is not there any more misses nothing: the outcome says it too.
            match self.show(&format!("\nbelljar: {}\n", words::line(said))) {
                Ok(()) | Err(_) => {}
            }
        }
    }
}

impl Asked {
    fn prompt(&mut self) -> Result<(), Errno> {
        if self.dialogue.stage() == Stage::Confirm(Decision::Always) {
            self.show(&words::page(self.standing.clone()))?;
        }
        // What was typed, or pushed into the terminal, before the question was there is no answer to it.
        tcflush(&self.terminal, QueueSelector::IFlush)?;
        self.show(&self.dialogue.prompt())
    }

    fn show(&self, text: &str) -> Result<(), Errno> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match rustix::io::write(&self.terminal, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                // A terminal that is slow, not gone.
                Err(Errno::WOULDBLOCK) => {
                    let mut ready = [rustix::event::PollFd::new(&self.terminal, rustix::event::PollFlags::OUT)];
                    rustix::event::poll(&mut ready, None)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Asks on standard input, which is a terminal, until there is an answer. `standing`: shown before it is written down.
pub fn converse(mut dialogue: Dialogue, standing: &[String]) -> Decision {
    let input = rustix::stdio::stdin();
    loop {
        if dialogue.stage() == Stage::Confirm(Decision::Always) {
            standing.iter().for_each(|line| words::say(line));
        }
        let mut out = std::io::stderr();
        let flushed = tcflush(input, QueueSelector::IFlush).map_err(std::io::Error::from);
        if flushed.and_then(|()| out.write_all(dialogue.prompt().as_bytes())).and_then(|()| out.flush()).is_err() {
            return Decision::Deny;
        }
        let Some(line) = one_line(input) else { return Decision::Deny };
        if let Next::Answer(decision) = dialogue.hear(&line) {
            return decision;
        }
    }
}

/// Not by the standard library, which would keep what comes after the line, and give it to the next question.
fn one_line(input: BorrowedFd<'_>) -> Option<String> {
    let mut heard = Vec::new();
    let mut bytes = [0; LONGEST];
    loop {
        match rustix::io::read(input, &mut bytes) {
            Ok(0) => return None,
            Ok(length) => heard.extend_from_slice(&bytes[..length]),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        if let Some(line) = first_line(&heard) {
            return Some(line);
        }
        if heard.len() > LONGEST {
            return None;
        }
    }
}

fn first_line(heard: &[u8]) -> Option<String> {
    let end = heard.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
    Some(String::from_utf8_lossy(&heard[..end]).into_owned())
}

/// How many columns there are.
pub fn width(terminal: impl AsFd) -> usize {
    tcgetwinsize(terminal).map_or(WIDTH, |size| if size.ws_col == 0 { WIDTH } else { size.ws_col.into() })
}
