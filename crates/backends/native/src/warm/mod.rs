//! Warm starts: walls that stand already, and behind them a copy of a warm interpreter that waits to be told what to run.
//!
//! The interpreter (`zygote.py`, the zygote) is outside of any sandbox and runs nothing but our own lines. For each blank it makes a
//! copy of itself, which comes into the sandbox through namespaces that the first process there has offered, and takes the same
//! walls upon itself. Before it is told anything, we look at what the kernel says of it.

mod proof;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use guest::Step;
use guest::wire::OFFERED;
use model::{Blank, Grant, Network, Sandbox, SetupFailure, Stack, Streams, Wall, Zygote};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::Serialize;
use sys::{descriptors, seccomp};
use syscalls::Sysno;

use crate::behind::stirs;
use crate::calls;
use crate::groups::Group;
use crate::input::Input;
use crate::launch::{self, Raised, Starts, cannot, check_descriptors};
use crate::live::Greeting;
use crate::output::Pumps;
use crate::plan::{Blueprint, Mode};
use crate::supervise::{Supervised, Warm, timespec};
use crate::trust::Trust;
use crate::{Native, plan, unplannable};

const SCRIPT: &str = include_str!("zygote.py");
/// A copy takes a few milliseconds; on a machine that is busy with others, more.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a warm interpreter is begun, with its door as input.
pub fn zygote(program: &Path, preload: &[String], door: OwnedFd) -> Command {
    let mut command = Command::new(program);
    command.args(["-I", "-c", SCRIPT]).args(preload);
    command.env_clear().env("LANG", "C.UTF-8").env("MPLBACKEND", "Agg").env("PATH", "/usr/bin:/bin");
    // Threads would be lost in a copy: libraries that make some while they are loaded are told not to.
    for name in ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"] {
        command.env(name, "1");
    }
    // A copy comes out of a process that has none of what the kernel and the C library keep together for a thread; the library would not know.
    command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    command.env("BELLJAR_PRCTL", Sysno::prctl.id().to_string());
    command.stdin(door).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    command
}

/// What the copy is told on its way in.
#[derive(Serialize)]
struct ComeIn {
    calls: Calls,
    /// Root's copies are somebody else inside.
    r#become: bool,
    /// By the kernel's own numbers.
    limits: Vec<(u32, u64)>,
    /// What the descriptors after the first three are.
    offered: &'static [&'static str],
    filter: String,
    /// To run on so many processors and no more.
    processors: Option<u32>,
}

/// The kernel's numbers, which the interpreter does not know.
#[derive(Serialize)]
struct Calls {
    setns: i32,
    keyctl: i32,
    prctl: i32,
    capset: i32,
    seccomp: i32,
    bpf: i32,
    landlock_restrict_self: i32,
}

impl Calls {
    fn known() -> Calls {
        Calls {
            setns: Sysno::setns.id(),
            keyctl: Sysno::keyctl.id(),
            prctl: Sysno::prctl.id(),
            capset: Sysno::capset.id(),
            seccomp: Sysno::seccomp.id(),
            bpf: Sysno::bpf.id(),
            landlock_restrict_self: Sysno::landlock_restrict_self.id(),
        }
    }
}

/// What it is told in the end.
#[derive(Serialize)]
struct Run<'a> {
    arguments: Vec<&'a str>,
    environment: Vec<(&'a str, &'a str)>,
    directory: &'a str,
}

struct Waiting {
    warm: Warm,
    greeting: Greeting,
    control: OwnedFd,
    program: std::path::PathBuf,
    /// Variables that it was told of: it may remember them, whatever it is told later.
    told: Environment,
}

type Environment = Vec<(OsString, OsString)>;

fn unfit(why: &str) -> SetupFailure {
    SetupFailure {
        wall: None,
        message: format!("it can't be kept ready: {why}"),
        fix: "it is started as ever, only slower".to_owned(),
        layers: false,
    }
}

