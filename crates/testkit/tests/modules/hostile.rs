//! Modules that are made to take more than they were given: each ends, with an outcome that says how, and leaves nothing.

use std::fmt::Write;

use belljar_testkit::Who;
use belljar_testkit::modules::Kind;
use belljar_testkit::project::Said;
use belljar_testkit::twice::Check;

use crate::table::{Table, ended, says};

pub const ALL: &[(&str, Check)] = &[
    ("an_endless_loop_ends_at_the_time_limit", loops),
    ("a_sleeping_module_ends_at_the_time_limit", sleeps),
    ("a_module_ends_at_its_processor_time", processor_time),
    ("a_start_function_that_never_ends_ends_at_the_time_limit", start),
    ("memory_that_is_asked_for_bit_by_bit_ends_at_the_limit", takes),
    ("a_module_that_declares_more_memory_than_granted_does_not_start", declares),
    ("many_memories_share_one_limit", memories),
    ("tables_count_as_memory", tables),
    ("deep_recursion_ends_the_module_alone", recursion),
    ("a_flood_of_output_is_cut", flood),
    ("a_giant_function_is_compiled_or_refused_in_time", giant),
    ("bombs_of_branches_and_locals_are_compiled_or_refused_in_time", bombs),
    ("noise_never_harms_more_than_itself", noise),
];

const LATE: i32 = 124;

fn late(said: Said) -> Result<(), String> {
    ended(said, LATE).map(drop)
}

fn nothing_left(table: &Table) -> Result<(), String> {
    let left = table.project.leavings()?;
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!("left behind: {left:?}")),
    }
}

fn loops(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    for kind in Kind::MODULES {
        ended(table.run(kind, &[], &["exit", "0"])?, 0)?;
        for what in ["compute", "spin"] {
            late(table.run(kind, &["--timeout", "500ms"], &[what])?)?;
        }
    }
    nothing_left(&table)
}

fn sleeps(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    for kind in Kind::MODULES {
        ended(table.run(kind, &[], &["exit", "0"])?, 0)?;
        late(table.run(kind, &["--timeout", "500ms"], &["sleep", "600"])?)?;
    }
    nothing_left(&table)
}

fn processor_time(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    ended(table.run(Kind::Plain, &[], &["exit", "0"])?, 0)?;
    let said = table.belljar(&["run", "--cpu-time", "1s", "--timeout", "60s", "--", Kind::Plain.file(), "compute"])?;
    says(&said, "ended at the processor-time limit")?;
    nothing_left(&table)
}

fn start(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    table.put("start.wat", "(module (func $s (loop $l (br $l))) (start $s) (func (export \"_start\")))")?;
    late(table.belljar(&["run", "-q", "--timeout", "2s", "start.wat"])?)?;
    nothing_left(&table)
}

fn takes(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    for kind in Kind::MODULES {
        ended(table.run(kind, &["--memory", "256M"], &["take", "64"])?, 0)?;
        let said = table.run(kind, &["--memory", "256M"], &["take", "512"])?;
        says(&said, "no more memory")?;
        if said.code == Some(0) {
            return Err(format!("it took it: {said:?}"));
        }
    }
    nothing_left(&table)
}

fn declares(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    // 3 GiB, at once.
    table.put("large.wat", "(module (memory 49152) (func (export \"_start\")))")?;
    ended(table.belljar(&["run", "-q", "--memory", "4G", "large.wat"])?, 0)?;
    says(&ended(table.belljar(&["run", "-q", "--memory", "1G", "large.wat"])?, 126)?, "memory")?;
    table.put("larger.wat", "(module (memory i64 4294967296) (func (export \"_start\")))")?;
    ended(table.belljar(&["run", "-q", "larger.wat"])?, 126)?;
    nothing_left(&table)
}

fn memories(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    // Twenty of 64 MiB each.
    let many = |count: usize| {
        let memories = "(memory 1024)".repeat(count);
        format!("(module {memories} (func (export \"_start\")))")
    };
    table.put("few.wat", many(4))?;
    table.put("many.wat", many(20))?;
    table.put("too-many.wat", many(60))?;
    ended(table.belljar(&["run", "-q", "--memory", "512M", "few.wat"])?, 0)?;
    ended(table.belljar(&["run", "-q", "--memory", "512M", "many.wat"])?, 126)?;
    ended(table.belljar(&["run", "-q", "--memory", "8G", "too-many.wat"])?, 126)?;
    nothing_left(&table)
}

