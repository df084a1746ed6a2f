//! Text → file: every key known, every error with its place and what was probably meant.

use std::ops::Range;

use crate::file::File;

/// What is wrong with a policy file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct BadPolicy {
    pub file: String,
    pub line: usize,
    pub message: String,
}

/// A file's name and text, to make errors of.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

/// The most bytes of one policy file.
pub const LARGEST: usize = 1 << 20;

impl Source<'_> {
    pub fn line(&self, span: &Range<usize>) -> usize {
        let start = span.start.min(self.text.len());
        self.text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// `file:line`.
    pub fn place(&self, span: &Range<usize>) -> String {
        format!("{}:{}", self.file, self.line(span))
    }

    pub fn bad(&self, span: &Range<usize>, message: impl Into<String>) -> BadPolicy {
        BadPolicy { file: self.file.to_owned(), line: self.line(span), message: message.into() }
    }
}

/// Reads the form. Whatever is not understood is an error: a rule that is skipped would be a hole.
pub fn read(source: Source<'_>) -> Result<File, BadPolicy> {
    if source.text.len() > LARGEST {
        let message = format!("the file has {} bytes; {LARGEST} is the most", source.text.len());
        return Err(source.bad(&(0..0), message));
    }
    let file: File = toml::from_str(source.text).map_err(|error| {
        source.bad(&error.span().unwrap_or(0..0), with_suggestion(&error.message().replace('\n', " ")))
    })?;
    let version = *file.version.get_ref();
    if version != 1 {
        let message = format!("version {version} is not known; this belljar reads version 1");
        return Err(source.bad(&file.version.span(), message));
    }
    Ok(file)
}

/// serde says what it expected; people want to know what they meant.
fn with_suggestion(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    match quoted.split_first() {
        Some((wrong, known)) if unknown => {
            let kind = if message.starts_with("unknown field") { "key" } else { "value" };
            match nearest(wrong, known) {
                Some(meant) => format!("`{wrong}` is no {kind} here; did you mean `{meant}`?"),
                None => format!("`{wrong}` is no {kind} here; there are: {}", known.join(", ")),
            }
        }
        _ => message.to_owned(),
    }
}

/// No word of ours is nearly as long.
const LONGEST_WORD: usize = 64;

/// The known word that is nearest, if one is near.
pub fn nearest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let length = wrong.chars().count();
    if length > LONGEST_WORD {
        return None;
    }
    let most = 1 + length / 4;
    let near = known.iter().map(|word| (strsim::osa_distance(wrong, word), *word)).min();
    near.filter(|(distance, _)| *distance <= most).map(|(_, word)| word)
}
