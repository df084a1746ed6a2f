//! Follows a blueprint: groups, owners, fork, maps, and then the word to go.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use guest::step::Source;
use guest::wire::{self, Report};
use guest::{Orders, Payload, Step};
use model::{Powers, SetupFailure, Wall};
use rustix::fs::{FileType, OFlags};
use sys::identity::{self, Mapping};
use sys::process::{self, Alone, Forked, Strings};
use sys::{mounts, signals};

use crate::groups::Group;
use crate::host::{Host, Identity};
use crate::output::Pumps;
use crate::plan::Blueprint;

/// A raised sandbox: the first process runs, every wall is up, and the payload is being started.
pub struct Raised {
    pub pid: i32,
    pub handle: OwnedFd,
    pub wire: OwnedFd,
    pub listener: Option<OwnedFd>,
    pub terminal: Option<OwnedFd>,
    pub group: Option<Group>,
    pub pumps: Pumps,
    pub signals: OwnedFd,
    pub mask: signals::Mask,
    pub started: Instant,
    pub clock: Clock,
}

/// How long each part took, where somebody wants to know.
pub struct Clock {
    last: Option<Instant>,
    pub parts: Vec<(String, u64)>,
}

impl Clock {
    fn new(running: bool) -> Clock {
        Clock { last: running.then(Instant::now), parts: Vec::new() }
    }

    /// `part` is what happened since the last call.
    pub fn lap(&mut self, part: &str) {
        if let Some(last) = &mut self.last {
            let now = Instant::now();
            self.parts.push((part.to_owned(), (now - *last).as_nanos() as u64));
            *last = now;
        }
    }
}

pub fn launch(mut blueprint: Blueprint, powers: &Powers, host: &Host, trace: bool) -> Result<Raised, SetupFailure> {
    let started = Instant::now();
    let mut clock = Clock::new(trace);
    check_descriptors()?;
    let alone = Alone::prove().map_err(|error| failure(None, error.to_string(), "please report this"))?;
    let setup = |what: &'static str| {
        move |error: io::Error| failure(None, format!("cannot {what}: {error}"), "see `belljar doctor`")
    };
    let pumps =
        Pumps::prepare(powers.limits.output, powers.command.terminal).map_err(setup("make pipes for the output"))?;
    let orders_payload = payload(powers).map_err(setup("pass on the command"))?;
    let mask = signals::block_all().map_err(setup("block signals"))?;
    let signals = signals::descriptor().map_err(setup("listen for signals"))?;
    clock.lap("parent: begin");
    let group = match &blueprint.ceiling {
        None => None,
        Some(ceiling) => Group::make(&host.groups, ceiling, alone)
            .map_err(|error| failure(Some(Wall::Memory), error.to_string(), "see `belljar doctor`"))?,
    };
    let undo = |group: Option<Group>, failed: SetupFailure| match group.map(Group::remove) {
        None | Some(Ok(())) => failed,
        Some(Err(error)) => SetupFailure { message: format!("{}; and {error}", failed.message), ..failed },
    };
    clock.lap("parent: make the control group");
    match prepare(&mut blueprint, host, alone) {
        Ok(()) => {}
        Err(failed) => return Err(undo(group, failed)),
    }
    clock.lap("parent: open binds");
    if let Some(processors) = blueprint.processors
        && let Err(error) = restrict_to(processors)
    {
        return Err(undo(
            group,
            failure(Some(Wall::Cpu), format!("cannot set the affinity: {error}"), "leave out `--cpus`"),
        ));
    }
    let (ours, theirs) = match wire::pair() {
        Ok(pair) => pair,
        Err(error) => return Err(undo(group, setup("make a socket pair")(error))),
    };
    let names: Vec<String> = if trace { blueprint.steps.iter().map(Step::to_string).collect() } else { Vec::new() };
    let orders = Orders { steps: blueprint.steps, payload: orders_payload, mask, trace };
    let birthplace = group.as_ref().and_then(Group::birthplace);
    let (pid, handle) = match process::fork_into(alone, blueprint.namespaces, birthplace) {
        Ok(Forked::Child) => {
            pumps.enter_child();
            drop(ours);
            guest::first::follow(&orders, theirs, alone)
        }
        Ok(Forked::Parent { pid, handle }) => (pid, handle),
        Err(error) => return Err(undo(group, cannot_fork(&error))),
    };
    drop(theirs);
    clock.lap("parent: fork into namespaces");
    let mut raised = Raised {
        pid,
        handle,
        wire: ours,
        listener: None,
        terminal: None,
        group,
        pumps: pumps.enter_parent(),
        signals,
        mask,
        started,
        clock,
    };
    match arm(&mut raised, &orders.steps, blueprint.maps, &names) {
        Ok(()) => Ok(raised),
        Err(failed) => Err(raised.abandon(failed)),
    }
}

