//! Isolation by a kernel of its own: gVisor's, which answers every call of the payload in user space.
//!
//! It stands inside a native sandbox, as a carrier: the same namespaces, files, limits, gate and clean-up, and whatever
//! breaks out of it is still in there. `bundle` says, purely, what it is told; `runsc` finds it; the payload is started by
//! our own first process behind it (`guest::usher`), whose orders are an `errand`.

mod assess;
mod bundle;
mod errand;
#[cfg(test)]
mod golden;
mod runsc;
mod warm;

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use guest::usher;
use model::{
    Backend, BackendReport, Enforcement, Feature, Grant, GroundKind, Held, Plan, Sandbox, SetupFailure, Stack, Step,
    Streams, Strength,
};
use native::carrier::{Carrier, Ties};
use native::{Native, Supervised};
use rustix::fs::{MemfdFlags, OFlags};
use rustix::pipe::PipeFlags;

pub use warm::Warm;

use runsc::{Missing, Runsc};

const NAME: &str = "gvisor";

/// The gVisor backend.
pub struct Gvisor {
    around: Native,
    /// Where belljar keeps its state, and no sandbox ever sees anything; none if there is no such place.
    state: Option<PathBuf>,
    found: OnceCell<Result<Runsc, Missing>>,
}

impl Gvisor {
    /// `state`: the folder in which everything is kept that no sandbox may see.
    pub fn new(state: Option<PathBuf>) -> Gvisor {
        Gvisor { around: Native::new(), state, found: OnceCell::new() }
    }

    /// The one that is new enough. Looked for once: what is assessed is what is started.
    fn runsc(&self) -> Result<&Runsc, &Missing> {
        self.found.get_or_init(|| Runsc::known(self.state.as_deref())).as_ref()
    }

    fn carrier(&self, grant: &Grant, runsc: &Runsc, numbers: bundle::Numbers) -> Result<Carrier, SetupFailure> {
        let powers = grant.powers();
        // Free of links already: the kernel says it.
        let usher =
            std::env::current_exe().map_err(|error| failure(&format!("cannot find belljar itself: {error}")))?;
        Ok(Carrier {
            backend: NAME,
            program: runsc.program.clone(),
            arguments: bundle::arguments(powers, numbers),
            usher,
            files: vec![("config.json", bundle::config(powers))],
        })
    }

    /// Raises all walls and starts gVisor in them. The payload waits for the word to go.
    fn raise(
        &self,
        grant: &Grant,
        stacks: &[Stack],
        streams: Streams,
        trace: bool,
    ) -> Result<(Supervised, Reins), SetupFailure> {
        let runsc = self.runsc().map_err(not_there)?;
        let (reins, gifts, (report, tell)) =
            Reins::make().map_err(|error| failure(&format!("cannot begin: {error}")))?;
        let [told, orders, go] = &gifts;
        let numbers = bundle::Numbers { report: told.as_raw_fd(), orders: orders.as_raw_fd(), go: go.as_raw_fd() };
        let carrier = self.carrier(grant, runsc, numbers)?;
        let ties = Ties { gifts: gifts.into(), report, tell };
        let raised = self.around.carry(grant, stacks, streams, trace, (&carrier, ties), self.assess(grant))?;
        Ok((raised, reins))
    }
}

/// By which the usher is told what to start, and when.
struct Reins {
    orders: File,
    go: File,
}

impl Reins {
    /// With what the usher gets (report, orders, go), and our ends of it.
    fn make() -> io::Result<(Reins, [OwnedFd; 3], (OwnedFd, OwnedFd))> {
        let (report, told) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Only our ends must never wait.
        rustix::fs::fcntl_setfl(&told, OFlags::empty())?;
        let (hears, go) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        rustix::fs::fcntl_setfl(&hears, OFlags::empty())?;
        let orders = rustix::fs::memfd_create(c"belljar-orders", MemfdFlags::CLOEXEC)?;
        let reins = Reins { orders: File::from(orders.try_clone()?), go: File::from(go.try_clone()?) };
        Ok((reins, [told, orders, hears], (report, go)))
    }

