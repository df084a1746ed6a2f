//! Bytes to a tree: by a reader of ours where all of it is plain, else by a parser that also understands what is wrong.

use std::cell::RefCell;
use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser};

use crate::grammar::Grammar;
use crate::limits::{NODES, PARSE_STEPS_A_BYTE, PARSE_STEPS_AT_LEAST};
use crate::tree::{Tree, taken_over};
use crate::{Language, readers};

/// A tree, or `None` if the parser was stopped, or there is none for the language.
pub(crate) fn tree(bytes: &[u8], language: Language) -> Option<Tree> {
    readers::read(bytes, language).or_else(|| parsed(bytes, language))
}

/// By the parser, whatever our reader says. It is stopped by a count, so that the answer is always the same.
pub(crate) fn parsed(bytes: &[u8], language: Language) -> Option<Tree> {
    // What a parser has allocated serves the next text, too.
    thread_local! {
        static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
    }
    let grammar = Grammar::of(language)?;
    let theirs = PARSER.with(|parser| parsed_by(&mut *parser.try_borrow_mut().ok()?, bytes, grammar))?;
    Some(taken_over(&theirs, grammar.kinds(), &grammar.fields, NODES))
}

fn parsed_by(parser: &mut Parser, bytes: &[u8], grammar: &Grammar) -> Option<tree_sitter::Tree> {
    parser.set_language(&grammar.language).ok()?;
    parser.reset();
    let (mut steps, most) = (0, (bytes.len() * PARSE_STEPS_A_BYTE).max(PARSE_STEPS_AT_LEAST) / 100);
    let mut stop = |_: &ParseState| {
        steps += 1;
        if steps > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut stop);
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or(&[]), None, Some(options))
}
