//! Carries one request from asked to answered: judge → enclose → supervise. One file a stage.
//!
//! Names no backend and no front-end: they are given to it.

mod enclose;
mod judge;
mod survey;
mod toolchains;

use model::{Backend, Diagnosis, Outcome, Plan, Refusal, Request, Service};

pub struct Engine {
    backends: Vec<Box<dyn Backend>>,
    version: &'static str,
}

impl Engine {
    /// `backends`: the strongest first.
    pub fn new(backends: Vec<Box<dyn Backend>>, version: &'static str) -> Engine {
        Engine { backends, version }
    }
}

impl Service for Engine {
    fn run(&self, request: &Request) -> Outcome {
        let judged = match judge::judge(request) {
            Ok(judged) => judged,
            Err(outcome) => return outcome,
        };
        let enclosed = match enclose::in_the_strongest(&self.backends, request, &judged) {
            Ok(enclosed) => enclosed,
            Err(outcome) => return outcome,
        };
        enclosed.supervise()
    }

    fn explain(&self, request: &Request) -> Result<Plan, Outcome> {
        let judged = judge::judge(request)?;
        let backend = enclose::choose(&self.backends, request)?;
        backend.plan(&judged).map_err(Outcome::NotSetUp)
    }

    fn diagnose(&self) -> Diagnosis {
        let uname = rustix::system::uname();
        Diagnosis {
            version: self.version.to_owned(),
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            backends: self.backends.iter().map(|backend| backend.diagnose()).collect(),
        }
    }
}

/// A no that names its rule.
fn refused(rule: &str, message: String, hint: &str) -> Outcome {
    Outcome::Refused(Refusal { rule: rule.to_owned(), message, hint: hint.to_owned() })
}
