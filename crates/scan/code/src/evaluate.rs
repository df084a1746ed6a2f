//! Goes through a tree once, bottom up and without recursion, and knows of each expression what [`Value`] can hold.

use std::collections::HashMap;
use std::rc::Rc;

use crate::grammar::Role;
use crate::hash::{Keyed, NameSet, Names};
use crate::limits::{DEEPEST, ROUNDS, TEXTS};
use crate::rules::Rules;
use crate::saved::Saved;
use crate::tree::{Node, Tree, field};
use crate::value::{CREDENTIAL_PATH, Item, Labels, Value, bounded};
use crate::{Language, credentials, escapes, imports};

/// A rule that fits, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub start: usize,
    pub end: usize,
    pub rule: u16,
}

/// Code within the code.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub bytes: Vec<u8>,
    pub language: Option<Language>,
    /// `shell`, `base64`: what it is to the code around it.
    pub via: &'static str,
    pub start: usize,
    /// Words of a command, not a line.
    pub words: Option<Vec<String>>,
}

/// What was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub too_deep: bool,
    pub too_many: bool,
}

#[derive(Default)]
pub(crate) struct Evaluated {
    pub hits: Vec<Hit>,
    pub pieces: Vec<Piece>,
    pub left: Left,
    /// Bytes that the parser did not understand.
    pub wrong: usize,
}

/// What a function of the file is given and gives back, over all calls of it.
#[derive(Default, Clone)]
pub(crate) struct Summary {
    pub given: Vec<Labels>,
    pub back: Labels,
    /// A module that it is handed: `import("a").then(a => …)`.
    pub module: Option<Rc<str>>,
}

pub(crate) struct Entry<'t> {
    pub node: Node<'t>,
    pub role: Role,
    pub field: u8,
    pub key: Option<Rc<str>>,
    pub value: Value,
}

struct Frame {
    role: Role,
    field: u8,
    /// Where the entries of its parts begin.
    from: usize,
    start: usize,
}

pub(crate) struct Evaluator<'a, 't> {
    pub source: &'a [u8],
    /// The same, if all of it is text.
    text: Option<&'a str>,
    pub language: Language,
    pub rules: &'a Rules,
    pub found: Evaluated,
    pub scopes: Vec<Names<Value>>,
    pub functions: Names<Summary>,
    /// The functions we are within, by name.
    pub within: Vec<Rc<str>>,
    pub changed: bool,
    entries: Vec<Entry<'t>>,
    frames: Vec<Frame>,
    texts: usize,
    /// What names of the whole file came to stand for in the round before: functions may use them before they are set.
    pub earlier: Names<Value>,
    /// Names that functions used before anything was known of them.
    pub missing: NameSet,
    /// The objects of members that were just looked at, by node: the call around one asks for it.
    pub members: HashMap<u32, Value, Keyed>,
    pub saved: Saved,
}

pub(crate) fn tree(source: &[u8], language: Language, rules: &Rules, tree: &Tree) -> Evaluated {
    let mut evaluator = Evaluator {
        source,
        text: std::str::from_utf8(source).ok(),
        language,
        rules,
        found: Evaluated::default(),
        scopes: vec![Names::default()],
        functions: Names::default(),
        within: Vec::new(),
        changed: false,
        entries: Vec::new(),
        frames: Vec::new(),
        texts: 0,
        earlier: Names::default(),
        missing: NameSet::default(),
        members: HashMap::default(),
        saved: Saved::default(),
    };
    for _ in 0..ROUNDS {
        evaluator.changed = false;
        evaluator.found = Evaluated::default();
        evaluator.scopes.clear();
        evaluator.scopes.push(Names::default());
        evaluator.within.clear();
        evaluator.entries.clear();
        evaluator.frames.clear();
        evaluator.round(tree);
        evaluator.remember();
        if !evaluator.changed {
            break;
        }
    }
    evaluator.found
}

