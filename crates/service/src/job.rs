//! What goes between the server and a carrier: frames of a length and JSON. Both are the same build, so there is one version.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use model::{Cell, ContextDeed, Decision, Favor, FileFailure, FileOperation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Wish;

/// Of a job, in bytes. Whoever serves has smaller limits of its own.
pub const LARGEST_JOB: usize = 48 << 20;
/// Of what a carrier says at once.
pub const LARGEST_ANSWER: usize = 64 << 20;
/// Of either: in front of it stand so many bytes of length, the least first.
pub const LENGTH: usize = 4;

/// To be written in one piece: whoever waits for it wakes up once, and what others say on the same line does not get between.
pub fn framed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    Ok([length.to_le_bytes().as_slice(), bytes].concat())
}

/// One thing to do, for whom, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub setting: Setting,
    pub task: Task,
}

/// Whose job it is: known before anything else is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Setting {
    /// Where the tenant's state lies; nothing: it is the user's own.
    pub state: Option<PathBuf>,
    /// Where the tenant's folders are that files are put in.
    pub work: PathBuf,
    /// The host's own paths are nobody's to name: of a tenant that is not the user.
    pub confined: bool,
    /// Where its templates are.
    pub templates: PathBuf,
    /// Who asks, whatever the job says: a token for an agent.
    pub agent: Option<String>,
}

/// Files to be made, by their paths from the workspace on.
pub type Files = BTreeMap<String, Contents>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Contents {
    Text(String),
    Bytes { base64: String },
}

/// What there is to do. `id` is a whole id or a name, never the start of one: an API has no use for guesses.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// In a sandbox of its own. `folder` is new, and is the workspace unless the wish names another.
    Run {
        wish: Wish,
        folder: String,
        files: Files,
    },
    /// Asks for what `Run` would be, or `RunIn` with an id, and runs nothing.
    Permit {
        id: Option<String>,
        wish: Wish,
    },
    Explain {
        wish: Wish,
    },
    Doctor,
    Create {
        wish: Wish,
        folder: String,
        files: Files,
        name: Option<String>,
    },
    Sandboxes,
    Sandbox {
        id: String,
    },
    RunIn {
        id: String,
        wish: Wish,
    },
    Changes {
        id: String,
        other: Option<String>,
        paths: Vec<PathBuf>,
    },
    Patch {
        id: String,
        other: Option<String>,
        paths: Vec<PathBuf>,
    },
    Apply {
        id: String,
        paths: Vec<PathBuf>,
        favor: Option<Favored>,
        check: bool,
        /// An agent takes them: a person agrees to all of it, or nothing is taken.
        #[serde(default)]
        by_agent: bool,
    },
    Discard {
        id: String,
    },
    Remove {
        id: String,
    },
    Snapshot {
        id: String,
        name: Option<String>,
    },
    RollBack {
        id: String,
        snapshot: Option<String>,
    },
    Fork {
        id: String,
        count: usize,
    },
    /// One that begins where another is, or was at a snapshot.
    Branch {
        id: String,
        snapshot: Option<String>,
        name: Option<String>,
    },
    Templates,
    Template {
        name: String,
    },
    /// `policy`: of the workspaces that will be made from it; looked through before it is kept.
    SetTemplate {
        name: String,
        template: Value,
        files: Files,
        policy: Option<String>,
    },
    RemoveTemplate {
        name: String,
    },
    /// A run that nobody remembers any more, as the record tells of it.
    Recorded {
        run: String,
    },
    Artifacts {
        of: Option<String>,
    },
    Artifact {
        id: String,
    },
    /// The contents go to the output.
    ArtifactContents {
        id: String,
    },
    Questions,
    Question {
        id: String,
    },
    /// `digest`: of the question that was seen; an answer to another is none.
    Reply {
        id: String,
        digest: Option<String>,
        decision: Decision,
        reason: String,
    },
    /// In this sandbox, over whose workspace there may be one.
    Policy {
        #[serde(default)]
        id: Option<String>,
    },
    /// What is wrong with this text of a policy file.
    Lint {
        text: String,
    },
    /// What the policy would answer to a command.
    Check {
        command: Vec<String>,
        agent: Option<String>,
        /// In this sandbox, over whose workspace there may be a policy.
        #[serde(default)]
        id: Option<String>,
    },
    Secrets,
    SetSecret {
        name: String,
        value: Hidden,
        hosts: Option<Vec<String>>,
    },
    RemoveSecret {
        name: String,
    },
    Agents,
    Entries {
        query: Asked,
        most: usize,
    },
    Verify,
    Receipt {
        run: String,
    },
    Scan {
        folder: String,
        files: Files,
    },
    /// Makes ready what runs like this one will need, and says so; then waits for one of them. The name is that of a warm
    /// interpreter of the launcher's.
    MakeReady {
        wish: Wish,
        folder: String,
        interpreter: String,
    },
    /// What is written comes as input; what is read goes to the output, as do events, a line of JSON each.
    Files {
        id: String,
        operation: FileOperation,
    },
    /// Code for a context of one that is open.
    Cell {
        id: String,
        wish: Wish,
        cell: Cell,
    },
    /// Forks a context of one that is open: its variables go to the bytes that come as input. Whoever carries it out says `Said::Ready`
    /// with the forks while they are written.
    ForkContext {
        id: String,
        wish: Wish,
        cell: Cell,
        count: usize,
    },
    /// A context with the variables that another wrote: they come over the socket that is the input.
    TakeUpContext {
        id: String,
        wish: Wish,
        cell: Cell,
    },
    Contexts {
        id: String,
    },
    Context {
        id: String,
        context: String,
        deed: ContextDeed,
    },
    /// Removes folders that no sandbox needs and nobody works in: what those leave who are ended.
    /// `layers`: and what killed carriers left of sandboxes that nobody knows.
    Sweep {
        layers: bool,
    },
    /// Whoever carries it out says `Said::Ready`, and stays as the sandbox's host until it is stopped.
    Open {
        id: String,
    },
    /// Leads visitors to servers in it, for whoever asks on the input, and says `Said::Ready` before.
    Usher {
        id: String,
    },
    /// What of it went to the network or tried to, and who visited it.
    Network {
        id: String,
        denied: bool,
        /// With this one, the first `most` after it; else the newest.
        after: Option<u64>,
        most: usize,
    },
    /// All that runs in it stands still, or goes on.
    Pause {
        id: String,
        pause: bool,
    },
    /// `why`: a time that was set for it.
    Stop {
        id: String,
        why: Option<String>,
    },
}

