//! `cargo xtask fuzz`: looks for bytes that break a law of `crates/laws`, with libFuzzer and AddressSanitizer.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::steps::{run, words};
use crate::{needs, place};

const SECONDS: u64 = 10;
/// Longer for one input is a failure too; generous, for machines that others use as well.
const HANGS: &str = "-timeout=120";

pub fn fuzz(flags: &[&str]) -> Result<(), String> {
    let asked = Asked::read(flags)?;
    let folder = place::tree().join("fuzz");
    let all = targets(&folder)?;
    let chosen: Vec<&String> = all.iter().filter(|target| asked.target.is_none_or(|only| only == *target)).collect();
    if chosen.is_empty() {
        return Err(format!("there is no such target; there are {}", all.join(", ")));
    }
    let fuzzer = Fuzzer { program: needs::cargo_fuzz()?, nightly: has_nightly(), folder };
    if let (Some(target), Some(input)) = (asked.target, asked.input) {
        let input = std::path::absolute(input).map_err(|error| format!("cannot find {input}: {error}"))?;
        return run(fuzzer.command("run").arg(target).arg(input));
    }
    run(fuzzer.command("build").args(asked.target))?;
    let mut broken = Vec::new();
    for target in chosen {
        if let Err(message) = fuzzer.look(target, asked.seconds) {
            println!("{message}");
            broken.push(target.as_str());
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(format!("broken laws: {}", broken.join(", "))) }
}

/// `[--seconds N] [TARGET [INPUT]]`
#[derive(Debug, PartialEq)]
struct Asked<'a> {
    seconds: u64,
    target: Option<&'a str>,
    /// Only this one is tried.
    input: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn read(flags: &[&'a str]) -> Result<Asked<'a>, String> {
        let (seconds, rest) = match flags {
            ["--seconds", seconds, rest @ ..] => {
                let seconds = seconds.parse().ok().filter(|seconds| *seconds > 0);
                (seconds.ok_or("`--seconds` takes a whole number: `cargo xtask fuzz --seconds 60`")?, rest)
            }
            rest => (SECONDS, rest),
        };
        match rest {
            [] => Ok(Asked { seconds, target: None, input: None }),
            [target] if !target.starts_with('-') => Ok(Asked { seconds, target: Some(target), input: None }),
            [target, input] if !target.starts_with('-') => {
                Ok(Asked { seconds, target: Some(target), input: Some(input) })
            }
            _ => Err(format!("`{}` is not understood; see `cargo xtask --help`", rest.join(" "))),
        }
    }
}

fn targets(fuzz: &Path) -> Result<Vec<String>, String> {
    let folder = fuzz.join("fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut targets: Vec<String> =
        entries.flatten().filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned())).collect();
    targets.sort();
    Ok(targets)
}

fn has_nightly() -> bool {
    place::said(Command::new("rustup").args(["run", "nightly", "rustc", "--version"])).is_some()
}

struct Fuzzer {
    program: PathBuf,
    nightly: bool,
    folder: PathBuf,
}

impl Fuzzer {
    /// Sanitizers and coverage are for nightly compilers, or for those who say that they know.
    fn command(&self, task: &str) -> Command {
        let mut command = match self.nightly {
            true => {
                let mut command = Command::new("rustup");
                command.args(["run", "nightly"]).arg(&self.program);
                command
            }
            false => {
                let mut command = Command::new(&self.program);
                command.env("RUSTC_BOOTSTRAP", "1");
                command
            }
        };
        // cargo-fuzz sets RUSTFLAGS, which takes the place of those in .cargo/config.toml: no sanitizer goes with static
        // linking. In a folder of its own, so that the product need not be built anew afterwards.
        let beside = std::env::var_os("CARGO_TARGET_DIR").map(|target| place::tree().join(target).join("fuzz"));
        command.current_dir(place::tree()).env("CARGO_TARGET_DIR", beside.unwrap_or(self.folder.join("target")));
        command.arg(task);
        command
    }

    /// One target for so long: from its seeds, and what it found before.
    fn look(&self, target: &str, seconds: u64) -> Result<(), String> {
        let found = self.folder.join("found").join(target);
        std::fs::create_dir_all(&found).map_err(|error| format!("cannot make {}: {error}", found.display()))?;
        let mut command = self.command("run");
        command.arg(target).arg(&found).arg(self.folder.join("corpus").join(target));
        command.arg("--").arg(format!("-max_total_time={seconds}")).args(["-print_final_stats=1", HANGS]);
        let output = command.output().map_err(|error| format!("cannot run `{}`: {error}", words(&command)))?;
        let text = all_of(&output);
        let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map_or("?", str::trim);
        println!(
            "{} {target:<8} {} executions, {} a second",
            if output.status.success() { "ok    " } else { "BROKEN" },
            number("stat::number_of_executed_units:"),
            number("stat::average_exec_per_sec:"),
        );
        if output.status.success() {
            return Ok(());
        }
        let written =
            text.lines().find_map(|line| line.split_once("Test unit written to ")).map(|(_, path)| path.trim());
        Err(match written {
            Some(path) => format!(
                "{}\n{target} is broken by {path}\ntry it again: cargo xtask fuzz {target} {path}\n\
                 mend it, and keep it as a seed in fuzz/corpus/{target}/ under a name that says what it is",
                said_by_the_law(&text)
            ),
            None => format!("{text}\n{target} failed with {}: {}", output.status, words(&command)),
        })
    }
}

fn all_of(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// From the panic, or the sanitizer's report, up to the first frames of the stack.
fn said_by_the_law(text: &str) -> String {
    let from = text.lines().skip_while(|line| !line.contains("panicked at") && !line.contains("ERROR: "));
    from.take(16).map(|line| line.chars().take(400).collect::<String>()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_choose_time_target_and_input() {
        let asked =
            |flags: &[&'static str]| Asked::read(flags).ok().map(|asked| (asked.seconds, asked.target, asked.input));
        assert_eq!(asked(&[]), Some((SECONDS, None, None)));
        assert_eq!(asked(&["--seconds", "3", "wire"]), Some((3, Some("wire"), None)));
        assert_eq!(asked(&["wire", "file"]), Some((SECONDS, Some("wire"), Some("file"))));
        for wrong in [&["--seconds"] as &[_], &["--seconds", "0"], &["--seconds", "x"], &["--nosuch"], &["a", "b", "c"]]
        {
            assert_eq!(asked(wrong), None, "{wrong:?}");
        }
    }
}
