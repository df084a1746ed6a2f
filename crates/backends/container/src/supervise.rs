//! Watches a container to its end: holds the limits that the engine does not, passes signals and streams on, and leaves
//! nothing behind.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant, SystemTime};

use model::{
    Enforcement, Exit, Finished, Goes, Held, Inspected, Outcome, Overrun, Powers, Sample, SetupFailure, StartFailure,
    Started, Timing, Usage, Wall,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sys::{process, signals};

use crate::api::{State, Stats, Waited};
use crate::launch::Raised;
use crate::screen::Screen;

pub struct Supervised {
    pub raised: Raised,
    pub powers: Powers,
    pub enforcement: Enforcement,
    /// Where programs are looked for inside.
    pub search_path: String,
}

/// How long somebody who was asked to end may take.
const GRACE: Duration = Duration::from_secs(5);
/// This many interrupts within a second mean it.
const INSISTENCE: u32 = 3;
/// What runs shorter is not measured: the engine needs that long for a first number.
const MEASURED_AFTER: Duration = Duration::from_millis(500);
const ASK_AGAIN: Duration = Duration::from_millis(20);

struct Watch<'a> {
    raised: Raised,
    powers: &'a Powers,
    screen: Option<Screen>,
    deadline: Option<Instant>,
    grace: Option<Instant>,
    interrupts: (u32, Instant),
    measure_at: Option<Instant>,
    usage: Usage,
    waited: Option<Waited>,
    overrun: Option<Overrun>,
    /// The engine went away.
    lost: bool,
    /// Was told that nobody listens.
    told_unheard: bool,
    /// When to ask whether a program that says nothing any more has ended.
    ask_again: Option<Instant>,
}

impl model::Sandbox for Supervised {
    fn supervise(self: Box<Self>) -> Outcome {
        let Supervised { raised, powers, enforcement, search_path } = *self;
        let mut watch = Watch::new(raised, &powers);
        let watched = watch.until_the_end();
        let (state, ended) = watch.end();
        let elapsed = watch.raised.started.elapsed();
        watch.raised.clock.lap("payload: run, end");
        let drained = watch.raised.line.drain(watch.overrun.is_none(), watch.raised.signals.as_fd());
        let told = watch.tell_last();
        watch.screen = None;
        let start_failure = watch.not_started(&search_path);
        let removed = watch.raised.charge.remove(&watch.raised.api);
        let Watch { mut raised, usage, waited, overrun, lost, .. } = watch;
        raised.clock.lap("engine: remove the container");
        // The gate takes what goes out until here.
        drop(raised.outside.take());
        if removed.is_ok()
            && let Some(keeper) = raised.keeper.take()
            && let Err(error) = keeper.dismiss()
        {
            return failed("dismiss who cleans up", &error.to_string());
        }
        if lost {
            let ended = match ended {
                true => "what ran in it was ended by belljar itself",
                false => "whether what ran in it has ended is not known",
            };
            return Outcome::NotSetUp(SetupFailure {
                wall: Some(Wall::CleanUp),
                message: format!("the container engine went away during the run; {ended}"),
                fix: "start the engine again: the next belljar that uses it removes what is left".to_owned(),
                layers: false,
            });
        }
        let well = watched
            .map_err(|error| ("watch it", error.to_string()))
            .and(told.map_err(|error| ("record it", error.to_string())))
            .and(drained.map_err(|error| ("pass its output on", error.to_string())))
            .and(removed.map_err(|error| ("remove its container", error.to_string())));
        if let Err((what, error)) = well {
            return failed(what, &error);
        }
        if let Some(failure) = start_failure {
            return Outcome::NotStarted(failure);
        }
        let code = waited.as_ref().map_or(state.exit_code, |waited| waited.status_code);
        let out_of_memory = state.oom_killed && code == 137;
        let exit = match overrun.is_some() || out_of_memory {
            true => Exit::Signal(9),
            false => Exit::Code(i32::try_from(code).unwrap_or(255)),
        };
        let gaps = enforcement.walls.iter().filter(|holding| holding.held != Held::Fully);
        let accepted_gaps = gaps.map(|holding| (holding.wall, holding.held.clone())).collect();
        Outcome::Ran(Box::new(Finished {
            run: String::new(),
            exit,
            overrun: overrun.or(out_of_memory.then_some(Overrun::Memory)),
            usage: Usage { wall_time: elapsed, out_of_memory_kills: u64::from(state.oom_killed), ..usage },
            denials: Vec::new(),
            denials_not_listed: 0,
            output_dropped: raised.line.dropped(),
            enforcement,
            accepted_gaps,
            leftover: None,
            inspected: Inspected::default(),
            redacted: Vec::new(),
            captured: None,
            unguarded: Vec::new(),
            traffic: None,
            alerts: Vec::new(),
            gathered: None,
            backend: crate::NAME.to_owned(),
            because: String::new(),
            image: None,
            timing: raised.clock.parts.into_iter().map(|(step, nanoseconds)| Timing { step, nanoseconds }).collect(),
        }))
    }
}