impl Task {
    /// Whoever hands it over has an id for the run already; the record has the same.
    pub fn is_called(&mut self, run: &str) {
        if let Task::Run { wish, .. } | Task::RunIn { wish, .. } = self {
            wish.run = Some(run.to_owned());
        }
    }
}

/// A value that nothing prints by accident.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hidden(pub String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Hidden")
    }
}

/// As `model::Favor`, for the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Favored {
    Ours,
    Theirs,
}

impl From<Favored> for Favor {
    fn from(favored: Favored) -> Favor {
        match favored {
            Favored::Ours => Favor::Ours,
            Favored::Theirs => Favor::Theirs,
        }
    }
}

/// Which entries of the record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Asked {
    pub run: Option<String>,
    pub agent: Option<String>,
    pub denied: bool,
    pub kinds: Vec<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    /// With this one, the first `most` after it; else the newest.
    pub after: Option<u64>,
}

/// What a carrier says while it works.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// Something that a person would be told at the terminal.
    Notice(String),
    /// A person is asked this question, and everything waits; `how` says what a person would be told.
    Asks { question: String, how: String },
    /// Nobody waits for an answer to it any more.
    Asked { question: String },
    /// What was asked for stands: a sandbox whose answer comes when it ends, or one that waits for its job.
    Ready(Value),
    /// The last word.
    Answer(Answer),
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It was done.
    Done(Value),
    /// What came of a request, as `wire::object` says it: a refusal is one, too.
    Outcome(Value),
    /// There is no such thing, or it is another tenant's: nobody can tell which.
    NotFound,
    /// The job itself is wrong.
    Wrong {
        what: String,
        hint: String,
    },
    /// It clashes with how things are now.
    Conflict {
        what: String,
        hint: String,
    },
    Trouble {
        message: String,
        fix: String,
    },
    /// What was to be done to files was not.
    Files(FileFailure),
    /// The sandbox is there, the context is not.
    NoContext {
        what: String,
        hint: String,
    },
}
