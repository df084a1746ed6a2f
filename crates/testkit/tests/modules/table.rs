//! What all of these tests work with: a project that has the guest in it, and what it said.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use belljar_testkit::modules::{Kind, guest};
use belljar_testkit::project::Said;
use belljar_testkit::{Project, Who};

pub struct Table {
    pub project: Project,
}

impl Table {
    pub fn laid(who: Who) -> Result<Table, String> {
        let project = Project::new(who).map_err(|error| error.to_string())?;
        for kind in Kind::MODULES {
            let bytes = fs::read(guest(kind)?).map_err(|error| error.to_string())?;
            project.put(kind.file(), bytes).map_err(|error| error.to_string())?;
        }
        project.put("notes/first.txt", "first\n").map_err(|error| error.to_string())?;
        Ok(Table { project })
    }

    /// The same at home, with a policy there.
    pub fn with_policy(who: Who, policy: &str) -> Result<Table, String> {
        let Table { project } = Table::laid(who)?;
        let project = project.at_home().map_err(|error| error.to_string())?;
        let home = project.state.parent().ok_or("a project has a folder around it")?.to_owned();
        let folder = home.join(".config/belljar");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        fs::write(folder.join("policy.toml"), format!("version = 1\n{policy}")).map_err(|error| error.to_string())?;
        for path in [home.join(".config"), folder.clone(), folder.join("policy.toml")] {
            project.give(&path).map_err(|error| error.to_string())?;
        }
        Ok(Table { project })
    }

    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), String> {
        self.project.put(name, bytes).map_err(|error| format!("cannot put {name}: {error}"))
    }

    /// belljar with these words.
    pub fn belljar(&self, words: &[&str]) -> Result<Said, String> {
        self.project.belljar(words).map_err(|error| error.to_string())
    }

    /// The guest in a sandbox: `flags` for belljar, `words` for the guest.
    pub fn run(&self, kind: Kind, flags: &[&str], words: &[&str]) -> Result<Said, String> {
        let all = [&["run", "-q"], flags, &["--", kind.file()], words].concat();
        self.belljar(&all)
    }

    /// The same without any, as the same user: what an attack does where nothing holds it.
    pub fn bare(&self, words: &[&str]) -> Result<Said, String> {
        let program = self.project.work.with_file_name("bare");
        if !program.exists() {
            fs::copy(guest(Kind::Machine)?, &program).map_err(|error| error.to_string())?;
        }
        let mut command = Command::new(program);
        let like = self.project.command(["--version"]);
        command.args(words).current_dir(&self.project.work).env_clear().stdin(Stdio::null());
        command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.output().map(Said::of).map_err(|error| error.to_string())
    }
}

/// A command with something to read.
pub fn fed(command: &mut Command, input: &[u8]) -> Result<Said, String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut to = child.stdin.take().ok_or("no input")?;
    // Whoever does not read it is free to.
    drop(to.write_all(input));
    drop(to);
    child.wait_with_output().map(Said::of).map_err(|error| error.to_string())
}

pub fn text(said: &Said) -> String {
    String::from_utf8_lossy(&said.out).into_owned()
}

pub fn ended(said: Said, code: i32) -> Result<Said, String> {
    match said.code == Some(code) {
        true => Ok(said),
        false => Err(format!("it should have ended with {code}: {said:?}")),
    }
}

pub fn says(said: &Said, part: &str) -> Result<(), String> {
    match text(said).contains(part) || said.error.contains(part) {
        true => Ok(()),
        false => Err(format!("`{part}` is not in what it said: {said:?}")),
    }
}

/// Names of paths are text here.
pub fn shown(path: &(impl AsRef<OsStr> + ?Sized)) -> String {
    path.as_ref().to_string_lossy().into_owned()
}
