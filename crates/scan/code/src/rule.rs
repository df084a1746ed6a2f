//! Rules as they are used: constants where they are built in, owned where they are a user's.

use std::borrow::Cow;

use model::Severity;

pub(crate) type Text = Cow<'static, str>;
pub(crate) type List = Cow<'static, [Text]>;

#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub id: Text,
    pub class: Text,
    pub severity: Severity,
    pub cwe: u32,
    /// A bit for each language.
    pub languages: u16,
    pub message: Text,
    pub fix: Text,
    pub when: When,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Call,
    Import,
    Read,
    String,
    Text,
    Program,
}

#[derive(Clone, Debug)]
pub(crate) struct When {
    pub kind: Kind,
    /// Patterns of names, or the one pattern of a text.
    pub names: List,
    pub hints: List,
    pub argument: Option<u8>,
    pub matches: Text,
    pub unless: Text,
    pub constant: Option<bool>,
    pub keyword: Text,
    pub value: Text,
    pub from: u16,
    pub fed: Option<bool>,
    pub writes: Text,
}

/// Where values come from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub label: u16,
    pub from: u16,
    pub matches: Text,
}

/// A call that runs a text.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    /// The place in `file::LANGUAGES`, or `None` for the language of the program itself.
    pub language: Option<u8>,
    pub argument: u8,
    pub words: bool,
}
