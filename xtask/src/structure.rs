//! The laws of the architecture, held against the source text and what cargo knows of the crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place;

/// Where a crate is, and which of our crates it may use, also in its tests.
/// A crate that is not named may use none: a new one is added here on purpose.
const MAY_USE: &[(&str, &[&str])] = &[
    ("crates/model", &[]),
    ("crates/policy", &["belljar-model", "belljar-shell"]),
    ("crates/rules/*", &["belljar-model"]),
    ("crates/shell", &[]),
    ("crates/scan/*", &["belljar-model", "belljar-shell"]),
    ("crates/workspace", &["belljar-model", "belljar-sys"]),
    ("crates/ledger", &["belljar-model"]),
    ("crates/export", &["belljar-model"]),
    ("crates/egress", &["belljar-model"]),
    ("crates/monitor", &["belljar-model"]),
    ("crates/comparison", &["belljar-model"]),
    ("crates/vault", &["belljar-model", "belljar-sys"]),
    ("crates/sys", &[]),
    ("crates/guest", &["belljar-sys"]),
    // Their programs carry the payload, and stand inside a native sandbox themselves.
    ("crates/backends/wasm", &["belljar-model", "belljar-sys", "belljar-native"]),
    // It also has a first process of its own inside: the usher.
    ("crates/backends/gvisor", &["belljar-model", "belljar-sys", "belljar-guest", "belljar-native"]),
    // A program of its own: what it is told it reads as words.
    ("crates/backends/wasm-worker", &[]),
    // Hands the native list of system calls to the engine's own filter: one list for all.
    ("crates/backends/container", &["belljar-model", "belljar-sys", "belljar-native"]),
    ("crates/backends/*", &["belljar-model", "belljar-sys", "belljar-guest"]),
    (
        "crates/engine",
        &[
            "belljar-model", "belljar-policy", "belljar-code", "belljar-secrets", "belljar-malware", "belljar-egress",
            "belljar-workspace", "belljar-ledger", "belljar-export", "belljar-monitor", "belljar-sys", "belljar-vault",
        ],
    ),
    ("crates/wire", &["belljar-model"]),
    // Hands jobs to processes that do one each with a `Service` that is given to them; names no engine.
    ("crates/service", &["belljar-model", "belljar-wire", "belljar-sys"]),
    // Its threads may not call a `Service`, which forks: it hands jobs to carriers. `sys` for sockets that are handed to it.
    // It mounts what MCP is behind its own tokens.
    ("crates/frontends/http", &["belljar-model", "belljar-wire", "belljar-service", "belljar-sys", "belljar-mcp"]),
    ("crates/frontends/mcp", &["belljar-model", "belljar-service", "belljar-sys"]),
    ("crates/frontends/*", &["belljar-model", "belljar-wire"]),
    ("crates/testkit", &["belljar-model"]),
    // What it tries is everywhere; nothing that ships uses it.
    (
        "crates/laws",
        &[
            "belljar-model", "belljar-policy", "belljar-sys", "belljar-guest", "belljar-native", "belljar-cli",
            "belljar-workspace", "belljar-shell", "belljar-engine", "belljar-cedar", "belljar-code", "belljar-secrets",
            "belljar-malware", "belljar-export", "belljar-ledger", "belljar-egress", "belljar-vault",
        ],
    ),
    ("xtask", &["belljar-testkit"]),
];
/// The binary puts all together. Its tests may use the testkit and the laws, nothing that ships may.
const ALL_THAT_SHIPS: &str = "crates/belljar";

/// Compiled modules are loaded in one file of the worker, which runs inside a sandbox: the engine's own function for it is
/// unsafe, and could not be called from `sys` without linking the engine into everything.
const UNSAFE_LIVES_IN: &[&str] = &["crates/sys/", "crates/testkit/", "crates/backends/wasm-worker/src/precompiled.rs"];
/// `Grant::mint` is defined in the model and called by the policy.
const MINT_LIVES_IN: &[&str] = &["crates/policy/", "crates/model/src/grant.rs"];
const LONG_FILE: usize = 700;