/// Writes what only the parent can, gives the word, and waits until every wall is up.
fn arm(
    raised: &mut Raised,
    steps: &[Step],
    maps: Option<(Mapping, Mapping)>,
    names: &[String],
) -> Result<(), SetupFailure> {
    if matches!(steps.first(), Some(Step::AwaitParent)) {
        if let Some((user, group)) = maps {
            identity::map_other(raised.pid, user, group).map_err(|error| {
                failure(Some(Wall::User), format!("cannot map the payload's user: {error}"), "see `belljar doctor`")
            })?;
        }
        if let Some(group) = &raised.group {
            group
                .admit(raised.pid)
                .map_err(|error| failure(Some(Wall::Memory), error.to_string(), "see `belljar doctor`"))?;
        }
        raised.clock.lap("parent: write maps, admit to the group");
        wire::release(raised.wire.as_fd()).map_err(|error| {
            failure(None, format!("the sandbox's first process is gone: {error}"), "see `belljar doctor`")
        })?;
    }
    loop {
        let lost =
            |why: String| failure(None, format!("the sandbox's first process was lost: {why}"), "see `belljar doctor`");
        match wire::receive(raised.wire.as_fd()) {
            Ok(Some((Report::Done { step, nanoseconds }, _))) => {
                let name = names.get(step as usize).cloned().unwrap_or_default();
                raised.clock.parts.push((name, nanoseconds));
            }
            Ok(Some((Report::Failed { step, errno }, _))) => {
                return Err(step_failed(steps.get(step as usize), errno));
            }
            Ok(Some((Report::Armed { filtered, terminal }, descriptors))) => {
                let mut descriptors = descriptors.into_iter();
                raised.listener = if filtered { descriptors.next() } else { None };
                raised.terminal = if terminal { descriptors.next() } else { None };
                // A wall that says it stands and hands over no proof does not stand.
                if raised.listener.is_none() || terminal != raised.terminal.is_some() {
                    return Err(failure(
                        Some(Wall::SystemCalls),
                        "the call filter's listener did not arrive".to_owned(),
                        "see `belljar doctor`",
                    ));
                }
                raised.clock.lap("parent: wait until all walls are up (the child's steps, and reports of them)");
                return Ok(());
            }
            Ok(Some((report, _))) => return Err(lost(format!("unexpected {report:?}"))),
            Ok(None) => return Err(lost("it ended before the walls were up".to_owned())),
            Err(error) => return Err(lost(error.to_string())),
        }
    }
}

impl Raised {
    /// Ends whatever has begun and removes it.
    fn abandon(self, failed: SetupFailure) -> SetupFailure {
        let Raised { pid, handle, group, .. } = self;
        let ended = process::signal(handle.as_fd(), 9)
            .and_then(|()| process::wait(pid, false).map(drop))
            .and_then(|()| group.map_or(Ok(()), Group::remove));
        match ended {
            Ok(()) => failed,
            Err(error) => SetupFailure {
                message: format!("{}; and it could not be cleaned up: {error}", failed.message),
                ..failed
            },
        }
    }
}

/// A folder passed as input or output would be a door out of the root.
fn check_descriptors() -> Result<(), SetupFailure> {
    for (fd, name) in
        [(rustix::stdio::stdin(), "input"), (rustix::stdio::stdout(), "output"), (rustix::stdio::stderr(), "error")]
    {
        let Ok(stat) = rustix::fs::fstat(fd) else {
            continue;
        };
        let only_a_path = rustix::fs::fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::PATH));
        if FileType::from_raw_mode(stat.st_mode).is_dir() || only_a_path {
            return Err(failure(
                Some(Wall::Inheritance),
                format!("standard {name} is a folder, which would be a way out of the sandbox"),
                "redirect it from or to a file, a pipe or /dev/null",
            ));
        }
    }
    Ok(())
}

