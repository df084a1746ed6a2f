//! What users do with modules.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use belljar_testkit::Who;
use belljar_testkit::contestant::belljar;
use belljar_testkit::modules::Kind;
use belljar_testkit::project::Said;
use belljar_testkit::twice::Check;

use crate::table::{Table, ended, fed, says, shown, text};

pub const ALL: &[(&str, Check)] = &[
    ("a_module_gets_its_words_variables_and_input", given),
    ("a_module_ends_with_its_own_code", codes),
    ("a_module_that_traps_ends_as_an_aborted_program", traps),
    ("a_module_as_text_runs", as_text),
    ("a_module_runs_by_name_and_by_backend", by_backend),
    ("what_is_no_module_is_refused_with_its_reason", no_module),
    ("a_module_that_asks_for_what_nobody_has_is_refused", unknown_import),
    ("the_second_run_compiles_nothing", kept),
    ("code_that_was_changed_is_compiled_again", forged),
    ("the_plan_and_the_result_name_the_backend", named),
    ("without_its_worker_the_error_says_what_to_build", no_worker),
    ("without_an_interpreter_the_error_says_what_to_install", no_interpreter),
    ("a_policy_that_demands_more_than_namespaces_gets_it", minimum),
];

fn given(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    for kind in Kind::MODULES {
        let words = ["run", "-q", "--env", "COLOUR=blue", "--", kind.file(), "say", "a b", "--memory", ""];
        let mut command = table.project.command(words);
        command.env("BELLJAR_CANARY_TOKEN", "canary");
        let said = ended(fed(&mut command, b"line\n")?, 0)?;
        for part in ["words [\"a b\", \"--memory\", \"\"]", "variable COLOUR=blue", "input \"line\\n\"", "and an error"]
        {
            says(&said, part)?;
        }
        if text(&said).contains("canary") {
            return Err("a variable of the caller's came through".to_owned());
        }
    }
    Ok(())
}

fn codes(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    ended(table.run(Kind::Plain, &[], &["exit", "0"])?, 0)?;
    ended(table.run(Kind::Plain, &[], &["exit", "42"])?, 42)?;
    ended(table.run(Kind::Plain, &[], &["exit", "125"])?, 125)?;
    // Higher ones are no codes of preview 1: shells and sandboxes speak with them.
    says(&ended(table.run(Kind::Plain, &[], &["exit", "255"])?, 134)?, "invalid exit status")?;
    // Preview 2 knows only well and not well.
    ended(table.run(Kind::Component, &[], &["exit", "0"])?, 0)?;
    ended(table.run(Kind::Component, &[], &["exit", "42"])?, 1).map(drop)
}

fn traps(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    for kind in Kind::MODULES {
        says(&ended(table.run(kind, &[], &["trap"])?, 134)?, "unreachable")?;
    }
    Ok(())
}

pub const HELLO: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 8) "hello from text\n")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 8))
    (i32.store (i32.const 4) (i32.const 16))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 40)))))"#;

fn as_text(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    table.put("hello.wat", HELLO)?;
    let said = ended(table.belljar(&["run", "-q", "hello.wat"])?, 0)?;
    match text(&said) == "hello from text\n" {
        true => Ok(()),
        false => Err(format!("{said:?}")),
    }
}

fn by_backend(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    table.put("hello.wat", HELLO)?;
    ended(table.belljar(&["run", "-q", "--backend", "wasm", "--", "./hello.wat"])?, 0)?;
    let work = shown(&table.project.work.join("hello.wat"));
    ended(table.belljar(&["run", "-q", "--backend", "wasm", "--", &work])?, 0)?;
    let said = ended(table.belljar(&["run", "-q", "--backend", "wasm", "--", "sh", "-c", "true"])?, 125)?;
    says(&said, "is no WebAssembly module")
}

fn no_module(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let library = "(module (func (export \"add\") (result i32) (i32.const 1)))";
    let bad: [(&str, &[u8], &str); 5] = [
        ("empty.wasm", b"", ""),
        ("noise.wasm", b"\0asm\x01\0\0\0\xff\xff\xff\xff", ""),
        ("cut.wasm", b"\0asm\x01\0", ""),
        ("words.wat", b"(module (func", "neither as binary nor as text"),
        ("library.wat", library.as_bytes(), "no function `_start`"),
    ];
    for (name, bytes, why) in bad {
        table.put(name, bytes)?;
        let said = ended(table.belljar(&["run", name])?, 126)?;
        says(&said, "cannot run it")?;
        says(&said, why)?;
    }
    ended(table.belljar(&["run", "absent.wasm"])?, 127).map(drop)
}

fn unknown_import(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    table.put("asks.wat", "(module (import \"env\" \"open_host\" (func)) (func (export \"_start\")))")?;
    says(&ended(table.belljar(&["run", "asks.wat"])?, 126)?, "open_host")
}

/// What is kept, by name and time of change.
fn compiled(table: &Table) -> Result<Vec<(String, std::time::SystemTime)>, String> {
    let folder = table.project.state.join("belljar/wasm");
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let entry = entry.map_err(|error| error.to_string())?;
        let changed = entry.metadata().and_then(|stat| stat.modified()).map_err(|error| error.to_string())?;
        found.push((entry.file_name().to_string_lossy().into_owned(), changed));
    }
    found.sort();
    Ok(found)
}