pub fn check() -> Result<(), String> {
    let tree = place::tree();
    let mut broken = directions(&tree)?;
    let mut sources = Vec::new();
    for folder in ["crates", "xtask"] {
        rust_files(&tree.join(folder), &mut sources)?;
    }
    sources.sort();
    for path in &sources {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let name = path.strip_prefix(&tree).unwrap_or(path).to_string_lossy().into_owned();
        broken.extend(laws_of_text(&name, &text));
        let lines = text.lines().count();
        if lines > LONG_FILE && is_product(&name) {
            println!("note: {name} has {lines} lines; above {LONG_FILE} it is rarely one thing");
        }
    }
    if broken.is_empty() {
        println!("{} files, all laws hold", sources.len());
        return Ok(());
    }
    Err(broken.join("\n"))
}

fn directions(tree: &Path) -> Result<Vec<String>, String> {
    let mut command = Command::new("cargo");
    command.current_dir(tree).args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let text = place::said(&mut command).ok_or("`cargo metadata` failed")?;
    let metadata: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("cannot read `cargo metadata`: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("`cargo metadata` lists no packages")?;
    let mut broken = Vec::new();
    for package in packages {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().and_then(|folder| folder.strip_prefix(tree).ok()).unwrap_or(manifest);
        let ours = package["dependencies"].as_array().into_iter().flatten().filter(|one| one["path"].is_string());
        for dependency in ours {
            let used = dependency["name"].as_str().unwrap_or_default();
            let in_tests = dependency["kind"] == "dev";
            if !may_use(&folder.to_string_lossy(), used, in_tests) {
                let line = line_of(manifest, used.strip_prefix("belljar-").unwrap_or(used));
                broken.push(format!("{}/Cargo.toml:{line}: may not use {used} (law: direction)", folder.display()));
            }
        }
    }
    Ok(broken)
}

fn may_use(folder: &str, used: &str, in_tests: bool) -> bool {
    if folder == ALL_THAT_SHIPS {
        return !["belljar-testkit", "belljar-laws"].contains(&used) || in_tests;
    }
    let named = MAY_USE.iter().find(|(place, _)| match place.strip_suffix('*') {
        Some(start) => folder.starts_with(start),
        None => folder == *place,
    });
    named.is_some_and(|(_, may)| may.contains(&used))
}

fn line_of(manifest: &Path, name: &str) -> usize {
    let text = fs::read_to_string(manifest).unwrap_or_default();
    text.lines().position(|line| line.starts_with(name)).map_or(1, |line| line + 1)
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let complain = |error| format!("cannot list {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(complain)? {
        let path = entry.map_err(complain)?.path();
        // Samples for the scanner are what laws are against.
        if path.is_dir() && path.ends_with("corpus") {
            continue;
        }
        if path.is_dir() {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

fn is_product(name: &str) -> bool {
    name.starts_with("crates/") && !name.starts_with("crates/testkit/")
}

fn laws_of_text(name: &str, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, line) in code_only(text).lines().enumerate() {
        let mut law = |what: &str| broken.push(format!("{name}:{}: {what}", number + 1));
        let lives = |places: &[&str]| places.iter().any(|place| name.starts_with(place));
        if has_word(line, "unsafe") && !lives(UNSAFE_LIVES_IN) {
            law("`unsafe` outside `sys` (law: unsafe code has one home)");
        }
        if (line.contains("Grant::mint") || line.contains("fn mint")) && !lives(MINT_LIVES_IN) {
            law("`Grant::mint` outside `policy` (law: only a verdict mints a grant)");
        }
        let ignores = line.contains("let _ =") || line.contains("let _:");
        if ignores && is_product(name) {
            law("`let _ =` (law: nothing that protects anyone is ignored)");
        }
    }
    broken
}

fn has_word(line: &str, word: &str) -> bool {
    let part = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(part);
        let after = line[at + word.len()..].chars().next().is_some_and(part);
        !before && !after
    })
}

/// The text with comments, strings and characters blanked, line breaks kept: words in them are no code.
fn code_only(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    let next = |at: usize| letters.get(at).copied().unwrap_or('\0');
    while at < letters.len() {
        let end = match (next(at), next(at + 1)) {
            ('/', '/') => (at..letters.len()).find(|end| next(*end) == '\n').unwrap_or(letters.len()),
            ('/', '*') => end_of_comment(&letters, at),
            ('"', _) => end_of_string(&letters, at),
            ('r', '"' | '#') if at == 0 || !next(at - 1).is_alphanumeric() => end_of_raw_string(&letters, at),
            ('\'', '\\') => (at + 3..letters.len()).find(|end| next(*end) == '\'').map_or(letters.len(), |end| end + 1),
            ('\'', _) if next(at + 2) == '\'' => at + 3,
            _ => at,
        };
        if end == at {
            code.push(letters[at]);
            at += 1;
        } else {
            code.extend(letters[at..end].iter().map(|letter| if *letter == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

fn end_of_comment(letters: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (1, start + 2);
    while at < letters.len() && depth > 0 {
        match (letters[at], letters.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

fn end_of_string(letters: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < letters.len() {
        match letters[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    letters.len()
}

/// Of `r"…"` and `r#"…"#`; `start` itself if it is a name after all, such as `r#type`.
fn end_of_raw_string(letters: &[char], start: usize) -> usize {
    let hashes = letters[start + 1..].iter().take_while(|letter| **letter == '#').count();
    let open = start + 1 + hashes;
    if letters.get(open) != Some(&'"') {
        return start;
    }
    let closes = |at: usize| {
        letters[at] == '"' && letters[at + 1..].iter().take(hashes).filter(|l| **l == '#').count() == hashes
    };
    (open + 1..letters.len()).find(|at| closes(*at)).map_or(letters.len(), |at| at + 1 + hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_comments_and_strings_break_no_law() {
        let text = "// unsafe\n/* unsafe /* unsafe */ unsafe */ let a = \"unsafe \\\" unsafe\";\nlet b = r#\"unsafe \" unsafe\"#;\nlet c = ('\"', '\\'', unsafe_code);\n";
        assert_eq!(laws_of_text("crates/engine/src/lib.rs", text), [] as [&str; 0]);
    }

    #[test]
    fn a_broken_law_is_named_with_its_line() {
        let broken = |text| laws_of_text("crates/engine/src/lib.rs", text);
        assert!(broken("\nfn a() { unsafe { b() } }")[0].starts_with("crates/engine/src/lib.rs:2: `unsafe`"));
        assert!(broken("let grant = Grant::mint(powers);")[0].contains("policy"));
        assert!(broken("let _ = close(sandbox);")[0].contains("ignored"));
        assert!(broken("let letter = '\"'; unsafe {}")[0].contains("`unsafe`"));
    }

    #[test]
    fn code_that_lives_where_it_may_breaks_no_law() {
        assert!(laws_of_text("crates/sys/src/process.rs", "unsafe { fork() }").is_empty());
        assert!(laws_of_text("crates/policy/src/judge.rs", "Grant::mint(powers, accepted)").is_empty());
    }

    #[test]
    fn a_backend_uses_no_policy_and_nothing_that_ships_uses_the_testkit() {
        assert!(may_use("crates/backends/native", "belljar-guest", false));
        assert!(!may_use("crates/backends/native", "belljar-policy", false));
        assert!(!may_use("crates/frontends/cli", "belljar-testkit", true));
        assert!(!may_use("crates/belljar", "belljar-testkit", false));
        assert!(!may_use("crates/belljar", "belljar-laws", false));
        assert!(!may_use("crates/new", "belljar-model", false));
        assert!(may_use("crates/frontends/http", "belljar-service", false));
        assert!(!may_use("crates/frontends/http", "belljar-engine", false));
        assert!(!may_use("crates/frontends/cli", "belljar-service", false));
    }
}