impl<'a, 't> Evaluator<'a, 't> {
    fn round(&mut self, tree: &'t Tree) {
        self.found.left.too_many |= tree.is_cut;
        let Some(mut node) = tree.root() else { return };
        loop {
            if self.enter(node) {
                if let Some(first) = node.first() {
                    node = first;
                    continue;
                }
                self.leave(node);
            }
            loop {
                if let Some(next) = node.next() {
                    node = next;
                    break;
                }
                let Some(parent) = node.parent() else { return };
                node = parent;
                self.leave(node);
            }
        }
    }

    /// Is it looked at? If so, its frame is open.
    fn enter(&mut self, node: Node<'t>) -> bool {
        if node.is_wrong() {
            self.found.wrong += node.end_byte().saturating_sub(node.start_byte()).max(1);
        }
        let (role, field) = (node.role(), node.field());
        if role == Role::Skip {
            return false;
        }
        if self.frames.len() >= DEEPEST {
            self.found.left.too_deep = true;
            return false;
        }
        match role {
            Role::Import => {
                imports::take(self, node);
                return false;
            }
            Role::Function => self.begin_function(node),
            Role::Name | Role::Fragment | Role::Escape | Role::Quoted | Role::Number | Role::This => {
                let value = self.leaf(node, role);
                self.give(node, role, field, None, value);
                return false;
            }
            _ => {}
        }
        self.frames.push(Frame { role, field, from: self.entries.len(), start: node.start_byte() });
        true
    }

    fn leaf(&mut self, node: Node<'t>, role: Role) -> Value {
        let raw = &self.source[node.byte_range()];
        match role {
            Role::Name => self.look_up(self.text_of(node), node),
            Role::This => Value::named("self"),
            Role::Number => number(raw).map_or_else(Value::default, Value::of_number),
            Role::Quoted => {
                let name: &[u8] = raw.strip_prefix(b":").unwrap_or(raw);
                Value::of_bytes(name.to_vec(), true)
            }
            _ => {
                let is_raw = match self.language {
                    Language::Python => {
                        let start = self.frames.last().map_or(0, |frame| frame.start);
                        self.source[start..]
                            .iter()
                            .take_while(|byte| !b"\"'".contains(byte))
                            .any(|byte| byte | 32 == b'r')
                    }
                    Language::Go | Language::Rust | Language::C | Language::Cpp | Language::Php => {
                        role == Role::Fragment
                    }
                    _ => false,
                };
                Value::of_bytes(if is_raw { raw.to_vec() } else { escapes::undone(raw) }, true)
            }
        }
    }

    fn leave(&mut self, node: Node<'t>) {
        let Some(frame) = self.frames.pop() else { return };
        let (from, role) = (frame.from, frame.role);
        let mut key = None;
        let value = match role {
            Role::Call | Role::New => self.call(node, from, role),
            Role::Member => self.member_node(node, from),
            Role::Index => self.index(node, from),
            Role::Text | Role::Sequence => self.text(node, from, role),
            Role::Command => {
                let value = self.text(node, from, role);
                self.called("`", &[Item { key: None, value }], node, 0)
            }
            Role::Hole | Role::Pass => self.entries[from..].last().map(|entry| entry.value.clone()).unwrap_or_default(),
            Role::Join => self.joined(from),
            Role::Items | Role::Arguments | Role::Several => {
                let items =
                    self.entries.drain(from..).map(|entry| Item { key: entry.key, value: entry.value }).collect();
                Value::of_items(items)
            }
            Role::Pair => {
                if self.entries.len() >= from + 2 {
                    let first = &self.entries[from];
                    let text = match (first.value.exact(), first.role) {
                        (Some(text), Role::Text | Role::Quoted | Role::Pass) => text.trim_end_matches(':').to_owned(),
                        _ => self.text_of(first.node).to_owned(),
                    };
                    key = Some(Rc::from(bounded(&text)));
                }
                self.entries[from..].last().map(|entry| entry.value.clone()).unwrap_or_default()
            }
            Role::Binary => self.binary(from, node),
            Role::Declare if matches!(self.language, Language::Cpp) => {
                self.constructed(node, from);
                self.assign(from, false)
            }
            Role::Assign | Role::Declare => self.assign(from, false),
            Role::Extend => self.assign(from, true),
            Role::Each => match self.entries[from..].last() {
                // `with x as y`: the value comes first.
                Some(last) if self.language == Language::Python && node.kind() == "as_pattern" => {
                    let target = last.node;
                    let value = self.entries[from].value.clone();
                    self.bind(target, value.clone());
                    value
                }
                _ => Value::default(),
            },
            Role::Parameters => {
                self.parameters(node);
                Value::default()
            }
            Role::Function => {
                // The value of a body without `return`: arrows, closures and blocks give their last back.
                if let Some(last) = self.entries[from..].last() {
                    let labels = last.value.labels;
                    self.gives_back(labels);
                }
                let name = self.within.pop();
                if self.scopes.len() > 1 {
                    self.scopes.pop();
                }
                name.map(|name| Value { name: Some(name), ..Value::default() }).unwrap_or_default()
            }
            Role::Return => {
                let labels = self.joined(from).labels;
                self.gives_back(labels);
                Value { labels, ..Value::default() }
            }
            _ => Value::default(),
        };
        self.entries.truncate(from);
        self.give(node, role, frame.field, key, value);
    }

