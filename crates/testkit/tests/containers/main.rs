//! Stories of the container backend, with a real engine that the tests start themselves: as root, and as a user who may
//! use it. Where no engine can be started the tests are skipped, and their names say why.

mod attacks;
mod ends;
mod engines;
mod images;
mod podman;
mod rootless;
mod stories;

use belljar_testkit::contestant::Who;
use belljar_testkit::engine::{self, Engine};
use belljar_testkit::project::{Project, Said};
use belljar_testkit::twice;
use libtest_mimic::{Arguments, Trial};

use ends::{keepers_of, signal};

/// A project, and an engine to run it with.
pub struct Stage<'a> {
    pub engine: &'a Engine,
    pub project: Project,
    pub who: Who,
}

impl Stage<'_> {
    /// belljar, told where the engine is.
    pub fn command(&self, words: &[&str]) -> std::process::Command {
        let mut command = self.project.command(words);
        command.env("DOCKER_HOST", self.engine.host());
        command
    }

    pub fn belljar(&self, words: &[&str]) -> Result<Said, String> {
        self.command(words).output().map(Said::of).map_err(|error| error.to_string())
    }

    /// `run` in a container.
    pub fn run(&self, flags: &[&str], script: &str) -> Result<Said, String> {
        let words = [&["run", "--backend", "container"], flags, &["--", "sh", "-c", script]].concat();
        self.belljar(&words)
    }

    /// The same quietly, where it must succeed: what it said.
    pub fn said(&self, flags: &[&str], script: &str) -> Result<String, String> {
        let said = self.run(&[flags, &["-q"]].concat(), script)?;
        match said.code {
            Some(0) => Ok(String::from_utf8_lossy(&said.out).into_owned()),
            _ => Err(format!("{script}: {said:?}")),
        }
    }
}

/// What must be so.
pub fn that(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

pub type Story = fn(&Stage<'_>) -> Result<(), String>;

/// One engine for all of them: each takes seconds to start.
fn all(stories: &[(&str, Story)], who: Who) -> Result<(), String> {
    let engine = Engine::start()?;
    let mut failed = Vec::new();
    for (name, story) in stories {
        let project = Project::new(who).map_err(|error| error.to_string())?;
        let stage = Stage { engine: &engine, project, who };
        match story(&stage) {
            Ok(()) => println!("{name}: holds"),
            Err(why) => failed.push(format!("{name}: {why}")),
        }
        let left = engine.leavings_in_the_end();
        if !left.is_empty() {
            failed.push(format!("{name}: left {left:?}"));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

fn main() {
    let mut trials: Vec<Trial> = Vec::new();
    let whole: [(&str, twice::Check); 4] = [
        ("an_engine_is_found_and_its_runtimes_are_used", |who| all(engines::ALL, who)),
        ("what_runs_in_a_container_runs_as_everywhere", |who| all(stories::ALL, who)),
        ("images_come_from_this_host", |who| all(images::ALL, who)),
        ("nothing_is_left_however_it_ends", |who| all(ends::ALL, who)),
    ];
    for (name, check) in whole {
        for who in [Who::Root, Who::Ordinary] {
            let why_not = engine::missing().or_else(|| twice::why_not(who));
            trials.push(twice::trial(name, who, why_not, move || check(who)));
        }
    }
    for who in [Who::Root, Who::Ordinary] {
        let why_not = engine::missing().or_else(|| twice::why_not(who));
        trials
            .push(twice::trial("an_engine_that_dies_leaves_nothing_running", who, why_not, move || ends::killed(who)));
        let why_not = twice::why_not(who);
        trials.push(twice::trial("an_engine_that_is_not_there_is_said_to_be_missing", who, why_not, move || {
            ends::down(who)
        }));
    }
    for (name, check) in podman::ALL {
        for who in [Who::Root, Who::Ordinary] {
            let why_not = belljar_testkit::podman::missing().or_else(|| twice::why_not(who));
            trials.push(twice::trial(name, who, why_not, move || check(who)));
        }
    }
    trials.extend(rootless::trials());
    // Root's own files are not granted to a container, so the field is the ordinary user's.
    let why_not = engine::missing().or_else(|| twice::why_not(Who::Ordinary));
    trials.push(twice::trial("every_attack_is_held_by_a_container", Who::Ordinary, why_not, || {
        attacks::held(Who::Ordinary)
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
