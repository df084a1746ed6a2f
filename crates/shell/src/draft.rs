//! A word while it is read: its letters, which of them were in quotes, and what runs within it.

use crate::holes::HOLE;
use crate::tree::{Run, Written};
use crate::{Piece, Word};

/// A letter of a word, or a place that is only known when it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Atom {
    /// Not in quotes, so that it may have a meaning: `*`.
    Bare(char),
    Quoted(char),
    Any,
}

#[derive(Default)]
pub(crate) struct Draft {
    pub atoms: Vec<Atom>,
    pub runs: Vec<Run>,
    pub variables: Vec<String>,
    pub many: bool,
    /// A letter that may have a meaning was seen.
    has_signs: bool,
    /// Where the first quotes stand, even empty ones: a name in quotes is assigned to nothing.
    pub first_quote: Option<usize>,
}

impl Draft {
    pub(crate) fn assigned(&self) -> Option<(String, usize)> {
        assigned(&self.atoms).filter(|(_, value)| self.first_quote.is_none_or(|quote| quote >= *value))
    }

    /// Is it a name so far, with nothing in quotes?
    pub(crate) fn is_name(&self) -> bool {
        let is_part =
            |atom: &Atom| matches!(atom, Atom::Bare(letter) if letter.is_ascii_alphanumeric() || *letter == '_');
        let begins = !matches!(self.atoms.first(), None | Some(Atom::Bare('0'..='9')));
        begins && self.first_quote.is_none() && self.atoms.iter().all(is_part)
    }

    /// Does it hold text that would run if it were looked at again?
    pub(crate) fn has_sleeping(&self) -> bool {
        self.atoms.iter().any(|atom| matches!(atom, Atom::Quoted('$' | '`')))
    }

    pub(crate) fn push_bare(&mut self, letter: char) {
        match letter {
            HOLE => self.any(true),
            letter => {
                self.has_signs |= matches!(letter, '*' | '?' | '[' | '{' | '~');
                self.atoms.push(Atom::Bare(letter));
            }
        }
    }

    pub(crate) fn push_quoted(&mut self, letter: char) {
        match letter {
            HOLE => self.any(false),
            letter => self.atoms.push(Atom::Quoted(letter)),
        }
    }

    pub(crate) fn any(&mut self, many: bool) {
        self.has_signs = true;
        self.many |= many;
        self.atoms.push(Atom::Any);
    }

    pub(crate) fn absorb(&mut self, mut inner: Written) {
        self.runs.append(&mut inner.runs);
        self.variables.append(&mut inner.variables);
    }

    pub(crate) fn finished(mut self, raw: &str) -> Written {
        if self.has_signs {
            self.expand_signs();
        }
        let is_known = !self.atoms.contains(&Atom::Any);
        let mut known = Vec::new();
        let mut text = String::with_capacity(self.atoms.len());
        for atom in &self.atoms {
            match atom {
                Atom::Bare(letter) | Atom::Quoted(letter) => text.push(*letter),
                Atom::Any => {
                    if !text.is_empty() {
                        known.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    if known.last() != Some(&Piece::Any) {
                        known.push(Piece::Any);
                    }
                }
            }
        }
        let word = match is_known {
            true => Word::Known(text),
            false => {
                if !text.is_empty() {
                    known.push(Piece::Text(text));
                }
                Word::Partly { text: crate::holes::shown(raw), known, many: self.many }
            }
        };
        Written { word, runs: self.runs, variables: self.variables }
    }

    /// Bare `~`, `{a,b}`, `*`, `?` and `[…]` come out as who knows what.
    fn expand_signs(&mut self) {
        // Spans as how many begin before, and how many end after, each letter: they may lie within each other.
        let mut begins = vec![0_usize; self.atoms.len()];
        let mut ends = begins.clone();
        let mut unknown = |first: usize, last: usize| {
            begins[first] += 1;
            ends[last] += 1;
        };
        let mut brackets: Option<(usize, usize)> = None;
        let mut in_tilde = false;
        for (at, atom) in self.atoms.iter().enumerate() {
            let Atom::Bare(letter) = *atom else { continue };
            let follows = |before: char| at > 0 && self.atoms[at - 1] == Atom::Bare(before);
            in_tilde = (in_tilde && !matches!(letter, '/' | ':')) || (letter == '~' && (at == 0 || follows(':')));
            if in_tilde {
                unknown(at, at);
                continue;
            }
            match letter {
                '*' | '?' => {
                    self.many = true;
                    unknown(at, at);
                }
                '[' if brackets.is_none() => brackets = Some((at, at)),
                ']' => brackets.iter_mut().filter(|(first, _)| at > first + 1).for_each(|(_, last)| *last = at),
                _ => {}
            }
        }
        if let Some((first, last)) = brackets.filter(|(first, last)| last > first) {
            self.many = true;
            unknown(first, last);
        }
        if let Some((first, last)) = braces(&self.atoms) {
            self.many = true;
            unknown(first, last);
        }
        let mut open = 0;
        for (at, atom) in self.atoms.iter_mut().enumerate() {
            open += begins[at];
            if open > 0 {
                *atom = Atom::Any;
            }
            open -= ends[at];
        }
    }
}

/// From which to which letter braces may come out as several words. Bash finds their ends in ways of its own, where
/// `{.},x}` is a choice; so this is from the first that could begin one to the last that could end one.
fn braces(atoms: &[Atom]) -> Option<(usize, usize)> {
    let is = |at: usize, letter: char| atoms.get(at) == Some(&Atom::Bare(letter));
    // An empty pair begins nothing.
    let first = (0..atoms.len()).find(|at| is(*at, '{') && !is(at + 1, '}'))?;
    let last = (first..atoms.len()).rev().find(|at| is(*at, '}'))?;
    let is_choice = (first..last).any(|at| is(at, ',') || (is(at, '.') && is(at + 1, '.')));
    is_choice.then_some((first, last))
}

/// The name of `NAME=`, `NAME+=` or `NAME[index]=`, and where its value begins.
fn assigned(atoms: &[Atom]) -> Option<(String, usize)> {
    let bare = |at: usize| match atoms.get(at) {
        Some(Atom::Bare(letter)) => Some(*letter),
        _ => None,
    };
    let mut at = 0;
    let mut name = String::new();
    while let Some(letter) = bare(at).filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_') {
        name.push(letter);
        at += 1;
    }
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if bare(at) == Some('[') {
        at += 1 + atoms[at..].iter().position(|atom| *atom == Atom::Bare(']'))?;
    }
    if bare(at) == Some('+') {
        at += 1;
    }
    (bare(at) == Some('=')).then_some((name, at + 1))
}