    /// Hands a value to the node around it.
    fn give(&mut self, node: Node<'t>, role: Role, field: u8, key: Option<Rc<str>>, value: Value) {
        let Some(parent) = self.frames.last() else { return };
        match parent.role {
            // Nobody asks for the values of statements: they are not kept.
            Role::Plain | Role::Skip => return,
            Role::Function if role != Role::Parameters && self.entries.len() > parent.from => {
                self.entries.truncate(parent.from);
            }
            Role::Pass if self.entries.len() > parent.from => self.entries.truncate(parent.from),
            _ => {}
        }
        let (is_each, from) = (parent.role == Role::Each, parent.from);
        self.entries.push(Entry { node, role, field, key, value });
        if is_each {
            self.begin_each(from, field, node);
        }
    }

    /// The variable of a loop is bound before its body is looked at.
    fn begin_each(&mut self, from: usize, field: u8, node: Node<'t>) {
        let Some(parent) = node.parent() else { return };
        if parent.kind() == "as_pattern" {
            return;
        }
        let value = self.entries.last().map(|entry| entry.value.clone()).unwrap_or_default();
        if matches!(field, field::RIGHT | field::VALUE) {
            let target = [field::LEFT, field::PATTERN, field::NAME, field::DECLARATOR]
                .into_iter()
                .find_map(|field| parent.part(field));
            if let Some(target) = target {
                let element = value.at(0).cloned().unwrap_or_default().labelled(value.labels);
                self.bind(target, element);
            }
        } else if self.language == Language::Php && self.entries.len() == from + 2 {
            let element = Value { labels: self.entries[from].value.labels, ..Value::default() };
            self.bind(node, element);
        }
    }

