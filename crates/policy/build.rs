//! Presets as the binary carries them, since they are read at every start that has a policy: their rules as data of Rust,
//! which costs nothing to read, and the rest as TOML without what only people and tests read. Lines stay where they are, so that
//! places in messages are those of the files.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

use toml::{Table, Value};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=presets");
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    let mut ready = String::from("pub fn ready(name: &str) -> &'static [Ready] {\n    match name {\n");
    let mut files: Vec<_> =
        fs::read_dir("presets")?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    for path in files {
        let text = fs::read_to_string(&path)?;
        let name =
            path.file_stem().and_then(|name| name.to_str()).ok_or_else(|| io::Error::other("a preset has a name"))?;
        fs::write(Path::new(&out).join(format!("{name}.toml")), without_rules(&text))?;
        let rules = rules(name, &text)?;
        if !rules.is_empty() {
            ready += &format!(
                "        {name:?} => {{\n            static RULES: &[Ready] = &[{rules}];\n            RULES\n        }}\n"
            );
        }
    }
    ready += "        _ => &[],\n    }\n}\n";
    fs::write(Path::new(&out).join("ready.rs"), ready)
}

/// What is no rule, where it was. Rules come last in their file's sections, one key a line.
fn without_rules(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut in_rule = false;
    for line in text.lines() {
        if line.starts_with('[') {
            in_rule = line == "[[rule]]";
        }
        if !in_rule && !line.starts_with('#') {
            bare += line;
        }
        bare.push('\n');
    }
    bare.truncate(bare.trim_end().len());
    bare.push('\n');
    bare
}

/// The rules of a preset, as values of `Ready`.
fn rules(name: &str, text: &str) -> io::Result<String> {
    let bad = |what: String| io::Error::other(format!("presets/{name}.toml: {what}"));
    let table: Table = text.parse().map_err(|error| bad(format!("{error}")))?;
    let rules = match table.get("rule") {
        Some(Value::Array(rules)) => rules.clone(),
        _ => Vec::new(),
    };
    let lines: Vec<usize> =
        text.lines().enumerate().filter(|(_, line)| *line == "[[rule]]").map(|(at, _)| at + 1).collect();
    if lines.len() != rules.len() {
        return Err(bad("each rule must begin with `[[rule]]` on a line of its own".to_owned()));
    }
    let mut written = String::new();
    for (rule, line) in rules.iter().zip(lines) {
        let text = |key: &str| match rule.get(key) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(bad(format!("line {line}: a rule has a text for `{key}`"))),
        };
        let then = match text("then")?.as_str() {
            "allow" => "Allow",
            "ask" => "Ask",
            "deny" => "Deny",
            other => return Err(bad(format!("line {line}: `{other}` is no answer"))),
        };
        write!(
            written,
            "Ready {{ id: {:?}, place: \"preset:{name}:{line}\", then: Ruling::{then}, why: {:?}, when: {} }}, ",
            text("id")?,
            text("why")?,
            when(rule).map_err(|what| bad(format!("line {line}: {what}")))?
        )
        .map_err(io::Error::other)?;
    }
    Ok(written)
}

fn when(rule: &Value) -> Result<String, String> {
    let Some(Value::Table(when)) = rule.get("when") else { return Err("a rule has `when`".to_owned()) };
    let mut fields = String::new();
    for (key, value) in when {
        let field = match (key.as_str(), value) {
            ("writes", Value::Boolean(writes)) => format!("writes: Some({writes})"),
            ("workspace_mode", Value::String(mode)) => match mode.as_str() {
                "cow" => "workspace_mode: Some(WorkspaceMode::Cow)".to_owned(),
                "direct" => "workspace_mode: Some(WorkspaceMode::Direct)".to_owned(),
                "readonly" => "workspace_mode: Some(WorkspaceMode::Readonly)".to_owned(),
                other => return Err(format!("`{other}` is no workspace mode")),
            },
            ("larger_than", Value::String(size)) => format!("larger_than: Some({size:?})"),
            (key, Value::String(text)) => format!("{key}: &{:?}", spelled_out(key, &[text])),
            (key, Value::Array(texts)) => {
                let texts: Option<Vec<&str>> = texts.iter().map(Value::as_str).collect();
                let texts = texts.ok_or_else(|| format!("`{key}` is a list of texts"))?;
                format!("{key}: &{:?}", spelled_out(key, &texts))
            }
            (key, _) => return Err(format!("`{key}` is neither a text nor a list of texts")),
        };
        fields += &field;
        fields += ", ";
    }
    // A key that nobody knows does not compile.
    Ok(format!("ReadyWhen {{ {fields}..ReadyWhen::NOTHING }}"))
}

/// Programs one by one: they are what every command is held against.
fn spelled_out<'a>(key: &str, texts: &[&'a str]) -> Vec<&'a str> {
    match key {
        "program" => texts.iter().flat_map(|text| text.split('|')).collect(),
        _ => texts.to_vec(),
    }
}
