//! What a sandbox costs a job that writes to the real files.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::Who;

use super::Amounts;
use super::field::Field;
use super::jobs::{First, Job, belljar_run, compare, plain};
use super::samples::{Samples, Table};
use crate::place;

const WANTED: f64 = 1.03;

/// The shortest filter of system calls that there is: it allows every call.
const ALLOW_EVERYTHING: [u8; 8] = [6, 0, 0, 0, 0, 0, 0xff, 0x7f];

pub fn measure(field: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<Vec<Table>, String> {
    let sandbox = |job: &Job| {
        let mut command = belljar_run();
        command.arg("--write").arg(&job.inside);
        command
    };
    let jobs = jobs(field, amounts)?;
    let table = compare(&jobs, amounts.inside_rounds, ("inside", &sandbox), samples)?;
    if place::program("bwrap").is_none() {
        return Ok(vec![table]);
    }
    // How much of that is the kernel's, whoever makes the list: nobody can have one for less.
    let filter = field.root.join("allow-everything");
    std::fs::write(&filter, ALLOW_EVERYTHING).map_err(|error| format!("{}: {error}", filter.display()))?;
    let filtered = |_: &Job| {
        let mut command = Command::new("/bin/sh");
        plain(&mut command).args(["-c", "exec 9<\"$1\"; shift; exec bwrap --dev-bind / / --seccomp 9 \"$@\"", "sh"]);
        command.arg(&filter);
        command
    };
    let jobs: Vec<Job> = jobs.into_iter().map(|job| Job { wanted: None, ..job }).collect();
    let mut least =
        compare(&jobs, amounts.inside_rounds, ("under a filter that allows everything", &filtered), samples)?;
    least.title =
        "The same with a filter of one instruction in belljar's place, which allows every call: medians".to_owned();
    Ok(vec![table, least])
}

fn jobs(field: &Field, amounts: &Amounts) -> Result<Vec<Job>, String> {
    let job = |name, folder: &Path, script: &str, repeats| Job {
        name,
        outside: folder.to_owned(),
        inside: folder.to_owned(),
        script: script.to_owned(),
        repeats,
        first: First::WarmsUp,
        wanted: Some(WANTED),
    };
    let tree = git_tree(field, amounts.files_in_tree)?;
    let python = python_suite(field)?;
    let mut jobs = vec![
        job("git status", &tree, "git status --short", 10),
        job("find", &tree, "find . -type f -size +0", 10),
        job("python3 -m unittest", &python, "/usr/bin/python3 -B -m unittest -q", 5),
    ];
    match place::program("cargo") {
        Some(_) => {
            let script = "touch src/main.rs && cargo build --quiet --offline";
            jobs.push(job("cargo build", &small_crate(field)?, script, 3));
        }
        None => println!("left out: cargo build, there is no cargo in PATH"),
    }
    Ok(jobs)
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