fn tables(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    table.put("one.wat", "(module (table 1000 funcref) (func (export \"_start\")))")?;
    table.put("huge.wat", "(module (table 4000000000 funcref) (func (export \"_start\")))")?;
    let many = "(table 1000000 funcref)".repeat(100);
    table.put("many.wat", format!("(module {many} (func (export \"_start\")))"))?;
    ended(table.belljar(&["run", "-q", "one.wat"])?, 0)?;
    ended(table.belljar(&["run", "-q", "huge.wat"])?, 126)?;
    ended(table.belljar(&["run", "-q", "--memory", "256M", "many.wat"])?, 126)?;
    nothing_left(&table)
}

fn recursion(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    for kind in Kind::MODULES {
        ended(table.run(kind, &[], &["recurse"])?, 134)?;
    }
    // Not of its own stack in memory, but of the machine's.
    table.put(
        "deep.wat",
        "(module (func $f (param i64) (call $f (local.get 0))) (func (export \"_start\") (call $f (i64.const 1))))",
    )?;
    says(&ended(table.belljar(&["run", "-q", "deep.wat"])?, 134)?, "call stack exhausted")?;
    nothing_left(&table)
}

fn flood(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    ended(table.run(Kind::Plain, &[], &["exit", "0"])?, 0)?;
    let said = table.run(Kind::Plain, &["--timeout", "1s", "--output", "1M"], &["flood"])?;
    match said.out.len() <= 1 << 20 && said.code == Some(LATE) {
        true => nothing_left(&table),
        false => Err(format!("{} bytes came out, ended with {:?}", said.out.len(), said.code)),
    }
}

/// Whatever it is, it is over soon, and somebody says how.
fn over(table: &Table, name: &str) -> Result<(), String> {
    let said = table.belljar(&["run", "--timeout", "5s", "--memory", "1G", name])?;
    match said.code {
        Some(0 | 124 | 126 | 134) if !said.error.is_empty() => nothing_left(table),
        _ => Err(format!("{name}: {said:?}")),
    }
}

fn giant(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let mut body = String::new();
    for number in 0..60_000 {
        write!(body, "(local.set 0 (i64.mul (local.get 0) (i64.add (local.get 1) (i64.const {number}))))")
            .map_err(|error| error.to_string())?;
    }
    table.put("giant.wat", format!("(module (func (export \"_start\") (local i64 i64) {body}))"))?;
    over(&table, "giant.wat")
}

fn bombs(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let locals = "i64 ".repeat(49_000);
    table
        .put("locals.wat", format!("(module (func (export \"_start\") (local {locals}) (drop (local.get 48999))))"))?;
    over(&table, "locals.wat")?;
    let targets = "0 1 ".repeat(30_000);
    let tables = format!("(block (block (br_table {targets} (i32.const 1))))").repeat(40);
    table.put("branches.wat", format!("(module (func (export \"_start\") {tables}))"))?;
    over(&table, "branches.wat")?;
    let nested = format!("{}{}", "(block ".repeat(20_000), ")".repeat(20_000));
    table.put("nested.wat", format!("(module (func (export \"_start\") {nested}))"))?;
    over(&table, "nested.wat")?;
    let functions = "(func (result i32) (i32.const 1))".repeat(150_000);
    table.put("functions.wat", format!("(module {functions} (func (export \"_start\")))"))?;
    over(&table, "functions.wat")
}

fn noise(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let sound = std::fs::read(belljar_testkit::modules::guest(Kind::Plain)?).map_err(|error| error.to_string())?;
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for round in 0..6 {
        let mut bytes = sound.clone();
        for _ in 0..40 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 20) as u8;
        }
        let name = format!("noise{round}.wasm");
        table.put(&name, bytes)?;
        let said = table.belljar(&["run", "--timeout", "5s", "--memory", "1G", &name, "exit", "0"])?;
        if said.code.is_none() || said.code == Some(125) {
            return Err(format!("round {round}: {said:?}"));
        }
    }
    nothing_left(&table)
}
