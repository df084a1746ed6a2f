//! Follows a blueprint: somebody who cleans up, volumes, the container, its streams, and then the word to go.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use model::{Outside, Powers, Streams, Wall, Witness};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use sys::signals::Mask;

use crate::api::{Api, Made, Pending};
use crate::configuration::{Configuration, Network};
use crate::doors;
use crate::facts::{Engine, Facts};
use crate::keeper::{Charge, Keeper};
use crate::plan::Blueprint;
use crate::proof;
use crate::streams::{Line, Out, are_one};
use crate::trouble::{Result, Unusable};
use crate::work;

/// A container that runs.
pub struct Raised {
    pub api: Api,
    pub id: String,
    pub line: Line,
    /// Answers when it has ended; nothing where it was there before, and stays until we remove it.
    pub wait: Option<Pending>,
    /// The payload is a further program in it.
    pub exec: Option<String>,
    pub stats: Option<Pending>,
    pub witness: Option<Box<dyn Witness>>,
    pub outside: Option<Box<dyn Outside>>,
    pub signals: OwnedFd,
    pub started: Instant,
    pub clock: Clock,
    pub charge: Charge,
    pub keeper: Option<Keeper>,
    pub terminal: bool,
    /// Its first process, to end it without the engine.
    pub handle: Option<OwnedFd>,
    pub first: i32,
}

/// How long each part took, where somebody wants to know.
pub struct Clock {
    last: Option<Instant>,
    pub parts: Vec<(String, u64)>,
}

impl Clock {
    pub fn new(running: bool) -> Clock {
        Clock { last: running.then(Instant::now), parts: Vec::new() }
    }

    pub fn lap(&mut self, what: &str) {
        if let Some(last) = &mut self.last {
            let now = Instant::now();
            let took = u64::try_from((now - *last).as_nanos()).unwrap_or(u64::MAX);
            self.parts.push((what.to_owned(), took));
            *last = now;
        }
    }
}

/// Everything but the word to go can fail without anything of the payload having run; what was made is then removed.
pub fn launch(
    api: &Api,
    blueprint: &Blueprint,
    powers: &Powers,
    facts: &Facts,
    streams: Streams,
    trace: bool,
) -> Result<Raised> {
    let clock = Clock::new(trace);
    let failed = |source| Unusable::Failed { what: "read signals".to_owned(), source };
    let Guarded { charge, keeper, before } = guarded(api, blueprint, facts)?;
    let raised = sys::signals::descriptor()
        .map_err(failed)
        .and_then(|signals| raise(api, blueprint, powers, facts, streams, clock, (signals, &charge)));
    match raised {
        Ok(raised) => Ok(Raised { keeper: Some(keeper), ..raised }),
        Err(error) => Err(undone(api, Guarded { charge, keeper, before }, error)),
    }
}

/// What is made, and somebody who removes all of it, whatever becomes of us.
pub struct Guarded {
    pub charge: Charge,
    pub keeper: Keeper,
    /// Which signals were blocked before all were.
    before: Mask,
}

pub fn guarded(api: &Api, blueprint: &Blueprint, facts: &Facts) -> Result<Guarded> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |source: io::Error| Unusable::Failed { what, source }
    };
    // From here on a signal waits until somebody reads it: none ends us between making something and knowing of it.
    let before = sys::signals::block_all().map_err(failed("block signals"))?;
    let charge = charge(blueprint, facts);
    let keeper = Keeper::start(api, &charge).map_err(failed("start somebody who cleans up"))?;
    Ok(Guarded { charge, keeper, before })
}

/// Removes what was made before something went wrong.
pub fn undone(api: &Api, guarded: Guarded, error: Unusable) -> Unusable {
    let Guarded { charge, keeper, before } = guarded;
    // Where it can't be removed, the keeper tries once more: it hears of our end and of nothing else.
    if charge.remove(api).is_ok()
        && let Err(source) = keeper.dismiss()
    {
        return Unusable::Failed { what: "dismiss who cleans up".to_owned(), source };
    }
    // What comes next, such as copying a workspace, can be interrupted again.
    if let Err(source) = sys::signals::restore(&before) {
        return Unusable::Failed { what: "unblock signals".to_owned(), source };
    }
    error
}

