//! Isolation by the kernel itself: namespaces, seccomp, Landlock, control groups. No daemon, no helper program.
//!
//! `plan` decides, purely; `launch` follows; `supervise` watches to the end; `assess` and `diagnose` tell the truth.

mod ahead;
mod assess;
mod behind;
mod calls;
pub mod carrier;
mod cells;
mod denials;
mod diagnose;
mod files;
#[cfg(test)]
mod gated;
#[cfg(test)]
mod golden;
mod groups;
mod host;
mod input;
mod launch;
mod leavings;
mod live;
mod measure;
mod output;
mod plan;
mod programs;
mod supervise;
mod terminal;
mod trust;
pub mod warm;

use std::cell::{OnceCell, RefCell};
use std::os::fd::OwnedFd;

use model::{
    Backend, BackendReport, Blank, CellWork, ContextDeed, ContextShown, Enforcement, FileWork, Grant, GroundKind,
    Handed, Network, Plan, Sandbox, SetupFailure, Stack, Streams, Strength, Trouble, Wall, Zygote,
};

pub use supervise::{Supervised, Warm};

use ahead::Expected;
use carrier::{Carrier, Ties};
use host::Host;
use launch::Starts;
use plan::Mode;
use trust::Trust;

/// The closed list of system calls, for backends that hand it to somebody else's filter.
pub mod closed_list {
    pub use crate::calls::{Options, rules};
}

/// What reads bytes that the guest chose. Not for use: for those who try it with all kinds of bytes.
#[doc(hidden)]
pub mod hostile {
    pub use crate::calls::{Options, answer, describe, rules};
    pub use crate::cells::{Frame as CellFrame, Frames as CellFrames, LARGEST_FRAME as LARGEST_CELL_FRAME};
    pub use crate::denials::{Denials, program_name};
    pub use crate::files::Decoded;
    pub use crate::measure::records;
}

/// The native backend. What it knows of the host it looks up once, when first asked.
#[derive(Default)]
pub struct Native {
    host: OnceCell<Host>,
    /// Waits for whatever is opened next.
    ahead: RefCell<Option<Expected>>,
}

impl Native {
    pub fn new() -> Native {
        Native::default()
    }

    fn host(&self) -> &Host {
        self.host.get_or_init(Host::known)
    }

    /// Namespaces unless they can't be had, and the grant says by name that it can do without.
    fn mode(&self, grant: &Grant) -> Mode {
        if grant.may_miss(Wall::User) && diagnose::namespaces().is_err() { Mode::Reduced } else { Mode::Full }
    }

    /// Without namespaces there is still the reduced mode, for those who accept its gaps by name.
    fn with_a_way_out(&self, failure: SetupFailure, grant: &Grant) -> SetupFailure {
        if failure.wall != Some(Wall::User) || grant.may_miss(Wall::User) {
            return failure;
        }
        let reduced = assess::assess(grant.powers(), self.host(), Mode::Reduced);
        let flags: Vec<String> =
            reduced.gaps(grant.accepted()).map(|gap| format!("--accept-gap {}", gap.wall)).collect();
        let fix = format!("{}; or run with Landlock, seccomp and limits alone: {}", failure.fix, flags.join(" "));
        SetupFailure { fix, ..failure }
    }

    fn blueprint(&self, grant: &Grant, stacks: &[Stack], trust: Trust) -> Result<plan::Blueprint, SetupFailure> {
        plan::plan(grant.powers(), stacks, trust, self.host(), self.mode(grant)).map_err(unplannable)
    }
}

/// For backends whose payload stands behind a carrier.
impl Native {
    /// How well each wall is held around a carrier.
    pub fn assess_around(&self, grant: &Grant) -> Enforcement {
        assess::assess(grant.powers(), self.host(), Mode::Full)
    }

    /// The closed list of calls, for whoever starts the payload behind it.
    pub fn calls_behind(&self) -> Vec<u8> {
        calls::behind().to_bytes()
    }

    /// Who the payload is to be behind it.
    pub fn payload_is(&self) -> (u32, u32) {
        plan::payload_is(self.host())
    }

