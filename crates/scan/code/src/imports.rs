//! How each language takes in modules: names of this file come to stand for names of others.

use crate::evaluate::Evaluator;
use crate::tree::{Node, field};
use crate::value::Value;
use crate::{Language, names};

/// Names that one statement may bring in.
const MOST: usize = 256;

pub(crate) fn take<'t>(evaluator: &mut Evaluator<'_, 't>, node: Node<'t>) {
    match evaluator.language {
        Language::Python => python(evaluator, node),
        Language::JavaScript | Language::TypeScript | Language::Tsx => javascript(evaluator, node),
        Language::Go => go(evaluator, node),
        Language::Rust => rust(evaluator, node),
        Language::Php => {
            let (path, alias) = with_alias(evaluator.text_of(node), " as ");
            bind(evaluator, &path.replace('\\', "."), alias, node);
        }
        Language::Java => {
            let text = evaluator.text_of(node);
            let path =
                text.trim_start_matches("import").trim_start().trim_start_matches("static ").trim_end_matches(';');
            bind(evaluator, path.trim(), None, node);
        }
        Language::C | Language::Cpp => {
            let path = evaluator.text_of(node).trim_start_matches("#include").trim().trim_matches(['<', '>', '"']);
            evaluator.imported(path, node);
        }
        Language::Ruby | Language::Shell | Language::Text => {}
    }
}

fn bind<'t>(evaluator: &mut Evaluator<'_, 't>, path: &str, alias: Option<&str>, node: Node<'t>) {
    let last = alias.unwrap_or_else(|| path.rsplit('.').next().unwrap_or(path));
    evaluator.imported(path, node);
    if last != "*" {
        let value = Value::named(path);
        evaluator.set(last.trim(), value);
    }
}

fn with_alias<'a>(text: &'a str, between: &str) -> (&'a str, Option<&'a str>) {
    match text.split_once(between) {
        Some((path, alias)) => (path.trim(), Some(alias.trim())),
        None => (text.trim(), None),
    }
}

fn children<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    node.children().take(MOST)
}

fn python<'t>(evaluator: &mut Evaluator<'_, 't>, node: Node<'t>) {
    let module = node.part(field::MODULE_NAME);
    let from = module.map(|module| evaluator.text_of(module).to_owned());
    if let Some(from) = &from {
        evaluator.imported(from, node);
    }
    for child in children(node) {
        if module.is_some_and(|module| module.id() == child.id()) {
            continue;
        }
        let (name, alias) = match child.kind() {
            "aliased_import" => (
                child.part(field::NAME).map_or("", |name| evaluator.text_of(name)),
                child.part(field::ALIAS).map(|alias| evaluator.text_of(alias)),
            ),
            "dotted_name" | "identifier" => (evaluator.text_of(child), None),
            "wildcard_import" => {
                // Every name of the module that rules know is meant by its bare name now.
                if let Some(from) = &from {
                    for name in well_known(from) {
                        let value = Value::named(&format!("{from}.{name}"));
                        evaluator.set(name, value);
                    }
                }
                continue;
            }
            _ => continue,
        };
        match (&from, alias) {
            (Some(from), alias) => {
                let full = format!("{from}.{name}");
                evaluator.imported(&full, node);
                let full = names::canonical(Language::Python, &full).into_owned();
                evaluator.set(alias.unwrap_or(name), Value::named(&full));
            }
            (None, Some(alias)) => {
                evaluator.imported(name, node);
                evaluator.set(alias, Value::named(name));
            }
            (None, None) => {
                evaluator.imported(name, node);
                let first = name.split('.').next().unwrap_or(name);
                evaluator.set(first, Value::named(first));
            }
        }
    }
}

