//! Where rooms meet: each trait is implemented on one side and used on the other.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;

use crate::{
    Action, Agents, Approvals, Artifacts, Benchmark, BenchmarkWish, Branched, Cell, CellDone, CellNot, CellWork,
    Changes, Collected, ContextDeed, ContextShown, Enforcement, Envelope, Exports, FileAnswer, FileOperation, FileWork,
    FilesNot, Grant, GroundKind, ImageUsed, KeptSandbox, Outcome, Patch, Policies, Reason, Records, Request, Scans,
    Secrets, SetupFailure, Stack, Streams, Strength, Taken, Taking, Trouble, Visits, Wording,
};

/// What front-ends ask the engine for.
pub trait Service {
    fn run(&self, request: &Request) -> Outcome;
    /// Makes ready what a request like this one will need, so that it takes less time when it comes. Nothing runs, and nobody
    /// is asked.
    fn make_ready(&self, request: &Request, zygote: Zygote) -> Result<Box<dyn Ready + '_>, Outcome>;
    /// What every request needs and none changes is made now, once for all processes that are forked from this one.
    fn rehearse(&self) {}
    /// A run will probably be asked for in a moment: what does not depend on it may be begun.
    fn expect(&self) {}
    /// Does once what every request does, to no effect: this process has its own pages of memory then, when one comes.
    fn limber_up(&self) {}
    /// From here on, what only tidies up after a run is left to `tidy`: somebody waits for the answer.
    fn leave_for_later(&self);
    fn tidy(&self) -> Result<(), Trouble>;
    /// Whether `run` would be allowed, or `run_in` of a sandbox that is kept: judged and recorded as if, and a person is asked
    /// where the policy asks one. A yes for once is kept for a while, for the same request once. Nothing is run.
    fn permit(&self, request: &Request, kept: Option<&str>) -> Result<Permitted, Outcome>;
    /// What `run` would do, without doing it.
    fn explain(&self, request: &Request) -> Result<Plan, Outcome>;
    /// What this host can hold.
    fn diagnose(&self) -> Diagnosis;
    fn sandboxes(&self) -> &dyn Sandboxes;
    /// Files that earlier runs made.
    fn artifacts(&self) -> &dyn Artifacts;
    /// Questions that wait for a person, and answers to them.
    fn approvals(&self) -> &dyn Approvals;
    fn policies(&self) -> &dyn Policies;
    fn scans(&self) -> &dyn Scans;
    /// Everything that happened.
    fn records(&self) -> &dyn Records;
    /// The same, sent elsewhere.
    fn exports(&self) -> &dyn Exports;
    /// Who runs what, and what the monitor says of them.
    fn agents(&self) -> &dyn Agents;
    /// Backends beside each other, measured here and now. Which there are is known to it.
    fn compare(&self, wish: &BenchmarkWish) -> Result<Benchmark, Trouble>;
    fn chart(&self, comparison: &Benchmark) -> String;
    /// What the user keeps for requests that need it.
    fn secrets(&self) -> &dyn Secrets;
    /// Servers inside runs that go on.
    fn visits(&self) -> &dyn Visits;
    /// What sandboxes can stand on besides the host's own system; nothing if no backend has any.
    fn images(&self) -> Option<&dyn Images>;
}

/// What came of asking first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permitted {
    /// The policy allows it without asking.
    Already,
    /// A person, or an answer that stands, said yes.
    ByAnswer,
}

