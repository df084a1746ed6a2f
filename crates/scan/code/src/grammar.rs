//! What the kinds of nodes of a language mean: one table a language, read by one evaluator for all.

use std::sync::OnceLock;

use crate::Language;
use crate::grammars;
use crate::tree::{FIELDS, Kinds, Names};

/// What a node does for us. Names in parentheses are the fields of the grammar that hold the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing: its parts are looked at, its value is none.
    Plain,
    /// Neither it nor its parts are looked at: comments, types.
    Skip,
    /// Its value is that of its last part: parentheses, `await`, statements of one expression.
    Pass,
    /// Where any part comes from, it comes from: conditionals, comprehensions.
    Join,
    /// (function|constructor|method|name|macro, receiver|object|scope, arguments).
    Call,
    /// Like a call of its first part: `new X`.
    New,
    /// (object, its member).
    Member,
    /// (object, key).
    Index,
    Name,
    /// The object itself: `self`, `this`.
    This,
    /// A text made of parts.
    Text,
    /// A part of a text as it stands.
    Fragment,
    /// An escape within a text.
    Escape,
    /// What is put into a text when it runs.
    Hole,
    /// A text in quotes without parts of its own.
    Quoted,
    /// Texts that stand next to each other.
    Sequence,
    Number,
    Items,
    /// Items with keys.
    Pair,
    Arguments,
    Binary,
    /// (left, right).
    Assign,
    /// `+=`.
    Extend,
    /// (name, value): declarations with a value.
    Declare,
    /// `for left in right`, `with right as left`.
    Each,
    Function,
    Parameters,
    Return,
    Import,
    /// A line for a shell: backquotes.
    Command,
    /// A list of expressions on one side of an assignment.
    Several,
}

/// A language's table: kinds of nodes with their roles.
pub(crate) type Roles = &'static [(&'static str, Role)];

/// A language as its parser knows it.
pub(crate) struct Grammar {
    pub language: tree_sitter::Language,
    roles: Vec<Role>,
    /// By its number there: the number of a field in [`crate::tree::FIELDS`].
    pub fields: Vec<u8>,
}

impl Grammar {
    /// Made once for each language, when it is first needed.
    pub fn of(language: Language) -> Option<&'static Grammar> {
        static MADE: [OnceLock<Option<Grammar>>; 13] = [const { OnceLock::new() }; 13];
        MADE[language as usize].get_or_init(|| Grammar::make(language)).as_ref()
    }

    fn make(language: Language) -> Option<Grammar> {
        let (grammar, kinds): (tree_sitter::Language, &[Roles]) = match language {
            Language::Python => (tree_sitter_python::LANGUAGE.into(), &[grammars::python::KINDS]),
            Language::JavaScript => (tree_sitter_javascript::LANGUAGE.into(), &[grammars::javascript::KINDS]),
            Language::TypeScript => (
                tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
                &[grammars::javascript::KINDS, grammars::javascript::TYPES],
            ),
            Language::Tsx => (
                tree_sitter_typescript::LANGUAGE_TSX.into(),
                &[grammars::javascript::KINDS, grammars::javascript::TYPES],
            ),
            Language::Go => (tree_sitter_go::LANGUAGE.into(), &[grammars::go::KINDS]),
            Language::Rust => (tree_sitter_rust::LANGUAGE.into(), &[grammars::rust::KINDS]),
            Language::Ruby => (tree_sitter_ruby::LANGUAGE.into(), &[grammars::ruby::KINDS]),
            Language::Php => (tree_sitter_php::LANGUAGE_PHP.into(), &[grammars::php::KINDS]),
            Language::Java => (tree_sitter_java::LANGUAGE.into(), &[grammars::java::KINDS]),
            Language::C => (tree_sitter_c::LANGUAGE.into(), &[grammars::c::KINDS]),
            Language::Cpp => (tree_sitter_cpp::LANGUAGE.into(), &[grammars::c::KINDS, grammars::c::MORE]),
            Language::Shell | Language::Text => return None,
        };
        let mut roles = vec![Role::Plain; grammar.node_kind_count()];
        for (kind, role) in kinds.iter().copied().flatten() {
            let id = grammar.id_for_node_kind(kind, true);
            if let Some(place) = roles.get_mut(id as usize)
                && id != 0
            {
                *place = *role;
            }
        }
        let mut fields = vec![0; grammar.field_count() + 1];
        for (number, name) in (1..).zip(FIELDS) {
            let theirs = grammar.field_id_for_name(name).map_or(0, std::num::NonZero::get);
            if let Some(place) = fields.get_mut(theirs as usize).filter(|_| theirs != 0) {
                *place = number;
            }
        }
        Some(Grammar { language: grammar, roles, fields })
    }

    pub fn kinds(&'static self) -> Kinds {
        Kinds { names: Names::Theirs(&self.language), roles: &self.roles }
    }
}
