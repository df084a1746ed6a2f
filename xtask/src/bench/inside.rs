//! The same job outside and inside: what a sandbox costs once it runs. Start-up does not count.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::Who;
use testkit::contestant::belljar;

use super::Amounts;
use super::field::Field;
use super::samples::{Samples, Table, median, met, milliseconds};
use crate::place;

const WANTED: f64 = 1.03;

/// A job: a shell command, repeated in one sandbox; the first round warms caches and is left out.
struct Job {
    name: &'static str,
    folder: PathBuf,
    script: String,
    repeats: usize,
}

pub fn measure(field: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let title = "The same job inside and outside, as root, medians";
    let mut table = Table::new(title, &["", "runs of each", "outside ms", "inside ms", "ratio", "wanted"]);
    for job in jobs(field, amounts)? {
        println!("inside: {}", job.name);
        let (mut outside, mut inside) = (Vec::new(), Vec::new());
        for round in 0..amounts.inside_rounds {
            // Who goes first changes: neither always finds the caches that the other warmed.
            for sandboxed in [round % 2 == 0, round % 2 != 0] {
                let times = run(&job, sandboxed)?;
                for time in &times {
                    let where_ = if sandboxed { "inside" } else { "outside" };
                    samples.keep(&format!("job {where_}"), job.name, "root", time.as_micros() as f64, "µs")?;
                }
                if sandboxed { inside.extend(times) } else { outside.extend(times) }
            }
        }
        let ratio = median(&inside).as_secs_f64() / median(&outside).as_secs_f64();
        table.rows.push(vec![
            job.name.to_owned(),
            inside.len().to_string(),
            milliseconds(median(&outside)),
            milliseconds(median(&inside)),
            format!("{ratio:.3} ×"),
            met(ratio <= WANTED, &format!("≤ {WANTED} ×")),
        ]);
    }
    Ok(table)
}

fn jobs(field: &Field, amounts: &Amounts) -> Result<Vec<Job>, String> {
    let tree = git_tree(field, amounts.files_in_tree)?;
    let python = python_suite(field)?;
    let mut jobs = vec![
        Job { name: "git status", folder: tree.clone(), script: "git status --short".to_owned(), repeats: 10 },
        Job { name: "find", folder: tree, script: "find . -type f -size +0".to_owned(), repeats: 10 },
        Job {
            name: "python3 -m unittest",
            folder: python,
            script: "/usr/bin/python3 -B -m unittest -q".to_owned(),
            repeats: 5,
        },
    ];
    match place::program("cargo") {
        Some(_) => jobs.push(Job {
            name: "cargo build",
            folder: small_crate(field)?,
            script: "touch src/main.rs && cargo build --quiet --offline".to_owned(),
            repeats: 3,
        }),
        None => println!("left out: cargo build, there is no cargo in PATH"),
    }
    Ok(jobs)
}

/// The job's own times, as a shell in the same place measures them.
fn run(job: &Job, sandboxed: bool) -> Result<Vec<Duration>, String> {
    let script = format!(
        "set -e; for round in $(seq 0 {}); do from=$EPOCHREALTIME; {{ {}; }} >/dev/null 2>&1; to=$EPOCHREALTIME; \
         echo $(( ${{to/[.,]/}} - ${{from/[.,]/}} )); done",
        job.repeats, job.script
    );
    let shell = ["/bin/bash", "-c", &script];
    let mut command = if sandboxed {
        let mut command = Command::new(belljar());
        command.args(["run", "-q", "--write"]).arg(&job.folder).arg("--").args(shell);
        command
    } else {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]);
        command
    };
    let output = plain(&mut command)
        .current_dir(&job.folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", job.name))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("{} failed (inside: {sandboxed}) with {}: {words}", job.name, output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let times: Vec<_> = text.lines().filter_map(|line| line.parse().ok()).map(Duration::from_micros).collect();
    match times.len() == job.repeats + 1 {
        true => Ok(times[1..].to_vec()),
        false => Err(format!("{} gave no times: {text}", job.name)),
    }
}

fn git_tree(field: &Field, files: usize) -> Result<PathBuf, String> {
    let folder = field.root.join("tree");
    for file in 0..files {
        let below = folder.join(format!("{:02}/{:02}", file % 20, file / 20 % 20));
        if file < 400 {
            field.folder(&below, Who::Root)?;
        }
        field.write(&below.join(format!("{file}.txt")), &format!("file {file}\n"), Who::Root)?;
    }
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(&folder).args(["-c", "user.name=bench", "-c", "user.email=bench@example.org"]).args(words);
        place::said(&mut command).ok_or(format!("`git {}` failed", words.join(" ")))
    };
    git(&["init", "--quiet"])?;
    git(&["add", "."])?;
    git(&["commit", "--quiet", "--message", "all"])?;
    Ok(folder)
}

fn python_suite(field: &Field) -> Result<PathBuf, String> {
    let folder = field.root.join("python");
    field.folder(&folder, Who::Root)?;
    // Its files are in the workspace: /tmp inside is memory, and would win by that.
    let suite = "\
import json, os, subprocess, tempfile, unittest


class Files(unittest.TestCase):
    def test_many_small_files(self):
        with tempfile.TemporaryDirectory(dir='.') as folder:
            for number in range(500):
                path = os.path.join(folder, str(number))
                with open(path, 'w') as file:
                    json.dump({'number': number}, file)
                with open(path) as file:
                    self.assertEqual(json.load(file)['number'], number)
                self.assertEqual(os.stat(path).st_nlink, 1)


class Processes(unittest.TestCase):
    def test_children(self):
        for number in range(20):
            self.assertEqual(subprocess.run(['/bin/true']).returncode, 0)
";
    field.write(&folder.join("test_suite.py"), suite, Who::Root)?;
    Ok(folder)
}

fn small_crate(field: &Field) -> Result<PathBuf, String> {
    let folder = field.root.join("crate");
    field.folder(&folder.join("src"), Who::Root)?;
    let write = |name: &str, text: &str| field.write(&folder.join(name), text, Who::Root);
    write("Cargo.toml", "[package]\nname = \"small\"\nedition = \"2021\"\n[workspace]\n")?;
    write("src/main.rs", "mod other;\nfn main() { println!(\"{}\", other::sum(&[1, 2, 3])); }\n")?;
    write("src/other.rs", "pub fn sum(numbers: &[u64]) -> u64 { numbers.iter().sum() }\n")?;
    build_once(&folder)?;
    Ok(folder)
}

fn build_once(folder: &Path) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.current_dir(folder).args(["build", "--quiet", "--offline"]);
    place::said(plain(&mut command)).map(drop).ok_or_else(|| "the small crate does not build outside".to_owned())
}

/// The environment of a login rather than that of `cargo xtask`, which sets where to build and spares rustup a search.
fn plain(command: &mut Command) -> &mut Command {
    let keep = ["PATH", "HOME"].map(|name| (name, std::env::var_os(name).unwrap_or_default()));
    command.env_clear().envs(keep)
}
