//! Secrets that overlap are one, and are called after the one that tells most.

use super::Label;
use super::block::Block;
use crate::needles::is_base64;

#[derive(Debug)]
pub(super) struct Interval {
    pub start: usize,
    pub end: usize,
    pub label: Label,
    pub rank: u8,
    pub more: Option<Extension>,
}

/// A secret that goes on as long as certain letters do.
#[derive(Debug)]
pub(super) enum Extension {
    /// Longer than its format's window.
    Token {
        at: usize,
    },
    /// The last letter of base64 depends on what follows the value; and padding.
    Base64 {
        at: usize,
        left: usize,
    },
    Block(Block),
}

#[derive(Debug)]
pub(super) struct Cluster {
    /// In the whole stream.
    pub start: u64,
    end: usize,
    /// Who names it: the lowest of rank, shortness, place and label, whatever the order in which they come.
    best: (u8, usize, u64, Label),
    extensions: Vec<Extension>,
}

impl Interval {
    pub fn moved(&mut self, by: usize) {
        self.start -= by;
        self.end -= by;
        if let Some(more) = &mut self.more {
            more.moved(by);
        }
    }
}

impl Cluster {
    pub fn of(interval: Interval, base: u64) -> Cluster {
        let Interval { start, end, label, rank, more } = interval;
        let absolute = base + start as u64;
        let best = (rank, usize::MAX - (end - start), absolute, label);
        Cluster { start: absolute, end, best, extensions: more.into_iter().collect() }
    }

    pub fn end(&self) -> usize {
        self.end
    }

    pub fn label(&self) -> Label {
        self.best.3
    }

    pub fn goes_on(&self) -> bool {
        !self.extensions.is_empty()
    }

    /// Takes an interval that overlaps; says whether it did.
    pub fn takes(&mut self, interval: &mut Interval, base: u64) -> bool {
        if interval.start >= self.end {
            return false;
        }
        let length = usize::MAX - (interval.end - interval.start);
        self.best = self.best.min((interval.rank, length, base + interval.start as u64, interval.label));
        self.end = self.end.max(interval.end);
        self.extensions.extend(interval.more.take());
        true
    }

    /// Goes on through the letters that are there.
    pub fn extend(&mut self, text: &[u8], last: bool) {
        let end = &mut self.end;
        self.extensions.retain_mut(|extension| {
            let (reached, goes_on) = extension.reach(text, last);
            *end = (*end).max(reached);
            goes_on
        });
    }

    /// The first byte that it will look at again.
    pub fn needs(&self) -> usize {
        self.extensions.iter().map(Extension::place).fold(self.end, usize::min)
    }

    pub fn moved(&mut self, by: usize) {
        self.end -= by;
        self.extensions.iter_mut().for_each(|extension| extension.moved(by));
    }
}

impl Extension {
    /// How far it reaches for now, and whether more bytes could change that.
    fn reach(&mut self, text: &[u8], last: bool) -> (usize, bool) {
        match self {
            Extension::Token { at } => {
                *at += text[*at..].iter().take_while(|letter| is_token(**letter)).count();
                (*at, !last && *at == text.len())
            }
            Extension::Base64 { at, left } => {
                let count =
                    text[*at..].iter().take(*left).take_while(|letter| is_base64(**letter) || **letter == b'=').count();
                *at += count;
                *left -= count;
                (*at, !last && *left > 0 && *at == text.len())
            }
            Extension::Block(block) => {
                block.read(text, last);
                (block.end, !block.finished)
            }
        }
    }

    fn place(&self) -> usize {
        match self {
            Extension::Token { at } | Extension::Base64 { at, .. } => *at,
            Extension::Block(block) => block.end,
        }
    }

    fn moved(&mut self, by: usize) {
        match self {
            Extension::Token { at } | Extension::Base64 { at, .. } => *at -= by,
            Extension::Block(block) => block.moved(by),
        }
    }
}

fn is_token(letter: u8) -> bool {
    is_base64(letter) || matches!(letter, b'.' | b'=' | b'~' | b'%')
}
