//! Programs to findings: real parsers, names resolved, rules as data.
//!
//! A scan is a filter, never the wall: it tells what a program plainly does, and what it hides in plain ways.
//!
//! How it works: a reader of ours or a parser makes a tree ([`parse`], [`readers`]; [`grammar`] says what its nodes mean,
//! one table a language); [`evaluate`] goes through it once, bottom up, and knows of every expression its name after
//! imports and assignments, its text where that is constant, and where it comes from; [`calls`] asks the rules about every
//! call by its name. Code within code (lines for a shell, decoded payloads, scripts of packages) is scanned in turn,
//! within bounds ([`limits`]).
//!
//! To add a language: a table in `grammars/`, a line in [`grammar`] and in [`Language`] (and `file::LANGUAGES`), its way to
//! import in [`imports`], rules in `rules/`, pairs in `corpus/`. To add a rule: a `[[rule]]` in `rules/CLASS.toml` with
//! what it matches and what it lets pass; a test tries both. `file.rs` says what each key means.

mod bound;
mod calls;
mod commands;
mod credentials;
mod decode;
mod escapes;
mod evaluate;
// `build.rs` reads more of it than the library does.
#[allow(dead_code)]
mod file;
mod fold;
mod found;
mod grammar;
mod grammars;
mod hash;
mod imports;
mod language;
mod late;
mod limits;
mod load;
pub mod manifest;
mod names;
mod one_liners;
mod parse;
mod payload;
mod readers;
mod rule;
mod rules;
mod saved;
mod scan;
mod scopes;
mod text;
mod tree;
mod value;
mod wanted;
mod words;

/// Libraries ask the system some things once, such as how many processors there are. Whoever will read in a child that
/// can't ask has it asked before.
pub fn prepare() -> bool {
    // The key of a hash is asked of the system, too.
    std::hint::black_box(hash::Keyed::default());
    rules::compiled("a").is_ok_and(|pattern| pattern.is_match(b"a"))
}

pub use language::Language;
pub use load::Wrong;
pub use rules::{Listed, Rules};
pub use scan::{Scanned, Scanner, Source};
pub use wanted::{Manifest, Script, Wanted, language, taken_in, wanted};