/// Sandboxes that are kept, and what they changed. `which` is an id, the start of one that is unique, a name, or `last`.
pub trait Sandboxes {
    /// Keeps a sandbox with these settings, to be used with `run_in`; says what it is called.
    fn create(&self, request: &Request, name: Option<&str>) -> Result<KeptSandbox, Outcome>;
    /// Runs in a kept sandbox. Of `request`, what a sandbox is made with is its own already.
    fn run_in(&self, which: &str, request: &Request) -> Outcome;
    /// Opens a kept sandbox with nothing started in it, and stays with it until somebody stops it. What is run in it
    /// meanwhile finds what was left running there. `ready`: it can be visited now.
    fn stay(&self, which: &str, ready: &dyn Fn(&KeptSandbox)) -> Outcome;
    /// Ends what stays, with everything that runs in it.
    fn stop(&self, which: &str) -> Result<KeptSandbox, Trouble>;
    /// The same, because of a time that was set for it.
    fn expire(&self, which: &str, why: &str) -> Result<KeptSandbox, Trouble>;
    /// Has everything in an open one stand still; or go on again. Time limits do not run meanwhile, and nothing can be started.
    fn pause(&self, which: &str, pause: bool) -> Result<KeptSandbox, Trouble>;
    /// Works on its files, behind its walls, whether it is open or not. `input`: what is written.
    fn files(&self, which: &str, operation: &FileOperation, input: Vec<u8>) -> Result<FileAnswer, FilesNot>;
    /// Runs code in a context of an open one, where it finds what cells before it left. Of `request`, what a run in it may ask for.
    fn run_cell(&self, which: &str, request: &Request, cell: &Cell) -> Result<CellDone, CellNot>;
    /// The contexts of an open one.
    fn contexts(&self, which: &str) -> Result<Vec<ContextShown>, CellNot>;
    fn do_to_context(&self, which: &str, context: &str, deed: ContextDeed) -> Result<(), CellNot>;
    /// Bytes for the variables of a context, with nothing in them yet.
    fn parcel(&self) -> Result<OwnedFd, Trouble>;
    /// Forks a context of an open one: its variables are written into bytes that nobody can change afterwards, and so many
    /// sandboxes are made that begin where this one is. They are told of as soon as they are there, while the variables are still being written.
    fn fork_context(
        &self,
        which: &str,
        request: &Request,
        cell: &Cell,
        into: (usize, OwnedFd),
        begun: &dyn Fn(&[KeptSandbox]),
    ) -> Result<Branched, CellNot>;
    /// Makes a context in an open one, with the variables that another wrote. `comes`: where they are handed over, once they are
    /// whole; the context is started meanwhile.
    fn take_up_context(&self, which: &str, request: &Request, cell: &Cell, comes: OwnedFd)
    -> Result<Branched, CellNot>;
    /// Hands the variables over to whoever takes them up at the other end.
    fn hand_over(&self, bytes: &OwnedFd) -> Result<OwnedFd, Trouble>;
    fn list(&self) -> Result<Vec<KeptSandbox>, Trouble>;
    /// The folders that those with layers are over, at once: nobody is called on, nothing is measured, and no record is read.
    fn under(&self) -> Result<Vec<PathBuf>, Trouble>;
    fn find(&self, which: &str) -> Result<KeptSandbox, Trouble>;
    /// The same at once: how much it takes on disk is not looked at.
    fn identify(&self, which: &str) -> Result<KeptSandbox, Trouble>;
    /// What changed at and below `paths`, or everywhere.
    fn changes(&self, which: &str, paths: &[PathBuf]) -> Result<Changes, Trouble>;
    /// How the second differs from the first.
    fn compare(&self, which: &str, other: &str, paths: &[PathBuf]) -> Result<Changes, Trouble>;
    /// The changes as a patch; of `other` against `which` where there is another.
    fn patch(&self, which: &str, other: Option<&str>, paths: &[PathBuf], wording: Wording) -> Result<Patch, Trouble>;
    fn apply(&self, which: &str, taking: &Taking) -> Result<Taken, Trouble>;
    /// Throws all changes away; says what it was before.
    fn discard(&self, which: &str) -> Result<KeptSandbox, Trouble>;
    /// Throws the sandbox away, with its snapshots.
    fn remove(&self, which: &str) -> Result<KeptSandbox, Trouble>;
    fn snapshot(&self, which: &str, name: Option<&str>) -> Result<String, Trouble>;
    /// Back to a snapshot, or to the newest.
    fn roll_back(&self, which: &str, snapshot: Option<&str>) -> Result<String, Trouble>;
    /// Sandboxes that begin where this one is.
    fn fork(&self, which: &str, count: usize) -> Result<Vec<KeptSandbox>, Trouble>;
    /// One that begins where this one is, or was at a snapshot.
    fn branch(&self, which: &str, snapshot: Option<&str>, name: Option<&str>) -> Result<KeptSandbox, Trouble>;
    /// Removes what was not used for so long, and what nobody refers to.
    fn collect(&self, older_than: Duration, only_tell: bool) -> Result<Collected, Trouble>;
}

