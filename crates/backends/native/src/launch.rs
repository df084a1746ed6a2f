//! Follows a blueprint: groups, owners, fork, maps, and then the word to go.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use guest::wire::{self, Report};
use guest::{Orders, Payload, Step, Trial};
use model::{Doors, Handed, Network, Outlet, Outside, Powers, SetupFailure, Streams, Trouble, Wall, Witness};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use sys::identity::{self, Mapping};
use sys::keeper::Keeper;
use sys::process::{self, Alone, Forked, Namespaces, Strings, Together};
use sys::seccomp::{self, Answer};
use sys::{mounts, signals};

use crate::ahead::{Begun, Expected};
use crate::calls;
use crate::carrier::{self, Carrier, Ties};
use crate::groups::{Ceiling, Group};
use crate::host::Host;
use crate::input::Input;
use crate::leavings;
use crate::measure::Disk;
use crate::output::Pumps;
use crate::plan::{Blueprint, Groundwork, Tree};

/// A raised sandbox: the first process runs, every wall is up, and the payload is being started.
pub struct Raised {
    pub pid: i32,
    pub handle: OwnedFd,
    pub wire: OwnedFd,
    pub listener: Option<OwnedFd>,
    pub terminal: Option<OwnedFd>,
    /// What is shown of it passes through this.
    pub screen: Option<Box<dyn Outlet>>,
    /// Is told of every program that is started.
    pub witness: Option<Box<dyn Witness>>,
    /// Takes what goes out to the network.
    pub outside: Option<Box<dyn Outside>>,
    pub group: Option<Group>,
    /// What may grow, as it was before the payload began.
    pub disks: Vec<Disk>,
    pub pumps: Pumps,
    pub input: Input,
    pub signals: OwnedFd,
    pub started: Instant,
    pub clock: Clock,
    /// No pid namespace ends the rest with the first process: we must.
    pub sweep: bool,
    /// Walls that were tried from inside, and held.
    pub proven: Vec<Wall>,
    /// Where the first process behind a carrier reports, and where it is told of signals.
    pub behind: Option<(OwnedFd, OwnedFd)>,
    /// Who the payload is on the host, where that is not who we are.
    pub owner: Option<(u32, u32)>,
    /// Namespaces and rules, as `wire::OFFERED` names them, for who comes in later.
    pub offered: Vec<OwnedFd>,
    /// Its mounts, which are taken apart when the last descriptor of them is closed. Nothing where there are none of its own, where a
    /// keeper has them, or where we may not see them: then the end of its last process waits for that.
    pub mounts: Option<OwnedFd>,
    /// Has the mounts where there is no control group whose keeper could have them.
    pub keeper: Option<Keeper>,
    /// Somebody is to come in.
    pub offers: bool,
    /// And did: their number, as we see it.
    pub guest: Option<i32>,
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

/// What is started once all walls are up.
pub enum Starts<'a> {
    Command,
    Carrier(&'a Carrier, Ties),
    /// The first process stays, and waits for orders.
    Nothing,
    /// Code of ours, which works on files.
    Files(Box<guest::files::Operation>),
}

/// `expected`: what was done for it before it was known, which is used if it fits.
pub fn launch(
    expected: Option<Expected>,
    blueprint: Blueprint,
    powers: &Powers,
    host: &Host,
    (streams, handed): (Streams, Handed),
    trace: bool,
    starts: Starts<'_>,
) -> Result<Raised, SetupFailure> {
    let started = Instant::now();
    let mut clock = Clock::new(trace);
    check_descriptors()?;
    let alone = Alone::prove().map_err(cannot("start from here"))?;
    let (ahead, together) = match expected {
        None => (None, None),
        Some(Expected::Begun(ahead)) => (Some(ahead), None),
        Some(Expected::Together(together)) => (None, Some(together)),
    };
    // Fewer processors are chosen from all of them.
    let together = together.filter(|_| blueprint.processors.is_none());
    // Descriptors of other numbers than ours would be none that a carrier knows.
    let ahead = ahead.filter(|_| !matches!(starts, Starts::Carrier(..))).and_then(|ahead| ahead.fit_for(&blueprint));
    // A child is born into a group of the unified hierarchy. Into an older one it goes by itself, later: so the time
    // that it takes to make can pass while the child does other things.
    let early = host.groups.is_of_birth();
    let group =
        if early && ahead.is_none() { make_group(blueprint.ceiling.as_ref(), host, None, alone)? } else { None };
    clock.lap("parent: make the control group");
    let ends = || -> Result<_, SetupFailure> {
        let Streams { input, output, error, terminal, apart, witness, outside } = streams;
        let outside = match (&powers.network, outside) {
            (Network::Closed, _) => None,
            (Network::Gated(_), Some(outside)) => Some(outside),
            (Network::Gated(_), None) => return Err(nobody_outside()),
        };
        // What is started later has its own.
        let straight = powers.command.terminal || matches!(starts, Starts::Nothing);
        // What is told of files has a measure of its own: cut, it would be worth nothing.
        let limit = powers.limits.output.filter(|_| !matches!(starts, Starts::Files(_)));
        let pumps = Pumps::prepare(limit, straight, output, error, apart);
        let pumps = pumps.map_err(cannot("make pipes"))?;
        let input = match starts {
            Starts::Files(_) => Input::only(input),
            _ => Input::prepare(straight, input),
        };
        let input = input.map_err(cannot("make pipes"))?;
        let (payload, files, ties) = match starts {
            Starts::Nothing => (Ok(None), None, None),
            Starts::Files(operation) => (Ok(None), Some(*operation), None),
            Starts::Command => (payload(powers).map(Some), None, None),
            Starts::Carrier(carrier, ties) => {
                (carrier_as_payload(carrier, &ties, powers.command.terminal).map(Some), None, Some(ties))
            }
        };
        let payload = payload.map_err(cannot("pass on the command"))?;
        let mask = signals::block_all().map_err(cannot("block signals"))?;
        let signals = signals::descriptor().map_err(cannot("listen for signals"))?;
        Ok((pumps, terminal, witness, outside, input, (payload, files), ties, mask, signals))
    };
    let (pumps, screen, witness, outside, input, (payload, files), ties, mask, signals) = match ends() {
        Ok(ends) => ends,
        Err(failed) => return Err(undo(group, failed)),
    };
    clock.lap("parent: begin");

    let began = blueprint.processors.map_or(Ok(()), restrict_to).map_err(|error| of(Wall::Cpu, error.to_string()));
    if let Err(failed) = began {
        return Err(undo(group, failed));
    }
    let Blueprint { ground, trees, ceiling, written, processors: _, steps, trials } = blueprint;
    let Groundwork { namespaces, maps, steps: groundwork } = ground;
    let owner = maps.as_ref().map(|(user, group)| (user.outside, group.outside));
    let (walls, trials): (Vec<Wall>, Vec<Trial>) = trials.into_iter().unzip();
    if let Some((user, its_group)) = &maps
        && let Err(error) =
            pumps.give_to(user.outside, its_group.outside).and_then(|()| input.give_to(user.outside, its_group.outside))
    {
        return Err(undo(group, cannot("hand its pipes over")(error)));
    }
    // Never freed: after the fork that would only copy pages, the child's and ours, to throw them away.
    let handed = handed.wire;
    let beside = ahead.as_ref().and_then(|first| first.apart.as_ref()).map(|_| process::processor());
    let unhelped = together.is_some();
    let mut orders =
        ManuallyDrop::new(Orders { groundwork, steps, trials, payload, files, handed, mask, trace, beside, unhelped });
    let trees = ManuallyDrop::new(trees);
    let sweep = !namespaces.pid;
    if sweep && let Err(error) = process::adopt_orphans() {
        return Err(undo(group, of(Wall::CleanUp, format!("cannot adopt orphans: {error}"))));
    }
    // One that can't be told has no part in it.
    let ahead = ahead.filter(|first| {
        let streams = [input.childs(), pumps.output_of_child(), pumps.error_of_child()];
        first.wire().is_some_and(|wire| orders.tell(wire, streams).is_ok())
    });
    let was_ahead = ahead.is_some();
    // What was begun and not told anything went with its group.
    let group =
        if early && !was_ahead && group.is_none() { make_group(ceiling.as_ref(), host, None, alone)? } else { group };
    let first = match ahead {
        Some(first) => Ok(first),
        None => fork(&orders, namespaces, (&pumps, &input), group.as_ref(), alone),
    };
    let (pid, apart) = first.as_ref().map_or((0, None), |first| (first.pid, first.apart));
    let (handle, wire, group) = match first.map(Begun::hand_over) {
        Ok(Some((handle, wire, born_into))) => (handle, wire, born_into.or(group)),
        Ok(None) => {
            return Err(undo(group, of(Wall::Files, "the sandbox's first process is somebody else's".to_owned())));
        }
        Err(failed) => return Err(undo(group, failed)),
    };
    // The gifts are the child's from here on.
    let behind = ties.map(|ties| (ties.report, ties.tell));
    clock.lap("parent: fork into namespaces");
    let pumps = pumps.enter_parent();
    let input = input.enter_parent();
    let mut raised = Raised {
        pid,
        handle,
        wire,
        listener: None,
        terminal: None,
        screen,
        witness,
        outside,
        group,
        disks: Vec::new(),
        pumps,
        input,
        signals,
        started,
        clock,
        sweep,
        proven: walls,
        behind,
        owner,
        offered: Vec::new(),
        mounts: None,
        keeper: None,
        offers: false,
        guest: None,
    };
    let armed = maps.map_or(Ok(()), |maps| {
        if !was_ahead {
            map(&mut raised, maps)?;
        }
        open_trees(&mut raised, maps, &trees, alone)
    });
    let armed = armed.and_then(|()| {
        if namespaces.mount {
            let of_child = format!("/proc/{pid}/ns/mnt");
            raised.mounts = rustix::fs::open(of_child, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok();
        }
        if early
            && was_ahead
            && let Some(ceiling) = &ceiling
        {
            let group =
                raised.group.as_ref().ok_or_else(|| of(Wall::Memory, "it was born into no group".to_owned()))?;
            group.limit(ceiling).map_err(|error| of(Wall::Memory, error.to_string()))?;
            raised.clock.lap("parent: limit the control group, while the child builds its root");
        }
        if !early {
            let held = raised.mounts.as_ref().filter(|_| leavings::go_on_beside()).map(AsFd::as_fd);
            raised.group = make_group(ceiling.as_ref(), host, held, alone)?;
            if held.is_some() && raised.group.is_some() {
                raised.mounts = None;
            }
            raised.clock.lap("parent: make the control group, while the child builds its root");
            raised.group.as_ref().map_or(Ok(()), |group| open_doors(group, raised.wire.as_fd()))?;
        }
        if together.is_none() {
            raised.hand_mounts_over(alone);
        }
        Ok(())
    });
    // While the child builds its root, and we would only wait for it.
    let armed =
        armed.and_then(|()| raised.witness.as_mut().map_or(Ok(()), |witness| witness.raising().map_err(unwritten)));
    raised.clock.lap("parent: write the record, while the child builds its root");
    let armed = armed.and_then(|()| {
        raised.disks = written
            .iter()
            .map(|place| Disk::look(place, &powers.limits))
            .collect::<io::Result<_>>()
            .map_err(|error| of(Wall::Disk, format!("cannot see how large what it may write to is: {error}")))?;
        Ok(())
    });
    raised.clock.lap("parent: measure what may grow, while the child builds its root");
    let armed = armed.and_then(|()| await_walls(&mut raised, &orders));
    // What it starts may run wherever it was asked for.
    let armed = armed.and_then(|doors| {
        let everywhere = apart.as_ref().or(together.as_ref().map(Together::all));
        let freed = everywhere.map_or(Ok(()), |all| process::run_anywhere(pid, all));
        freed.map(|()| doors).map_err(|error| {
            of(Wall::Processes, format!("cannot let its first process run on every processor: {error}"))
        })
    });
    // Before the proof, in which the child waits for a word of ours: so nothing of the payload runs before somebody has them.
    let armed = armed.and_then(|doors| hand_out(&mut raised, doors));
    // Not the only end that hangs up if the child is gone: it must be no other's.
    drop(orders.handed.take());
    match armed.and_then(|()| await_proof(&mut raised, &orders.trials)) {
        Ok(()) => Ok(raised),
        Err(failed) => Err(raised.abandon(failed)),
    }
}

fn make_group(
    ceiling: Option<&Ceiling>,
    host: &Host,
    held: Option<BorrowedFd<'_>>,
    alone: Alone,
) -> Result<Option<Group>, SetupFailure> {
    let made = ceiling.map_or(Ok(None), |ceiling| Group::make(&host.groups, ceiling, held, alone));
    made.map_err(|error| of(Wall::Memory, error.to_string()))
}

/// Has a first process begin with all it needs to know.
fn fork(
    orders: &Orders,
    namespaces: Namespaces,
    (pumps, input): (&Pumps, &Input),
    group: Option<&Group>,
    alone: Alone,
) -> Result<Begun, SetupFailure> {
    let (wire, theirs) = wire::pair().map_err(cannot("make a socket pair"))?;
    match process::fork_into(alone, namespaces, group.and_then(Group::birthplace)) {
        Ok(Forked::Child) => {
            pumps.enter_child();
            input.enter_child();
            drop(wire);
            guest::first::follow(orders, theirs, alone)
        }
        Ok(Forked::Parent { pid, handle }) => Ok(Begun::new(pid, handle, wire)),
        Err(error) => Err(cannot_fork(&error)),
    }
}

/// As root: writes the child's maps.
fn map(raised: &mut Raised, (user, group): (Mapping, Mapping)) -> Result<(), SetupFailure> {
    identity::map_other(raised.pid, user, group)
        .map_err(|error| of(Wall::User, format!("cannot map the payload's user: {error}")))?;
    unless_gone(wire::release(raised.wire.as_fd()))?;
    raised.clock.lap("parent: write maps");
    Ok(())
}

/// As root: opens what is to be mounted in the child's root while it builds that.
fn open_trees(
    raised: &mut Raised,
    (user, group): (Mapping, Mapping),
    trees: &[Tree],
    alone: Alone,
) -> Result<(), SetupFailure> {
    let child = format!("/proc/{}/ns/user", raised.pid);
    let of_root = rustix::fs::open(child, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| of(Wall::User, format!("cannot open the sandbox's user namespace: {error}")))?;
    // The sandbox's own namespace sees root's files as the payload's; other owners need a namespace each.
    let mut owners = Owners { payload: user.outside, known: vec![((user.inside, group.inside), of_root)] };
    let mut opened = Vec::with_capacity(trees.len());
    for tree in trees {
        opened.push(open_tree(tree, &mut owners, alone).map_err(|error| SetupFailure {
            wall: Some(Wall::Files),
            message: format!("cannot open `{}` for the sandbox: {error}", tree.from.path().to_string_lossy()),
            fix: "its filesystem may not support mapped owners; use ext4, xfs, btrfs or tmpfs".to_owned(),
            layers: false,
        })?);
    }
    unless_gone(wire::send_descriptors(raised.wire.as_fd(), &opened))?;
    raised.clock.lap("parent: open binds, while the child builds its root");
    Ok(())
}

/// Lets the child into groups of the older kind.
fn open_doors(group: &Group, wire: BorrowedFd<'_>) -> Result<(), SetupFailure> {
    let doors = group.entrances().map_err(|error| of(Wall::Memory, error.to_string()))?;
    unless_gone(wire::send_descriptors(wire, &doors))
}

/// A child that has gone says why on the same wire, and whoever listens for the walls will hear it.
fn unless_gone(sent: io::Result<()>) -> Result<(), SetupFailure> {
    match sent {
        Err(error) if !hung_up(&error) => Err(of(Wall::Files, format!("the sandbox's first process is gone: {error}"))),
        _ => Ok(()),
    }
}

fn hung_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// User namespaces through which the files of an owner are seen as the payload's.
struct Owners {
    payload: u32,
    known: Vec<((u32, u32), OwnedFd)>,
}

fn open_tree(tree: &Tree, owners: &mut Owners, alone: Alone) -> io::Result<OwnedFd> {
    let copy = tree.from.copy()?;
    let Some(owner) = tree.owner else {
        mounts::confine(copy.as_fd(), tree.attributes)?;
        return Ok(copy);
    };
    let namespace = match owners.known.iter().position(|(known, _)| *known == owner) {
        Some(at) => &owners.known[at].1,
        None => {
            let map = |inside| Mapping { inside, outside: owners.payload };
            let namespace = identity::namespace_mapping(map(owner.0), map(owner.1), alone)?;
            &owners.known.push_mut((owner, namespace)).1
        }
    };
    mounts::confine_and_map(copy.as_fd(), tree.attributes, namespace.as_fd())?;
    Ok(copy)
}

/// Hears of every step until all walls are up.
fn await_walls(raised: &mut Raised, orders: &Orders) -> Result<Doors, SetupFailure> {
    let lost = |why: String| of(Wall::Files, format!("the sandbox's first process was lost: {why}"));
    let mut before_its_last_words = true;
    loop {
        match wire::receive(raised.wire.as_fd()) {
            // Told first, and once, if it went without having read all of ours.
            Err(error) if before_its_last_words && hung_up(&error) => before_its_last_words = false,
            Ok(None) if before_its_last_words => before_its_last_words = false,
            Ok(Some((Report::Done { step, nanoseconds }, _))) => {
                let name = orders.step(step).map(Step::to_string).unwrap_or_default();
                raised.clock.parts.push((name, nanoseconds));
            }
            Ok(Some((Report::Failed { step, errno }, _))) => {
                return Err(step_failed(orders.step(step), errno));
            }
            Ok(Some((Report::Armed { filtered, terminal, offers, doors }, descriptors))) => {
                let mut descriptors = descriptors.into_iter();
                raised.listener = if filtered { descriptors.next() } else { None };
                raised.terminal = if terminal { descriptors.next() } else { None };
                // A wall that says it stands and hands over no proof does not stand.
                if raised.listener.is_none() || terminal != raised.terminal.is_some() {
                    return Err(of(Wall::SystemCalls, "the call filter's listener did not arrive".to_owned()));
                }
                let mut opened: Vec<OwnedFd> = descriptors.collect();
                if offers {
                    raised.offers = true;
                    raised.offered = opened.split_off((doors as usize).min(opened.len()));
                }
                if opened.len() != doors as usize {
                    return Err(of(Wall::Network, "some doors to the network did not arrive".to_owned()));
                }
                raised.clock.lap("parent: wait until all walls are up");
                return Ok(sorted(opened));
            }
            Ok(Some((report, _))) => return Err(lost(format!("unexpected {report:?}"))),
            Ok(None) if raised.group.as_ref().is_some_and(|group| group.out_of_memory_kills() > 0) => {
                return Err(failure(
                    Some(Wall::Memory),
                    "the memory limit is too small to start in".to_owned(),
                    "give it a few MiB more with `--memory`",
                ));
            }
            Ok(None) => return Err(lost("it ended before the walls were up".to_owned())),
            Err(error) => return Err(lost(error.to_string())),
        }
    }
}

/// As the first process hands them out: streams, names and long names, for each version of the protocol.
fn sorted(opened: Vec<OwnedFd>) -> Doors {
    let mut doors = Doors::default();
    let mut opened = opened.into_iter();
    while let (Some(streams), Some(names), Some(long_names)) = (opened.next(), opened.next(), opened.next()) {
        doors.streams.push(streams);
        doors.names.push(names);
        doors.long_names.push(long_names);
    }
    doors
}

/// Gives the doors to whoever stands outside. That there are some and nobody takes them, or the other way round, is no
/// network as it was granted.
fn hand_out(raised: &mut Raised, doors: Doors) -> Result<(), SetupFailure> {
    let pid = raised.pid;
    match (&mut raised.outside, doors.streams.is_empty()) {
        (None, true) => return Ok(()),
        (Some(outside), false) => {
            outside
                .takes(doors, pid)
                .map_err(|trouble| of(Wall::Network, format!("the gate is not there: {trouble}")))?;
        }
        (None, false) => return Err(nobody_outside()),
        (Some(_), true) => return Err(of(Wall::Network, "no door to the network was opened".to_owned())),
    }
    raised.clock.lap("parent: hand the doors out");
    Ok(())
}

pub fn nobody_outside() -> SetupFailure {
    failure(Some(Wall::Network), "nobody stands outside to take what goes out".to_owned(), "please report this")
}

/// Hears of every trial that was made inside, and answers the one that must be asked about.
fn await_proof(raised: &mut Raised, trials: &[Trial]) -> Result<(), SetupFailure> {
    let lost = |why: String| of(Wall::SystemCalls, format!("the walls could not be tried from inside: {why}"));
    let Some(listener) = &raised.listener else { return Err(lost("there is no filter".to_owned())) };
    loop {
        let mut sources = [
            PollFd::from_borrowed_fd(raised.wire.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
        ];
        match poll(&mut sources, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(lost(error.to_string())),
        }
        let said = !sources[0].revents().is_empty();
        // A filter that nobody is behind any more only hangs up.
        let asked = sources[1].revents().contains(PollFlags::IN);
        // What is said comes first: after the last trial, whoever asks is the payload.
        if said {
            return match wire::receive(raised.wire.as_fd()) {
                Ok(Some((Report::Proven { trials: made }, _))) if made as usize == trials.len() => {
                    raised.clock.lap("parent: wait until all walls are tried");
                    Ok(())
                }
                Ok(Some((Report::Breached { trial }, _))) => {
                    let wall = raised.proven.get(trial as usize).copied().unwrap_or(Wall::SystemCalls);
                    let what = trials.get(trial as usize).map_or("something".to_owned(), Trial::to_string);
                    Err(of(wall, format!("the wall `{wall}` does not stand: from inside, it was possible {what}")))
                }
                Ok(Some((report, _))) => Err(lost(format!("unexpected {report:?}"))),
                Ok(None) => Err(lost("the first process ended".to_owned())),
                Err(error) => Err(lost(error.to_string())),
            };
        }
        if asked {
            let received = seccomp::receive(listener.as_fd()).map_err(|error| lost(error.to_string()))?;
            let Some(asked) = received else { continue };
            let answer = match asked.number == seccomp::REFUSED_CALL {
                true => Answer::Fail(seccomp::REFUSED_BY_PARENT),
                false => calls::answer(&asked),
            };
            seccomp::answer(listener.as_fd(), &asked, answer).map_err(|error| lost(error.to_string()))?;
        }
    }
}

impl Raised {
    /// Has its mounts taken apart beside us when it has ended, if that is how it is done here. Where it can't be had, we do it ourselves.
    fn hand_mounts_over(&mut self, alone: Alone) {
        if let Some(mounts) = self.mounts.as_ref().filter(|_| leavings::go_on_beside())
            && let Ok(keeper) = Keeper::start(&[], Some(mounts.as_fd()), alone)
        {
            self.keeper = Some(keeper);
            self.mounts = None;
        }
    }

    /// Ends whatever has begun and removes it.
    pub fn abandon(self, failed: SetupFailure) -> SetupFailure {
        let Raised { pid, handle, group, keeper, .. } = self;
        let ended = process::signal(handle.as_fd(), 9).and_then(|()| process::wait(pid, false).map(drop));
        let ended = ended.and_then(|()| keeper.map_or(Ok(()), Keeper::dismiss));
        match ended {
            Ok(()) => undo(group, failed),
            Err(error) => {
                SetupFailure { message: format!("{}; and it could not be ended: {error}", failed.message), ..failed }
            }
        }
    }
}

fn undo(group: Option<Group>, failed: SetupFailure) -> SetupFailure {
    match group.map(Group::remove) {
        None | Some(Ok(())) => failed,
        Some(Err(error)) => SetupFailure { message: format!("{}; and {error}", failed.message), ..failed },
    }
}

/// A folder passed as input or output would be a door out of the root.
pub fn check_descriptors() -> Result<(), SetupFailure> {
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
        gifts: Vec::new(),
    })
}

/// For carriers in Go: memory is collected at 16 MiB first instead of at 4, which several short processes never reach.
const SELDOM_COLLECTED: &CStr = c"GOGC=400";

/// In the payload's place, without any variable of the caller's.
fn carrier_as_payload(carrier: &Carrier, ties: &Ties, terminal: bool) -> io::Result<Payload> {
    let string = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| io::Error::other("it has a zero byte in it"));
    let arguments: io::Result<Vec<_>> = carrier.arguments.iter().map(|argument| string(argument)).collect();
    Ok(Payload {
        program: string(carrier::PROGRAM.as_ref())?,
        arguments: Strings::new(arguments?),
        environment: Strings::new(vec![SELDOM_COLLECTED.to_owned()]),
        directory: string("/".as_ref())?,
        terminal,
        gifts: ties.gifts.iter().map(AsRawFd::as_raw_fd).collect(),
    })
}

