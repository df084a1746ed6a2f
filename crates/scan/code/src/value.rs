//! What is known of a value without running anything: its name, its text, its parts, and where it comes from.

use std::rc::Rc;

use crate::limits::{ITEMS, LONGEST_NAME, LONGEST_TEXT};

/// Bits in the order of `file::LABELS`.
pub(crate) type Labels = u16;
pub(crate) const CREDENTIAL_PATH: Labels = 1;
pub(crate) const SECRET: Labels = 1 << 1;
pub(crate) const NETWORK: Labels = 1 << 4;
pub(crate) const DECODED: Labels = 1 << 5;
/// A file that holds what was fetched.
pub(crate) const WRITTEN: Labels = 1 << 8;
/// A file that is open to be written.
pub(crate) const FILE: Labels = 1 << 9;

/// Stands in a text for what is not known of it, as in `shell::Code`.
pub(crate) const HOLE: &str = "…";

#[derive(Clone, Default, Debug)]
pub(crate) struct Value {
    /// What it is called after imports and assignments: `os.system`, or `os.popen()` for what a call gives back.
    pub name: Option<Rc<str>>,
    pub text: Option<Rc<Known>>,
    pub items: Option<Rc<Vec<Item>>>,
    pub number: Option<i64>,
    pub labels: Labels,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Known {
    pub bytes: Vec<u8>,
    /// Nothing in it is a hole.
    pub exact: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub key: Option<Rc<str>>,
    pub value: Value,
}

impl Value {
    pub fn named(name: &str) -> Value {
        Value { name: Some(Rc::from(bounded(name))), ..Value::default() }
    }

    pub fn of_bytes(bytes: Vec<u8>, exact: bool) -> Value {
        let mut bytes = bytes;
        bytes.truncate(LONGEST_TEXT);
        Value { text: Some(Rc::new(Known { bytes, exact })), ..Value::default() }
    }

    pub fn of_number(number: i64) -> Value {
        Value { number: Some(number), ..Value::default() }
    }

    pub fn of_items(mut items: Vec<Item>) -> Value {
        items.truncate(ITEMS);
        let labels = items.iter().fold(0, |labels, item| labels | item.value.labels);
        Value { items: Some(Rc::new(items)), labels, ..Value::default() }
    }

    pub fn labelled(mut self, labels: Labels) -> Value {
        self.labels |= labels;
        self
    }

    pub fn bytes(&self) -> Option<&[u8]> {
        self.text.as_ref().map(|known| known.bytes.as_slice())
    }

    /// Its text, all of it known.
    pub fn exact(&self) -> Option<&str> {
        self.text.as_ref().filter(|known| known.exact).and_then(|known| std::str::from_utf8(&known.bytes).ok())
    }

    /// Its text with holes.
    pub fn shown(&self) -> Option<&str> {
        self.text.as_ref().and_then(|known| std::str::from_utf8(&known.bytes).ok())
    }

    pub fn is_known(&self) -> bool {
        self.number.is_some()
            || self.text.as_ref().is_some_and(|known| known.exact)
            || self
                .items
                .as_ref()
                .is_some_and(|items| items.len() <= 64 && items.iter().all(|item| item.value.is_leaf()))
    }

    fn is_leaf(&self) -> bool {
        self.number.is_some() || self.text.as_ref().is_some_and(|known| known.exact)
    }

    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("~")
    }

    pub fn shared_name(&self) -> Rc<str> {
        self.name.clone().unwrap_or_else(|| Rc::from("~"))
    }

    /// Both may be meant: only what they agree on is known, but where either comes from counts.
    pub fn or(&self, other: &Value) -> Value {
        Value {
            name: self.name.clone().filter(|name| other.name.as_ref() == Some(name)),
            text: self.text.clone().filter(|text| other.text.as_ref() == Some(text)),
            items: None,
            number: self.number.filter(|number| other.number == Some(*number)),
            labels: self.labels | other.labels,
        }
    }

    /// Flags that are set together are called by all their names.
    pub fn with_flag(&self, other: &Value) -> Value {
        let labels = self.labels | other.labels;
        let value = match (self.number, other.number, &self.name, &other.name) {
            (Some(left), Some(right), ..) => Value::of_number(left | right),
            (_, _, Some(left), Some(right)) => Value::named(&format!("{left}|{right}")),
            (_, _, Some(name), None) | (_, _, None, Some(name)) => Value::named(name),
            _ => Value::default(),
        };
        value.labelled(labels)
    }

    /// One text after another; holes for what is not known.
    pub fn then(&self, other: &Value) -> Value {
        let labels = self.labels | other.labels;
        if let (Some(left), Some(right)) = (&self.items, &other.items) {
            let mut all = left.as_ref().clone();
            all.extend(right.iter().take(ITEMS.saturating_sub(left.len())).cloned());
            return Value::of_items(all).labelled(labels);
        }
        if let (Some(left), Some(right)) = (self.number, other.number) {
            return Value::of_number(left.wrapping_add(right)).labelled(labels);
        }
        if self.text.is_none() && other.text.is_none() {
            return Value { labels, ..Value::default() };
        }
        let mut bytes = Vec::new();
        let mut exact = true;
        for part in [self, other] {
            exact &= part.append_to(&mut bytes);
        }
        Value::of_bytes(bytes, exact).labelled(labels)
    }

    /// Adds its text, or a hole; was it known?
    pub fn append_to(&self, bytes: &mut Vec<u8>) -> bool {
        match (&self.text, self.number) {
            (Some(known), _) => {
                bytes
                    .extend_from_slice(&known.bytes[..known.bytes.len().min(LONGEST_TEXT.saturating_sub(bytes.len()))]);
                known.exact
            }
            (None, Some(number)) => {
                bytes.extend_from_slice(number.to_string().as_bytes());
                true
            }
            (None, None) => {
                bytes.extend_from_slice(HOLE.as_bytes());
                false
            }
        }
    }

    /// The part called `key`, if it is a list of such.
    pub fn part(&self, key: &str) -> Option<&Value> {
        self.items.as_ref()?.iter().find(|item| item.key.as_deref() == Some(key)).map(|item| &item.value)
    }

    pub fn at(&self, place: usize) -> Option<&Value> {
        self.items.as_ref()?.get(place).map(|item| &item.value)
    }
}

/// A name no longer than names get: its end says most.
pub(crate) fn bounded(name: &str) -> &str {
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let mut from = name.len() - LONGEST_NAME;
    while !name.is_char_boundary(from) {
        from += 1;
    }
    &name[from..]
}
