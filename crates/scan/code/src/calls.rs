//! Calls, members and keys: which thing is meant, what rules say to it, and what comes back.

use std::rc::Rc;

use crate::evaluate::{Evaluator, Hit, Piece};
use crate::grammar::Role;
use crate::limits::{FINDINGS, PIECES};
use crate::rule::Kind;
use crate::rules::{Entry, Which};
use crate::tree::{Node, field};
use crate::value::{FILE, Item, Labels, Value, WRITTEN, bounded};
use crate::{Language, bound, fold, names};

/// What a call gives back has nothing to do with what it is given.
const TELLS_NOTHING: &[&str] = &[
    "len", "print", "isinstance", "type", "hash", "id", "bool", "int", "float", "console.log", "parseInt", "Number",
    "sizeof", "strlen", "puts", "time.time", "logging.info", "logging.debug",
];

const ENVIRONMENT: Labels = 1 << 2;
const VARIABLE: Labels = 1 << 3;

/// One variable of an environment is not the environment; it may be a secret by its name.
fn one_variable(labels: Labels, name: &str) -> Labels {
    if labels & ENVIRONMENT == 0 {
        return labels;
    }
    let lower = name.to_ascii_lowercase();
    let is_secret = ["secret", "token", "passw", "api_key", "apikey", "private_key", "credential", "access_key"]
        .iter()
        .any(|word| lower.contains(word));
    labels & !ENVIRONMENT | if is_secret { VARIABLE } else { 0 }
}

