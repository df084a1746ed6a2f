//! Containers that stand before they are needed: every wall is up, the workspace is mounted, and nothing runs in them but
//! somebody who waits. A run in one costs what a further program in a container costs. Each is used once.

use std::time::{Duration, Instant};

use model::{Grant, Network, Outcome, Powers, Sandbox, SetupFailure, Stack, Streams, Wall};
use serde::Serialize;

use crate::api::Made;
use crate::configuration::{Configuration, User, Yes};
use crate::launch::{Clock, Guarded, Raised};
use crate::plan::{self, Blueprint};
use crate::supervise::Supervised;
use crate::trouble::Unusable;
use crate::{Container, launch, proof};

/// A container that waits.
pub struct Warm {
    id: String,
    blueprint: Blueprint,
    guarded: Guarded,
    facts: crate::facts::Facts,
    proven: Vec<Wall>,
    first: i32,
}

/// A further program in a container. As closed as that: it can't ask for more than the container has.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Further<'a> {
    attach_stdin: Yes,
    attach_stdout: Yes,
    attach_stderr: Yes,
    tty: bool,
    user: User,
    env: &'a [String],
    working_dir: &'a str,
    cmd: Vec<&'a str>,
}

impl Container {
    /// Raises a container for `grant`, of which the command, its words, variables and folder may be others later.
    pub fn warm(&self, grant: &Grant, stacks: &[Stack]) -> Result<Warm, SetupFailure> {
        self.raise_warm(grant.powers(), stacks)
    }

    fn raise_warm(&self, powers: &Powers, stacks: &[Stack]) -> Result<Warm, SetupFailure> {
        if matches!(powers.network, Network::Gated(_)) {
            return Err(Unusable::Refused {
                wall: Wall::Network,
                message: "a container that waits has no gate yet".to_owned(),
                fix: "open it when it is needed".to_owned(),
            }
            .into());
        }
        let (api, facts) = self.facts(powers, stacks)?;
        let blueprint = plan::plan(powers, stacks, &facts).map_err(SetupFailure::from)?;
        let guarded = launch::guarded(api, &blueprint, &facts)?;
        let begin = || {
            launch::prepare(api, &blueprint, &facts)?;
            let Made { id, warnings } = api.create(&launch::name(&facts.id), &waiting(&blueprint.container))?;
            launch::nothing_left_out(warnings, &facts)?;
            api.start(&id)?;
            let state = api.inspect(&id)?.state;
            if !state.running {
                return Err(Unusable::Refused {
                    wall: Wall::Files,
                    message: "the image has no `sleep` to wait with".to_owned(),
                    fix: "use it cold, or name another image".to_owned(),
                });
            }
            let (_, proven) = proof::look(&state, &id, &blueprint.container, &facts)?;
            Ok((id, proven, state.pid))
        };
        match begin() {
            Ok((id, proven, first)) => Ok(Warm { id, guarded, facts, proven, first, blueprint }),
            Err(error) => Err(launch::undone(api, guarded, error).into()),
        }
    }

    /// Runs a grant in a container that was raised for one like it.
    pub fn open_warm(
        &self,
        warm: Warm,
        grant: &Grant,
        stacks: &[Stack],
        streams: Streams,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        self.begin_warm(warm, grant.powers(), stacks, streams)
    }

