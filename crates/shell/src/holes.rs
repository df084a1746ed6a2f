//! Text with places that are only known when it runs, so that code with such places can be read again as a line.

use std::borrow::Cow;

use crate::{Piece, Word};

/// Stands for any text. Of the private letters of Unicode; where a line itself has it, it is also taken as any text,
/// which is more than it is.
pub(crate) const HOLE: char = '\u{E000}';
/// How it is shown.
const SHOWN: &str = "…";

/// A word as text, with holes for what is not known.
pub(crate) fn of(word: &Word) -> String {
    seen(word).into_owned()
}

/// The same, for a look at it.
pub(crate) fn seen(word: &Word) -> Cow<'_, str> {
    match word {
        Word::Known(text) => Cow::Borrowed(text),
        Word::Partly { known, .. } => {
            let mut text = String::with_capacity(32);
            for piece in known {
                match piece {
                    Piece::Text(part) => text.push_str(part),
                    Piece::Any => text.push(HOLE),
                }
            }
            Cow::Owned(text)
        }
    }
}

/// Text that may have holes as a word.
pub(crate) fn filled(text: String, many: bool) -> Word {
    if !text.contains(HOLE) {
        return Word::Known(text);
    }
    let mut known = Vec::new();
    for (place, part) in text.split(HOLE).enumerate() {
        if place > 0 {
            known.push(Piece::Any);
        }
        if !part.is_empty() {
            known.push(Piece::Text(part.to_owned()));
        }
    }
    Word::Partly { text: shown(&text), known, many }
}

pub(crate) fn shown(text: &str) -> String {
    text.replace(HOLE, SHOWN)
}

/// The word with a hole wherever it holds `mark`, as `xargs -I` and `find -exec` fill it.
pub(crate) fn punched(word: &Word, mark: &str) -> Word {
    let text = of(word);
    if mark.is_empty() || !text.contains(mark) {
        return word.clone();
    }
    match filled(text.replace(mark, &HOLE.to_string()), word.may_be_many()) {
        Word::Partly { known, many, .. } => Word::Partly { text: word.text().to_owned(), known, many },
        known => known,
    }
}