/// Somebody who is told how long work goes on.
pub trait Watch {
    /// `done` of `total`, in steps of one kind; called often.
    fn progress(&self, what: &str, done: u64, total: u64);
    /// Something that costs, or that is not as one would expect.
    fn warn(&self, text: &str);
    /// A person is asked, and everything waits for the answer; `text` says how to give it.
    fn asks(&self, _question: &str, text: &str) {
        self.warn(text);
    }
    /// What was asked is not waited for any more: it was answered, or the time was over.
    fn asked(&self, _question: &str) {}
    /// It was let through everything, is on the record, and begins.
    fn begins(&self) {}
}

impl<W: Watch + ?Sized> Watch for Rc<W> {
    fn progress(&self, what: &str, done: u64, total: u64) {
        (**self).progress(what, done, total);
    }

    fn warn(&self, text: &str) {
        (**self).warn(text);
    }

    fn asks(&self, question: &str, text: &str) {
        (**self).asks(question, text);
    }

    fn asked(&self, question: &str) {
        (**self).asked(question);
    }

    fn begins(&self) {
        (**self).begins();
    }
}

/// Nobody looks.
pub struct Silence;

impl Watch for Silence {
    fn progress(&self, _: &str, _: u64, _: u64) {}
    fn warn(&self, _: &str) {}
}

