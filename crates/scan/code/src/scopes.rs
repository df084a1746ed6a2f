//! Names and what they stand for: assignments, parameters, functions of the file.

use std::rc::Rc;

use crate::Language;
use crate::evaluate::Evaluator;
use crate::hash::Names;
use crate::tree::{Node, field};
use crate::value::{Item, Labels, NETWORK, SECRET, Value, bounded};

impl<'t> Evaluator<'_, 't> {
    /// Names get values: one, or parts of one. Bounded, and without recursion.
    pub fn bind(&mut self, target: Node<'t>, value: Value) {
        let mut todo = vec![(target, value)];
        let mut steps = 0;
        while let Some((target, value)) = todo.pop() {
            steps += 1;
            if steps > 512 {
                return;
            }
            match target.kind() {
                "identifier"
                | "constant"
                | "variable_name"
                | "global_variable"
                | "instance_variable"
                | "shorthand_property_identifier_pattern"
                | "shorthand_property_identifier" => {
                    let name = self.text_of(target);
                    let value = match target.kind() {
                        "shorthand_property_identifier_pattern" => self.member(&value, name, target),
                        _ => value,
                    };
                    self.set(name, value);
                }
                "attribute"
                | "member_expression"
                | "selector_expression"
                | "field_expression"
                | "field_access"
                | "member_access_expression"
                | "subscript"
                | "subscript_expression"
                | "index_expression"
                | "element_reference" => {
                    let name = self.text_of(target).replace("->", ".").replace("this.", "self.");
                    let name = name.trim_start_matches('$').to_owned();
                    if let Some(root) = target.first()
                        && target.kind().contains("sub")
                    {
                        // A part of a thing: where it comes from, the thing comes from.
                        let old = self.look_up(self.text_of(root), root);
                        self.set(self.text_of(root), Value { labels: old.labels | value.labels, ..old });
                    }
                    self.written_to(&name, &value, target);
                    self.set_outermost(&name, value);
                }
                "pair_pattern" => {
                    if let (Some(key), Some(inner)) = (target.part(field::KEY), target.part(field::VALUE)) {
                        let key = self.text_of(key).trim_matches(['"', '\'']);
                        let part = self.member(&value, key, target);
                        todo.push((inner, part));
                    }
                }
                "object_pattern" | "object_assignment_pattern" | "assignment_pattern" | "rest_pattern" => {
                    for child in target.children().take(64) {
                        todo.push((child, value.clone()));
                        if target.kind().ends_with("assignment_pattern") {
                            break;
                        }
                    }
                }
                _ => {
                    let count = target.children().take(64).count();
                    let is_list = target.kind().contains("list")
                        || target.kind().contains("tuple")
                        || target.kind().starts_with("array_p");
                    for (place, child) in target.children().take(64).enumerate() {
                        let part = match (is_list, value.at(place)) {
                            (true, Some(part)) => part.clone(),
                            (true, None) if count > 1 => Value { labels: value.labels, ..Value::default() },
                            _ => value.clone(),
                        };
                        todo.push((child, part));
                    }
                }
            }
        }
    }

    pub fn set(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(Rc::from(bounded(name)), value);
        }
    }

    /// `text += part` in a callback changes the variable of the function around it.
    pub fn reaches_outer(&mut self, target: Node<'t>, labels: Labels) {
        let name = self.text_of(target);
        if labels != 0
            && let Some(outer) = self.scopes.iter_mut().rev().skip(1).find_map(|scope| scope.get_mut(name))
        {
            outer.labels |= labels;
        }
    }

    /// `parts.push(part)`: a list comes from where its parts come from.
    pub fn collects(&mut self, name: &str, items: &[Item], node: Node<'t>) {
        let labels = items.iter().fold(0, |all, item| all | item.value.labels) & (NETWORK | SECRET);
        if labels == 0 || !matches!(crate::names::last(name), "push" | "append" | "extend" | "unshift") {
            return;
        }
        let object = node.part(field::FUNCTION).and_then(|function| function.first());
        if let Some(object) = object.filter(|object| object.kind() == "identifier") {
            let list = self.text_of(object);
            if let Some(list) = self.scopes.iter_mut().rev().find_map(|scope| scope.get_mut(list)) {
                list.labels |= labels;
            }
        }
    }

    pub fn set_outermost(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.first_mut() {
            scope.insert(Rc::from(bounded(name)), value);
        }
    }

    pub fn variable(&self, name: &str) -> Option<&Value> {
        let known = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        known.or_else(|| if self.earlier.is_empty() { None } else { self.earlier.get(name) })
    }

    pub fn remember(&mut self) {
        let Some(outermost) = self.scopes.first() else { return };
        for (name, value) in outermost.iter().filter(|(name, value)| value.labels != 0 && self.missing.contains(*name))
        {
            if self.earlier.get(name).is_none_or(|before| before.labels != value.labels) {
                self.earlier.insert(name.clone(), value.clone());
                self.changed = true;
            }
        }
    }

    pub fn look_up(&mut self, name: &str, node: Node<'_>) -> Value {
        if let Some(value) = self.variable(name) {
            return value.clone();
        }
        if self.scopes.len() > 1 && self.missing.len() < 4096 && !self.missing.contains(name) {
            self.missing.insert(Rc::from(name));
        }
        let canonical = crate::names::canonical(self.language, name);
        self.read(&canonical, node)
    }

    pub fn begin_function(&mut self, node: Node<'t>) {
        let mut named = node.part(field::NAME);
        if named.is_none() && matches!(self.language, Language::C | Language::Cpp) {
            let mut inner = node.part(field::DECLARATOR);
            for _ in 0..8 {
                match inner.and_then(|inner| inner.part(field::DECLARATOR)) {
                    Some(next) => inner = Some(next),
                    None => break,
                }
            }
            named = inner;
        }
        // Callbacks are called with what the call that they are given to brings.
        let brought = if named.is_none() { self.brought() } else { 0 };
        let name: Rc<str> = match named {
            Some(named) => Rc::from(format!("@{}", bounded(self.text_of(named)))),
            None => Rc::from(format!("@{}", node.start_byte())),
        };
        if let Some(named) = named {
            let value = Value { name: Some(name.clone()), ..Value::default() };
            let simple = self.text_of(named).to_owned();
            if self.language != Language::Java {
                self.set(&simple, value);
            }
        }
        self.functions.entry(name.clone()).or_default();
        if let Some(module) = self.module_brought().filter(|_| named.is_none())
            && let Some(summary) = self.functions.get_mut(&name)
        {
            summary.module = Some(module);
        }
        if brought != 0
            && let Some(summary) = self.functions.get_mut(&name)
        {
            for place in 0..4 {
                if summary.given.len() <= place {
                    summary.given.push(0);
                }
                summary.given[place] |= brought;
            }
        }
        self.within.push(name);
        self.scopes.push(Names::default());
        if let Some(one) = node.part(field::PARAMETER) {
            let value = self.first_given();
            self.bind(one, value);
        }
        // `x -> …` has its only parameter in the place of the list.
        if let Some(one) = node.part(field::PARAMETERS).filter(|one| one.kind() == "identifier") {
            let value = self.first_given();
            self.bind(one, value);
        }
    }

    fn first_given(&self) -> Value {
        let module = self.within.last().and_then(|name| self.functions.get(name)?.module.clone());
        Value { name: module, labels: self.given(0), ..Value::default() }
    }

    fn given(&self, place: usize) -> Labels {
        let summary = self.within.last().and_then(|name| self.functions.get(name));
        summary.and_then(|summary| summary.given.get(place)).copied().unwrap_or(0)
    }

    pub fn parameters(&mut self, node: Node<'t>) {
        // A list of results looks the same in Go: it stands below no function of ours, or is the second.
        let mut place = 0;
        for child in node.children().take(64) {
            let mut inner = child;
            for _ in 0..8 {
                let next = [field::NAME, field::PATTERN, field::DECLARATOR, field::LEFT]
                    .into_iter()
                    .find_map(|field| inner.part(field));
                match next.or_else(|| match inner.kind() {
                    "identifier" | "variable_name" => None,
                    _ => inner.first(),
                }) {
                    Some(next) => inner = next,
                    None => break,
                }
            }
            let name = self.text_of(inner).to_owned();
            if matches!(name.as_str(), "self" | "this" | "cls" | "&self" | "&mut self") {
                self.set(&name, Value::named("self"));
                continue;
            }
            let labels = self.given(place) | crate::names::handed(self.language, &name, place);
            let value = if place == 0 { self.first_given() } else { Value::default() }.labelled(labels);
            place += 1;
            if child.kind().contains("pattern") && child.kind() != "assignment_pattern" {
                self.bind(child, value);
            } else {
                self.set(&name, value);
            }
        }
    }

    pub fn gives_back(&mut self, labels: Labels) {
        if labels != 0
            && let Some(summary) = self.within.last().and_then(|name| self.functions.get_mut(name))
            && summary.back | labels != summary.back
        {
            summary.back |= labels;
            self.changed = true;
        }
    }
}