fn failed(what: &str, error: &str) -> Outcome {
    Outcome::NotSetUp(SetupFailure {
        wall: Some(Wall::CleanUp),
        message: format!("the run was ended because belljar could not {what}: {error}"),
        fix: "see the engine's own log; the next belljar that uses it removes what is left".to_owned(),
        layers: false,
    })
}

impl<'a> Watch<'a> {
    fn new(raised: Raised, powers: &'a Powers) -> Watch<'a> {
        Watch {
            deadline: powers.limits.wall_time.map(|time| raised.started + time),
            measure_at: Some(raised.started + MEASURED_AFTER),
            raised,
            powers,
            screen: None,
            grace: None,
            interrupts: (0, Instant::now()),
            usage: Usage::default(),
            waited: None,
            overrun: None,
            lost: false,
            told_unheard: false,
            ask_again: None,
        }
    }

    fn until_the_end(&mut self) -> io::Result<()> {
        if self.raised.terminal {
            self.screen = Some(Screen::take());
            self.resize()?;
        }
        loop {
            let now = Instant::now();
            let past = |moment: Option<Instant>| moment.is_some_and(|moment| now >= moment);
            if past(self.deadline) {
                self.overrun = Some(Overrun::WallTime);
                return Ok(());
            }
            if past(self.grace) {
                self.overrun = Some(Overrun::Cancelled);
                return Ok(());
            }
            self.raised.line.outs_mut().for_each(|out| out.let_go(now));
            self.wait_for_something(now)?;
            self.raised.line.pump()?;
            if self.raised.line.is_unheard() && !self.told_unheard {
                // It hears of that as it would without us.
                self.told_unheard = true;
                self.tell(SIGPIPE)?;
            }
            while let Some(signal) = signals::read(self.raised.signals.as_fd())? {
                self.pass_on(signal)?;
            }
            if self.measure()? {
                return Ok(());
            }
            if self.has_ended()? {
                return Ok(());
            }
            // Not before that is known: on a busy host it may have ended before it could be watched.
            if past(self.measure_at) {
                self.measure_at = None;
                self.raised.stats = Some(self.raised.api.stats(&self.raised.id).map_err(other)?);
            }
        }
    }

    /// Whether the payload, or the engine, is no more.
    fn has_ended(&mut self) -> io::Result<bool> {
        if let Some(wait) = &mut self.raised.wait {
            let open = wait.hear().unwrap_or(false);
            self.waited = wait.last_object();
            if self.waited.is_none() && !open {
                self.lost = self.raised.api.inspect(&self.raised.id).is_err();
            }
            return Ok(self.waited.is_some() || !open);
        }
        // All is said; whether all is done is asked now and then.
        let Some(exec) = self.raised.exec.as_ref().filter(|_| self.raised.line.ended) else { return Ok(false) };
        match self.raised.api.exec_state(exec) {
            Ok(state) if state.running => self.ask_again = Some(Instant::now() + ASK_AGAIN),
            Ok(state) => {
                self.waited = Some(Waited { status_code: state.exit_code.unwrap_or(137), error: None });
                return Ok(true);
            }
            Err(_) => {
                self.lost = true;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn wait_for_something(&self, now: Instant) -> io::Result<()> {
        let raised = &self.raised;
        let mut list = vec![PollFd::new(&raised.signals, PollFlags::IN)];
        list.extend(raised.wait.iter().map(|wait| PollFd::from_borrowed_fd(wait.stream().as_fd(), PollFlags::IN)));
        list.extend(raised.stats.iter().map(|stats| PollFd::from_borrowed_fd(stats.stream().as_fd(), PollFlags::IN)));
        let line = raised.line.wanted();
        let flags = |out| if out { PollFlags::OUT } else { PollFlags::IN };
        list.extend(line.iter().map(|(fd, out): &(BorrowedFd<'_>, bool)| PollFd::from_borrowed_fd(*fd, flags(*out))));
        let moments = [self.deadline, self.grace, self.measure_at, self.ask_again, raised.line.next()];
        let next = moments.into_iter().flatten().min();
        let timeout = next.map(|moment| timespec(moment.saturating_duration_since(now)));
        match poll(&mut list, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what the engine says of its use. True if it has to end.
    fn measure(&mut self) -> io::Result<bool> {
        let Some(stats) = &mut self.raised.stats else { return Ok(false) };
        if !stats.hear().unwrap_or(false) {
            // Nothing more is told of what has ended.
            self.raised.stats = None;
            return Ok(false);
        }
        let Some(told) = stats.last_object::<Stats>() else { return Ok(false) };
        let used = told.cpu_stats.cpu_usage;
        // The last line, of what has ended already, is empty.
        if used.total_usage == 0 {
            return Ok(false);
        }
        let processor = Duration::from_nanos(used.total_usage);
        self.usage.user_time = Duration::from_nanos(used.usage_in_usermode);
        self.usage.system_time = Duration::from_nanos(used.usage_in_kernelmode);
        let memory = told.memory_stats;
        self.usage.peak_memory = self.usage.peak_memory.max(memory.usage).max(memory.max_usage);
        if self.powers.limits.cpu_time.is_some_and(|limit| processor >= limit) {
            self.overrun = Some(Overrun::CpuTime);
            return Ok(true);
        }
        let (read, written) = moved(&told.blkio_stats);
        let sample = Sample {
            after: self.raised.started.elapsed(),
            processor,
            memory: memory.usage,
            processes: told.pids_stats.current,
            read,
            written,
            output: self.raised.line.passed(),
            denials: 0,
        };
        let goes = match &mut self.raised.witness {
            Some(witness) => witness.sampled(&sample).map_err(|trouble| io::Error::other(trouble.to_string()))?,
            None => Goes::On,
        };
        if goes == Goes::Ended {
            self.overrun = Some(Overrun::Suspended);
        }
        Ok(goes == Goes::Ended)
    }

    /// Ends it, whatever it still does; what the engine says of it in the end, and whether it has ended.
    fn end(&mut self) -> (State, bool) {
        if let Some(witness) = &mut self.raised.witness {
            witness.ending();
        }
        let mut ended = self.waited.is_some();
        if !ended && !self.lost {
            self.lost = self.raised.api.kill(&self.raised.id, 9).is_err();
        }
        if self.lost
            && let Some(handle) = &self.raised.handle
        {
            // Its first process, and with it all others.
            ended = match process::signal(handle.as_fd(), 9) {
                Ok(()) => true,
                Err(error) => error.raw_os_error() == Some(Errno::SRCH.raw_os_error()),
            };
        }
        let state = self.raised.api.inspect(&self.raised.id).map(|inspected| inspected.state).unwrap_or_default();
        (state, ended)
    }

    /// What was started: only the payload itself is known.
    fn tell_last(&mut self) -> Result<(), model::Trouble> {
        let Some(witness) = &mut self.raised.witness else { return Ok(()) };
        let command = &self.powers.command;
        let arguments = command.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let started = Started {
            at: SystemTime::now() - self.raised.started.elapsed(),
            process: self.raised.first,
            parent: None,
            program: command.program.display().to_string(),
            arguments,
            cut: false,
        };
        witness.started(vec![started], true)
    }

    /// The first process says so by its code, and so may the payload: whether the program is there tells which it was.
    fn not_started(&self, search_path: &str) -> Option<StartFailure> {
        let code = self.waited.as_ref()?.status_code;
        if self.overrun.is_some() || !matches!(code, 126 | 127) {
            return None;
        }
        let command = &self.powers.command;
        let program = command.program.to_str()?;
        let candidates: Vec<String> = match program.contains('/') {
            true => vec![command.directory.join(program).to_string_lossy().into_owned()],
            false => search_path.split(':').map(|folder| format!("{folder}/{program}")).collect(),
        };
        let there = |path: &String| self.raised.api.has_path(&self.raised.id, path).unwrap_or(true);
        match candidates.iter().any(there) {
            true => None,
            false => Some(StartFailure {
                found: false,
                message: format!("cannot run `{program}`: it is not in the image"),
                fix: "check its name, or name an image that has it: `--image NAME`".to_owned(),
            }),
        }
    }

    fn resize(&self) -> io::Result<()> {
        match Screen::size() {
            Some((rows, columns)) => match &self.raised.exec {
                Some(exec) => self.raised.api.resize_exec(exec, rows, columns).map_err(other),
                None => self.raised.api.resize(&self.raised.id, rows, columns).map_err(other),
            },
            None => Ok(()),
        }
    }

    /// Signals to us are meant for the payload.
    fn pass_on(&mut self, signal: i32) -> io::Result<()> {
        let now = Instant::now();
        match signal {
            SIGCHLD | SIGPIPE => return Ok(()),
            SIGTERM | SIGHUP | SIGQUIT => self.grace = self.grace.or(Some(now + GRACE)),
            SIGINT => {
                let (count, since) = self.interrupts;
                self.interrupts = if now - since < Duration::from_secs(1) { (count + 1, since) } else { (1, now) };
                // Without somebody at a terminal who could press it again, once must do.
                if !rustix::termios::isatty(rustix::stdio::stdin()) {
                    self.grace = self.grace.or(Some(now + GRACE));
                } else if self.interrupts.0 >= INSISTENCE {
                    self.grace = Some(now);
                }
            }
            SIGWINCH => return if self.raised.terminal { self.resize() } else { Ok(()) },
            SIGTSTP | SIGTTIN | SIGTTOU => {
                // As in a shell: the whole job stops, we last; and all go on together.
                self.tell(SIGTSTP)?;
                signals::stop_self()?;
                return self.tell(SIGCONT);
            }
            _ => {}
        }
        self.tell(signal)
    }

    fn tell(&self, signal: i32) -> io::Result<()> {
        if let Some(exec) = &self.raised.exec {
            // Engines pass signals on to the first process alone, which is not the payload's.
            let pid = self.raised.api.exec_state(exec).map_err(other)?.pid;
            // Zero would be all of us.
            return match if pid > 0 { process::kill(pid, signal) } else { Ok(()) } {
                Err(error) if error.raw_os_error() != Some(Errno::SRCH.raw_os_error()) => Err(error),
                _ => Ok(()),
            };
        }
        self.raised.api.kill(&self.raised.id, signal).map_err(other)
    }
}

/// Bytes read and written, as far as the engine tells.
fn moved(told: &serde_json::Value) -> (u64, u64) {
    let entries = told["io_service_bytes_recursive"].as_array();
    let sum = |what: &str| {
        let entries = entries.into_iter().flatten();
        let mine = entries.filter(|entry| entry["op"].as_str().is_some_and(|op| op.eq_ignore_ascii_case(what)));
        mine.filter_map(|entry| entry["value"].as_u64()).sum()
    };
    (sum("read"), sum("write"))
}

fn other(error: crate::trouble::Unusable) -> io::Error {
    io::Error::other(error.to_string())
}

fn timespec(duration: Duration) -> Timespec {
    // Rounded up, so that a wait never ends just before its moment.
    let duration = duration + Duration::from_micros(1);
    Timespec { tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), tv_nsec: duration.subsec_nanos().into() }
}

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGPIPE: i32 = 13;
const SIGTERM: i32 = 15;
const SIGCHLD: i32 = 17;
const SIGCONT: i32 = 18;
const SIGTSTP: i32 = 20;
const SIGTTIN: i32 = 21;
const SIGTTOU: i32 = 22;
const SIGWINCH: i32 = 28;