    fn send(self, errand: &usher::Errand) -> io::Result<()> {
        let Reins { mut orders, mut go } = self;
        orders.write_all(&errand.encode())?;
        go.write_all(b"g")
    }
}

impl Backend for Gvisor {
    fn ground(&self) -> GroundKind {
        GroundKind::Host
    }

    fn strength(&self, _: &Grant) -> Strength {
        Strength::UserKernel
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn assess(&self, grant: &Grant) -> Enforcement {
        assess::assess(self.around.assess_around(grant), self.runsc().map(drop).map_err(Clone::clone))
    }

    fn plan(&self, grant: &Grant, stacks: &[Stack]) -> Result<Plan, SetupFailure> {
        let powers = grant.powers();
        let runsc = self.runsc().map_err(not_there)?;
        let version = runsc.version().map_err(|missing| not_there(&missing))?;
        let carrier = self.carrier(grant, runsc, bundle::Numbers::FORESEEN)?;
        let mut steps = self.around.plan_around(grant, stacks, &carrier)?;
        steps.push(Step {
            by: "carrier",
            does: format!("boot     gVisor {version} on {}, as {}", bundle::PLATFORM, runsc.program.display()),
        });
        steps.extend(errand::describe(powers, self.around.payload_is()));
        let lossy = |text: &std::ffi::OsString| text.to_string_lossy().into_owned();
        Ok(Plan {
            backend: NAME.to_owned(),
            because: String::new(),
            program: powers.command.program.clone(),
            arguments: powers.command.arguments.iter().map(lossy).collect(),
            directory: powers.command.directory.clone(),
            environment: powers
                .environment
                .iter()
                .map(|(name, value)| format!("{}={}", lossy(name), lossy(value)))
                .collect(),
            steps,
            enforcement: self.assess(grant),
        })
    }

    fn open(
        &self,
        grant: &Grant,
        stacks: &[Stack],
        streams: Streams,
        trace: bool,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        let errand = errand::errand(grant.powers(), self.around.payload_is(), self.around.calls_behind())
            .map_err(|error| failure(&format!("cannot pass on the command: {error}")))?;
        let (raised, reins) = self.raise(grant, stacks, streams, trace)?;
        // Before it is there: it finds its orders, and the word to go, when it comes.
        reins.send(&errand).map_err(|error| failure(&format!("cannot pass on the command: {error}")))?;
        Ok(Box::new(raised))
    }

    fn diagnose(&self) -> BackendReport {
        let around = self.around.diagnose();
        let found = self.runsc().map_err(Clone::clone).and_then(|runsc| Ok((runsc.version()?, runsc.clone())));
        let feature = |what: &str, found: Result<String, Missing>| Feature {
            what: what.to_owned(),
            works: found.is_ok(),
            fix: found.as_ref().err().map_or(String::new(), |missing| missing.fix().to_owned()),
            detail: found.unwrap_or_else(|missing| missing.to_string()),
        };
        let there = found.as_ref().map(|(version, runsc)| format!("{version}, {}", runsc.program.display()));
        let features = vec![
            feature("runsc", there.map_err(Clone::clone)),
            Feature {
                what: "native walls around it".to_owned(),
                works: around.usable,
                detail: if around.usable { "stand" } else { "are not all to be had" }.to_owned(),
                fix: if around.usable { "" } else { "see the native backend" }.to_owned(),
            },
            feature("platform", found.as_ref().map(|_| bundle::PLATFORM.to_owned()).map_err(Clone::clone)),
        ];
        let enforcement = assess::assess(around.enforcement, found.map(drop));
        let usable = !enforcement.walls.iter().any(|holding| matches!(holding.held, Held::Not(_)));
        BackendReport { backend: NAME.to_owned(), usable, features, enforcement }
    }
}

fn not_there(missing: &Missing) -> SetupFailure {
    SetupFailure {
        wall: Some(model::Wall::SystemCalls),
        message: missing.to_string(),
        fix: missing.fix().to_owned(),
        layers: false,
    }
}

fn failure(message: &str) -> SetupFailure {
    SetupFailure { wall: None, message: message.to_owned(), fix: "see `belljar doctor`".to_owned(), layers: false }
}
