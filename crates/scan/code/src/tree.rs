//! A program as a tree: small records in one list, made by a reader of ours or from a parser's own tree. Whoever walks
//! it follows numbers, several times where needed, and nothing is allocated for it.

use crate::grammar::Role;

/// Fields that matter, by number from 1; 0 is any other, or none.
pub(crate) const FIELDS: [&str; 25] = [
    "function", "constructor", "method", "name", "macro", "receiver", "object", "scope", "arguments", "value", "field",
    "property", "attribute", "left", "right", "declarator", "pattern", "key", "alias", "path", "module_name", "source",
    "parameter", "parameters", "type",
];

/// The numbers of [`FIELDS`].
pub(crate) mod field {
    pub const FUNCTION: u8 = 1;
    pub const CONSTRUCTOR: u8 = 2;
    pub const METHOD: u8 = 3;
    pub const NAME: u8 = 4;
    pub const MACRO: u8 = 5;
    pub const RECEIVER: u8 = 6;
    pub const OBJECT: u8 = 7;
    pub const SCOPE: u8 = 8;
    pub const ARGUMENTS: u8 = 9;
    pub const VALUE: u8 = 10;
    pub const FIELD: u8 = 11;
    pub const PROPERTY: u8 = 12;
    pub const ATTRIBUTE: u8 = 13;
    pub const LEFT: u8 = 14;
    pub const RIGHT: u8 = 15;
    pub const DECLARATOR: u8 = 16;
    pub const PATTERN: u8 = 17;
    pub const KEY: u8 = 18;
    pub const ALIAS: u8 = 19;
    pub const PATH: u8 = 20;
    pub const MODULE_NAME: u8 = 21;
    pub const SOURCE: u8 = 22;
    pub const PARAMETER: u8 = 23;
    pub const PARAMETERS: u8 = 24;
    pub const TYPE: u8 = 25;
}

/// What stands for no record.
const NONE: u32 = u32::MAX;

/// The kind of what a parser did not understand.
pub(crate) const ERROR: u16 = u16::MAX;

#[derive(Clone, Copy)]
struct Record {
    start: u32,
    end: u32,
    parent: u32,
    first: u32,
    next: u32,
    kind: u16,
    field: u8,
    is_wrong: bool,
}

/// What the numbers of kinds mean.
#[derive(Clone, Copy)]
pub(crate) struct Kinds {
    pub names: Names,
    pub roles: &'static [Role],
}

#[derive(Clone, Copy)]
pub(crate) enum Names {
    Ours(&'static [&'static str]),
    Theirs(&'static tree_sitter::Language),
}

pub(crate) struct Tree {
    records: Vec<Record>,
    root: u32,
    kinds: Kinds,
    /// There was more than fits.
    pub is_cut: bool,
}

impl Tree {
    pub fn root(&self) -> Option<Node<'_>> {
        self.node(self.root)
    }

    fn node(&self, at: u32) -> Option<Node<'_>> {
        self.records.get(at as usize).map(|record| Node { tree: self, record, at })
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Node<'t> {
    tree: &'t Tree,
    record: &'t Record,
    at: u32,
}

impl<'t> Node<'t> {
    pub fn id(self) -> u32 {
        self.at
    }

    pub fn kind(self) -> &'static str {
        match (self.tree.kinds.names, self.record.kind) {
            (_, ERROR) => "ERROR",
            (Names::Ours(names), kind) => names.get(kind as usize).copied().unwrap_or(""),
            (Names::Theirs(language), kind) => language.node_kind_for_id(kind).unwrap_or(""),
        }
    }

    pub fn role(self) -> Role {
        self.tree.kinds.roles.get(self.record.kind as usize).copied().unwrap_or(Role::Plain)
    }

    /// The number of the field of the node around it that this is.
    pub fn field(self) -> u8 {
        self.record.field
    }

    /// Neither understood nor there.
    pub fn is_wrong(self) -> bool {
        self.record.is_wrong
    }

    pub fn start_byte(self) -> usize {
        self.record.start as usize
    }

    pub fn end_byte(self) -> usize {
        self.record.end as usize
    }

    pub fn byte_range(self) -> std::ops::Range<usize> {
        self.start_byte()..self.end_byte()
    }

    pub fn parent(self) -> Option<Node<'t>> {
        self.tree.node(self.record.parent)
    }

    pub fn first(self) -> Option<Node<'t>> {
        self.tree.node(self.record.first)
    }

    pub fn next(self) -> Option<Node<'t>> {
        self.tree.node(self.record.next)
    }

    pub fn children(self) -> impl Iterator<Item = Node<'t>> {
        std::iter::successors(self.first(), |node| node.next())
    }

    /// The first part that is that field.
    pub fn part(self, field: u8) -> Option<Node<'t>> {
        self.children().find(|child| child.record.field == field)
    }
}

/// Which parts of a node turn with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    None,
    First,
    Last,
    All,
}

/// A tree that grows from its leaves: what is finished waits for the node around it.
pub(crate) struct Growing {
    records: Vec<Record>,
    waiting: Vec<u32>,
}

impl Growing {
    pub fn with_room_for(bytes: usize) -> Growing {
        Growing { records: Vec::with_capacity(bytes / 4 + 16), waiting: Vec::with_capacity(64) }
    }