fn charge(blueprint: &Blueprint, facts: &Facts) -> Charge {
    let mut containers = vec![name(&facts.id)];
    containers.extend(blueprint.gated.then(|| crate::plan::network_name(&facts.id)));
    let volumes = blueprint.volumes.iter().map(|volume| volume.name.clone()).collect();
    let work = facts.work.as_ref().filter(|_| !blueprint.volumes.is_empty());
    let work = work.map(|base| work::of_run(base, &facts.id));
    Charge { containers, volumes, folder: facts.trust.clone(), work }
}

pub fn name(id: &str) -> String {
    format!("belljar-{id}")
}

fn raise(
    api: &Api,
    blueprint: &Blueprint,
    powers: &Powers,
    facts: &Facts,
    mut streams: Streams,
    mut clock: Clock,
    (signals, charge): (OwnedFd, &Charge),
) -> Result<Raised> {
    let Blueprint { volumes, container, gated, handed_over: _ } = blueprint;
    prepare(api, blueprint, facts)?;
    clock.lap("engine: make volumes");
    let doors = match gated {
        true => Some(network(api, container, powers, facts, &streams)?),
        false => None,
    };
    clock.lap("engine: make a network, open doors in it");
    let Made { id, warnings } = api.create(&name(&facts.id), container)?;
    nothing_left_out(warnings, facts)?;
    clock.lap("engine: make the container");
    let connection = api.attach(&id, true)?;
    let wait = api.wait(&id)?;
    let line = line(connection, powers, &mut streams)
        .map_err(|source| Unusable::Failed { what: "pass its output on".to_owned(), source })?;
    clock.lap("engine: attach");
    let started = Instant::now();
    api.start(&id).map_err(unmountable(volumes))?;
    clock.lap("engine: start");
    let state = api.inspect(&id)?.state;
    let (handle, proven) = proof::look(&state, &id, container, facts)?;
    if let (Some(outside), Some(doors)) = (&mut streams.outside, doors) {
        let taken = outside.takes(doors, state.pid);
        taken.map_err(|trouble| Unusable::Refused {
            wall: Wall::Network,
            message: trouble.message,
            fix: trouble.fix,
        })?;
    }
    if let Some(witness) = &mut streams.witness {
        witness.armed(&proven);
    }
    clock.lap("parent: look whether the walls stand");
    Ok(Raised {
        api: api.clone(),
        id,
        line,
        wait: Some(wait),
        exec: None,
        stats: None,
        witness: streams.witness.take(),
        outside: streams.outside.take(),
        signals,
        started,
        clock,
        charge: charge.clone(),
        keeper: None,
        terminal: powers.command.terminal,
        handle,
        first: state.pid,
    })
}

/// A limit that the engine said it has, and now says it will not hold: what it has is known from before, and may have changed.
pub fn nothing_left_out(warnings: Option<Vec<String>>, facts: &Facts) -> Result<()> {
    let Engine { memory, processes, processors, .. } = facts.engine;
    // Docker's word for it, and Podman's.
    let is_left_out = |warning: &String| ["discarded", "ignored"].iter().any(|word| warning.contains(word));
    let left_out = warnings.into_iter().flatten().find(is_left_out);
    match left_out {
        Some(warning) if memory && processes && processors => Err(Unusable::Refused {
            wall: Wall::Memory,
            message: format!("the engine does not hold a limit: {warning}"),
            fix: crate::assess::CONTROL_GROUPS.to_owned(),
        }),
        _ => Ok(()),
    }
}

pub fn line(
    connection: (std::os::unix::net::UnixStream, Vec<u8>),
    powers: &Powers,
    streams: &mut Streams,
) -> io::Result<Line> {
    let (stdout, stderr) = (rustix::stdio::stdout(), rustix::stdio::stderr());
    let limit = powers.limits.output;
    let input = std::mem::take(&mut streams.input);
    if powers.command.terminal {
        let output = Out::new(stdout, streams.terminal.take(), None, true);
        return Line::new(connection, false, output, None, input);
    }
    let output = Out::new(stdout, streams.output.take(), limit, false);
    let both = !streams.apart && are_one(stdout, stderr);
    let error = (!both).then(|| Out::new(stderr, streams.error.take(), limit, false));
    Line::new(connection, true, output, error, input)
}