/// As root: opens each bind here, with owners on disk seen as the payload.
fn prepare(blueprint: &mut Blueprint, host: &Host, alone: Alone) -> Result<(), SetupFailure> {
    let Identity::Root { payload } = host.identity else {
        return Ok(());
    };
    let mut namespaces: Vec<((u32, u32), OwnedFd)> = Vec::new();
    for prepared in &blueprint.prepared {
        let Some(Step::Bind { source: Source::Prepared { path, tree }, attributes, .. }) =
            blueprint.steps.get_mut(prepared.step)
        else {
            continue;
        };
        let mut open = || -> io::Result<OwnedFd> {
            let copy = mounts::copy_tree(path)?;
            match prepared.owner {
                None => mounts::confine(copy.as_fd(), *attributes)?,
                Some(owner) => {
                    if !namespaces.iter().any(|(known, _)| *known == owner) {
                        let map = |inside| Mapping { inside, outside: payload };
                        namespaces.push((owner, identity::namespace_mapping(map(owner.0), map(owner.1), alone)?));
                    }
                    let namespace =
                        namespaces.iter().find(|(known, _)| *known == owner).map(|(_, namespace)| namespace);
                    let namespace = namespace.ok_or(io::ErrorKind::NotFound)?;
                    mounts::confine_and_map(copy.as_fd(), *attributes, namespace.as_fd())?;
                }
            }
            Ok(copy)
        };
        *tree = Some(open().map_err(|error| {
            failure(
                Some(Wall::Files),
                format!("cannot open `{}` for the sandbox: {error}", path.to_string_lossy()),
                "its filesystem may not support mapped owners; use a workspace on ext4, xfs, btrfs or tmpfs",
            )
        })?);
    }
    Ok(())
}

fn restrict_to(processors: u32) -> io::Result<()> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let mut fewer = rustix::thread::CpuSet::new();
    let chosen = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).take(processors as usize);
    chosen.for_each(|cpu| fewer.set(cpu));
    Ok(rustix::thread::sched_setaffinity(None, &fewer)?)
}

fn payload(powers: &Powers) -> io::Result<Payload> {
    let string = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| io::Error::other("it has a zero byte in it"));
    let arguments: io::Result<Vec<_>> = powers.command.arguments.iter().map(|argument| string(argument)).collect();
    let environment: io::Result<Vec<_>> = powers
        .environment
        .iter()
        .map(|(name, value)| {
            let mut entry = name.clone();
            entry.push("=");
            entry.push(value);
            string(&entry)
        })
        .collect();
    Ok(Payload {
        program: string(powers.command.program.as_os_str())?,
        arguments: Strings::new(arguments?),
        environment: Strings::new(environment?),
        directory: string(powers.command.directory.as_os_str())?,
        terminal: powers.command.terminal,
    })
}

fn cannot_fork(error: &io::Error) -> SetupFailure {
    failure(Some(Wall::User), format!("this host gives no user namespaces: {error}"), crate::assess::USER_NAMESPACES)
}

fn step_failed(step: Option<&Step>, errno: i32) -> SetupFailure {
    let error = io::Error::from_raw_os_error(errno);
    let Some(step) = step else {
        return failure(None, format!("an unknown step failed: {error}"), "see `belljar doctor`");
    };
    let wall = match step {
        Step::AwaitParent | Step::DieWithParent | Step::AdoptOrphans => Wall::CleanUp,
        Step::MapSelf { .. } | Step::Become { .. } | Step::EnterUser { .. } => Wall::User,
        Step::HideControlGroups => Wall::ControlGroups,
        Step::KeepMountsPrivate
        | Step::NewRoot { .. }
        | Step::Directory { .. }
        | Step::File { .. }
        | Step::Link { .. }
        | Step::Bind { .. }
        | Step::Scratch { .. }
        | Step::Overlay { .. }
        | Step::Hide { .. }
        | Step::Proc { .. }
        | Step::Terminals { .. }
        | Step::SealRoot
        | Step::ChangeRoot => Wall::Files,
        Step::Hostname(_) => Wall::Hostname,
        Step::RaiseLoopback => Wall::Network,
        Step::NewSession | Step::OwnTerminal => Wall::Terminal,
        Step::NewKeyring | Step::ForbidInspection => Wall::Inheritance,
        Step::DropCapabilities { .. } | Step::ForbidNewPrivileges => Wall::Privileges,
        Step::Lower(..) => Wall::OpenFiles,
        Step::Restrict(_) => Wall::Landlock,
        Step::Filter(_) => Wall::SystemCalls,
    };
    let fix = match step {
        Step::Proc { .. } => "this looks like a container that masks /proc; start it with an unmasked one",
        Step::NewRoot { .. } | Step::KeepMountsPrivate | Step::MapSelf { .. } => crate::assess::USER_NAMESPACES,
        Step::Bind { .. } => "check that the path exists, that you may read it, and that nobody replaces it meanwhile",
        _ => "see `belljar doctor`",
    };
    failure(Some(wall), format!("the step `{step}` failed: {error}"), fix)
}

fn failure(wall: Option<Wall>, message: String, fix: &str) -> SetupFailure {
    SetupFailure { wall, message, fix: fix.to_owned() }
}