    /// How many wait: what comes after is a part of what is begun now.
    pub fn mark(&self) -> usize {
        self.waiting.len()
    }

    pub fn leaf(&mut self, kind: u16, start: usize, end: usize) {
        self.waiting.push(self.records.len() as u32);
        self.records.push(record(kind, start, end));
    }

    /// A node around everything since `mark`.
    pub fn close(&mut self, kind: u16, start: usize, end: usize, mark: usize) {
        let at = self.records.len() as u32;
        let mut made = record(kind, start, end);
        let mut next = NONE;
        for child in self.waiting.drain(mark.min(self.waiting.len())..).rev() {
            if let Some(child) = self.records.get_mut(child as usize) {
                child.parent = at;
                child.next = next;
            }
            next = child;
        }
        made.first = next;
        self.records.push(made);
        self.waiting.push(at);
    }

    /// What came since `mark` is of no interest.
    pub fn drop_since(&mut self, mark: usize) {
        self.waiting.truncate(mark);
    }

    /// The node that waits at `mark`.
    pub fn set_field(&mut self, mark: usize, field: u8) {
        if let Some(record) = self.waiting_at(mark) {
            record.field = field;
        }
    }

    pub fn set_last_field(&mut self, field: u8) {
        self.set_field(self.waiting.len().wrapping_sub(1), field);
    }

    pub fn kind(&self, mark: usize) -> Option<u16> {
        self.waiting.get(mark).and_then(|at| self.records.get(*at as usize)).map(|record| record.kind)
    }

    /// Turns what waits at `mark` into something else: `turn` says what each kind becomes, and which of its parts turn,
    /// too; `None` where it can't.
    pub fn turn(&mut self, mark: usize, turn: impl Fn(u16) -> Option<(u16, Parts)>) -> Option<()> {
        let mut todo = vec![*self.waiting.get(mark)?];
        while let Some(at) = todo.pop() {
            let record = self.records.get_mut(at as usize)?;
            let (kind, parts) = turn(record.kind)?;
            record.kind = kind;
            let mut part = if parts == Parts::None { NONE } else { record.first };
            while part != NONE {
                let next = self.records.get(part as usize)?.next;
                if parts != Parts::Last || next == NONE {
                    todo.push(part);
                }
                part = if parts == Parts::First { NONE } else { next };
            }
        }
        Some(())
    }

    /// Only the node itself becomes something else.
    pub fn turn_one(&mut self, mark: usize, kind: u16) {
        if let Some(record) = self.waiting_at(mark) {
            record.kind = kind;
        }
    }

    /// Has what waits at `mark` a part that is that field?
    pub fn part_of(&self, mark: usize, field: u8) -> bool {
        let record = |at: u32| self.records.get(at as usize);
        let first = self.waiting.get(mark).and_then(|at| record(*at)).and_then(|found| record(found.first));
        std::iter::successors(first, |part| record(part.next)).any(|part| part.field == field)
    }

    pub fn finish(self, kinds: Kinds) -> Option<Tree> {
        let root = *self.waiting.last()?;
        Some(Tree { records: self.records, root, kinds, is_cut: false })
    }

    fn waiting_at(&mut self, mark: usize) -> Option<&mut Record> {
        let at = *self.waiting.get(mark)?;
        self.records.get_mut(at as usize)
    }
}

fn record(kind: u16, start: usize, end: usize) -> Record {
    Record {
        start: start as u32,
        end: end as u32,
        parent: NONE,
        first: NONE,
        next: NONE,
        kind,
        field: 0,
        is_wrong: false,
    }
}

/// A parser's tree, as ours: what has a name, and no comments, which would only stand between other things.
pub(crate) fn taken_over(theirs: &tree_sitter::Tree, kinds: Kinds, fields: &[u8], most: usize) -> Tree {
    let mut tree = Tree { records: Vec::new(), root: 0, kinds, is_cut: false };
    let mut cursor = theirs.walk();
    // The records around, each with its last part.
    let mut around: Vec<(u32, u32)> = Vec::new();
    loop {
        let node = cursor.node();
        let kind = node.kind_id();
        let is_wrong = node.is_error() || node.is_missing();
        let is_comment = node.is_extra() && kinds.roles.get(kind as usize) == Some(&Role::Skip);
        let is_kept = node.is_named() && (is_wrong || !is_comment);
        tree.is_cut |= tree.records.len() >= most;
        if is_kept && !tree.is_cut {
            let at = tree.records.len() as u32;
            let field = cursor.field_id().and_then(|field| fields.get(field.get() as usize)).copied().unwrap_or(0);
            let mut made = record(kind, node.start_byte(), node.end_byte());
            (made.field, made.is_wrong) = (field, is_wrong);
            if let Some((parent, last)) = around.last_mut() {
                made.parent = *parent;
                let before = match *last {
                    NONE => tree.records.get_mut(*parent as usize).map(|record| &mut record.first),
                    last => tree.records.get_mut(last as usize).map(|record| &mut record.next),
                };
                if let Some(before) = before {
                    *before = at;
                }
                *last = at;
            }
            tree.records.push(made);
            if cursor.goto_first_child() {
                around.push((at, NONE));
                continue;
            }
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return tree;
            }
            around.pop();
        }
    }
}
