//! The nouns as plain data, and the seams between the rooms. No I/O.
//!
//! A [`Request`] is judged by a policy into a [`Verdict`]. An allowing verdict mints a [`Grant`]: the closed list
//! of [`Powers`]. A [`Backend`] turns a grant into a [`Sandbox`]. What came of it is an [`Outcome`].

pub mod agents;
mod approvals;
mod artifact;
mod cells;
mod comparison;
mod enforcement;
mod envelope;
mod exports;
mod files;
mod finding;
mod grant;
mod languages;
mod monitor;
pub mod names;
mod network;
mod outcome;
pub mod paths;
mod policies;
mod records;
mod release;
mod request;
mod scans;
mod seams;
mod secrets;
pub mod units;
mod ushering;
mod verdict;
mod visits;
mod workspace;

pub use approvals::{
    Answer, Approvals, Conversation, Decision, Given, LONGEST_QUESTION, LONGEST_REASON, LONGEST_VALUE, Offers, Parked,
    Person, Standing,
};
pub use artifact::{Artifact, Artifacts, Examined, Examiner, Fate, Gathered, ReleaseGate, UNKNOWN_KIND, Withheld};
pub use cells::{
    Branched, Cell, CellAnswer, CellDone, CellError, CellHears, CellLanguage, CellNews, CellNot, CellPart, CellResult,
    CellWork, ContextDeed, ContextShown, LeftBehind, MOST_CODE, MOST_CONTEXTS, MOST_PART, MOST_PARTS,
    MOST_RESULT_BYTES, Makes, Parcel, ParcelDeed, PartKind, is_context_name,
};
pub use comparison::{Benchmark, BenchmarkWish, Benchmarks, Candidate, Compared, Spread, Tried};
pub use enforcement::{Enforcement, Held, Holding, UnknownWall, Wall};
pub use envelope::{Action, Context, Envelope, Principal, Resource};
pub use exports::{Destination, Export, ExportFormat, Exports};
pub use files::{
    FileAnswer, FileChange, FileEntry, FileEvent, FileFailure, FileHears, FileMatch, FileNews, FileOperation,
    FileTrouble, FileWork, FilesNot, MOST_ARCHIVED, MOST_ARCHIVED_BYTES, MOST_FILE_BYTES, MOST_LISTED_FILES,
    MOST_MATCHES, MOST_REMOVED, MOST_WATCHED, OnlyIf,
};
pub use finding::{Finding, Inside, Inspected, Severity, Spot};
pub use grant::{Accepted, Access, Command, Files, Grant, Ground, GroundKind, Limits, Origin, Place, Powers, Strength};
pub use languages::{Code, Language, NoToolchain, Toolchains};
pub use monitor::{Agents, Alert, Baseline, Detector, Hold, Response, Watched};
pub use network::{
    AUTHORITIES, AskedAtGate, Asking, Cached, Caller, Doors, Endpoint, Gated, Handed, Host, HostName, JAVA_AUTHORITIES,
    NOT_NAMED, Network, NetworkDeed, NetworkEvent, Opening, OutgoingRequest, Outside, Porter, Published, SecretGrant,
    Traffic, WEB_SOCKET,
};
pub use outcome::{Denial, Exit, Finished, ImageUsed, Outcome, Overrun, SetupFailure, StartFailure, Timing, Usage};
pub use policies::{
    Changed, Check, Checked, Comparison, InForce, Policies, PolicyFile, Remark, Replay, Said, SaidLine, Trusted,
};
pub use records::{Against, Anchor, Archived, Entry, EntryQuery, Fault, HttpsAnchor, KeyShown, Records, Soundness};
pub use release::{
    Captured, CapturedPart, CapturedStream, Goes, Outlet, Patch, Redacted, Sample, Started, Streams, Unguarded,
    Witness, Wording,
};
pub use request::{Asked, NetworkAsked, Request};
pub use scans::{RuleInfo, Scanned, Scans};
pub use seams::{
    Backend, BackendReport, BadRules, Blank, Diagnosis, Feature, ForeignRules, ImageShown, Images, Permitted, Plan,
    Ready, RuleLanguage, RuleText, Sandbox, Sandboxes, Service, Silence, Step, Watch, Zygote,
};
pub use secrets::{
    BadValue, LONGEST_SECRET, LONGEST_SECRET_NAME, NewSecret, SecretShown, SecretSource, SecretText, Secrets,
    is_secret_name, is_variable, secret_host,
};
pub use ushering::{Ushered, Ushering};
pub use verdict::{
    Approval, Denied, Judgement, OTHER_REVISION, Pending, Question, Reason, Refusal, Retry, Ruling, Verdict,
};
pub use visits::{Hears, Led, Visits};
pub use workspace::{
    Apart, Change, ChangeKind, Changes, Collected, Crossing, Deed, Favor, Gatekeeper, Kept, KeptSandbox, Leftover,
    Manifest, OpenGate, Proposed, Removed, Shown, Snapshot, Stack, Taken, Taking, Tally, Thing, ThingKind, Trouble,
    Unshown, WorkspaceMode,
};