    pub fn text_of(&self, node: Node<'_>) -> &'a str {
        match self.text {
            Some(text) => text.get(node.byte_range()).unwrap_or("?"),
            None => std::str::from_utf8(&self.source[node.byte_range()]).unwrap_or("?"),
        }
    }

    pub fn entries(&self, from: usize) -> &[Entry<'t>] {
        &self.entries[from..]
    }

    /// The frames around, innermost first: their role and where their entries begin.
    pub fn around(&self) -> impl Iterator<Item = (Role, usize)> {
        self.frames.iter().rev().map(|frame| (frame.role, frame.from))
    }

    fn joined(&self, from: usize) -> Value {
        let mut values = self.entries[from..].iter().map(|entry| &entry.value);
        let Some(first) = values.next() else { return Value::default() };
        values.fold(first.clone(), |all, value| all.or(value))
    }

    fn text(&mut self, node: Node<'t>, from: usize, role: Role) -> Value {
        let (mut bytes, mut exact, mut labels) = (Vec::new(), true, 0);
        for entry in &self.entries[from..] {
            exact &= entry.value.append_to(&mut bytes);
            labels |= entry.value.labels;
        }
        self.texts = self.texts.saturating_add(bytes.len());
        if self.texts > TEXTS {
            self.found.left.too_many = true;
            return Value { labels, ..Value::default() };
        }
        let value = Value::of_bytes(bytes, exact).labelled(labels);
        let in_text = self.frames.last().is_some_and(|frame| frame.role == Role::Sequence);
        if role == Role::Sequence || !in_text { self.known_text(value, node) } else { value }
    }

    /// A text that is known: does it lead to a secret, and do rules know it?
    pub fn known_text(&mut self, value: Value, node: Node<'_>) -> Value {
        let Some(bytes) = value.bytes() else { return value };
        let labels = if credentials::path(bytes) { CREDENTIAL_PATH } else { 0 };
        self.strings(&value, node);
        value.labelled(labels)
    }

    fn binary(&mut self, from: usize, node: Node<'t>) -> Value {
        let [first, .., last] = &self.entries[from..] else { return self.joined(from) };
        let between = &self.source[first.node.end_byte().min(last.node.start_byte())..last.node.start_byte()];
        let operator = std::str::from_utf8(between).unwrap_or("").trim();
        let (left, right) = (&first.value, &last.value);
        let value = match operator {
            "+" | "." | ".." => left.then(right),
            "/" if left.text.is_some() || right.text.is_some() => {
                left.then(&Value::of_bytes(b"/".to_vec(), true)).then(right)
            }
            "%" if left.text.is_some() => crate::fold::percent(left, right),
            "*" => crate::fold::repeated(left, right),
            "^" => match (left.number, right.number) {
                (Some(left), Some(right)) => Value::of_number(left ^ right),
                _ => Value { labels: left.labels | right.labels, ..Value::default() },
            },
            "-" => match (left.number, right.number) {
                (Some(left), Some(right)) => Value::of_number(left.wrapping_sub(right)),
                _ => Value { labels: left.labels | right.labels, ..Value::default() },
            },
            // Flags: `PROT_READ | PROT_EXEC`.
            "|" => left.with_flag(right),
            "<<" => Value { labels: left.labels | right.labels, ..Value::default() },
            "||" | "??" | "or" | "&&" | "and" => left.or(right),
            // Comparisons tell little of what is compared.
            "==" | "!=" | "<" | ">" | "<=" | ">=" | "===" | "!==" | "in" | "instanceof" => Value::default(),
            _ => Value { labels: left.labels | right.labels, ..Value::default() },
        };
        let outermost = self.frames.last().is_none_or(|frame| frame.role != Role::Binary);
        if value.text.is_some() && outermost { self.known_text(value, node) } else { value }
    }

    fn assign(&mut self, from: usize, extends: bool) -> Value {
        let [first, .., last] = &self.entries[from..] else { return self.joined(from) };
        let (target, before) = (first.node, first.value.clone());
        let value = match extends {
            true => before.then(&last.value),
            false => last.value.clone(),
        };
        self.bind(target, value.clone());
        if extends && target.kind() == "identifier" {
            self.reaches_outer(target, value.labels);
        }
        value
    }

    /// `std::ifstream file("…")`: a declaration that calls what makes its type.
    fn constructed(&mut self, node: Node<'t>, from: usize) {
        let Some(last) = self.entries[from..].last().filter(|last| last.role == Role::Arguments) else { return };
        let (Some(items), Some(kind)) =
            (last.value.items.clone(), node.parent().and_then(|declaration| declaration.part(field::TYPE)))
        else {
            return;
        };
        let made = self.called(self.text_of(kind), &items, node, 0);
        if let Some(last) = self.entries.last_mut() {
            last.value = made;
        }
    }

    /// The entries below a frame that is still open.
    pub fn open_entries(&self, from: usize, to: usize) -> &[Entry<'t>] {
        self.entries.get(from..to.min(self.entries.len())).unwrap_or(&[])
    }
}

fn number(raw: &[u8]) -> Option<i64> {
    let text: String = raw.iter().filter(|byte| **byte != b'_').take(40).map(|byte| char::from(*byte)).collect();
    let lower = text.to_ascii_lowercase();
    match lower.get(..2) {
        Some("0x") => i64::from_str_radix(&lower[2..], 16).ok(),
        Some("0o") => i64::from_str_radix(&lower[2..], 8).ok(),
        Some("0b") => i64::from_str_radix(&lower[2..], 2).ok(),
        _ => lower.parse().ok(),
    }
}