fn kept(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    table.put("hello.wat", HELLO)?;
    ended(table.belljar(&["run", "-q", "hello.wat"])?, 0)?;
    let first = compiled(&table)?;
    let codes = first.iter().filter(|(name, _)| name.ends_with(".code")).count();
    if codes != 1 || first.iter().any(|(name, _)| name.ends_with(".module") || name.ends_with(".new")) {
        return Err(format!("kept: {first:?}"));
    }
    ended(table.belljar(&["run", "-q", "hello.wat"])?, 0)?;
    let second = compiled(&table)?;
    match first == second {
        true => Ok(()),
        false => Err(format!("it was compiled again: {first:?}, then {second:?}")),
    }
}

fn forged(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    table.put("hello.wat", HELLO)?;
    table.put("other.wat", HELLO.replace("hello from text", "something else!"))?;
    ended(table.belljar(&["run", "-q", "other.wat"])?, 0)?;
    let folder = table.project.state.join("belljar/wasm");
    let other = compiled(&table)?;
    ended(table.belljar(&["run", "-q", "hello.wat"])?, 0)?;
    let both = compiled(&table)?;
    let code = |list: &[(String, std::time::SystemTime)], without: &[(String, std::time::SystemTime)]| {
        list.iter().find(|entry| entry.0.ends_with(".code") && !without.contains(entry)).map(|entry| entry.0.clone())
    };
    let (Some(hello), Some(other)) = (code(&both, &other), code(&other, &[])) else { return Err("no code".to_owned()) };
    // Sound code of another module in its place: nothing but the seal tells.
    fs::copy(folder.join(other), folder.join(&hello)).map_err(|error| error.to_string())?;
    let said = ended(table.belljar(&["run", "-q", "hello.wat"])?, 0)?;
    match text(&said) == "hello from text\n" {
        true => Ok(()),
        false => Err(format!("code was believed that nobody had sealed: {said:?}")),
    }
}

fn named(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    table.put("hello.wat", HELLO)?;
    let plan = ended(table.belljar(&["explain", "--", "hello.wat"])?, 0)?;
    says(&plan, "wasm (the command is a module)")?;
    says(&plan, "compile  ")?;
    says(&plan, "belljar-wasm")?;
    let result = table.project.work.with_file_name("result.json");
    fs::write(&result, "").map_err(|error| error.to_string())?;
    table.project.give(&result).map_err(|error| error.to_string())?;
    ended(table.belljar(&["run", "-q", "--result-file", &shown(&result), "hello.wat"])?, 0)?;
    let result = fs::read_to_string(result).map_err(|error| error.to_string())?;
    let result: serde_json::Value = serde_json::from_str(&result).map_err(|error| error.to_string())?;
    match result["backend"] == "wasm" {
        true => Ok(()),
        false => Err(format!("{result}")),
    }
}

/// belljar in a folder of its own, without anything beside it.
fn lonely(table: &Table, words: &[&str]) -> Result<Said, String> {
    let folder = table.project.work.with_file_name("lonely");
    let alone = folder.join("belljar");
    fs::create_dir_all(&folder).and_then(|()| fs::copy(belljar(), &alone)).map_err(|error| error.to_string())?;
    fs::set_permissions(&alone, fs::Permissions::from_mode(0o755)).map_err(|error| error.to_string())?;
    let like = table.project.command(words);
    let mut command = match table.project.who {
        Who::Ordinary => {
            let mut command = Command::new("setpriv");
            let id = table.project.who.user_id().to_string();
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(&alone);
            command
        }
        Who::Root => Command::new(&alone),
    };
    command.args(words).current_dir(&table.project.work).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.output().map(Said::of).map_err(|error| error.to_string())
}

fn no_worker(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    table.put("hello.wat", HELLO)?;
    let said = ended(lonely(&table, &["run", "hello.wat"])?, 125)?;
    says(&said, "belljar-wasm")?;
    says(&said, "cargo xtask release")
}

fn no_interpreter(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let worker = belljar().with_file_name("belljar-wasm");
    let folder = table.project.work.with_file_name("lonely");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    fs::copy(worker, folder.join("belljar-wasm")).map_err(|error| error.to_string())?;
    let said = ended(lonely(&table, &["run", "--backend", "wasm", "--", "python3", "-c", "1"])?, 125)?;
    says(&said, "cargo xtask interpreters")
}

fn minimum(who: Who) -> Result<(), String> {
    let table = Table::with_policy(who, "[isolation]\nminimum = \"user-kernel\"\n")?;
    table.put("hello.wat", HELLO)?;
    let refused = table.belljar(&["run", "--backend", "native", "--", "/bin/true"])?;
    says(&refused, "isolation.minimum")?;
    if refused.code == Some(0) {
        return Err("the control ran: the policy demands nothing".to_owned());
    }
    ended(table.belljar(&["run", "-q", "hello.wat"])?, 0).map(drop)
}