    fn begin_warm(
        &self,
        warm: Warm,
        powers: &Powers,
        stacks: &[Stack],
        mut streams: Streams,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        let Warm { id, blueprint, guarded, facts, proven, first } = warm;
        let api = &self.connected().map_err(crate::failure)?.api;
        let wanted = plan::plan(powers, stacks, &facts).map_err(SetupFailure::from)?;
        let mut begin = || {
            if waiting(&wanted.container) != waiting(&blueprint.container) {
                return Err(Unusable::Refused {
                    wall: Wall::Files,
                    message: "the container was raised for other powers".to_owned(),
                    fix: "raise one for these".to_owned(),
                });
            }
            let failed = |source| Unusable::Failed { what: "pass its output on".to_owned(), source };
            let signals = sys::signals::descriptor().map_err(failed)?;
            let container = &wanted.container;
            let words = container.entrypoint.iter().chain(&container.cmd).map(String::as_str).collect();
            let exec = api.exec(
                &id,
                &Further {
                    attach_stdin: Yes,
                    attach_stdout: Yes,
                    attach_stderr: Yes,
                    tty: container.tty,
                    user: container.user,
                    env: &container.env,
                    working_dir: &container.working_dir,
                    cmd: words,
                },
            )?;
            if let Some(witness) = &mut streams.witness {
                witness.armed(&proven);
            }
            let started = Instant::now();
            let connection = api.begin_exec(&exec, container.tty)?;
            let line = launch::line(connection, powers, &mut streams).map_err(failed)?;
            Ok((exec, line, signals, started))
        };
        let (exec, line, signals, started) = match begin() {
            Ok(begun) => begun,
            Err(error) => return Err(launch::undone(api, guarded, error).into()),
        };
        let Guarded { charge, keeper, .. } = guarded;
        let raised = Raised {
            api: api.clone(),
            id,
            line,
            wait: None,
            exec: Some(exec),
            stats: None,
            witness: streams.witness.take(),
            outside: None,
            signals,
            started,
            clock: Clock::new(false),
            charge,
            keeper: Some(keeper),
            terminal: powers.command.terminal,
            handle: sys::process::open(first).ok(),
            first,
        };
        let (powers, enforcement) = (powers.clone(), self.walls(powers));
        Ok(Box::new(Supervised { raised, powers, enforcement, search_path: facts.image.search_path }))
    }
}

/// The same container without the payload: what one that waits is made from, and what it is compared by.
fn waiting(container: &Configuration) -> Configuration {
    let mut waiting = container.clone();
    waiting.entrypoint = vec!["sleep".to_owned()];
    waiting.cmd = vec![i32::MAX.to_string()];
    waiting.working_dir = "/".to_owned();
    (waiting.env, waiting.tty, waiting.open_stdin, waiting.stdin_once) = (Vec::new(), false, false, false);
    waiting.attach_stdin = false;
    waiting
}

/// Powers for a program that does nothing, in belljar's own image.
pub fn trivial() -> Powers {
    Powers {
        command: model::Command {
            program: "true".into(),
            arguments: vec!["true".into()],
            directory: "/".into(),
            terminal: false,
        },
        files: model::Files {
            ground: model::Ground::Image { name: None, runtime: None, pull: false },
            places: Vec::new(),
            links: Vec::new(),
            hidden: Vec::new(),
            home: "/home/user".into(),
            user_name: "user".to_owned(),
        },
        environment: Vec::new(),
        network: Network::Closed,
        limits: model::Limits {
            wall_time: Some(Duration::from_secs(60)),
            millicpus: None,
            cpu_time: None,
            memory: 256 << 20,
            processes: 64,
            disk: 64 << 20,
            inodes: 4096,
            open_files: 1024,
            largest_file: 64 << 20,
            output: None,
        },
    }
}

/// How long one run takes in a container that waits, from the word to go to the answer, its removal apart; and how long
/// raising one takes. Nothing of it is a sandbox for anybody: no policy was asked.
pub fn cold_and_warm(powers: &Powers) -> Result<(Duration, Duration), SetupFailure> {
    let backend = Container::new(None);
    // The engine and the image are known to whoever keeps a pool.
    backend.image(powers)?;
    let begun = Instant::now();
    let warm = backend.raise_warm(powers, &[])?;
    let raised = begun.elapsed();
    let begun = Instant::now();
    let outcome = backend.begin_warm(warm, powers, &[], Streams::default())?.supervise();
    match outcome {
        Outcome::Ran(finished) => Ok((raised, finished.usage.wall_time.min(begun.elapsed()))),
        other => Err(SetupFailure {
            wall: None,
            message: format!("it did not run: {other:?}"),
            fix: String::new(),
            layers: false,
        }),
    }
}