/// Raises walls for `grant`, and has the zygote send somebody in.
pub fn blank(
    native: &Native,
    grant: &Grant,
    stacks: &[Stack],
    zygote: &Zygote,
) -> Result<Box<dyn Blank>, SetupFailure> {
    if native.mode(grant) == Mode::Reduced {
        return Err(unfit("there are no namespaces"));
    }
    let powers = grant.powers();
    if powers.network != Network::Closed || powers.command.terminal {
        return Err(unfit("it has a network or a terminal"));
    }
    let mut blueprint = plan::plan(powers, stacks, Trust::default(), native.host(), Mode::Full).map_err(unplannable)?;
    let come_in = come_in(&blueprint, native.host().landlock > 0);
    let entered = blueprint.steps.iter().position(|step| matches!(step, Step::EnterUser { .. }));
    let Some(entered) = entered else { return Err(unfit("it has no user of its own")) };
    blueprint.steps.insert(entered + 1, Step::Offer);
    let ends = (Streams::default(), model::Handed::default());
    let mut raised =
        launch::launch(native.ahead.take(), blueprint, powers, native.host(), ends, false, Starts::Nothing)?;
    let sent = send_in(&mut raised, &come_in, zygote).and_then(|(control, ties)| {
        // So that it gets ready for that: only now, when its walls are seen to stand, and to nobody but it.
        let likely = told(grant).map_err(|why| unfit(&why))?;
        descriptors::send(control.as_fd(), &likely, &[]).map_err(cannot("tell it what will be run"))?;
        Ok((control, ties))
    });
    let (control, ties) = match sent {
        Ok(sent) => sent,
        Err(failed) => return Err(raised.abandon(failed)),
    };
    raised.offered.clear();
    raised.behind = Some(ties);
    let greeting = Greeting::of(grant, raised.owner);
    let supervised = Supervised {
        raised,
        grant: grant.clone(),
        enforcement: model::Backend::assess(native, grant),
        backend: "native",
        desk: None,
        time: None,
    };
    let warm = supervised.warm_up()?;
    Ok(Box::new(Waiting { warm, greeting, control, program: zygote.program.clone(), told: powers.environment.clone() }))
}

/// What it reports on, and where it hears of signals.
type Ties = (OwnedFd, OwnedFd);

fn send_in(raised: &mut Raised, come_in: &ComeIn, zygote: &Zygote) -> Result<(OwnedFd, Ties), SetupFailure> {
    // Where there are none, what it uses is looked at again and again.
    let entrances = raised.group.as_ref().map_or(Ok(Vec::new()), Group::ways_in);
    let entrances = entrances.map_err(cannot("open its control group"))?;
    let (control, theirs) = descriptors::wire().map_err(cannot("make a socket pair"))?;
    let pipes = || -> io::Result<_> {
        let (report, says) = pipe_with(PipeFlags::CLOEXEC)?;
        let (hears, tell) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&report, true)?;
        rustix::io::ioctl_fionbio(&tell, true)?;
        Ok((report, says, hears, tell))
    };
    let (report, says, hears, tell) = pipes().map_err(cannot("make pipes"))?;
    let along: Vec<BorrowedFd<'_>> =
        [&says, &hears, &theirs].into_iter().chain(&raised.offered).chain(&entrances).map(AsFd::as_fd).collect();
    let words = serde_json::to_vec(&come_in).map_err(|error| cannot("say it")(io::Error::other(error)))?;
    descriptors::send(zygote.door.as_fd(), &words, &along).map_err(cannot("reach the warm interpreter"))?;
    drop((says, hears, theirs, entrances));
    let (listener, guest) = await_copy(&control, &raised.offered)?;
    raised.listener = Some(listener);
    raised.guest = Some(guest);
    Ok((control, (report, tell)))
}

/// The same limits and the same filter as the first process has.
fn come_in(blueprint: &Blueprint, landlock: bool) -> ComeIn {
    let limits = blueprint.steps.iter().filter_map(|step| match step {
        Step::Lower(limit, value) => Some((limit.number(), *value)),
        _ => None,
    });
    let filter = blueprint.steps.iter().find_map(|step| match step {
        Step::Filter(program) => Some(base64(&program.to_bytes())),
        _ => None,
    });
    ComeIn {
        calls: Calls::known(),
        r#become: blueprint.ground.maps.is_some(),
        limits: limits.collect(),
        offered: if landlock { &OFFERED } else { &OFFERED[..OFFERED.len() - 1] },
        processors: blueprint.processors,
        // Without one, the kernel takes nothing, and nobody comes in.
        filter: filter.unwrap_or_default(),
    }
}