impl<'t> Evaluator<'_, 't> {
    /// A node that calls something.
    pub fn call(&mut self, node: Node<'t>, from: usize, role: Role) -> Value {
        let (mut function, mut receiver, mut method, mut arguments) = (None, None, None, None);
        for (place, entry) in self.entries(from).iter().enumerate() {
            if entry.role == Role::Arguments {
                arguments = Some(place);
                continue;
            }
            match entry.field {
                field::FUNCTION | field::CONSTRUCTOR | field::MACRO => function = Some(place),
                field::RECEIVER | field::OBJECT | field::SCOPE => receiver = Some(place),
                field::METHOD | field::NAME => method = Some(place),
                _ if place == 0 => function = Some(place),
                _ => {}
            }
        }
        let entries = self.entries(from);
        let items: Rc<Vec<Item>> = arguments
            .and_then(|place| entries.get(place))
            .and_then(|entry| entry.value.items.clone())
            .unwrap_or_default();
        // `include $x`, `print $x`: the word itself is called with what follows.
        let is_word =
            self.language == Language::Php && role == Role::New && node.kind() != "object_creation_expression";
        if is_word {
            let items: Vec<Item> = entries.iter().map(|entry| Item { key: None, value: entry.value.clone() }).collect();
            let word = self.text_of(node).split(|letter: char| !letter.is_ascii_lowercase() && letter != '_').next();
            let word = word.unwrap_or("").to_owned();
            return self.called(&word, &items, node, 0);
        }
        // Blocks of Ruby are parts of the call, not arguments: what they give back is not followed.
        let (name, labels, base): (Rc<str>, Labels, Value) = match (function, receiver, method) {
            (Some(function), ..) => {
                let entry = &entries[function];
                // A function called by its name in a text: `$f = "system"; $f($x)`.
                let name = match (self.language, entry.value.exact()) {
                    (Language::Php, Some(text)) => Rc::from(text),
                    _ => entry.value.shared_name(),
                };
                let (node, labels) = (entry.node, entry.value.labels);
                (name, labels, self.receiver_of(node, labels))
            }
            (None, Some(receiver), Some(method)) => {
                let (object, member) = (&entries[receiver], &entries[method]);
                let value = object.value.clone();
                let called = self.text_of(member.node).to_owned();
                // `$obj->$m()`.
                let called = match member.value.exact() {
                    Some(text) if self.language == Language::Php => text.to_owned(),
                    _ => called,
                };
                let (node, labels) = (member.node, value.labels);
                let name = self.member(&value, &called, node).shared_name();
                (name, labels, value)
            }
            (None, None, Some(method)) => {
                let entry = &entries[method];
                let (node, mut value) = (entry.node, entry.value.clone());
                if self.language == Language::Java {
                    let name = format!("@{}", self.text_of(node));
                    if self.functions.contains_key(name.as_str()) {
                        value = Value::named(&name);
                    }
                }
                (value.shared_name(), value.labels, Value::default())
            }
            (None, Some(receiver), None) => {
                // Ruby: `x.()` or a bare receiver.
                let value = entries[receiver].value.clone();
                (value.shared_name(), value.labels, value)
            }
            _ => (Rc::from("~"), 0, Value::default()),
        };
        let mut made = self.invoked(&name, &base, &items, node, labels);
        self.grown_command(&name, &base, &items, node, &mut made);
        self.collects(&name, &items, node);
        made
    }

    /// `object.method`: the value of the object, as far as it was kept.
    fn receiver_of(&mut self, node: Node<'t>, labels: Labels) -> Value {
        let is_member = node.role() == Role::Member && node.kind() != "scoped_identifier";
        let Some(object) = node.first().filter(|_| is_member) else {
            return Value { labels, ..Value::default() };
        };
        match self.members.remove(&node.id()) {
            Some(value) => value,
            None if matches!(object.kind(), "identifier" | "variable_name") => {
                self.look_up(self.text_of(object), object)
            }
            None => Value { labels, ..Value::default() },
        }
    }

    pub fn called(&mut self, name: &str, items: &[Item], node: Node<'_>, labels: Labels) -> Value {
        self.called_with(name, items, node, labels, &Value::default())
    }

    /// A call of something with a known name: rules are asked, code within is kept for later.
    pub fn called_with(&mut self, name: &str, items: &[Item], node: Node<'_>, labels: Labels, base: &Value) -> Value {
        let name = names::canonical(self.language, name);
        let name: &str = &name;
        let labels = match names::last(name) {
            "get" | "fetch" | "pop" | "setdefault" | "getOrDefault" | "key?" | "has_key" | "getProperty" => {
                one_variable(labels, items.first().and_then(|item| item.value.shown()).unwrap_or(""))
            }
            _ => labels,
        };
        let given = items.iter().fold(labels, |all, item| all | item.value.labels);
        self.fills(given | base.labels);
        let marked = self.given_saved(items, node);
        let mut known = Vec::new();
        self.rules.of_name(self.language, "", name, &mut known);
        let mut back: Labels = if TELLS_NOTHING.contains(&name) { 0 } else { given };
        for entry in known {
            match entry {
                Entry::Rule(place) => {
                    if !names::is_excepted(name, &self.rules.rule(place).when.names)
                        && bound::fits(self.rules, place, marked.as_deref().unwrap_or(items), base)
                    {
                        self.hit(place, node);
                    }
                }
                Entry::Origin(place) => {
                    let origin = self.rules.origin(place);
                    if (origin.from == 0 || origin.from & given != 0)
                        && (origin.matches.is_empty()
                            || items.iter().any(|item| self.rules.origin_fits(place, &bound::shown(&item.value)))
                            || base.text.is_some() && self.rules.origin_fits(place, &bound::shown(base)))
                    {
                        back |= origin.label;
                        if origin.label & (FILE | WRITTEN) != 0 {
                            // `urlretrieve(address, path)`: an address is no file.
                            let is_filled = origin.label & WRITTEN != 0;
                            let skipped = usize::from(is_filled && origin.from == 0 && items.len() > 1);
                            self.saves(items, skipped, base, node, is_filled);
                        }
                    }
                }
                Entry::Runs(place) => self.runs(place, items, node),
            }
        }
        if let Some(summary) = self.local(name) {
            let mut changed = false;
            for (place, item) in items.iter().enumerate().take(16) {
                while summary.given.len() <= place {
                    summary.given.push(0);
                }
                let before = summary.given[place];
                summary.given[place] |= item.value.labels;
                changed |= before != summary.given[place];
            }
            back = summary.back;
            self.changed |= changed;
        }
        Value { name: Some(Rc::from(bounded(&format!("{name}()")))), labels: back, ..Value::default() }
    }

    /// What is known of a function of this file.
    fn local(&mut self, name: &str) -> Option<&mut crate::evaluate::Summary> {
        if name.starts_with('@') {
            return self.functions.get_mut(name);
        }
        let method = name.strip_prefix("self.")?;
        self.functions.get_mut(format!("@{method}").as_str())
    }

    pub fn hit(&mut self, rule: u16, node: Node<'_>) {
        if self.found.hits.len() < FINDINGS * 4 {
            self.found.hits.push(Hit { start: node.start_byte(), end: node.end_byte(), rule });
        } else {
            self.found.left.too_many = true;
        }
    }

    fn runs(&mut self, place: u16, items: &[Item], node: Node<'_>) {
        let runs = self.rules.runs(place);
        let language = match runs.language {
            Some(language) => Language::ALL.get(language as usize).copied(),
            None => Some(self.language),
        };
        if runs.words {
            let words = bound::words(items);
            if !words.is_empty() {
                self.piece(Piece {
                    bytes: Vec::new(),
                    language,
                    via: "command",
                    start: node.start_byte(),
                    words: Some(words),
                });
            }
            return;
        }
        let value = items.iter().filter(|item| item.key.is_none()).nth(runs.argument as usize).map(|item| &item.value);
        if let Some(bytes) = value.and_then(Value::bytes) {
            let via = language.map_or("code", Language::name);
            self.piece(Piece { bytes: bytes.to_vec(), language, via, start: node.start_byte(), words: None });
        } else if let Some(value) = value.filter(|value| value.items.is_some() && runs.argument == 0) {
            // A list where a line may stand, too: `subprocess.run(["sh", "-c", …])`.
            let words = bound::words(&[Item { key: None, value: value.clone() }]);
            if language == Some(Language::Shell) && !words.is_empty() {
                self.piece(Piece {
                    bytes: Vec::new(),
                    language,
                    via: "command",
                    start: node.start_byte(),
                    words: Some(words),
                });
            }
        }
    }

    pub fn piece(&mut self, piece: Piece) {
        if self.found.pieces.len() < PIECES {
            self.found.pieces.push(piece);
        } else {
            self.found.left.too_many = true;
        }
    }

    /// A node that is a member of something.
    pub fn member_node(&mut self, node: Node<'t>, from: usize) -> Value {
        let entries = self.entries(from);
        let Some(first) = entries.first() else { return Value::default() };
        let object = first.value.clone();
        let last = [field::ATTRIBUTE, field::PROPERTY, field::FIELD, field::NAME]
            .into_iter()
            .find_map(|field| node.part(field));
        let Some(last) = last.or_else(|| node.children().last()) else {
            return object;
        };
        let member = self.text_of(last).to_owned();
        // `::name` alone.
        if last.id() == first.node.id() {
            return first.value.clone();
        }
        let value = self.member(&object, &member, node);
        if self.members.len() < 64 {
            self.members.insert(node.id(), object);
        } else {
            self.members.clear();
        }
        value
    }

    pub fn member(&mut self, object: &Value, member: &str, node: Node<'_>) -> Value {
        if let Some(part) = object.part(member) {
            return part.clone();
        }
        if member.len() > 100 {
            return Value { labels: object.labels, ..Value::default() };
        }
        let name = format!("{}.{member}", object.name());
        if let Some(value) = self.variable(&name) {
            return value.clone().labelled(object.labels);
        }
        let canonical = names::canonical(self.language, &name);
        let value = self.read(&canonical, node);
        let labels = match object.name() {
            "process.env" => one_variable(object.labels, member),
            _ => object.labels,
        };
        value.labelled(labels)
    }

    pub fn index(&mut self, node: Node<'t>, from: usize) -> Value {
        let entries = self.entries(from);
        let [first, second, ..] = entries else {
            return entries.first().map(|entry| entry.value.clone()).unwrap_or_default();
        };
        let (object, key) = (first.value.clone(), second.value.clone());
        if self.language == Language::Python && second.node.kind() == "slice" {
            return fold::sliced(&object, self.text_of(second.node));
        }
        if let Some(number) = key.number.and_then(|number| usize::try_from(number).ok())
            && let Some(part) = object.at(number)
        {
            return part.clone();
        }
        // Whichever class it is: it is reached through a chain of them.
        if ["__bases__", "__mro__", ".mro()"].iter().any(|chain| object.name().ends_with(chain)) {
            return Value::named("~.__base__");
        }
        let Some(text) = key.exact().map(str::to_owned) else {
            let labels = object.labels;
            let made = self.called("[]", &[], node, 0);
            return Value { name: None, labels: labels | made.labels, ..Value::default() };
        };
        let value = match object.name() {
            "globals()"
            | "locals()"
            | "__builtins__"
            | "builtins.__dict__"
            | "__builtins__.__dict__"
            | "__dict__"
            | "vars()"
            | "sys.modules"
            | "global"
            | "globalThis"
            | "window"
            | "__dict__()" => {
                let name = names::canonical(self.language, &text).into_owned();
                let found = self.variable(&name).cloned();
                found.unwrap_or_else(|| Value::named(&name))
            }
            _ => {
                let base = match object.name().strip_suffix(".__dict__") {
                    Some(inner) => Value { name: Some(Rc::from(inner)), ..object.clone() },
                    None => object.clone(),
                };
                let labels = one_variable(base.labels, &text);
                self.member(&Value { labels, ..base }, &text, node)
            }
        };
        value.labelled(one_variable(object.labels, &text))
    }

    /// A name that nothing in this file stands for.
    pub fn read(&mut self, name: &str, node: Node<'_>) -> Value {
        let mut labels = 0;
        let mut known = Vec::new();
        self.rules.of_name(self.language, "read ", name, &mut known);
        for entry in known {
            match entry {
                Entry::Rule(place) => self.hit(place, node),
                Entry::Origin(place) => labels |= self.rules.origin(place).label,
                Entry::Runs(_) => {}
            }
        }
        Value::named(name).labelled(labels)
    }

    /// A module comes in under any name.
    pub fn imported(&mut self, module: &str, node: Node<'_>) {
        let mut known = Vec::new();
        self.rules.of_name(self.language, "import ", module, &mut known);
        // `import a.b` is an import of `a`, too.
        for (at, _) in module.match_indices(['.', '/']).take(4) {
            self.rules.of_name(self.language, "import ", &module[..at], &mut known);
        }
        for entry in known {
            if let Entry::Rule(place) = entry {
                self.hit(place, node);
            }
        }
    }

    /// Something is put into a place with a name: `element.innerHTML = x`, `process.env.X = y`.
    pub fn written_to(&mut self, name: &str, value: &Value, node: Node<'_>) {
        let assigned = format!("{name}=");
        let mut known = Vec::new();
        self.rules.of_name(self.language, "", &assigned, &mut known);
        for entry in known {
            if let Entry::Rule(place) = entry
                && bound::fits(self.rules, place, &[Item { key: None, value: value.clone() }], &Value::default())
            {
                self.hit(place, node);
            }
        }
    }

    /// Rules over constant texts.
    pub fn strings(&mut self, value: &Value, node: Node<'_>) {
        let Some(bytes) = value.bytes().filter(|bytes| bytes.len() >= 4) else { return };
        if let Some(hints) = self.rules.hints(self.language, Kind::String) {
            let mut tried = Vec::new();
            for found in hints.words.within(bytes).take(64) {
                let rule = hints.rules[found.word];
                if !tried.contains(&rule) {
                    tried.push(rule);
                    if self.rules.fits(rule, Which::Text, bytes) && !self.excepted(rule, bytes) {
                        self.hit(rule, node);
                    }
                }
            }
        }
        if let Some(piece) = crate::payload::within(bytes, self.language, node.start_byte()) {
            self.piece(piece);
        }
    }

    fn excepted(&self, rule: u16, bytes: &[u8]) -> bool {
        self.rules.pattern(rule, Which::Unless).is_some_and(|pattern| pattern.is_match(bytes))
    }

    /// What the call that we are an argument of will hand to us.
    pub fn brought(&mut self) -> Labels {
        let around: Vec<(Role, usize)> = self.around().take(2).collect();
        let (mut labels, mut name, mut given) = (0, String::new(), 0);
        let mut shown: Vec<Vec<u8>> = Vec::new();
        match around.as_slice() {
            [(Role::Arguments, from), (Role::Call | Role::New, call)] => {
                given = self.entries(*from).iter().fold(0, |all, entry| all | entry.value.labels);
                shown = self.entries(*from).iter().take(4).map(|entry| bound::shown(&entry.value)).collect();
                if let Some(callee) = self.open_entries(*call, *from).first() {
                    labels = callee.value.labels;
                    name = callee.value.name().to_owned();
                }
            }
            // A block of Ruby.
            [(Role::Call, call), ..] => {
                if let Some(callee) = self.entries(*call).first() {
                    labels = callee.value.labels;
                }
            }
            _ => return 0,
        }
        let mut known = Vec::new();
        self.rules.of_name(self.language, "", &names::canonical(self.language, &name), &mut known);
        for entry in known {
            if let Entry::Origin(place) = entry {
                let origin = self.rules.origin(place);
                let fits = origin.matches.is_empty() || shown.iter().any(|text| self.rules.origin_fits(place, text));
                if fits && (origin.from == 0 || origin.from & (given | labels) != 0) {
                    labels |= origin.label;
                }
            }
        }
        labels
    }
}