    pub fn plan_around(
        &self,
        grant: &Grant,
        stacks: &[Stack],
        carrier: &Carrier,
    ) -> Result<Vec<model::Step>, SetupFailure> {
        let trust = Trust::foreseen(grant.powers());
        let blueprint = plan::carried(grant.powers(), stacks, trust, self.host(), carrier).map_err(unplannable)?;
        let carried = model::Command {
            program: carrier::PROGRAM.into(),
            arguments: carrier.arguments.clone(),
            directory: "/".into(),
            terminal: grant.powers().command.terminal,
        };
        Ok(plan::describe(&blueprint, &carried, "carrier"))
    }

    /// Raises all walls, and starts the carrier behind them.
    pub fn carry(
        &self,
        grant: &Grant,
        stacks: &[Stack],
        mut streams: Streams,
        trace: bool,
        (carrier, ties): (&Carrier, Ties),
        enforcement: Enforcement,
    ) -> Result<Supervised, SetupFailure> {
        let (trust, handed) = trust_for(grant, &mut streams)?;
        let powers = grant.powers();
        let blueprint = plan::carried(powers, stacks, trust, self.host(), carrier).map_err(unplannable)?;
        let starts = Starts::Carrier(carrier, ties);
        let raised = launch::launch(None, blueprint, powers, self.host(), (streams, handed), trace, starts)?;
        let grant = grant.clone();
        Ok(Supervised { raised, grant, enforcement, backend: carrier.backend, desk: None, time: None })
    }
}

fn unplannable(error: plan::Unplannable) -> SetupFailure {
    SetupFailure { wall: None, message: error.to_string(), fix: error.fix().to_owned(), layers: false }
}

/// Before anything else is done: no files are asked of nobody.
fn trust_for(grant: &Grant, streams: &mut Streams) -> Result<(Trust, Handed), SetupFailure> {
    match (&grant.powers().network, &mut streams.outside) {
        (Network::Gated(_), Some(outside)) => {
            let handed = outside.files();
            Ok((Trust::look(grant.powers(), handed.paths.clone()), handed))
        }
        (Network::Gated(_), None) => Err(launch::nobody_outside()),
        (Network::Closed, _) => Ok((Trust::default(), Handed::default())),
    }
}

impl Backend for Native {
    fn ground(&self) -> GroundKind {
        GroundKind::Host
    }

    fn strength(&self, _: &Grant) -> Strength {
        Strength::Namespaces
    }

