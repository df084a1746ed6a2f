//! The first process: follows its orders, starts the payload, reaps, passes signals on, reports the end.
//!
//! By the time the payload runs it has given up every power: no capability, no descriptor but the wire, the
//! same filter and the same Landlock domain as the payload, and nobody inside may look into it.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::fs::{CWD, Mode, OFlags};
use sys::doors::Doors;
use sys::limits::Limit;
use sys::mounts::Attributes;
use sys::places::{self, Kind, Places};
use sys::process::{Alone, Namespaces};
use sys::trees::{Copies, Copying, Walk};
use sys::{descriptors, doors, identity, limits, mounts, network, process, seccomp, signals};

use crate::orders::{Orders, Payload};
use crate::restrict::restrict;
use crate::step::{Source, Step, Way};
use crate::wire::{self, Report, Stage};
use crate::{files, live};

/// Never returns. Whatever goes wrong is reported, and ends this process before the payload starts.
pub fn follow(orders: &Orders, wire: OwnedFd, alone: Alone) -> ! {
    let mut state = State::new(wire.as_fd(), alone);
    state.coming = &orders.steps;
    if orders.unhelped {
        state.help = Help::Nobody;
    }
    let done = state.lay(&orders.groundwork);
    finish(orders, &wire, state, &done, alone)
}

/// The same for one that is begun before there are orders: it lays the ground and waits for them.
pub fn follow_when_told(groundwork: &[Step], wire: OwnedFd, alone: Alone) -> ! {
    let mut state = State::new(wire.as_fd(), alone);
    state.help = Help::Later;
    let done = state.lay(groundwork);
    // Whatever is wrong with them is found when they are needed.
    state.made_ahead = MadeAhead { proc: new_proc(false).ok(), terminals: new_terminals().ok() };
    // Whoever would have given them decided otherwise, or is gone.
    let (orders, [input, output, error]) = or_end(Orders::hear(wire.as_fd()));
    // Sent to all of the caller's group before there was a run; a fork would have begun with none.
    or_end(signals::forget_pending());
    or_end(rustix::stdio::dup2_stdin(&input).map_err(io::Error::from));
    or_end(rustix::stdio::dup2_stdout(&output).map_err(io::Error::from));
    or_end(rustix::stdio::dup2_stderr(&error).map_err(io::Error::from));
    drop((input, output, error));
    finish(&orders, &wire, state, &done, alone)
}

/// All but the groundwork; `done` is how long each step of that took.
fn finish<'a>(orders: &'a Orders, wire: &'a OwnedFd, mut state: State<'a>, done: &[u64], alone: Alone) -> ! {
    let wire_at = wire.as_fd();
    state.handed = orders.handed.as_ref().map(AsFd::as_fd);
    // From now on somebody waits.
    state.coming = &orders.steps;
    state.beside = orders.beside;
    let umask = state.umask;
    if orders.trace {
        for (step, nanoseconds) in (0u32..).zip(done) {
            or_end(wire::send(wire_at, Report::Done { step, nanoseconds: *nanoseconds }, &[]));
        }
    }
    let mut since = Instant::now();
    for (step, order) in (done.len() as u32..).zip(&orders.steps) {
        if let Err(error) = state.take(order) {
            // Or one that was left to somebody else.
            let step = state.to_blame.map_or(step, |at| (done.len() + at) as u32);
            fail(wire_at, Report::Failed { step, errno: error.raw_os_error().unwrap_or(libc_eio()) });
        }
        if orders.trace {
            or_end(wire::send(wire_at, Report::Done { step, nanoseconds: nanoseconds_since(since) }, &[]));
            since = Instant::now();
        }
    }
    state.announce();
    for (trial, tried) in (0u32..).zip(&orders.trials) {
        if !tried.is_refused() {
            fail(wire_at, Report::Breached { trial });
        }
    }
    or_end(wire::send(wire_at, Report::Proven { trials: orders.trials.len() as u32 }, &[]));
    let State { user_terminal, attached, .. } = state;
    if let Some(operation) = &orders.files {
        match process::fork_plainly(alone) {
            Ok(None) => files::work(operation, umask, &orders.mask),
            Ok(Some(pid)) => {
                drop(user_terminal);
                std::mem::forget(attached);
                report_the_end(wire_at, pid)
            }
            Err(error) => fail(wire_at, cannot_start(Stage::Fork, &error)),
        }
    }
    let Some(payload) = &orders.payload else {
        std::mem::forget(attached);
        or_end(live::keep_only(wire_at));
        live::serve(wire_at, umask, &orders.mask, alone)
    };
    // The payload borrows our memory until it executes: copying it would be the dearest part of its start.
    let pid = match process::start_borrowing(alone, || {
        start(payload, &orders.mask, wire_at, user_terminal.as_ref(), umask)
    }) {
        Ok(pid) => pid,
        Err(error) => fail(wire_at, cannot_start(Stage::Fork, &error)),
    };
    // From here on, nothing but the wire: not even the caller's input and output.
    drop(user_terminal);
    std::mem::forget(attached);
    report_the_end(wire_at, pid)
}

