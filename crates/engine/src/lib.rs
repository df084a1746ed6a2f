//! Carries one request from asked to answered: judge → enclose → supervise. One file a stage.
//!
//! Names no backend and no front-end: they are given to it.

pub mod approvals;
mod enclose;
mod judge;
mod layers;
mod sandboxes;
mod survey;
mod toolchains;

use model::{Backend, Diagnosis, Finding, Outcome, Plan, Refusal, Request, Sandboxes, Service, Watch};
use workspace::Workspaces;

pub struct Engine {
    backends: Vec<Box<dyn Backend>>,
    workspaces: Workspaces,
    approvals: approvals::Approvals,
    version: &'static str,
}

impl Engine {
    /// `backends`: the strongest first. `watch` is told of work that takes long.
    pub fn new(backends: Vec<Box<dyn Backend>>, watch: Box<dyn Watch>, version: &'static str) -> Engine {
        let approvals = approvals::Approvals::of_the_user();
        Engine { backends, workspaces: Workspaces::of_the_user(watch), approvals, version }
    }
}

impl Service for Engine {
    fn run(&self, request: &Request) -> Outcome {
        match judge::judge(request) {
            Ok(grant) => layers::run(&self.backends, &self.workspaces, request, &grant, None),
            Err(outcome) => outcome,
        }
    }

    fn explain(&self, request: &Request) -> Result<Plan, Outcome> {
        let judged = judge::judge(request)?;
        let backend = enclose::choose(&self.backends, request)?;
        let stacks = self.workspaces.preview(&layers::places(&judged));
        backend.plan(&judged, &stacks).map_err(Outcome::NotSetUp)
    }

    fn diagnose(&self) -> Diagnosis {
        let uname = rustix::system::uname();
        Diagnosis {
            version: self.version.to_owned(),
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            backends: self.backends.iter().map(|backend| backend.diagnose()).collect(),
            workspaces: self.examine_layers(),
        }
    }

    fn sandboxes(&self) -> &dyn Sandboxes {
        self
    }

    fn approvals(&self) -> &dyn model::Approvals {
        &self.approvals
    }
}

impl Engine {
    fn examine_layers(&self) -> Finding {
        let (works, detail) = self.workspaces.examine();
        let fix = if works {
            ""
        } else {
            "put XDG_STATE_HOME on ext4, xfs, btrfs or tmpfs; until then workspaces are copied"
        };
        Finding { what: "layers over workspaces".to_owned(), works, detail, fix: fix.to_owned() }
    }
}

/// A no that names its rule.
fn refused(rule: &str, message: String, hint: &str) -> Outcome {
    Outcome::Refused(Refusal::new(rule, message, hint))
}
