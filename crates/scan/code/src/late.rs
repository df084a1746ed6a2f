//! Ways to call something other than by its own name: reflection, functions that are handed over, commands that grow.

use std::rc::Rc;

use crate::evaluate::{Evaluator, Piece};
use crate::grammar::Role;
use crate::tree::{Node, field};
use crate::value::{Item, Labels, Value};
use crate::{Language, bound, fold, names};

impl<'t> Evaluator<'_, 't> {
    /// Ways to call something other than by its own name.
    pub fn invoked(&mut self, name: &str, base: &Value, items: &[Item], node: Node<'t>, labels: Labels) -> Value {
        let first = items.first().map(|item| &item.value);
        let last = names::last(name);
        let rest = items.get(1..).unwrap_or(&[]);
        let inner = name.strip_suffix(last).and_then(|name| name.strip_suffix('.')).unwrap_or("");
        match (self.language, last) {
            (Language::JavaScript | Language::TypeScript | Language::Tsx, "call" | "bind") if !inner.is_empty() => {
                return self.called(inner, rest, node, labels);
            }
            (Language::JavaScript | Language::TypeScript | Language::Tsx, "apply")
                if !inner.is_empty() && inner != "Reflect" =>
            {
                let spread: Vec<Item> = rest
                    .first()
                    .and_then(|item| item.value.items.clone())
                    .map_or_else(Vec::new, |items| items.to_vec());
                return self.called(inner, &spread, node, labels);
            }
            // A function that is handed over is called with what comes.
            (
                Language::JavaScript | Language::TypeScript | Language::Tsx,
                "then" | "map" | "forEach" | "on" | "once" | "addEventListener" | "addListener",
            ) => {
                let each = base.items.as_ref().and_then(|items| items.first()).map(|item| item.value.clone());
                let given = each.unwrap_or_default().labelled(labels);
                for item in items.iter().take(4) {
                    if let Some(function) = item.value.name.clone().filter(|name| !name.starts_with('@')) {
                        self.called(&function, &[Item { key: None, value: given.clone() }], node, 0);
                    }
                }
            }
            (Language::Ruby, "send" | "__send__" | "public_send") => {
                if let Some(method) = first.and_then(Value::exact) {
                    let method = method.to_owned();
                    let name = match base.name.as_deref() {
                        None | Some("self") => method,
                        Some(_) => self.member(base, &method, node).name().to_owned(),
                    };
                    return self.called(&name, rest, node, labels);
                }
            }
            (Language::Ruby, "method" | "const_get") => {
                if let Some(method) = first.and_then(Value::exact) {
                    let method = method.to_owned();
                    return match base.name.as_deref() {
                        None | Some("self" | "Object" | "Kernel") => Value::named(&method),
                        Some(_) => self.member(base, &method, node),
                    };
                }
            }
            (Language::Ruby, "call") if !inner.is_empty() => return self.called(inner, items, node, labels),
            (Language::Php, "call_user_func") => {
                if let Some(function) = first.and_then(Value::exact) {
                    let function = function.to_owned();
                    return self.called(&function, rest, node, labels);
                }
            }
            (Language::Php, "call_user_func_array") => {
                if let Some(function) = first.and_then(Value::exact) {
                    let function = function.to_owned();
                    let spread = rest
                        .first()
                        .and_then(|item| item.value.items.clone())
                        .map_or_else(Vec::new, |items| items.to_vec());
                    return self.called(&function, &spread, node, labels);
                }
            }
            (Language::Php, "array_map" | "usort" | "array_filter" | "array_walk") => {
                let place = usize::from(last != "array_map");
                if let Some(function) = items.get(place).and_then(|item| item.value.exact()) {
                    let function = function.to_owned();
                    let other = items.get(1 - place).and_then(|item| item.value.items.clone());
                    self.called(&function, &other.map_or_else(Vec::new, |items| items.to_vec()), node, labels);
                }
            }
            (Language::Java, "getMethod" | "getDeclaredMethod") => {
                if let Some(method) = first.and_then(Value::exact) {
                    let method = method.to_owned();
                    self.called(name, items, node, labels);
                    return self.member(base, &method, node);
                }
            }
            (Language::Java, "invoke") if !inner.is_empty() => {
                self.called(inner, rest, node, labels);
            }
            (Language::Java, "forName" | "loadClass") => {
                if let Some(class) = first.and_then(Value::exact) {
                    let class = class.to_owned();
                    self.called(name, items, node, labels);
                    return Value::named(&class);
                }
            }
            (Language::Python, "map" | "filter") if name == last => {
                if let Some(function) = first.and_then(|value| value.name.clone()) {
                    let list = rest.first().map(|item| item.value.clone()).unwrap_or_default();
                    let each: Vec<Item> = list.items.as_ref().map_or_else(
                        || vec![Item { key: None, value: list.clone() }],
                        |items| items.iter().take(64).cloned().collect(),
                    );
                    if let Some(folded) = fold::mapped(&function, &list) {
                        return folded;
                    }
                    for item in each {
                        self.called(&function, &[item], node, labels);
                    }
                }
            }
            (Language::Python, "partial") if name == "functools.partial" => {
                if let Some(function) = first.and_then(|value| value.name.clone()) {
                    return Value { name: Some(function), labels, ..Value::default() };
                }
            }
            (
                Language::Python,
                "Thread" | "Process" | "Timer" | "submit" | "apply_async" | "run_in_executor" | "to_thread",
            ) => {
                let target =
                    items.iter().find(|item| item.key.as_deref() == Some("target")).map(|item| &item.value).or(first);
                if let Some(function) = target.and_then(|value| value.name.clone()) {
                    let given = items
                        .iter()
                        .find(|item| item.key.as_deref() == Some("args"))
                        .and_then(|item| item.value.items.clone());
                    let given = given.map_or_else(|| rest.to_vec(), |items| items.to_vec());
                    if target.is_some_and(|value| value.text.is_none()) {
                        self.called(&function, &given, node, labels);
                    }
                }
            }
            _ => {}
        }
        match name {
            "getattr" | "Reflect.get" | "operator.attrgetter" => {
                if let (Some(object), Some(member)) = (first, rest.first().and_then(|item| item.value.exact())) {
                    let (object, member) = (object.clone(), member.to_owned());
                    // `getattr(os, "O_BINARY", 0)` asks for a constant: nothing that could be called.
                    if member.bytes().any(|byte| byte.is_ascii_lowercase()) {
                        self.called(name, items, node, labels);
                    }
                    return self.member(&object, &member, node);
                }
            }
            "__import__"
            | "importlib.import_module"
            | "require"
            | "import"
            | "imp.load_module"
            | "pkgutil.resolve_name" => {
                if let Some(module) = first.and_then(Value::exact) {
                    let module = names::canonical(self.language, module).replace(':', ".");
                    self.called(name, items, node, labels);
                    self.imported(&module, node);
                    return Value::named(&module);
                }
            }
            _ => {}
        }
        let folded = fold::call(name, base, items);
        let made = self.called_with(name, items, node, labels, base);
        match folded {
            Some(folded) => {
                let folded = folded.labelled(made.labels);
                if folded.text.is_some() { self.known_text(folded, node) } else { folded }
            }
            None => made,
        }
    }

    /// The module that a callback is handed: `import("child_process").then(it => …)`.
    pub fn module_brought(&self) -> Option<Rc<str>> {
        let around: Vec<(Role, usize)> = self.around().take(2).collect();
        let [(Role::Arguments, from), (Role::Call, call)] = around.as_slice() else { return None };
        let is_meant = matches!(self.language, Language::JavaScript | Language::TypeScript | Language::Tsx);
        let callee = self.open_entries(*call, *from).first().filter(|_| is_meant)?;
        let module = callee.value.name().strip_suffix(".then")?;
        (!module.ends_with(')') && module != "~").then(|| Rc::from(module))
    }

    /// `Command::new("sh").arg("-c").arg(…)`: the words of a command grow call by call.
    pub fn grown_command(&mut self, name: &str, base: &Value, items: &[Item], node: Node<'t>, made: &mut Value) {
        let last = names::last(name);
        if self.language != Language::Rust || !name.contains("Command.new") {
            return;
        }
        let mut words = base.items.as_ref().map_or_else(Vec::new, |items| items.to_vec());
        match last {
            "new" => words = items.to_vec(),
            "arg" => words.extend(items.iter().cloned()),
            "args" => {
                words.extend(items.iter().filter_map(|item| item.value.items.clone()).flat_map(|items| items.to_vec()))
            }
            "spawn" | "output" | "status" | "exec" => {
                let words = bound::words(&words);
                if !words.is_empty() {
                    let language = Some(Language::Shell);
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
            _ => {}
        }
        words.truncate(256);
        let labels = made.labels;
        *made = Value { name: Some(Rc::from("std.process.Command.new()")), ..Value::of_items(words) }.labelled(labels);
        // `command.arg(…);` changes the command itself.
        if let Some(object) = node.part(field::FUNCTION).and_then(|function| function.part(field::VALUE))
            && object.kind() == "identifier"
        {
            self.set(self.text_of(object), made.clone());
        }
    }
}