/// What `from module import *` brings, as far as rules care.
fn well_known(module: &str) -> &'static [&'static str] {
    match module {
        "os" => &[
            "system", "popen", "execv", "execve", "execvp", "execl", "execlp", "spawnl", "spawnv", "fork", "environ",
            "remove", "unlink", "dup2", "setuid", "kill",
        ],
        "subprocess" => &["run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"],
        "socket" => &["socket", "create_connection"],
        "ctypes" => &["CDLL", "windll", "cdll"],
        "pickle" => &["loads", "load"],
        "base64" => &["b64decode", "b64encode", "b32decode", "b85decode"],
        "shutil" => &["rmtree", "copy", "copyfile"],
        "requests" => &["get", "post", "put"],
        _ => &[],
    }
}

fn javascript<'t>(evaluator: &mut Evaluator<'_, 't>, node: Node<'t>) {
    let mut todo: Vec<Node<'t>> = children(node).collect();
    let source = node.part(field::SOURCE).or_else(|| {
        todo.iter().find(|child| child.kind() == "import_require_clause").and_then(|child| child.part(field::SOURCE))
    });
    let Some(source) = source else { return };
    let module = evaluator.text_of(source).trim_matches(['"', '\'', '`']).to_owned();
    let module = names::canonical(evaluator.language, &module).into_owned();
    evaluator.imported(&module, node);
    let mut steps = 0;
    while let Some(child) = todo.pop() {
        steps += 1;
        if steps > MOST {
            return;
        }
        match child.kind() {
            // The default of a module of Node is the module.
            "identifier" => evaluator.set(evaluator.text_of(child), Value::named(&module)),
            "import_specifier" => {
                let name = child.part(field::NAME).map_or("", |name| evaluator.text_of(name));
                let alias = child.part(field::ALIAS).map_or(name, |alias| evaluator.text_of(alias));
                evaluator.set(alias, Value::named(&format!("{module}.{name}")));
            }
            "import_clause" | "named_imports" | "namespace_import" | "import_require_clause" => {
                todo.extend(children(child))
            }
            _ => {}
        }
    }
}

fn go<'t>(evaluator: &mut Evaluator<'_, 't>, node: Node<'t>) {
    let Some(path) = node.part(field::PATH) else { return };
    let path = evaluator.text_of(path).trim_matches(['"', '`']);
    evaluator.imported(path, node);
    let alias = node.part(field::NAME).map(|name| evaluator.text_of(name));
    let last =
        path.rsplit('/').find(|part| !(part.starts_with('v') && part[1..].bytes().all(|byte| byte.is_ascii_digit())));
    let name = alias.unwrap_or(last.unwrap_or(path));
    evaluator.set(name, Value::named(path));
}

/// `use a::{b::C as D, e}`: read from its text, without recursion.
fn rust<'t>(evaluator: &mut Evaluator<'_, 't>, node: Node<'t>) {
    let text = evaluator.text_of(node);
    let text = text.split_once("use ").map_or(text, |(_, rest)| rest).trim_end_matches(';');
    let (mut prefixes, mut current): (Vec<String>, String) = (vec![String::new()], String::new());
    let mut names = 0;
    let mut finish = |evaluator: &mut Evaluator<'_, 't>, prefix: &str, current: &mut String| {
        let written = std::mem::take(current);
        let (path, alias) = with_alias(&written, " as ");
        names += 1;
        if path.is_empty() || names > MOST {
            return;
        }
        let full = format!("{prefix}{path}").replace("::", ".");
        let full = full.strip_suffix(".self").unwrap_or(&full);
        bind(evaluator, full, alias, node);
    };
    for letter in text.chars() {
        match letter {
            '{' => {
                let prefix = format!("{}{}", prefixes.last().map_or("", String::as_str), current.trim());
                current.clear();
                if prefixes.len() < 32 {
                    prefixes.push(prefix);
                }
            }
            ',' | '}' => {
                let prefix = prefixes.last().cloned().unwrap_or_default();
                finish(evaluator, &prefix, &mut current);
                if letter == '}' && prefixes.len() > 1 {
                    prefixes.pop();
                }
            }
            '\n' => current.push(' '),
            letter => current.push(letter),
        }
    }
    let prefix = prefixes.last().cloned().unwrap_or_default();
    finish(evaluator, &prefix, &mut current);
}
