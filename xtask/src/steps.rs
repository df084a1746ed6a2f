//! Steps of a long task: each says what it does, takes its time, and may fail without hiding the rest.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What was done so far, and what of it failed.
#[derive(Default)]
pub struct Steps {
    done: Vec<(String, bool, Duration)>,
    /// Single tests within steps.
    pub passed: u64,
    pub failed: u64,
}

impl Steps {
    pub fn check(&mut self, heading: &str, step: impl FnOnce() -> Result<(), String>) -> bool {
        let started = begin(heading);
        let result = step();
        if let Err(message) = &result {
            println!("{message}");
        }
        self.end(heading, result.is_ok(), started)
    }

    pub fn run(&mut self, heading: &str, command: &mut Command) -> bool {
        self.check(heading, || run(command))
    }

    /// Runs a command and shows each of its error lines to `see` as well.
    pub fn run_and_see(&mut self, heading: &str, command: &mut Command, mut see: impl FnMut(&str)) -> bool {
        self.check(heading, || {
            say(command);
            let mut child = command
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|error| format!("cannot run `{}`: {error}", words(command)))?;
            for line in child.stderr.take().into_iter().flat_map(lines) {
                eprintln!("{line}");
                see(&line);
            }
            let status = child.wait().map_err(|error| format!("cannot wait for `{}`: {error}", words(command)))?;
            if status.success() { Ok(()) } else { Err(format!("failed with {status}: {}", words(command))) }
        })
    }

    /// The times of all steps, which failed, and one last line with the sum.
    pub fn summary(self) -> Result<(), String> {
        println!("\n== summary");
        for (heading, held, took) in &self.done {
            println!("{} {:>7.1} s  {heading}", if *held { "ok    " } else { "FAILED" }, took.as_secs_f64());
        }
        let failed: Vec<&str> = self.done.iter().filter(|step| !step.1).map(|step| step.0.as_str()).collect();
        let bad = self.failed.max(failed.len() as u64);
        println!("{} passed, {bad} failed", self.passed + (self.done.len() - failed.len()) as u64);
        if failed.is_empty() && self.failed == 0 { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    }

    fn end(&mut self, heading: &str, held: bool, started: Instant) -> bool {
        let took = started.elapsed();
        println!("-- {heading}: {} in {:.1} s", if held { "ok" } else { "FAILED" }, took.as_secs_f64());
        self.done.push((heading.to_owned(), held, took));
        held
    }
}

/// Runs a command to its end, saying which.
pub fn run(command: &mut Command) -> Result<(), String> {
    say(command);
    let status = command.status().map_err(|error| format!("cannot run `{}`: {error}", words(command)))?;
    if status.success() { Ok(()) } else { Err(format!("failed with {status}: {}", words(command))) }
}

pub fn words(command: &Command) -> String {
    let all = std::iter::once(command.get_program()).chain(command.get_args());
    all.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn begin(heading: &str) -> Instant {
    println!("\n== {heading}");
    Instant::now()
}

fn say(command: &Command) {
    println!("$ {}", words(command));
}

/// Lines whatever their bytes: tests print anything.
fn lines(from: impl Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(from).split(b'\n').map_while(Result::ok);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned())
}
