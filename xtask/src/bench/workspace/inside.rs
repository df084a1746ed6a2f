//! The same jobs in a project and in a layer over a copy of it: what reading and writing through the layer costs.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::Who;

use super::{Amounts, trees};
use crate::bench::field::Field;
use crate::bench::jobs::{First, Job, belljar_run, compare, plain};
use crate::bench::samples::{Samples, Table};
use crate::place;

const WANTED: f64 = 1.15;
const BYTES: usize = 4000;
const COMMITS: usize = 20;

/// Over a project: mounts a layer, in a mount namespace of its own, and goes on in it.
const BARE: &str = "mount -t overlay overlay -o lowerdir=\"$1\",upperdir=\"$2/upper\",workdir=\"$2/work\" \"$1\" \
    && cd \"$1\" && shift 3 && exec \"$@\"";

/// With belljar, and for comparison with nothing but the same kind of layer: what the kernel takes for it, nobody can give back.
pub fn measure(field: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<[Table; 2], String> {
    let sandbox = |job: &Job| {
        let mut command = belljar_run();
        command.env("XDG_STATE_HOME", field.home(Who::Root)).arg("--workspace").arg(&job.inside);
        command
    };
    let jobs = jobs(field, amounts.repository)?;
    let mut table = compare(&jobs, amounts.inside_rounds, ("inside", &sandbox), samples)?;
    table.title = "The same job in the project and in a layer over a copy of it, as root, medians".to_owned();
    let uppers = Cell::new(0);
    let bare = |job: &Job| {
        let layer = field.root.join(format!("bare-{}", uppers.replace(uppers.get() + 1)));
        let mut command = Command::new("unshare");
        plain(&mut command).args(["--mount", "/bin/sh", "-c"]);
        command.arg(format!("mkdir -p \"$2/upper\" \"$2/work\" && {BARE}")).arg("sh").arg(&job.inside).arg(layer);
        command
    };
    let warmed = jobs.into_iter().filter(|job| job.first == First::WarmsUp);
    let jobs: Vec<Job> = warmed.map(|job| Job { wanted: None, ..job }).collect();
    let mut alone = compare(&jobs, amounts.inside_rounds, ("on a bare overlayfs", &bare), samples)?;
    alone.title = "The same with a bare overlayfs in belljar's place: no sandbox at all, medians".to_owned();
    Ok([table, alone])
}

fn jobs(field: &Field, files: usize) -> Result<Vec<Job>, String> {
    let repository = twice(field, "repository", |folder| repository(folder, files))?;
    let job = |name, [outside, inside]: &[PathBuf; 2], script: &str, repeats| Job {
        name,
        outside: outside.clone(),
        inside: inside.clone(),
        script: script.to_owned(),
        repeats,
        first: First::WarmsUp,
        wanted: Some(WANTED),
    };
    let status = "git status --short";
    let mut jobs = vec![
        job("git status", &repository, status, 10),
        // Root's files have another owner inside: git reads each again, once.
        Job { first: First::Counts, wanted: None, ..job("git status, the first in a sandbox", &repository, status, 1) },
        job("find and cat", &repository, "find . -path ./.git -prune -o -type f -print0 | xargs -0 cat", 5),
        job("cp and rm of a tenth of it", &repository, "mkdir copies && cp -r folder-0? copies && rm -r copies", 5),
    ];
    match place::program("cargo") {
        Some(_) => match twice(field, "crate", crate_with_dependencies) {
            Ok(folders) => {
                let check = "cargo check --quiet --offline";
                jobs.push(job("cargo check after an edit", &folders, &format!("touch src/main.rs && {check}"), 5));
                let from_nothing = job(
                    "cargo check from nothing",
                    &folders,
                    &format!("{check} --target-dir target-$EPOCHREALTIME"),
                    1,
                );
                // Its first round is as good as any: nothing of it is left for the next.
                jobs.push(Job { first: First::Counts, ..from_nothing });
            }
            Err(why) => println!("left out: cargo check: {why}"),
        },
        None => println!("left out: cargo check, there is no cargo in PATH"),
    }
    Ok(jobs)
}

/// Makes the same in two folders: what is done in one is not below the layers of the other.
fn twice(field: &Field, name: &str, make: impl Fn(&Path) -> Result<(), String>) -> Result<[PathBuf; 2], String> {
    println!("making two of {name}");
    let folders = ["outside", "layered"].map(|place| field.root.join(place).join(name));
    for folder in &folders {
        field.folder(folder, Who::Root)?;
        make(folder)?;
    }
    Ok(folders)
}

/// So many files, with some history.
fn repository(folder: &Path, files: usize) -> Result<(), String> {
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(folder).args(["-c", "user.name=bench", "-c", "user.email=bench@example.org"]).args(words);
        place::said(&mut command).ok_or(format!("`git {}` failed", words.join(" ")))
    };
    trees::make(folder, files, BYTES)?;
    git(&["init", "--quiet"])?;
    git(&["add", "."])?;
    for commit in 0..COMMITS {
        let change = trees::Change::new().command(commit + 1);
        let changed = place::said(Command::new("/bin/sh").args(["-c", &change]).current_dir(folder));
        changed.ok_or("cannot change files for a commit")?;
        git(&["commit", "--quiet", "--all", "--message", &format!("commit {commit}")])?;
    }
    git(&["gc", "--quiet"]).map(drop)
}

/// A program with some dependencies of ours, whose sources are in its folder.
fn crate_with_dependencies(folder: &Path) -> Result<(), String> {
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap_or(folder))
            .and_then(|()| std::fs::write(&file, text))
            .map_err(trees::cannot("write", &file))
    };
    write(
        "Cargo.toml",
        "[package]\nname = \"small\"\nedition = \"2021\"\n[workspace]\n[dependencies]\nserde_json = \"1\"\n",
    )?;
    write(
        "src/main.rs",
        "fn main() {\n    println!(\"{}\", serde_json::json!({ \"words\": std::env::args().count() }));\n}\n",
    )?;
    let cargo = |words: &[&str]| {
        let mut command = Command::new("cargo");
        plain(command.current_dir(folder).args(words).arg("--offline"));
        place::said(&mut command).ok_or_else(|| format!("`cargo {}` fails outside", words.join(" ")))
    };
    // What `cargo vendor` prints is how to find what it put there.
    write(".cargo/config.toml", &cargo(&["vendor", "--quiet"])?)?;
    cargo(&["check", "--quiet"]).map(drop)
}