/// What a container is made over: copies, folders to work in, volumes.
pub fn prepare(api: &Api, blueprint: &Blueprint, facts: &Facts) -> Result<()> {
    let Blueprint { volumes, container, gated: _, handed_over } = blueprint;
    let (user, group) = container.user.numbers();
    for tree in handed_over {
        hand_over(tree, user, group)
            .map_err(|source| Unusable::Failed { what: format!("give `{}` to the payload", tree.display()), source })?;
    }
    if let (Some(base), false) = (&facts.work, volumes.is_empty()) {
        work::take(base, &facts.id, volumes.len())
            .map_err(|source| Unusable::Failed { what: format!("use `{}`", base.display()), source })?;
    }
    volumes.iter().try_for_each(|volume| api.create_volume(volume))
}

/// A container that does nothing but have a network, without anything in it; and doors in that network.
fn network(
    api: &Api,
    container: &Configuration,
    powers: &Powers,
    facts: &Facts,
    streams: &Streams,
) -> Result<model::Doors> {
    let refused = |message: String| Unusable::Refused {
        wall: Wall::Network,
        message,
        fix: "see `belljar doctor`, or run without a network: `--no-net`".to_owned(),
    };
    let model::Network::Gated(gated) = &powers.network else {
        return Err(refused("there is no network to be opened".to_owned()));
    };
    if streams.outside.is_none() {
        return Err(refused("there is nobody outside who takes what goes out".to_owned()));
    }
    let waiting = waiting(container, facts);
    let name = crate::plan::network_name(&facts.id);
    let id = api.create(&name, &waiting)?.id;
    api.start(&id)?;
    let first = api.inspect(&id)?.state.pid;
    if first <= 0 {
        return Err(refused("the container that keeps the network open has ended".to_owned()));
    }
    doors::open(first, &gated.loopback)
        .map_err(|error| refused(format!("the container's network can't be entered: {error}")))
}

/// As hardened as the payload's, with belljar's own image, and nothing of the grant in it.
fn waiting(container: &Configuration, facts: &Facts) -> Configuration {
    let mut waiting = container.clone();
    waiting.image.clone_from(&facts.waiting_image);
    waiting.entrypoint = vec!["/bin/busybox".to_owned()];
    // Without an end; it is removed with the payload.
    waiting.cmd = vec!["tail".to_owned(), "-f".to_owned(), "/dev/null".to_owned()];
    waiting.working_dir = "/".to_owned();
    waiting.hostname = Some(crate::plan::HOSTNAME);
    (waiting.env, waiting.tty, waiting.open_stdin, waiting.stdin_once) = (Vec::new(), false, false, false);
    waiting.attach_stdin = false;
    waiting.host_config.network_mode = Network::None;
    waiting.host_config.mounts = Vec::new();
    waiting.host_config.tmpfs.clear();
    waiting.host_config.pids_limit = 8;
    waiting.host_config.memory = 64 << 20;
    waiting.host_config.memory_swap = 64 << 20;
    waiting.host_config.shm_size = 1 << 20;
    waiting.host_config.runtime = None;
    waiting
}

/// Where it is the layers that can't be mounted, copies can do instead.
fn unmountable(volumes: &[crate::configuration::Volume]) -> impl FnOnce(Unusable) -> Unusable {
    let any = !volumes.is_empty();
    move |error| match &error {
        Unusable::Said { said, .. } if any && said.contains("mount") && said.contains("overlay") => {
            Unusable::Layers { place: PathBuf::from("the workspace"), why: "the engine can't mount layers there" }
        }
        _ => error,
    }
}

/// Gives a copy to whoever the payload is. Only ours: nothing is followed out of it.
fn hand_over(tree: &Path, user: u32, group: u32) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut waiting = vec![rustix::fs::open(tree, flags, Mode::empty())?];
    while let Some(folder) = waiting.pop() {
        rustix::fs::fchown(&folder, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
                true => waiting.push(rustix::fs::openat(&folder, name, flags, Mode::empty())?),
                false => {
                    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
                    rustix::fs::chownat(&folder, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
                }
            }
        }
    }
    Ok(())
}
