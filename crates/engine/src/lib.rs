//! Carries one request from asked to answered: judge → enclose → supervise. One file a stage.
//!
//! Names no backend and no front-end: they are given to it.

pub mod approvals;
mod archive;
mod artifacts;
mod capture;
mod commit;
mod contexts;
mod digests;
mod door;
mod enclose;
mod examine;
mod exports;
mod files;
mod forward;
mod fresh;
mod gate;
mod ground;
mod inspect;
mod judge;
mod layers;
mod live;
mod monitor;
mod outside;
mod policies;
mod rail;
mod rates;
mod ready;
mod receipt;
mod record;
mod records;
mod release;
mod rules;
mod sandboxes;
mod scan;
mod secrets;
mod survey;
mod told;
mod toolchains;
mod user;
mod usher;

use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use ledger::Durable;
use model::{
    Agents, Backend, Benchmark, BenchmarkWish, Benchmarks, Candidate, Diagnosis, Examiner, Exports, Feature, Images,
    Outcome, Permitted, Person, Plan, Policies, Ready, Records, Refusal, Request, RuleLanguage, Sandboxes, Scans,
    Secrets, Service, Trouble, Visits, Watch, Zygote,
};
use workspace::Workspaces;

use judge::Admitted;
use record::Record;
use told::Telling;

pub struct Engine {
    backends: Vec<Box<dyn Backend>>,
    workspaces: Workspaces,
    /// Made when somebody must be asked: most runs ask nobody.
    approvals: OnceCell<approvals::Approvals>,
    /// Where the record of everything is; nothing, if there is no place for one.
    ledger: OnceCell<Option<ledger::Ledger>>,
    /// The user's secrets; made when one is spoken of.
    vault: OnceCell<Option<vault::Vault>>,
    languages: Vec<Box<dyn RuleLanguage>>,
    watch: Rc<dyn Watch>,
    person: Option<Box<dyn Person>>,
    comparisons: Box<dyn Benchmarks>,
    /// Reads the code of the next run, where it was begun ahead of it.
    reader: RefCell<Option<inspect::Reader>>,
    /// Has read it, and is to be ended.
    spent: Rc<RefCell<Option<inspect::Reader>>>,
    /// The run that was carried out last: what is left of its sandbox is found out after it.
    last: RefCell<Option<String>>,
    /// What only tidies up is left until whoever waits for an answer has it.
    later: Cell<bool>,
    /// Looks into what a run made before it is released.
    examiner: Box<dyn Examiner>,
    version: &'static str,
}

/// What an engine is put together from.
pub struct Parts {
    /// The cheapest first.
    pub backends: Vec<Box<dyn Backend>>,
    /// That rules may be written in, besides our own.
    pub languages: Vec<Box<dyn RuleLanguage>>,
    /// Is told of work that takes long.
    pub watch: Box<dyn Watch>,
    /// Who can be asked here and now.
    pub person: Option<Box<dyn Person>>,
    /// Measures backends beside each other.
    pub comparisons: Box<dyn Benchmarks>,
    /// Where everything lies that this engine keeps; nothing: in the user's own places. For a process with one engine: what is
    /// said here holds for all of it.
    pub state: Option<PathBuf>,
    pub version: &'static str,
}

impl Engine {
    pub fn new(parts: Parts) -> Engine {
        let Parts { backends, languages, watch, person, comparisons, state, version } = parts;
        // First of all: whatever asks where things are gets this answer.
        if let Some(state) = state {
            workspace::state_lies_in(state);
        }
        let watch: Rc<dyn Watch> = Rc::from(watch);
        let workspaces = Workspaces::of_the_user(Box::new(watch.clone()));
        let examiner = Box::new(examine::Scanners);
        let (approvals, ledger, vault) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Engine {
            backends,
            languages,
            watch,
            workspaces,
            approvals,
            ledger,
            vault,
            person,
            comparisons,
            examiner,
            reader: RefCell::default(),
            spent: Rc::default(),
            last: RefCell::default(),
            later: Cell::default(),
            version,
        }
    }
}

impl Service for Engine {
    fn run(&self, request: &Request) -> Outcome {
        self.recorded(request, None)
    }

