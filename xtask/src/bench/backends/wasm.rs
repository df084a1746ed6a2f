//! Modules: in a warm worker inside its jar, and each from nothing, beside the same from a native sandbox.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::contestant::belljar;
use testkit::{Who, home};

use super::super::field::Field;
use super::super::runners::quiet;
use super::super::samples::{Samples, Table, median, met, milliseconds, percentile};
use super::Amounts;

const HELLO: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 8) "hello\n")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 8))
    (i32.store (i32.const 4) (i32.const 6))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 40)))))"#;

pub fn measure(field: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<Vec<Table>, String> {
    let folder = field.project(Who::Root);
    fs::write(folder.join("hello.wat"), HELLO).map_err(|error| error.to_string())?;
    Ok(vec![warm(field, &folder, amounts, samples)?, cold(field, &folder, amounts, samples)?])
}

fn worker() -> PathBuf {
    belljar().with_file_name("belljar-wasm")
}

fn interpreter(language: &str) -> PathBuf {
    belljar().with_file_name("interpreters").join(language)
}

/// What is run warm: by name, the words, what it must say, how long it may take.
const WARM: &[(&str, &str, &[&str], &str, u64)] = &[
    ("hello, compiled before", "hello", &["hello"], "hello\n", 200),
    ("QuickJS, `console.log(6 * 7)`", "javascript", &["node", "-e", "console.log(6 * 7)"], "42\n", 2_000),
    ("CPython, `print(6 * 7)`", "python", &["python3", "-c", "print(6 * 7)"], "42\n", 60_000),
];

fn warm(field: &Field, folder: &Path, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let mut table = Table::new(
        "Modules in a warm worker inside its native sandbox, from request to answer, each in an instance of its own",
        &["", "runs", "p50 ms", "p99 ms", "wanted"],
    );
    for (title, language, words, said, most) in WARM {
        let module = match *language {
            "hello" => folder.join("hello.wat"),
            other => interpreter(other).join(format!("{other}.wasm")),
        };
        if !module.exists() {
            table
                .rows
                .push([title, "0", "–", "–", "not installed: `cargo xtask interpreters`"].map(str::to_owned).into());
            continue;
        }
        let mut worker = Warm::start(field, folder, &module, language)?;
        let count = if *most > 10_000 { amounts.slow } else { amounts.warm };
        let mut times = Vec::with_capacity(count);
        for number in 0..count + 5 {
            let began = Instant::now();
            let (ended, out) = worker.ask(words, language)?;
            let took = began.elapsed();
            if ended != json!({ "code": 0 }) || out != said.as_bytes() {
                return Err(format!("{title}: {ended}, {}", String::from_utf8_lossy(&out)));
            }
            // The first ones touch what stays.
            if number >= 5 {
                samples.keep("warm", title, "root", took.as_secs_f64() * 1e3, "ms")?;
                times.push(took);
            }
        }
        worker.end()?;
        let p50 = median(&times);
        let limit = Duration::from_micros(*most);
        table.rows.push(vec![
            (*title).to_owned(),
            times.len().to_string(),
            format!("{:.3}", p50.as_secs_f64() * 1e3),
            format!("{:.3}", percentile(&times, 0.99).as_secs_f64() * 1e3),
            met(p50 < limit, &format!("< {} ms", limit.as_secs_f64() * 1e3)),
        ]);
    }
    Ok(table)
}

/// A worker in its jar, as a service would have it.
struct Warm {
    process: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Warm {
    fn start(field: &Field, folder: &Path, module: &Path, language: &str) -> Result<Warm, String> {
        let compiled = folder.join(format!("{language}.code"));
        let said = Command::new(worker()).arg("compile").arg(module).output().map_err(|error| error.to_string())?;
        if !said.status.success() {
            return Err(format!("cannot compile {}: {}", module.display(), String::from_utf8_lossy(&said.stderr)));
        }
        fs::write(&compiled, said.stdout).map_err(|error| error.to_string())?;
        // Answers are no text that could be searched for secrets: whoever asked does that with what is in them.
        let own = field.home(Who::Root);
        let settings = own.join(".config/belljar");
        fs::create_dir_all(&settings).map_err(|error| error.to_string())?;
        fs::write(settings.join("policy.toml"), "version = 1\n[release]\nredact = false\n")
            .map_err(|error| error.to_string())?;
        let list = home::furnish(&own, 0).map_err(|error| error.to_string())?;
        let mut command = home::command(&list, 0, &belljar());
        let library = interpreter(language).join("library0");
        command.args(["run", "-q", "--workspace-mode", "readonly", "--read"]).arg(worker());
        if library.is_dir() {
            command.arg("--read").arg(&library);
        }
        command.arg("--").arg(worker()).args(["serve", "--memory", "1073741824", "--compiled"]).arg(&compiled);
        if library.is_dir() {
            command.arg("--read").arg(&library).arg("/usr/local/lib/python3.11");
        }
        command.current_dir(folder).env("HOME", &own).env("XDG_STATE_HOME", own.join("state"));
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = spawned.map_err(|error| error.to_string())?;
        let (to, from) = (process.stdin.take().ok_or("no input")?, process.stdout.take().ok_or("no output")?);
        Ok(Warm { process, to, from })
    }

    fn ask(&mut self, words: &[&str], language: &str) -> Result<(Value, Vec<u8>), String> {
        let lost = |error: std::io::Error| format!("the worker is gone: {error}");
        let variables = if language == "python" { json!([["PYTHONHOME", "/usr/local"]]) } else { json!([]) };
        let asking = json!({ "program": 0, "arguments": words, "variables": variables }).to_string();
        let mut all = Vec::new();
        for piece in [asking.as_bytes(), b""] {
            all.extend((piece.len() as u32).to_le_bytes());
            all.extend(piece);
        }
        self.to.write_all(&all).map_err(lost)?;
        let mut pieces = Vec::new();
        for _ in 0..3 {
            let mut length = [0; 4];
            self.from.read_exact(&mut length).map_err(lost)?;
            let mut piece = vec![0; u32::from_le_bytes(length) as usize];
            self.from.read_exact(&mut piece).map_err(lost)?;
            pieces.push(piece);
        }
        let ended = serde_json::from_slice(&pieces[0]).map_err(|error| error.to_string())?;
        Ok((ended, pieces.swap_remove(1)))
    }

    fn end(mut self) -> Result<(), String> {
        drop(self.to);
        let status = self.process.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the worker ended with {status}")) }
    }
}

/// From nothing, module and native in turn: what the second wall costs.
fn cold(field: &Field, folder: &Path, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let mut table = Table::new("One run from nothing, compiled before", &["", "runs", "p50 ms", "p99 ms", "of native"]);
    let rows: [(&str, &[&str]); 4] = [
        ("native, `/bin/true`", &["--", "/bin/true"]),
        ("wasm, hello", &["--", "hello.wat"]),
        ("wasm, `node -e 0`", &["--backend", "wasm", "--", "node", "-e", "0"]),
        ("wasm, `python3 -c pass`", &["--backend", "wasm", "--", "python3", "-c", "pass"]),
    ];
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); rows.len()];
    for round in 0..amounts.starts + 1 {
        for (at, (title, words)) in rows.iter().enumerate() {
            let language = words.get(3).map(|word| if *word == "node" { "javascript" } else { "python" });
            if language.is_some_and(|language| !interpreter(language).is_dir()) {
                continue;
            }
            let mut command = Command::new(belljar());
            command.args(["run", "-q", "--workspace-mode", "readonly"]).args(*words);
            let began = Instant::now();
            let status = quiet(&mut command, field, Who::Root, folder).status().map_err(|error| error.to_string())?;
            let took = began.elapsed();
            if !status.success() {
                return Err(format!("{title}: {status}"));
            }
            // The first compiles.
            if round > 0 {
                samples.keep("cold", title, "root", took.as_secs_f64() * 1e3, "ms")?;
                times[at].push(took);
            }
        }
    }
    let native = median(&times[0]).as_secs_f64();
    for ((title, _), times) in rows.iter().zip(&times).filter(|(_, times)| !times.is_empty()) {
        table.rows.push(vec![
            (*title).to_owned(),
            times.len().to_string(),
            milliseconds(median(times)),
            milliseconds(percentile(times, 0.99)),
            format!("{:.2} ×", median(times).as_secs_f64() / native),
        ]);
    }
    Ok(table)
}
