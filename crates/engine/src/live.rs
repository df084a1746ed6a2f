//! Sandboxes that stay: opened with nothing started in them, until somebody stops them. What is run in them meanwhile is judged,
//! scanned and recorded as ever, and then started behind walls that stand already.

use model::{KeptSandbox, Outcome, Request, Sandbox, Trouble};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::judge::{Admitted, usage};
use crate::record::Record;
use crate::told::Telling;
use crate::{Engine, enclose, layers};

/// How long a host may take to end what is inside.
const PATIENCE: Duration = Duration::from_secs(10);

impl Engine {
    /// Opens a kept sandbox, says so, and stays with it.
    pub(crate) fn stay_with(&self, which: &str, ready: &dyn Fn(&KeptSandbox)) -> Outcome {
        // What is granted to it does not depend on the command; each has a judgement of its own when it comes.
        let nothing = Request { command: vec!["/bin/true".into()], ..Request::default() };
        let request = match self.workspaces.request(which, &nothing) {
            Ok(request) => request,
            Err(trouble) => return layers::not_set_up(trouble),
        };
        let record = match self.record() {
            Ok(record) => record,
            Err(outcome) => return outcome,
        };
        let mut outcome = match self.admit(&request, Some(which), &record) {
            Ok(admitted) => self.stay_admitted(which, &request, &admitted, &record, ready),
            Err(outcome) => outcome,
        };
        record.watched_to_the_end(&mut outcome);
        Telling::of(&request).outcome(record.ended(&request, outcome))
    }

    /// The same, for somebody who had set a time for it: which is on the record before it is done.
    pub(crate) fn stop_because(&self, which: &str, why: &str) -> Result<KeptSandbox, Trouble> {
        let known = self.workspaces.identify(which)?;
        self.record_deed("sandbox.expired", serde_json::json!({"sandbox": known.id, "why": why}))?;
        self.stop_staying(&known.id)
    }

    fn stay_admitted(
        &self,
        which: &str,
        request: &Request,
        admitted: &Admitted,
        record: &Record<'_>,
        ready: &dyn Fn(&KeptSandbox),
    ) -> Outcome {
        let told = Telling::of(request).request(request);
        let run = match self.workspaces.resume(which, &told) {
            Ok(run) => run,
            Err(trouble) => return layers::not_set_up(trouble),
        };
        let id = run.record().id.clone();
        record.is_over(&id);
        let stay = || -> Result<Outcome, Outcome> {
            let visitors = self.workspaces.expect_visitors(&run).map_err(layers::not_set_up)?;
            let sandbox = enclose::to_stay(&self.backends, request, admitted, &run.stacks(), record, visitors)?;
            let mut known = self.workspaces.identify(&id).map_err(layers::not_set_up)?;
            (known.running, known.open) = (true, true);
            ready(&known);
            Ok(sandbox.supervise())
        };
        let mut outcome = stay().unwrap_or_else(|outcome| outcome);
        if let Outcome::Ran(finished) = &mut outcome {
            record.run().clone_into(&mut finished.run);
        }
        let traffic = admitted.traffic();
        let outcome = layers::left((&self.backends, &self.workspaces), run, record, outcome, None);
        match (self.workspaces.expect_no_more_visitors(&id), outcome) {
            (Err(trouble), Outcome::Ran(_)) => layers::not_set_up(trouble),
            (_, Outcome::Ran(mut finished)) => {
                finished.traffic = traffic;
                Outcome::Ran(finished)
            }
            (_, outcome) => outcome,
        }
    }

    pub(crate) fn pause_or_resume(&self, which: &str, pause: bool) -> Result<KeptSandbox, Trouble> {
        let known = self.workspaces.identify(which)?;
        let not_open = || Trouble {
            message: format!("sandbox {} is not open", known.id),
            fix: "only what stays can be paused: open it first".to_owned(),
        };
        let host = self.workspaces.call_on(&known.id)?.ok_or_else(not_open)?;
        self.backends.iter().find_map(|backend| backend.pause(&host, pause)).unwrap_or_else(|| Err(not_open()))?;
        let kind = if pause { "sandbox.paused" } else { "sandbox.resumed" };
        self.record_done(kind, false, serde_json::json!({"sandbox": known.id}))?;
        self.workspaces.identify(&known.id)
    }

    /// Asks its host to end, and waits for that.
    pub(crate) fn stop_staying(&self, which: &str) -> Result<KeptSandbox, Trouble> {
        let known = self.workspaces.identify(which)?;
        let not_open = || Trouble {
            message: format!("sandbox {} is not open", known.id),
            fix: "see `belljar ps` for those that run; a command that runs in it is stopped with Ctrl-C".to_owned(),
        };
        let host = self.workspaces.call_on(&known.id)?.ok_or_else(not_open)?;
        let cannot = |error: std::io::Error| Trouble {
            message: format!("cannot stop the host of sandbox {}: {error}", known.id),
            fix: "do it as the user who opened it".to_owned(),
        };
        let process = rustix::net::sockopt::socket_peercred(&host).map_err(|error| cannot(error.into()))?.pid;
        let handle = sys::process::open(process.as_raw_nonzero().get()).map_err(cannot)?;
        // Asked again with the descriptor in hand: the number could have come to mean somebody else.
        self.workspaces.call_on(&known.id)?.ok_or_else(not_open)?;
        sys::process::signal(handle.as_fd(), 15).map_err(cannot)?;
        await_end(&handle).map_err(cannot)?;
        self.workspaces.identify(&known.id)
    }
}

fn await_end(handle: &OwnedFd) -> std::io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "it takes longer than ten seconds"));
        }
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&left)) {
            Ok(1..) => return Ok(()),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// In a sandbox that stands already, and whose host is there.
pub fn visit(
    backends: &[Box<dyn model::Backend>],
    request: &Request,
    admitted: &Admitted,
    record: &Record<'_>,
    host: OwnedFd,
) -> Result<Box<dyn Sandbox>, Outcome> {
    if !request.artifacts.is_empty() {
        return Err(usage(
            "artifacts can't be collected from a sandbox that is open".to_owned(),
            "stop it first: `belljar stop ID`",
        ));
    }
    enclose::visiting(backends, request, admitted, record, host)
}