fn nanoseconds_since(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn report_the_end(wire: BorrowedFd<'_>, payload: i32) -> ! {
    or_end(process::close_all_from(0, wire.as_raw_fd()));
    let status = reap_until(payload);
    or_end(wire::send(wire, Report::Ended { status }, &[]));
    process::exit(0)
}

/// Tries steps and ends, with nothing started. For finding out what a host can do.
pub fn rehearse(steps: &[Step], wire: OwnedFd, alone: Alone) -> ! {
    let wire_at = wire.as_fd();
    let mut state = State::new(wire_at, alone);
    for (step, order) in (0u32..).zip(steps) {
        if let Err(error) = state.take(order) {
            fail(wire_at, Report::Failed { step, errno: error.raw_os_error().unwrap_or(libc_eio()) });
        }
    }
    or_end(wire::send(wire_at, Report::Ended { status: 0 }, &[]));
    process::exit(0)
}

/// The payload: the last of our own code before the program.
fn start(payload: &Payload, mask: &signals::Mask, wire: BorrowedFd<'_>, terminal: Option<&OwnedFd>, umask: Mode) -> ! {
    rustix::process::umask(umask);
    let begin = || -> Result<std::convert::Infallible, (Stage, io::Error)> {
        process::new_session().map_err(|error| (Stage::Terminal, error))?;
        if let Some(terminal) = terminal {
            let take = || -> io::Result<()> {
                process::take_terminal(terminal.as_fd())?;
                rustix::stdio::dup2_stdin(terminal)?;
                rustix::stdio::dup2_stdout(terminal)?;
                Ok(rustix::stdio::dup2_stderr(terminal)?)
            };
            take().map_err(|error| (Stage::Terminal, error))?;
        }
        rustix::process::chdir(&*payload.directory).map_err(|error| (Stage::WorkingDirectory, error.into()))?;
        signals::reset_actions();
        signals::restore(mask).map_err(|error| (Stage::Execute, error))?;
        process::close_on_exec_from(3).map_err(|error| (Stage::Execute, error))?;
        for gift in &payload.gifts {
            process::keep_over_exec(*gift).map_err(|error| (Stage::Execute, error))?;
        }
        Err((Stage::Execute, process::execute(&payload.program, &payload.arguments, &payload.environment)))
    };
    let Err((stage, error)) = begin();
    fail(wire, cannot_start(stage, &error))
}

fn cannot_start(stage: Stage, error: &io::Error) -> Report {
    Report::CannotStart { stage, errno: error.raw_os_error().unwrap_or(libc_eio()) }
}

/// Reports and ends. If even that fails, the closed wire tells the parent as much.
fn fail(wire: BorrowedFd<'_>, report: Report) -> ! {
    match wire::send(wire, report, &[]) {
        Ok(()) | Err(_) => process::exit(125),
    }
}

/// A parent that can't be told is gone, and we with it.
fn or_end<T>(result: io::Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(_) => process::exit(125),
    }
}

fn libc_eio() -> i32 {
    rustix::io::Errno::IO.raw_os_error()
}