fn unwritten(trouble: Trouble) -> SetupFailure {
    failure(None, trouble.message, &trouble.fix)
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
        Step::JoinGroups => Wall::Memory,
        Step::AwaitParent | Step::DieWithParent | Step::AdoptOrphans => Wall::CleanUp,
        Step::MapSelf { .. } | Step::Become { .. } | Step::EnterUser { .. } => Wall::User,
        Step::HideControlGroups => Wall::ControlGroups,
        Step::KeepMountsPrivate
        | Step::NewRoot { .. }
        | Step::Receive
        | Step::Directory { .. }
        | Step::File { .. }
        | Step::HandOut { .. }
        | Step::Link { .. }
        | Step::Bind { .. }
        | Step::Scratch { .. }
        | Step::Overlay { .. }
        | Step::Hide { .. }
        | Step::Replace { .. }
        | Step::Proc { .. }
        | Step::Terminals { .. }
        | Step::SealRoot
        | Step::ChangeRoot => Wall::Files,
        Step::Hostname(_) => Wall::Hostname,
        Step::BeginNetwork | Step::JoinNetwork | Step::OpenDoors { .. } | Step::AwaitHanded => Wall::Network,
        Step::Offer => Wall::Processes,
        Step::NewSession | Step::OwnTerminal => Wall::Terminal,
        Step::NewKeyring | Step::ForbidInspection => Wall::Inheritance,
        Step::DropCapabilities { .. } | Step::ForbidNewPrivileges => Wall::Privileges,
        Step::Lower(..) => Wall::OpenFiles,
        Step::Restrict(_) => Wall::Landlock,
        Step::AwaitTick { .. } => Wall::Files,
        Step::Filter(_) => Wall::SystemCalls,
    };
    let fix = match step {
        Step::Proc { .. } => "this looks like a container that masks /proc; start it with an unmasked one",
        Step::NewRoot { .. } | Step::KeepMountsPrivate | Step::MapSelf { .. } => crate::assess::USER_NAMESPACES,
        Step::OpenDoors { .. } => crate::assess::PACKET_FILTER,
        Step::AwaitHanded => "the gate ended before it was ready: run it again, or without a network (`--no-net`)",
        Step::Bind { .. } => "check that the path exists, that you may read it, and that nobody replaces it meanwhile",
        _ => "see `belljar doctor`",
    };
    let layers = matches!(step, Step::Overlay { .. });
    SetupFailure { layers, ..failure(Some(wall), format!("the step `{step}` failed: {error}"), fix) }
}

/// The usual: what went wrong, with the wall that is missing for it.
fn of(wall: Wall, message: String) -> SetupFailure {
    failure(Some(wall), message, "see `belljar doctor`")
}

pub fn cannot(what: &'static str) -> impl Fn(io::Error) -> SetupFailure {
    move |error| failure(None, format!("cannot {what}: {error}"), "see `belljar doctor`")
}

fn failure(wall: Option<Wall>, message: String, fix: &str) -> SetupFailure {
    SetupFailure { wall, message, fix: fix.to_owned(), layers: false }
}
