//! Somebody's project, runs in it that hand something over, and what came of it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::Stdio;

use belljar_testkit::project::Said;
use belljar_testkit::{Project, Who};
use serde_json::Value;

pub struct Bench {
    pub project: Project,
    pub home: PathBuf,
}

/// What a run handed over, as its result says.
#[derive(Debug)]
pub struct Handed {
    pub result: Value,
}

pub fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Bench {
    pub fn of(who: Who) -> Result<Bench, String> {
        let project = Project::new(who).and_then(Project::at_home).map_err(text)?;
        let home = project.state.parent().ok_or("a project has a folder around it")?.to_owned();
        Ok(Bench { project, home })
    }

    /// The user's own policy.
    pub fn policy(&self, rules: &str) -> Result<(), String> {
        let folder = self.home.join(".config/belljar");
        fs::create_dir_all(&folder).map_err(text)?;
        fs::write(folder.join("policy.toml"), format!("version = 1\n{rules}")).map_err(text)?;
        for path in [self.home.join(".config"), folder.clone(), folder.join("policy.toml")] {
            self.project.give(&path).map_err(text)?;
        }
        Ok(())
    }

    /// Runs a script of the shell, which must end well.
    pub fn run(&self, flags: &[&str], script: &str) -> Result<Handed, String> {
        self.run_as(&["run"], flags, script)
    }

    pub fn run_as(&self, start: &[&str], flags: &[&str], script: &str) -> Result<Handed, String> {
        let result = self.home.join("result.json");
        let shown = result.display().to_string();
        let words = [start, flags, &["--result-file", &shown, "--", "sh", "-c", script]].concat();
        self.project.done(words)?;
        self.handed()
    }

    fn handed(&self) -> Result<Handed, String> {
        let result = fs::read(self.home.join("result.json")).map_err(text)?;
        Ok(Handed { result: serde_json::from_slice(&result).map_err(text)? })
    }

    /// The same, where something happens on the host after the command has begun and before it goes on.
    pub fn run_while(
        &self,
        flags: &[&str],
        script: &str,
        meanwhile: impl FnOnce() -> Result<(), String>,
    ) -> Result<Handed, String> {
        let shown = self.home.join("result.json").display().to_string();
        let script = format!("echo begun; read go; {script}");
        let words = [&["run", "-q"], flags, &["--result-file", &shown, "--", "sh", "-c", &script]].concat();
        let mut command = self.project.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(text)?;
        let (Some(mut stdin), Some(stdout), Some(mut stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("there are pipes".to_owned());
        };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map_err(text)?;
        let done = if line == "begun\n" { meanwhile() } else { Err(format!("it said {line:?}")) };
        stdin.write_all(b"go\n").map_err(text)?;
        drop(stdin);
        let mut error = String::new();
        stderr.read_to_string(&mut error).map_err(text)?;
        let status = child.wait().map_err(text)?;
        done.map_err(|why| format!("{why}: {error}"))?;
        match status.success() {
            true => self.handed(),
            false => Err(format!("{status}: {error}")),
        }
    }

    pub fn get(&self, id: &str) -> Result<Vec<u8>, String> {
        self.project.done(["artifacts", "get", id]).map(|said| said.out)
    }

    pub fn say(&self, words: &[&str]) -> Result<Said, String> {
        self.project.belljar(words).map_err(text)
    }

    /// Contents in the store, drafts included.
    pub fn blobs(&self) -> Result<Vec<Vec<u8>>, String> {
        let blobs = fs::read_dir(self.project.state.join("belljar/blobs")).into_iter().flatten().flatten();
        blobs.map(|blob| fs::read(blob.path()).map_err(text)).collect()
    }

    /// Nothing in the store holds this.
    pub fn never_kept(&self, secret: &[u8]) -> Result<(), String> {
        match self.blobs()?.iter().any(|blob| blob.windows(secret.len()).any(|part| part == secret)) {
            true => Err("it is in the store".to_owned()),
            false => Ok(()),
        }
    }
}

impl Handed {
    pub fn list(&self) -> &[Value] {
        self.result["artifacts"].as_array().map_or(&[], Vec::as_slice)
    }

    pub fn one(&self, path: &str) -> Result<&Value, String> {
        self.list().iter().find(|one| one["path"] == path).ok_or_else(|| format!("no {path} in {:#}", self.result))
    }

    /// Its id, if it was released.
    pub fn released(&self, path: &str) -> Result<&str, String> {
        let one = self.one(path)?;
        match (one["released"].as_bool(), one["id"].as_str()) {
            (Some(true), Some(id)) => Ok(id),
            _ => Err(format!("{path} was not released: {one:#}")),
        }
    }

    /// That it was withheld by this rule.
    pub fn withheld(&self, path: &str, rule: &str) -> Result<(), String> {
        let one = self.one(path)?;
        let by = one["rule"].as_str().unwrap_or_default();
        match one["released"] == false && by.starts_with(rule) && one["reason"].as_str().is_some() {
            true => Ok(()),
            false => Err(format!("{path} was not withheld by {rule}: {one:#}")),
        }
    }

    /// Exactly these are listed.
    pub fn are(&self, paths: &[&str]) -> Result<(), String> {
        let listed: Vec<&str> = self.list().iter().map(|one| one["path"].as_str().unwrap_or("?")).collect();
        match listed == paths {
            true => Ok(()),
            false => Err(format!("wanted {paths:?}, but there are {listed:?}")),
        }
    }
}

pub fn same(is: impl AsRef<[u8]>, wanted: &str) -> Result<(), String> {
    match is.as_ref() == wanted.as_bytes() {
        true => Ok(()),
        false => Err(format!("wanted {wanted:?}, but got {:?}", String::from_utf8_lossy(is.as_ref()))),
    }
}