fn base64(bytes: &[u8]) -> String {
    use ::base64::Engine;
    ::base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Takes the listener of the copy's filter, and believes that its walls stand only after a look at it.
fn await_copy(control: &OwnedFd, offered: &[OwnedFd]) -> Result<(OwnedFd, i32), SetupFailure> {
    let lost = |why: String| SetupFailure {
        wall: Some(Wall::SystemCalls),
        message: format!("the warm interpreter sent nobody in: {why}"),
        fix: "see `belljar doctor`".to_owned(),
        layers: false,
    };
    let until = Instant::now() + PATIENCE;
    ready(control.as_fd(), until).map_err(|error| lost(error.to_string()))?;
    let mut words = [0; 16];
    let (length, mut along) =
        descriptors::receive(control.as_fd(), &mut words).map_err(|error| lost(error.to_string()))?;
    let (Some(listener), b"armed") = (along.pop(), &words[..length]) else {
        return Err(lost("it went before its walls were up".to_owned()));
    };
    loop {
        ready(listener.as_fd(), until).map_err(|error| lost(error.to_string()))?;
        let Some(asked) = seccomp::receive(listener.as_fd()).map_err(|error| lost(error.to_string()))? else {
            continue;
        };
        let answer = match asked.number == seccomp::REFUSED_CALL {
            true => seccomp::Answer::Fail(seccomp::REFUSED_BY_PARENT),
            false => calls::answer(&asked),
        };
        // While it waits for our answer, its number is its own.
        let proven = if asked.number == seccomp::REFUSED_CALL {
            proof::stands(asked.thread, offered)
                .map_err(|(wall, why)| SetupFailure { wall: Some(wall), ..lost(why) })?;
            true
        } else {
            false
        };
        seccomp::answer(listener.as_fd(), &asked, answer).map_err(|error| lost(error.to_string()))?;
        if proven {
            return Ok((listener, asked.thread));
        }
    }
}

fn ready(descriptor: BorrowedFd<'_>, until: Instant) -> io::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut one = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        match poll(&mut one, Some(&timespec(left))) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) if one[0].revents().contains(PollFlags::IN) => return Ok(()),
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// What a copy is told for this grant; why it can't be.
fn told(grant: &Grant) -> Result<Vec<u8>, String> {
    let powers = grant.powers();
    let command = &powers.command;
    if command.terminal {
        return Err("it wants a terminal".to_owned());
    }
    let arguments: Vec<&str> = command.arguments.iter().map(|word| text(word)).collect::<Result<_, _>>()?;
    // Options are the interpreter's own business, and this one has begun already.
    if arguments.get(1).is_none_or(|script| script.is_empty() || script.starts_with('-')) {
        return Err("it is another command".to_owned());
    }
    let pairs = powers.environment.iter().map(|(name, value)| Ok((text(name)?, text(value)?)));
    let environment: Vec<(&str, &str)> = pairs.collect::<Result<_, String>>()?;
    if let Some((name, _)) = environment.iter().find(|(name, _)| name.starts_with("PYTHON")) {
        return Err(format!("`{name}` changes how an interpreter begins"));
    }
    let run = Run { arguments, environment, directory: text(command.directory.as_os_str())? };
    serde_json::to_vec(&run).map_err(|error| error.to_string())
}

fn text(text: &OsStr) -> Result<&str, String> {
    text.to_str().ok_or_else(|| "some of its words are no text".to_owned())
}

impl Waiting {
    /// What it is told for this grant, if its walls are those that stand and its program is this one.
    fn words(&self, grant: &Grant) -> Result<Vec<u8>, String> {
        // Whoever is there to become the command, and whoever will tell how it ended.
        if stirs(self.control.as_fd()) || !self.warm.stands_still() {
            return Err("nobody waits there any more".to_owned());
        }
        let differs = self.greeting.differs(grant);
        if !differs.is_empty() {
            return Err(format!("{} differ", differs.join(" and ")));
        }
        if let Some((name, _)) = self.told.iter().find(|told| !grant.powers().environment.contains(told)) {
            return Err(format!("it knows of `{}`, which is another now, or none", name.to_string_lossy()));
        }
        let program = std::fs::canonicalize(&grant.powers().command.program);
        match program.is_ok_and(|program| program == self.program) {
            true => told(grant),
            false => Err("it is another command".to_owned()),
        }
    }
}

impl Blank for Waiting {
    fn fits(&self, grant: &Grant) -> Result<(), String> {
        self.words(grant).map(drop)
    }

    fn begin(self: Box<Self>, grant: &Grant, streams: Streams) -> Result<Box<dyn Sandbox>, SetupFailure> {
        check_descriptors()?;
        let words = self.words(grant).map_err(|why| unfit(&why))?;
        let powers = grant.powers();
        let Streams { input, output, error, terminal: _, apart, witness, outside: _ } = streams;
        let pumps = Pumps::prepare(powers.limits.output, false, output, error, apart).map_err(cannot("make pipes"))?;
        let input = Input::prepare(false, input).map_err(cannot("make pipes"))?;
        let Waiting { mut warm, greeting, control, program: _, told: _ } = *self;
        if let Some((user, group)) = greeting.owner {
            let given = pumps.give_to(user, group).and_then(|()| input.give_to(user, group));
            given.map_err(cannot("hand its pipes over"))?;
        }
        let three = [input.childs(), pumps.output_of_child(), pumps.error_of_child()];
        descriptors::send(control.as_fd(), &words, &three).map_err(cannot("tell it what to run"))?;
        warm.begin_told(grant.clone(), pumps.enter_parent(), input.enter_parent(), witness);
        Ok(Box::new(warm))
    }

    fn abandon(self: Box<Self>) {
        // Ended by its carrier's end as well; here it is only ended sooner.
        drop(self.warm.at_once());
    }
}
