//! `belljar scan`: files read here, looked at in a child that can only compute, one after the other.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use code::{Rules, Scanner, Source};
use model::{Finding, RuleInfo, Scanned, Scans, Severity, Spot, Trouble};
use secrets::Formats;
use sys::confined::{Confinement, Worker};

use crate::inspect::not_scanned;
use crate::policies::recorded;
use crate::told::Telling;
use crate::{Engine, rules};

/// Longer files are scanned as far as this, and that is said.
const LARGEST: u64 = 32 << 20;
const CONFINEMENT: Confinement = Confinement { memory: 1 << 30, time: Duration::from_secs(30), answer: 16 << 20 };
/// Deeper folders are not looked into, which is said.
const DEEPEST: usize = 128;

impl Scans for Engine {
    fn scan(&self, paths: &[PathBuf]) -> Result<Scanned, Trouble> {
        let rules = rules::load()?;
        let mut scanned = Scanned::default();
        let files = listed(paths, &mut scanned.unread)?;
        let formats = rules::own_formats()?.unwrap_or_else(Formats::built_in);
        let mut workers = workers(rules, &formats, files.len())?;
        let mut asked: Vec<Option<usize>> = vec![None; workers.len()];
        let mut found: Vec<Vec<Finding>> = vec![Vec::new(); files.len()];
        for (number, path) in files.iter().enumerate() {
            self.workspaces.watch().progress("scanned", number as u64, files.len() as u64);
            let name = path.display().to_string();
            let mut question = (name.len() as u64).to_le_bytes().to_vec();
            question.extend_from_slice(name.as_bytes());
            let begin = question.len();
            if let Err(error) = recorded::open(path).and_then(|file| read(file, &mut question)) {
                scanned.unread.push(format!("{name}: {error}"));
                continue;
            }
            scanned.files += 1;
            scanned.bytes += (question.len() - begin) as u64;
            // Whoever is free is asked next, while the others compute.
            let free = asked.iter().position(Option::is_none);
            let next = free.or_else(|| Worker::first_to_answer(&workers)).unwrap_or(0);
            if let Some(earlier) = asked[next].replace(number) {
                found[earlier] = answered(&mut workers[next], &files[earlier]);
            }
            workers[next].put(&question);
        }
        for (worker, asked) in workers.iter_mut().zip(asked) {
            if let Some(earlier) = asked {
                found[earlier] = answered(worker, &files[earlier]);
            }
        }
        scanned.findings = found.into_iter().flatten().collect();
        Telling::of_the_process().findings(&mut scanned.findings);
        self.workspaces.watch().progress("scanned", files.len() as u64, files.len() as u64);
        Ok(scanned)
    }

    fn rules(&self) -> Result<Vec<RuleInfo>, Trouble> {
        Ok(rules::load()?.list().map(rules::info).collect())
    }
}

/// One for each processor: a child computes on one.
fn workers(rules: &'static Rules, formats: &Formats, files: usize) -> Result<Vec<Worker>, Trouble> {
    let processors = std::thread::available_parallelism().map_or(1, |number| number.get());
    let start = |_| {
        let formats = formats.clone();
        Worker::start(CONFINEMENT, move |question| answer(question, rules, &formats))
    };
    let workers: Result<Vec<Worker>, _> = (0..processors.min(files).max(1)).map(start).collect();
    workers.map_err(|ended| Trouble {
        message: format!("nothing can be scanned here: {ended}"),
        fix: "see `belljar doctor`".to_owned(),
    })
}

fn answered(worker: &mut Worker, path: &Path) -> Vec<Finding> {
    let answer = worker.answer().map_err(|ended| ended.to_string());
    let found = answer
        .and_then(|answer| serde_json::from_slice(&answer).map_err(|error| format!("its answer is none: {error}")));
    found.unwrap_or_else(|why| {
        let at = Spot { name: path.display().to_string(), line: 1, column: 1, ..Spot::default() };
        vec![not_scanned("scan.failed", Severity::High, at, &why)]
    })
}

fn read(file: File, into: &mut Vec<u8>) -> std::io::Result<()> {
    file.take(LARGEST).read_to_end(into).map(|_| ())
}

/// In the child: a length, a name, and bytes.
fn answer(question: &[u8], rules: &Rules, formats: &Formats) -> Vec<u8> {
    let parts = question.split_first_chunk::<8>().and_then(|(length, rest)| {
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        Some((std::str::from_utf8(rest.get(..length)?).ok()?, rest.get(length..)?))
    });
    let Some((name, bytes)) = parts else { return Vec::new() };
    let mut found = Scanner::new(rules).scan(&Source { name, language: None, bytes }).findings;
    found.extend(secrets::find_in(name, bytes, formats));
    found.sort_by(|left, right| left.at.cmp(&right.at));
    serde_json::to_vec(&found).unwrap_or_default()
}

/// All files, in the order of their names.
fn listed(paths: &[PathBuf], unread: &mut Vec<String>) -> Result<Vec<PathBuf>, Trouble> {
    let mut files = Vec::new();
    for path in paths {
        let stat = std::fs::metadata(path).map_err(|error| Trouble {
            message: format!("cannot scan `{}`: {error}", path.display()),
            fix: "name files or folders that are there".to_owned(),
        })?;
        match stat.is_dir() {
            true => walk(path, &mut files, unread),
            false => files.push(path.clone()),
        }
    }
    Ok(files)
}

fn walk(root: &Path, files: &mut Vec<PathBuf>, unread: &mut Vec<String>) {
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let listed = std::fs::read_dir(&folder).and_then(|entries| {
            entries.map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))).collect()
        });
        let mut entries: Vec<(PathBuf, std::fs::FileType)> = match listed {
            Ok(entries) => entries,
            Err(error) => {
                unread.push(format!("{}: {error}", folder.display()));
                continue;
            }
        };
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        let mut below = Vec::new();
        for (path, kind) in entries {
            // What git has packed is no text; what is checked out of it is.
            if kind.is_dir() && !path.ends_with(".git") {
                match depth < DEEPEST {
                    true => below.push((path, depth + 1)),
                    false => unread.push(format!("{}: too deep", path.display())),
                }
            } else if kind.is_file() {
                files.push(path);
            }
        }
        folders.extend(below.into_iter().rev());
    }
}