/// A kind of isolation: a grant in, a sandbox out.
pub trait Backend {
    fn name(&self) -> &'static str;
    /// What its sandboxes stand on.
    fn ground(&self) -> GroundKind;
    /// What it would put between this grant's payload and the host's kernel.
    fn strength(&self, grant: &Grant) -> Strength;
    /// How well each wall would be held for this grant on this host.
    fn assess(&self, grant: &Grant) -> Enforcement;
    /// What `open` would do, step by step. Pure, given what `assess` knows of the host.
    fn plan(&self, grant: &Grant, stacks: &[Stack]) -> Result<Plan, SetupFailure>;
    /// Raises every wall. `stacks`: one for each layered place. `streams`: what its output passes through. `trace`: keep
    /// the time that each step takes.
    fn open(
        &self,
        grant: &Grant,
        stacks: &[Stack],
        streams: Streams,
        trace: bool,
    ) -> Result<Box<dyn Sandbox>, SetupFailure>;
    /// Raises every wall and starts nothing: supervising it is to stay, and to let in who comes to `visitors` with `visit`,
    /// until somebody asks it to end or there is nothing inside any more.
    fn host(
        &self,
        _grant: &Grant,
        _stacks: &[Stack],
        _streams: Streams,
        _visitors: OwnedFd,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        Err(no_visitors(self.name()))
    }
    /// Starts the command of `grant` in the sandbox whose host is at the other end, if its walls are those of the grant.
    fn visit(&self, _grant: &Grant, _streams: Streams, _host: OwnedFd) -> Result<Box<dyn Sandbox>, SetupFailure> {
        Err(no_visitors(self.name()))
    }
    /// Raises every wall, and behind them has somebody wait who was made by `zygote`.
    fn blank(&self, _grant: &Grant, _stacks: &[Stack], _zygote: &Zygote) -> Result<Box<dyn Blank>, SetupFailure> {
        Err(SetupFailure { fix: "it is started as ever".to_owned(), ..no_visitors(self.name()) })
    }
    /// Has everything in the sandbox whose host is at the other end stand still, or go on. Nothing: that is not its host's.
    fn pause(&self, _host: &OwnedFd, _pause: bool) -> Option<Result<(), Trouble>> {
        None
    }
    /// Runs a cell in a context of the sandbox whose host is at the other end, if its walls are those of the grant.
    fn run_cell(
        &self,
        _grant: &Grant,
        _streams: Streams,
        _work: CellWork,
        _host: OwnedFd,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        Err(no_visitors(self.name()))
    }
    /// The contexts there. Nothing: that is not its host's.
    fn contexts(&self, _host: &OwnedFd) -> Option<Result<Vec<ContextShown>, Trouble>> {
        None
    }
    /// Whether there was something to do it to.
    fn do_to_context(&self, _host: &OwnedFd, _context: &str, _deed: ContextDeed) -> Option<Result<bool, Trouble>> {
        None
    }
    /// Works on files with code of ours in place of the grant's command: in the sandbox whose host is at the other end, or in
    /// one that is raised for it. Like a command, it is under every wall.
    fn work_on_files(
        &self,
        _grant: &Grant,
        _stacks: &[Stack],
        _streams: Streams,
        _work: FileWork,
        _host: Option<OwnedFd>,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        Err(SetupFailure {
            wall: None,
            message: format!("files of sandboxes of the backend `{}` can't be worked on from outside", self.name()),
            fix: "run a command in it that does, or use `--backend native`".to_owned(),
            layers: false,
        })
    }
    /// Looks at what every request needs to know of this host, to no effect: cheap, or not at all.
    fn limber_up(&self) {}
    /// A sandbox will probably be opened soon. What does not depend on what is granted to it may be begun meanwhile.
    fn expect(&self) {}
    /// Not that soon: what was begun is ended.
    fn expect_no_more(&self) {}
    /// From here on, what only takes apart sandboxes that have ended is left to `tidy`: somebody waits for an answer.
    fn leave_for_later(&self) {}
    /// The same for whoever has work to do meanwhile, and waits for all of it with the next `tidy`: until then it goes on beside that.
    fn go_on_beside(&self) {}
    fn tidy(&self) -> Result<(), Trouble> {
        Ok(())
    }
    /// What this host can hold, tried out for real.
    fn diagnose(&self) -> BackendReport;
    /// The image that this grant's sandbox would stand on, if it stands on one and that is there.
    fn image(&self, _grant: &Grant) -> Option<ImageUsed> {
        None
    }
    /// Images that its sandboxes can stand on, if they stand on any.
    fn images(&self) -> Option<&dyn Images> {
        None
    }
    /// Removes what killed belljars have left with it, and says how much that was.
    fn clean_up(&self) -> Result<u64, Trouble> {
        Ok(0)
    }
}

/// A warm interpreter, outside of any sandbox, that sends copies of itself into those that are offered to it.
pub struct Zygote {
    pub door: OwnedFd,
    /// Which program it is, by its real path.
    pub program: PathBuf,
}

/// Walls that stand, and somebody behind them who waits to be told what to run.
pub trait Blank {
    /// Whether its walls are those of this grant, and it can become its command; if not, why.
    fn fits(&self, grant: &Grant) -> Result<(), String>;
    fn begin(self: Box<Self>, grant: &Grant, streams: Streams) -> Result<Box<dyn Sandbox>, SetupFailure>;
    /// It is not needed any more.
    fn abandon(self: Box<Self>);
}

/// Something that waits for a request that is much like the one that it was made ready for.
pub trait Ready {
    /// Runs it there, if it is as it was foreseen; else as ever.
    fn run(self: Box<Self>, request: &Request) -> Outcome;
}