/// Waits until the payload ends, reaping every orphan and passing on what the parent signals.
fn reap_until(payload: i32) -> i32 {
    const CHILD: i32 = rustix::process::Signal::CHILD.as_raw();
    const STOP: i32 = rustix::process::Signal::TSTP.as_raw();
    const FIRM_STOP: i32 = rustix::process::Signal::STOP.as_raw();
    loop {
        match or_end(signals::take_next()) {
            CHILD => {
                while let Ok(Some((pid, ended, _))) = process::wait(-1, true) {
                    if pid == payload {
                        return match ended {
                            process::Ended::Exited(code) => code << 8,
                            process::Ended::Signalled(signal) => signal,
                        };
                    }
                }
            }
            // To the payload's whole group, as a terminal would; it may have ended this very moment.
            // The payload's group is an orphan to the kernel, which then ignores a polite stop.
            STOP => match process::kill(-payload, FIRM_STOP) {
                Ok(()) | Err(_) => {}
            },
            signal => match process::kill(-payload, signal) {
                Ok(()) | Err(_) => {}
            },
        }
    }
}

/// Filesystems that every root has, made while nobody waits and mounted when it is their turn.
#[derive(Default)]
struct MadeAhead {
    proc: Option<OwnedFd>,
    terminals: Option<OwnedFd>,
}

fn new_proc(writable: bool) -> io::Result<OwnedFd> {
    // Processes that may not be inspected, ours first of all, are not even listed.
    let settings = [(c"hidepid", Some(c"invisible"))];
    mounts::create(c"proc", &settings, Attributes { read_only: !writable, devices: false })
}

fn new_terminals() -> io::Result<OwnedFd> {
    let settings = [(c"newinstance", None), (c"ptmxmode", Some(c"0666")), (c"mode", Some(c"0620"))];
    mounts::create(c"devpts", &settings, Attributes::DEVICE)
}

/// The folder of the new root in which there is as much to make as everywhere else.
const LEFT_TO_OTHERS: &[u8] = b"etc";

fn is_left_to_others(path: &CStr) -> bool {
    let below = path.to_bytes().strip_prefix(LEFT_TO_OTHERS);
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// A step that makes a name in the new root, and nothing else.
fn is_a_name(step: &Step) -> bool {
    matches!(step, Step::Directory { .. } | Step::File { .. } | Step::Link { .. })
}

/// What an assistant makes, where this is for one.
fn left(step: &Step) -> Option<(CString, Kind)> {
    let (path, kind) = match step {
        Step::Directory { path, mode } => (path, Kind::Directory { mode: *mode }),
        Step::File { path, mode, contents } => (path, Kind::File { mode: *mode, contents: contents.clone() }),
        Step::Link { path, target } => (path, Kind::Link { target: target.clone() }),
        _ => return None,
    };
    is_left_to_others(path).then(|| (path.clone(), kind))
}

/// What assistants do beside the first process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Help {
    /// The network, which takes longest, and then trees.
    AtOnce,
    /// While nobody waits it does all itself; then names in the new root, and trees.
    Later,
    /// No processor has time for any.
    Nobody,
}

/// Trees that are copied before their turn, all at once.
const MOST_COPIED: usize = 32;