    fn name(&self) -> &'static str {
        "native"
    }

    fn assess(&self, grant: &Grant) -> Enforcement {
        assess::assess(grant.powers(), self.host(), self.mode(grant))
    }

    fn plan(&self, grant: &Grant, stacks: &[Stack]) -> Result<Plan, SetupFailure> {
        let blueprint = self.blueprint(grant, stacks, Trust::foreseen(grant.powers()))?;
        let powers = grant.powers();
        let lossy = |text: &std::ffi::OsString| text.to_string_lossy().into_owned();
        Ok(Plan {
            backend: self.name().to_owned(),
            because: String::new(),
            program: powers.command.program.clone(),
            arguments: powers.command.arguments.iter().map(lossy).collect(),
            directory: powers.command.directory.clone(),
            environment: powers
                .environment
                .iter()
                .map(|(name, value)| format!("{}={}", lossy(name), lossy(value)))
                .collect(),
            steps: plan::describe(&blueprint, &powers.command, "payload"),
            enforcement: self.assess(grant),
        })
    }

    fn open(
        &self,
        grant: &Grant,
        stacks: &[Stack],
        mut streams: Streams,
        trace: bool,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        let (trust, handed) = trust_for(grant, &mut streams)?;
        let blueprint = self.blueprint(grant, stacks, trust)?;
        let (ahead, ends) = (self.ahead.take(), (streams, handed));
        let raised = launch::launch(ahead, blueprint, grant.powers(), self.host(), ends, trace, Starts::Command)
            .map_err(|failure| self.with_a_way_out(failure, grant))?;
        Ok(Box::new(Supervised {
            raised,
            grant: grant.clone(),
            enforcement: self.assess(grant),
            backend: self.name(),
            desk: None,
            time: None,
        }))
    }

    fn host(
        &self,
        grant: &Grant,
        stacks: &[Stack],
        mut streams: Streams,
        visitors: OwnedFd,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        if self.mode(grant) == Mode::Reduced {
            return Err(SetupFailure {
                wall: Some(Wall::User),
                message: "without namespaces a sandbox can't stay".to_owned(),
                fix: "run commands one by one, or use a host with user namespaces".to_owned(),
                layers: false,
            });
        }
        let (trust, handed) = trust_for(grant, &mut streams)?;
        let blueprint = plan::to_stay(grant.powers(), stacks, trust, self.host()).map_err(unplannable)?;
        let ends = (streams, handed);
        let raised =
            launch::launch(self.ahead.take(), blueprint, grant.powers(), self.host(), ends, false, Starts::Nothing)?;
        let greeting = live::Greeting::of(grant, raised.owner);
        let desk = live::desk::Desk::new(visitors, &greeting).map_err(launch::cannot("take visitors"))?;
        Ok(Box::new(Supervised {
            raised,
            grant: grant.clone(),
            enforcement: self.assess(grant),
            backend: self.name(),
            desk: Some(desk),
            time: None,
        }))
    }

    fn visit(&self, grant: &Grant, streams: Streams, host: OwnedFd) -> Result<Box<dyn Sandbox>, SetupFailure> {
        Ok(Box::new(live::visit::begin(host, grant, self.assess(grant), streams, live::visit::Starts::Command)?))
    }

    fn pause(&self, host: &OwnedFd, pause: bool) -> Option<Result<(), Trouble>> {
        Some(live::visit::wish(host, pause))
    }

    fn run_cell(
        &self,
        grant: &Grant,
        streams: Streams,
        work: CellWork,
        host: OwnedFd,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        Ok(Box::new(live::cell::begin(host, grant, self.assess(grant), streams, work)?))
    }

    fn contexts(&self, host: &OwnedFd) -> Option<Result<Vec<ContextShown>, Trouble>> {
        Some(live::cell::contexts(host))
    }

    fn do_to_context(&self, host: &OwnedFd, context: &str, deed: ContextDeed) -> Option<Result<bool, Trouble>> {
        Some(live::cell::do_to(host, context, deed))
    }

    fn work_on_files(
        &self,
        grant: &Grant,
        stacks: &[Stack],
        mut streams: Streams,
        work: FileWork,
        host: Option<OwnedFd>,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        let time = files::time_for(&work.operation);
        let operation = files::lowered(&work)?;
        files::listen(&mut streams, work);
        if let Some(host) = host {
            let starts = live::visit::Starts::Files(Box::new(operation), time);
            return Ok(Box::new(live::visit::begin(host, grant, self.assess(grant), streams, starts)?));
        }
        let (trust, handed) = trust_for(grant, &mut streams)?;
        let blueprint = self.blueprint(grant, stacks, trust)?;
        let starts = Starts::Files(Box::new(operation));
        let ends = (streams, handed);
        let raised = launch::launch(self.ahead.take(), blueprint, grant.powers(), self.host(), ends, false, starts)?;
        Ok(Box::new(Supervised {
            raised,
            grant: grant.clone(),
            enforcement: self.assess(grant),
            backend: self.name(),
            desk: None,
            time: time.or(Some(files::LONGEST)),
        }))
    }

    fn blank(&self, grant: &Grant, stacks: &[Stack], zygote: &Zygote) -> Result<Box<dyn Blank>, SetupFailure> {
        warm::blank(self, grant, stacks, zygote)
    }

    fn limber_up(&self) {
        drop(Host::known());
    }

    fn expect(&self) {
        // First: what was done for another is undone before it is done anew.
        drop(self.ahead.take());
        let expected = Expected::of(self.host());
        self.ahead.replace(expected);
    }

    fn expect_no_more(&self) {
        drop(self.ahead.take());
    }

    fn leave_for_later(&self) {
        leavings::put_off();
    }

    fn go_on_beside(&self) {
        // Where every processor has something to do, nothing is gained by it.
        if !matches!(*self.ahead.borrow(), Some(Expected::Together(_))) {
            leavings::go_on();
        }
    }

    fn tidy(&self) -> Result<(), Trouble> {
        leavings::tidy().map_err(|error| Trouble {
            message: format!("what is left of a sandbox could not be removed: {error}"),
            fix:
                "nobody is in it any more: remove what is named by hand; `belljar doctor` shows what this host can hold"
                    .to_owned(),
        })
    }

    fn diagnose(&self) -> BackendReport {
        diagnose::diagnose(self.host())
    }
}
