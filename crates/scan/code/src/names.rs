//! One name for one thing: what is the same function is called the same before rules are asked.

use std::borrow::Cow;

use crate::Language;
use crate::value::Labels;

const INPUT: Labels = 1 << 6;

pub(crate) fn canonical(language: Language, name: &str) -> Cow<'_, str> {
    let mut name = match memchr::memchr3(b':', b'\\', b'?', name.as_bytes()).is_some() {
        true => Cow::Owned(name.replace("::", ".").replace('\\', ".").replace("?.", ".").replace("node:", "")),
        false => Cow::Borrowed(name),
    };
    let prefixes: &[&str] = match language {
        Language::Python => &["builtins.", "__builtins__.", "__builtin__."],
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            &["globalThis.", "window.", "global.", "module.constructor.", "default."]
        }
        Language::Ruby => &["Kernel.", "Object.", "."],
        Language::Cpp => &["std.", "."],
        Language::Php | Language::Rust => &["."],
        _ => &[],
    };
    for prefix in prefixes {
        if let Some(rest) = name.strip_prefix(prefix)
            && !rest.is_empty()
        {
            name = Cow::Owned(rest.to_owned());
        }
    }
    let renamed: Option<String> = match language {
        Language::Python => {
            name.strip_prefix("posix.").or_else(|| name.strip_prefix("nt.")).map(|rest| format!("os.{rest}"))
        }
        Language::Java => {
            let first = name.split('.').next().unwrap_or("");
            let first = first.strip_suffix("()").unwrap_or(first);
            matches!(first, "Runtime" | "ProcessBuilder" | "System" | "Class" | "ClassLoader" | "Thread")
                .then(|| format!("java.lang.{name}"))
        }
        Language::Php
            if !name.starts_with('$') && name.bytes().any(|byte| byte.is_ascii_uppercase()) && !name.contains('.') =>
        {
            Some(name.to_ascii_lowercase())
        }
        _ => None,
    };
    renamed.map_or(name, Cow::Owned)
}

/// What stands behind the last dot.
pub(crate) fn last(name: &str) -> &str {
    let dot = name.bytes().rposition(|byte| byte == b'.');
    dot.map_or(name, |dot| &name[dot + 1..])
}

/// Does a rule say `!name` of it: not this one?
pub(crate) fn is_excepted(name: &str, patterns: &[std::borrow::Cow<'static, str>]) -> bool {
    patterns.iter().filter_map(|pattern| pattern.strip_prefix('!')).any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    })
}

/// What parameters hold by habit of the language's frameworks.
pub(crate) fn handed(language: Language, name: &str, place: usize) -> Labels {
    let is_request = match language {
        Language::JavaScript | Language::TypeScript | Language::Tsx => place == 0 && matches!(name, "req" | "request"),
        Language::Python => place <= 1 && name == "request",
        Language::Go => place == 1 && matches!(name, "r" | "req"),
        Language::Java => matches!(name, "request" | "req"),
        _ => false,
    };
    if is_request { INPUT } else { 0 }
}