    fn make_ready(&self, request: &Request, zygote: Zygote) -> Result<Box<dyn Ready + '_>, Outcome> {
        Ok(Box::new(self.prepare(request, &zygote)?))
    }

    fn rehearse(&self) {
        inspect::rehearse();
        told::rehearse();
        ledger::rehearse();
    }

    fn expect(&self) {
        // The cheapest is the likeliest; whoever is chosen instead has it ended.
        if let Some(backend) = self.backends.first() {
            backend.expect();
        }
    }

    fn limber_up(&self) {
        let request = Request { command: vec!["/bin/true".into()], ..Request::default() };
        // Whatever is wrong with it here is nobody's request. No code is read for it, and so no rules that may change.
        drop(self.foresee(&request));
        self.backends.iter().for_each(|backend| backend.limber_up());
    }

    fn leave_for_later(&self) {
        self.later.set(true);
        self.backends.iter().for_each(|backend| backend.leave_for_later());
        self.workspaces.leave_for_later();
    }

    fn tidy(&self) -> Result<(), Trouble> {
        drop(self.spent.take());
        // First: their mounts are of the layers that are removed next.
        let apart = self.tidy_backends();
        let told = apart.as_ref().err().map_or(Ok(()), |trouble| self.record_leavings(trouble));
        self.workspaces.tidy().and(apart).and(told)
    }

    fn permit(&self, request: &Request, kept: Option<&str>) -> Result<Permitted, Outcome> {
        let request = match kept {
            Some(which) => &self.workspaces.request(which, request).map_err(layers::not_set_up)?,
            None => request,
        };
        self.permitted(request, kept)
    }

    fn explain(&self, request: &Request) -> Result<Plan, Outcome> {
        let (judged, _) = self.foresee(request)?;
        let choice = enclose::choose(&self.backends, request, &judged)?;
        let stacks = self.workspaces.preview(&layers::places(&judged));
        let plan = choice.backend.plan(&judged, &stacks).map_err(Outcome::NotSetUp)?;
        Ok(Plan { because: choice.because, ..plan })
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

    fn artifacts(&self) -> &dyn model::Artifacts {
        self
    }

    fn approvals(&self) -> &dyn model::Approvals {
        self.questions()
    }

    fn policies(&self) -> &dyn Policies {
        self
    }

    fn scans(&self) -> &dyn Scans {
        self
    }

    fn records(&self) -> &dyn Records {
        self
    }

    fn exports(&self) -> &dyn Exports {
        self
    }

    fn agents(&self) -> &dyn Agents {
        self
    }

    fn compare(&self, wish: &BenchmarkWish) -> Result<Benchmark, Trouble> {
        let candidate = |backend: &dyn Backend| {
            let report = backend.diagnose();
            let missing = report.features.iter().find(|feature| !feature.works);
            let why = || {
                missing.map_or_else(
                    || "see `belljar doctor`".to_owned(),
                    |feature| format!("{}: {}", feature.what, feature.detail),
                )
            };
            let unusable = (!report.usable).then(why);
            Candidate { name: backend.name().to_owned(), ground: backend.ground(), unusable }
        };
        let candidates = self.backends.iter().map(|backend| candidate(backend.as_ref())).collect();
        self.comparisons.compare(&BenchmarkWish { candidates, ..wish.clone() }, &*self.watch)
    }

    fn chart(&self, comparison: &Benchmark) -> String {
        self.comparisons.chart(comparison)
    }

    fn secrets(&self) -> &dyn Secrets {
        self
    }

    fn visits(&self) -> &dyn Visits {
        self
    }

    fn images(&self) -> Option<&dyn Images> {
        self.backends.iter().find_map(|backend| backend.images())
    }
}

impl Engine {
    /// In a new sandbox or in one that is kept, with everything on the record.
    fn recorded(&self, request: &Request, kept: Option<&str>) -> Outcome {
        let record = match self.record_run(request) {
            Ok(record) => record,
            Err(outcome) => return outcome,
        };
        self.last.replace(Some(record.run().to_owned()));
        // What came of it is written down meanwhile.
        self.backends.iter().for_each(|backend| backend.go_on_beside());
        let mut outcome = match self.admit(request, kept, &record) {
            Ok(admitted) => self.carry_out(request, &admitted, kept, &record),
            Err(outcome) => outcome,
        };
        record.watched_to_the_end(&mut outcome);
        let outcome = Telling::of(request).outcome(record.ended(request, outcome));
        if !self.later.get()
            && let Err(trouble) = self.tidy_backends()
        {
            // It ran, so its result is the answer.
            let Trouble { message, fix } = &trouble;
            self.watch.warn(&format!("{message}; {fix}"));
            if let Err(unwritten) = self.record_leavings(&trouble) {
                self.watch.warn(&format!("{unwritten}"));
            }
        }
        outcome
    }

    /// Of the last run, once that has ended.
    fn record_leavings(&self, Trouble { message, .. }: &Trouble) -> Result<(), Trouble> {
        let record = self.record_of(self.last.borrow().clone());
        record.left_behind(message);
        let durable = Durable { on_disk: false, checkpoint: true, last_words: true };
        record.write(durable).map_err(policies::trouble)
    }

    /// What is left of sandboxes that have ended is gone after this; the first that was not is told.
    fn tidy_backends(&self) -> Result<(), Trouble> {
        self.backends.iter().map(|backend| backend.tidy()).fold(Ok(()), Result::and)
    }

    fn carry_out(&self, request: &Request, admitted: &Admitted, kept: Option<&str>, record: &Record<'_>) -> Outcome {
        match self.collecting(request, &admitted.grant) {
            Ok(collecting) => {
                layers::run(&self.backends, &self.workspaces, request, admitted, kept, collecting.as_ref(), record)
            }
            Err(outcome) => outcome,
        }
    }

    fn questions(&self) -> &approvals::Approvals {
        self.approvals.get_or_init(approvals::Approvals::of_the_user)
    }

    fn examine_layers(&self) -> Feature {
        let (works, detail) = self.workspaces.examine();
        let fix = if works {
            ""
        } else {
            "put XDG_STATE_HOME on ext4, xfs, btrfs or tmpfs; until then workspaces are copied"
        };
        Feature { what: "layers over workspaces".to_owned(), works, detail, fix: fix.to_owned() }
    }
}

/// A no that names its rule.
fn refused(rule: &str, message: String, hint: &str) -> Outcome {
    Outcome::Refused(Refusal::new(rule, message, hint))
}
