//! Arithmetic, and the indexes of arrays: what stands there is looked at as numbers, which bash finds by running more.

use crate::draft::{Atom, Draft};
use crate::parse::{Parser, Stop};
use crate::tree::Written;
use crate::words::End;

impl Parser<'_> {
    /// Arithmetic that begins with the `((` here. `None`, and nothing taken, if these are two parentheses after all.
    pub(crate) fn arithmetic(&mut self) -> Result<Option<Written>, Stop> {
        let before = self.at;
        let counts = self.counts.clone();
        let lengths = (self.documents.len(), self.odd.len(), self.joints.len(), self.literal.len());
        self.at += 2;
        let mut draft = Draft::default();
        if self.deeper(|parser| parser.counted(&mut draft))? {
            let inside = &self.text[before + 2..self.at - 2];
            self.counts_in(inside);
            if draft.has_sleeping() {
                self.odd.push(format!("`(({inside}))` may run what it holds"));
            }
            return Ok(Some(draft.finished(inside)));
        }
        // What was looked at is read again: texts made to be slow are not read.
        let looked_at = self.at - before;
        self.patience = self.patience.checked_sub(looked_at).ok_or("its parentheses are too many to tell apart")?;
        self.documents.truncate(lengths.0);
        self.odd.truncate(lengths.1);
        self.joints.truncate(lengths.2);
        self.literal.truncate(lengths.3);
        self.counts = counts;
        self.at = before;
        Ok(None)
    }

    /// Up to the `))` that ends it. `false` where a parenthesis ends alone.
    fn counted(&mut self, draft: &mut Draft) -> Result<bool, Stop> {
        let mut open = 0_usize;
        loop {
            let letter = self.rest().chars().next().ok_or("the line ends too early")?;
            match letter {
                '(' => open += 1,
                ')' if open > 0 => open -= 1,
                ')' if self.byte_after(1) == Some(b')') => {
                    self.at += 2;
                    return Ok(true);
                }
                ')' => return Ok(false),
                _ => {
                    self.counted_letter(draft, letter)?;
                    continue;
                }
            }
            self.at += 1;
        }
    }

    /// The index of an array with its brackets. It may hold blanks and signs: `a[ #]=1` is one word.
    pub(crate) fn index(&mut self, draft: &mut Draft) -> Result<(), Stop> {
        let before = self.at;
        let mut inner = Draft::default();
        let mut open = 0_usize;
        loop {
            let letter = self.rest().chars().next().ok_or("the index of an array is not closed")?;
            match letter {
                '[' => open += 1,
                ']' => open -= 1,
                _ => {
                    self.counted_letter(&mut inner, letter)?;
                    continue;
                }
            }
            self.at += 1;
            if open == 0 {
                break;
            }
        }
        let inside = &self.text[before..self.at];
        self.counts_in(inside);
        if inner.has_sleeping() {
            self.odd.push(format!("`{inside}` may run what it holds"));
        }
        draft.push_bare('[');
        draft.absorb(inner.finished(inside));
        draft.any(true);
        draft.push_bare(']');
        Ok(())
    }

    /// One letter, or what begins with it.
    fn counted_letter(&mut self, draft: &mut Draft, letter: char) -> Result<(), Stop> {
        match letter {
            '\\' if self.sees("\\\n") => self.join(),
            '\\' => {
                self.at += 1;
                if let Some(next) = self.rest().chars().next() {
                    self.at += next.len_utf8();
                    draft.push_quoted(next);
                }
            }
            '"' => {
                self.at += 1;
                self.deeper(|parser| parser.quoted(draft, End::DoubleQuote))?;
            }
            '\'' => {
                let inside = self.single_quoted()?.to_owned();
                inside.chars().for_each(|letter| draft.push_quoted(letter));
            }
            '$' if self.byte_after(1) == Some(b'\'') => return Err(self.unexpected()),
            '$' => self.dollar(draft, true)?,
            '`' => self.backquoted(draft, true)?,
            letter => {
                self.at += letter.len_utf8();
                draft.atoms.push(Atom::Quoted(letter));
            }
        }
        Ok(())
    }

    /// Remembers that `text` is counted with, if there is more to it than numbers.
    pub(crate) fn counts_in(&mut self, text: &str) {
        if text.contains(|letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == '$') {
            self.counts.get_or_insert_with(|| text.to_owned());
        }
    }
}
