//! Somebody's project with a policy of their own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use belljar_testkit::project::Said;
use belljar_testkit::{Project, Who};

pub struct Desk {
    pub project: Project,
    pub home: PathBuf,
}

impl Desk {
    pub fn of(who: Who) -> Result<Desk, String> {
        let project = Project::new(who).and_then(Project::at_home).map_err(|error| error.to_string())?;
        let home = project.state.parent().ok_or("a project has a folder around it")?.to_owned();
        Ok(Desk { project, home })
    }

    /// The user's own policy.
    pub fn policy(&self, text: &str) -> Result<(), String> {
        let folder = self.home.join(".config/belljar");
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("policy.toml"), format!("version = 1\n{text}"))?;
            self.project.give(&self.home.join(".config"))?;
            self.project.give(&folder)?;
            self.project.give(&folder.join("policy.toml"))
        };
        write().map_err(|error| error.to_string())
    }

    pub fn put(&self, name: &str, text: &str) -> Result<(), String> {
        self.project.put(name, text).map_err(|error| error.to_string())
    }

    pub fn say(&self, words: &[&str]) -> Result<Said, String> {
        Said::of_command(&mut self.project.command(words))
    }

    /// Says it, and looks at the exit code and at what must be said on standard error.
    pub fn expect(&self, words: &[&str], code: i32, said: &str) -> Result<Said, String> {
        expected(&mut self.project.command(words), code, said)
    }
}

pub fn expected(command: &mut Command, code: i32, said: &str) -> Result<Said, String> {
    let heard = Said::of_command(command)?;
    match heard.code == Some(code) && heard.error.contains(said) {
        true => Ok(heard),
        false => Err(format!("{command:?}\nwanted {code} and `{said}`, but got {heard:?}")),
    }
}

pub trait Saying: Sized {
    fn of_command(command: &mut Command) -> Result<Self, String>;
}

impl Saying for Said {
    fn of_command(command: &mut Command) -> Result<Said, String> {
        command.output().map(Said::of).map_err(|error| error.to_string())
    }
}