fn no_visitors(backend: &str) -> SetupFailure {
    SetupFailure {
        wall: None,
        message: format!("sandboxes of the backend `{backend}` end with their command"),
        fix: "use `--backend native` for one that stays, or run commands one by one".to_owned(),
        layers: false,
    }
}

/// Images that an engine keeps.
pub trait Images {
    fn list(&self) -> Result<Vec<ImageShown>, Trouble>;
    /// Whether there is one of this name.
    fn has(&self, name: &str) -> Result<bool, Trouble>;
    /// From a folder with a root, an OCI layout, or an archive of either.
    fn import(&self, from: &Path, name: Option<&str>) -> Result<ImageShown, Trouble>;
    /// From the host's own busybox.
    fn make_from_busybox(&self, name: Option<&str>) -> Result<ImageShown, Trouble>;
    /// A small Debian, with these packages besides.
    fn make_from_debootstrap(&self, suite: &str, include: &[String], name: Option<&str>)
    -> Result<ImageShown, Trouble>;
    fn remove(&self, name: &str) -> Result<(), Trouble>;
}

/// An image as people and programs see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageShown {
    /// Digest of its configuration.
    pub id: String,
    pub names: Vec<String>,
    pub bytes: u64,
    /// Seconds since 1970; zero if that is not known.
    pub created: u64,
    pub made_by_belljar: bool,
}

/// A live enclosed place, with the payload in it.
pub trait Sandbox {
    /// Watches over limits and denials until the end, and leaves nothing behind.
    fn supervise(self: Box<Self>) -> Outcome;
}

/// A plan as people and programs read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub backend: String,
    /// Why this one.
    pub because: String,
    #[serde(serialize_with = "shown")]
    pub program: PathBuf,
    pub arguments: Vec<String>,
    #[serde(serialize_with = "shown")]
    pub directory: PathBuf,
    pub environment: Vec<String>,
    pub steps: Vec<Step>,
    pub enforcement: Enforcement,
}

/// A path that is no text is still shown, as well as it can be.
fn shown<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Who takes it: the parent, before or after the fork, or the child.
    pub by: &'static str,
    pub does: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    pub version: String,
    pub kernel: String,
    pub backends: Vec<BackendReport>,
    /// Whether changes to workspaces can be kept apart without copying them.
    pub workspaces: Feature,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackendReport {
    pub backend: String,
    pub usable: bool,
    pub features: Vec<Feature>,
    pub enforcement: Enforcement,
}

/// Something of the host that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Feature {
    pub what: String,
    pub works: bool,
    pub detail: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

/// A language besides our own that rules are written in.
pub trait RuleLanguage {
    fn name(&self) -> &'static str;
    /// How names of its files end, without the dot.
    fn extension(&self) -> &'static str;
    /// Reads the files of one owner: all of them together are one set of rules. Whatever is not understood is an error.
    fn read(&self, files: &[RuleText<'_>]) -> Result<Box<dyn ForeignRules>, BadRules>;
    /// The same for texts that `read` has found in order before, with the same belljar: what it found out then may be left out.
    fn read_again(&self, files: &[RuleText<'_>]) -> Result<Box<dyn ForeignRules>, BadRules> {
        self.read(files)
    }
    /// What rules may speak of, in the language's own terms.
    fn schema(&self) -> &'static str;
}

/// A file of rules.
#[derive(Clone, Copy, Debug)]
pub struct RuleText<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

/// Rules that were read.
pub trait ForeignRules {
    /// What they say; nothing if they do not speak of it. A rule that can't be evaluated denies.
    fn judge(&self, envelope: &Envelope) -> Vec<Reason>;
    /// Whether any of them is about this action.
    fn speaks_of(&self, action: Action) -> bool;
    /// Whether any of them is about requests, by method or path: connections are then read.
    fn reads_requests(&self) -> bool;
    fn count(&self) -> usize;
}

/// What is wrong with a file of rules, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRules {
    pub file: String,
    pub line: usize,
    pub message: String,
    pub hint: String,
}