struct State<'a> {
    wire: BorrowedFd<'a>,
    received: Vec<OwnedFd>,
    /// Trees that are mounted. To close the last descriptor of one takes the lock of all mounts of the host, so that
    /// is left until the payload runs; programs never get them.
    attached: Vec<OwnedFd>,
    most_descriptors: u64,
    /// The payload gets the caller's habit back: what we make has the mode that its step says.
    umask: Mode,
    /// What is known of what comes, for what is begun before its turn.
    coming: &'a [Step],
    help: Help,
    handed: Option<BorrowedFd<'a>>,
    /// A processor where whoever told us waits, if we must stay away from it.
    beside: Option<usize>,
    /// Names below `LEFT_TO_OTHERS` that an assistant makes, and which steps these are.
    places: Option<(&'static Places, Vec<usize>)>,
    /// Which step it was that failed, if it was not the one that is taken.
    to_blame: Option<usize>,
    /// What is being copied for binds to come, and which of it is next.
    copies: Option<(&'static Copies, usize)>,
    copying: Option<Copying>,
    network: Option<network::Pending>,
    made_ahead: MadeAhead,
    alone: Alone,
    /// Our own folder in the host's /proc, where our maps can still be written when the root has changed.
    own: Option<OwnedFd>,
    root: Option<OwnedFd>,
    listener: Option<OwnedFd>,
    terminal: Option<OwnedFd>,
    user_terminal: Option<OwnedFd>,
    /// For each version of the protocol: streams, names, long names.
    doors: Vec<OwnedFd>,
    /// For who comes later.
    offered: Vec<OwnedFd>,
}

impl<'a> State<'a> {
    fn new(wire: BorrowedFd<'a>, alone: Alone) -> State<'a> {
        State {
            wire,
            received: Vec::new(),
            attached: Vec::new(),
            most_descriptors: limits::current(Limit::OpenFiles),
            umask: rustix::process::umask(Mode::empty()),
            coming: &[],
            help: Help::AtOnce,
            handed: None,
            beside: None,
            places: None,
            to_blame: None,
            copies: None,
            copying: None,
            network: None,
            made_ahead: MadeAhead::default(),
            alone,
            own: None,
            root: None,
            listener: None,
            terminal: None,
            user_terminal: None,
            doors: Vec::new(),
            offered: Vec::new(),
        }
    }

    /// Takes the first steps, and says how long each took.
    fn lay(&mut self, groundwork: &[Step]) -> Vec<u64> {
        let mut took = Vec::with_capacity(groundwork.len());
        for (step, order) in (0u32..).zip(groundwork) {
            let since = Instant::now();
            if let Err(error) = self.take(order) {
                fail(self.wire, Report::Failed { step, errno: error.raw_os_error().unwrap_or(libc_eio()) });
            }
            took.push(nanoseconds_since(since));
        }
        took
    }

    fn take(&mut self, step: &Step) -> io::Result<()> {
        if !is_a_name(step) {
            self.await_places()?;
        }
        match step {
            Step::JoinGroups => {
                for entrance in self.received.drain(..) {
                    // Ourselves, and our only thread: the kernel then needs no lock on all processes of the host.
                    rustix::io::write(entrance, b"0")?;
                }
            }
            Step::AwaitParent => wire::await_release(self.wire)?,
            Step::Receive => wire::receive_descriptors(self.wire, &mut self.received)?,
            Step::MapSelf { user, group } => identity::map_self(*user, *group)?,
            Step::Become { user, group } => {
                identity::become_only(*user, *group)?;
                // A change of identity hides our own /proc files from us, and we have a map to write.
                process::permit_inspection()?;
            }
            Step::DieWithParent => {
                process::die_with_parent()?;
                wire::parent_lives(self.wire)?;
            }
            Step::HideControlGroups => process::unshare(Namespaces { cgroup: true, ..Namespaces::NONE })?,
            Step::KeepMountsPrivate => mounts::keep_private()?,
            Step::NewRoot { size, inodes } => self.new_root(size, inodes)?,
            Step::Directory { path, .. } | Step::File { path, .. } | Step::Link { path, .. } if self.is_left(path) => {}
            Step::Directory { path, mode } => places::directory(CWD, path, *mode)?,
            Step::File { path, mode, contents } => places::file(CWD, path, *mode, contents)?,
            Step::HandOut { files } => self.hand_out(files)?,
            Step::AwaitHanded => self.await_handed()?,
            Step::Link { path, target } => places::link(CWD, path, target)?,
            Step::Bind { source, target, attributes } => self.bind(source, target, *attributes)?,
            Step::Scratch { path } => {
                let tree = match path {
                    Way::Plain(path) => {
                        let tree = mounts::copy_plain_tree(path)?;
                        mounts::confine(tree.as_fd(), Attributes::READ_WRITE)?;
                        mounts::attach_plainly(tree.as_fd(), path)?;
                        tree
                    }
                    Way::Careful(path) => {
                        // Looked up once: the name may lead elsewhere the next time.
                        let place = self.beneath(path)?;
                        let tree = mounts::copy_tree_at(place.as_fd())?;
                        mounts::confine(tree.as_fd(), Attributes::READ_WRITE)?;
                        mounts::attach(tree.as_fd(), place.as_fd())?;
                        tree
                    }
                };
                self.keep(tree);
            }
            Step::Overlay { lower, layer, target } => self.overlay(lower, layer, target)?,
            Step::Hide { path, cover } => {
                let cover = mounts::copy_plain_tree(cover)?;
                mounts::confine(cover.as_fd(), Attributes::READ_ONLY)?;
                match self.attach(cover.as_fd(), path) {
                    // An older kernel's /proc has fewer files. Anything else that is gone since we looked could come
                    // back.
                    Err(error)
                        if error.kind() == io::ErrorKind::NotFound && path.path().as_bytes().starts_with(b"proc/") => {}
                    hidden => hidden?,
                }
                self.keep(cover);
            }
            Step::Replace { path, by } => {
                let by = mounts::copy_plain_tree(by)?;
                mounts::confine(by.as_fd(), Attributes::READ_ONLY)?;
                self.attach(by.as_fd(), path)?;
                self.keep(by);
            }
            Step::Proc { path, writable } => {
                let made = self.made_ahead.proc.take().filter(|_| !writable);
                let proc = made.map_or_else(|| new_proc(*writable), Ok)?;
                mounts::attach_plainly(proc.as_fd(), path)?;
                self.keep(proc);
            }
            Step::Terminals { path } => {
                let devpts = self.made_ahead.terminals.take().map_or_else(new_terminals, Ok)?;
                mounts::attach_plainly(devpts.as_fd(), path)?;
                self.keep(devpts);
            }
            Step::SealRoot => {
                let root = self.root.as_ref().ok_or(io::ErrorKind::NotFound)?;
                mounts::seal(root.as_fd())?;
            }
            Step::ChangeRoot => {
                let host_proc = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                self.own = Some(rustix::fs::open(c"/proc/self", host_proc, Mode::empty())?);
                mounts::change_root_to_here()?;
                self.root = None;
                for tree in std::mem::take(&mut self.received) {
                    self.keep(tree);
                }
            }
            Step::Hostname(name) => rustix::system::sethostname(name.as_bytes())?,
            Step::BeginNetwork if self.help != Help::AtOnce => network::make_own()?,
            Step::BeginNetwork => {
                let copies = Copies::of(self.trees_to_copy());
                self.copies = Some((copies, 0));
                self.network = Some(network::begin(self.alone, copies)?);
            }
            Step::JoinNetwork if self.help != Help::AtOnce => self.copying.take().map_or(Ok(()), Copying::join)?,
            Step::JoinNetwork => self.network.take().ok_or(io::ErrorKind::NotFound)?.join()?,
            Step::OpenDoors { loopback } => {
                let (four, six) = doors::open(loopback)?;
                for Doors { streams, names, long_names } in [Some(four), six].into_iter().flatten() {
                    self.doors.extend([streams, names, long_names]);
                }
            }
            Step::EnterUser { user, group } => {
                process::unshare(Namespaces { user: true, ..Namespaces::NONE })?;
                let own = self.own.take().ok_or(io::ErrorKind::NotFound)?;
                identity::map_self_at(own.as_fd(), *user, *group)?;
                process::die_with_parent()?;
            }
            Step::Offer => {
                // All but the last, which is no namespace.
                for name in &wire::OFFERED[..wire::OFFERED.len() - 1] {
                    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                    self.offered.push(rustix::fs::open(format!("/proc/self/ns/{name}"), flags, Mode::empty())?);
                }
            }
            Step::NewSession => process::new_session()?,
            Step::NewKeyring => identity::join_new_keyring()?,
            Step::AdoptOrphans => process::adopt_orphans()?,
            Step::DropCapabilities { bounding: true } => sys::capabilities::drop_all()?,
            Step::DropCapabilities { bounding: false } => sys::capabilities::drop_current()?,
            Step::ForbidNewPrivileges => process::forbid_new_privileges()?,
            Step::Lower(limit, value) => {
                // There are more steps to come, and they need descriptors.
                if *limit == Limit::OpenFiles && *value < self.most_descriptors {
                    self.most_descriptors = *value;
                    self.attached.retain(|tree| (tree.as_raw_fd() as u64) < *value / 2);
                }
                limits::lower(*limit, *value)?;
            }
            Step::OwnTerminal => self.own_terminal()?,
            Step::Restrict(landlock) => self.offered.extend(restrict(landlock, !self.offered.is_empty())?),
            Step::AwaitTick { after } => sys::clock::await_tick(*after),
            Step::Filter(program) => self.listener = Some(seccomp::install(program)?),
            Step::ForbidInspection => process::forbid_inspection()?,
        }
        Ok(())
    }

    /// Not kept open here: nobody may be writing to the root when it is sealed.
    fn hand_out(&self, files: &[CString]) -> io::Result<()> {
        let wire = self.handed.ok_or(io::ErrorKind::NotFound)?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut opened = Vec::with_capacity(files.len());
        for file in files {
            opened.push(rustix::fs::openat(CWD, file, flags, Mode::empty())?);
        }
        let opened: Vec<BorrowedFd<'_>> = opened.iter().map(AsFd::as_fd).collect();
        descriptors::send(wire, b"write", &opened)
    }

    /// Whoever writes them may have gone: half a file is none.
    fn await_handed(&self) -> io::Result<()> {
        let mut word = [0; 4];
        match descriptors::receive(self.handed.ok_or(io::ErrorKind::NotFound)?, &mut word)? {
            (4, _) if word == [0; 4] => Ok(()),
            (4, _) => Err(io::Error::from_raw_os_error(i32::from_le_bytes(word))),
            _ => Err(rustix::io::Errno::PIPE.into()),
        }
    }

    fn new_root(&mut self, size: &CStr, inodes: &CStr) -> io::Result<()> {
        let settings = [(c"size", Some(size)), (c"nr_inodes", Some(inodes)), (c"mode", Some(c"0755"))];
        let tree = mounts::create(c"tmpfs", &settings, Attributes::READ_WRITE)?;
        // Over the old root, which we still see: lookups start below what is mounted there.
        let old = rustix::fs::open(c"/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        mounts::attach(tree.as_fd(), old.as_fd())?;
        rustix::process::fchdir(&tree)?;
        if self.help == Help::Later {
            self.get_help(rustix::io::fcntl_dupfd_cloexec(&tree, 0)?);
        }
        self.root = Some(tree);
        Ok(())
    }

    /// Has names made and trees copied beside us. Where nobody can help, all is done in its turn.
    fn get_help(&mut self, root: OwnedFd) {
        let names = self.coming.iter().enumerate().skip_while(|(_, step)| !matches!(step, Step::NewRoot { .. }));
        let names = names.skip(1).take_while(|(_, step)| is_a_name(step));
        let (which, list): (Vec<usize>, Vec<_>) = names.filter_map(|(at, step)| Some((at, left(step)?))).unzip();
        let places = Places::below(root, list);
        let copies = Copies::of(self.trees_to_copy());
        if let Ok(copying) = places.begin(copies, self.beside, self.alone) {
            self.copying = Some(copying);
            self.places = Some((places, which));
            self.copies = Some((copies, 0));
        }
    }

    /// Whether an assistant makes this name.
    fn is_left(&self, path: &CStr) -> bool {
        self.places.is_some() && is_left_to_others(path)
    }

    fn await_places(&mut self) -> io::Result<()> {
        let Some((places, which)) = self.places.take() else { return Ok(()) };
        places.finish().map_err(|(at, error)| {
            self.to_blame = which.get(at).copied();
            error
        })
    }

    fn beneath(&self, path: &CStr) -> io::Result<OwnedFd> {
        let root = self.root.as_ref().ok_or(io::ErrorKind::NotFound)?;
        mounts::open_beneath(root.as_fd(), path)
    }

    fn keep(&mut self, tree: OwnedFd) {
        // More than a table of descriptors has at first would make it grow, which waits for whoever else uses it.
        const FEW: u64 = 56;
        if (tree.as_raw_fd() as u64) < FEW.min(self.most_descriptors / 2) {
            self.attached.push(tree);
        }
    }

    /// What our own binds will need, in their order.
    fn trees_to_copy(&self) -> Vec<(CString, Walk)> {
        let wanted = self.coming.iter().filter_map(|step| match step {
            Step::Bind { source: Source::Path(way), .. } => Some(way),
            _ => None,
        });
        let walk = |way: &Way| match way {
            Way::Plain(path) => (path.clone(), Walk::Plain),
            Way::Careful(path) => (path.clone(), Walk::Careful),
        };
        // With more, the table of descriptors would have to grow, or be full: those are copied in their turn.
        let most = usize::try_from(self.most_descriptors / 4).unwrap_or(MOST_COPIED).min(MOST_COPIED);
        wanted.map(walk).take(most).collect()
    }

    fn bind(&mut self, source: &Source, target: &Way, attributes: Attributes) -> io::Result<()> {
        match source {
            Source::Path(path) => {
                let copied = match &mut self.copies {
                    Some((copies, next)) if *next < copies.count() => {
                        *next += 1;
                        copies.take(*next - 1)?
                    }
                    _ => None,
                };
                let tree = copied.map_or_else(|| path.copy(), Ok)?;
                mounts::confine(tree.as_fd(), attributes)?;
                self.attach(tree.as_fd(), target)?;
                self.keep(tree);
                Ok(())
            }
            // Confined by the parent.
            Source::Received { tree, .. } => {
                let tree = self.received.get(*tree).ok_or(io::ErrorKind::NotFound)?;
                self.attach(tree.as_fd(), target)
            }
        }
    }

    fn overlay(&mut self, lower: &[Source], layer: &Source, target: &Way) -> io::Result<()> {
        // Named by their descriptors: their paths may be too long for the kernel, have letters in them that mean
        // something to it, or lead elsewhere a moment later.
        let name = |folder: BorrowedFd<'_>| CString::new(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        let mut open = Vec::with_capacity(lower.len() + 1);
        let mut names: Vec<CString> = Vec::with_capacity(lower.len() + 1);
        for source in lower.iter().chain([layer]) {
            match source {
                Source::Path(way) => {
                    let folder = mounts::open_without_links(CWD, way.path())?;
                    names.push(name(folder.as_fd())?);
                    open.push(folder);
                }
                // The kernel joins only what is mounted somewhere. In the old root nobody sees it, and it goes with it.
                Source::Received { tree, .. } => {
                    let tree = self.received.get(*tree).ok_or(io::ErrorKind::NotFound)?;
                    mounts::attach_plainly(tree.as_fd(), c"/usr")?;
                    names.push(name(tree.as_fd())?);
                }
            }
        }
        let upper = names.pop().ok_or(io::ErrorKind::NotFound)?;
        let overlay = mounts::create_overlay(&names, &upper)?;
        self.attach(overlay.as_fd(), target)?;
        self.keep(overlay);
        Ok(())
    }

    fn attach(&self, tree: BorrowedFd<'_>, target: &Way) -> io::Result<()> {
        match target {
            Way::Plain(path) => mounts::attach_plainly(tree, path),
            Way::Careful(path) => mounts::attach(tree, self.beneath(path)?.as_fd()),
        }
    }

    fn own_terminal(&mut self) -> io::Result<()> {
        let (outer, inner) = live::own_terminal()?;
        self.terminal = Some(outer);
        self.user_terminal = Some(inner);
        Ok(())
    }

    /// Every wall is up: the parent gets what only it may hold.
    fn announce(&mut self) {
        let listener = self.listener.take();
        let terminal = self.terminal.take();
        // Closed here with the end of this function: whoever has them outside is then the only one.
        let doors = std::mem::take(&mut self.doors);
        let offered = std::mem::take(&mut self.offered);
        let report = Report::Armed {
            filtered: listener.is_some(),
            terminal: terminal.is_some(),
            offers: !offered.is_empty(),
            doors: u32::try_from(doors.len()).unwrap_or(u32::MAX),
        };
        let all: Vec<BorrowedFd<'_>> =
            listener.iter().chain(&terminal).chain(&doors).chain(&offered).map(AsFd::as_fd).collect();
        or_end(wire::send(self.wire, report, &all));
    }
}
