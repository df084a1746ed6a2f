//! What the monitor says of agents, and what follows from it: plain data, and the seam that front-ends use.

use serde::{Deserialize, Serialize};

use crate::{Entry, Severity, Trouble};

/// What the monitor looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detector {
    /// One run that turns in place, or has more and more processes.
    Runaway,
    /// Runs that keep the machine busy, or that run into limits again and again.
    Heavy,
    Mining,
    /// Many different things are tried and refused.
    Scan,
    /// Much goes out.
    Exfiltration,
    /// The same is refused again and again.
    Retries,
    /// An agent does something else than it used to.
    Change,
    Timeouts,
    /// Too many runs in too short a time.
    Rate,
}

impl Detector {
    pub const ALL: [Detector; 9] = [
        Detector::Runaway,
        Detector::Heavy,
        Detector::Mining,
        Detector::Scan,
        Detector::Exfiltration,
        Detector::Retries,
        Detector::Change,
        Detector::Timeouts,
        Detector::Rate,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Detector::Runaway => "runaway",
            Detector::Heavy => "heavy",
            Detector::Mining => "mining",
            Detector::Scan => "scan",
            Detector::Exfiltration => "exfiltration",
            Detector::Retries => "retries",
            Detector::Change => "change",
            Detector::Timeouts => "timeouts",
            Detector::Rate => "rate",
        }
    }
}

/// What follows from an alert. The order is the meaning: the strictest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Response {
    /// Not even said.
    Off,
    /// Said, and on record.
    Alert,
    /// From then on the agent may run little at a time.
    Throttle,
    /// From then on a person is asked about each run.
    Ask,
    /// Nothing of the agent runs any more, until somebody says so.
    Suspend,
}

impl Response {
    pub const ALL: [Response; 5] =
        [Response::Off, Response::Alert, Response::Throttle, Response::Ask, Response::Suspend];

    pub fn name(self) -> &'static str {
        match self {
            Response::Off => "off",
            Response::Alert => "alert",
            Response::Throttle => "throttle",
            Response::Ask => "ask",
            Response::Suspend => "suspend",
        }
    }
}

/// Something that is not as it should be, in words: what was seen, from where on it counts, and what was usual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alert {
    pub detector: Detector,
    pub severity: Severity,
    pub measured: String,
    pub threshold: String,
    pub baseline: String,
}

/// What holds for an agent because of what it did, or because somebody said so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub agent: String,
    pub response: Response,
    pub why: String,
    /// A detector, as `monitor.mining`, or a user.
    pub by: String,
    /// Seconds since 1970.
    pub since: u64,
    /// After this it holds no more; nothing: until somebody says so.
    pub until: Option<u64>,
}

/// An agent, as the monitor knows it. Who sets no name is known as `user:NAME`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Watched {
    pub agent: String,
    pub runs: u64,
    pub refused: u64,
    /// Seconds since 1970.
    pub first_seen: u64,
    pub last_seen: u64,
    pub processor_seconds: f64,
    pub peak_memory: u64,
    pub read: u64,
    pub written: u64,
    pub egress: u64,
    pub denials: u64,
    pub timeouts: u64,
    pub overruns: u64,
    pub alerts: u64,
    /// Throttled, asked about or suspended, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// What is usual for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<Baseline>,
    /// Why nothing is known of it, where its file could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl Watched {
    pub fn state(&self) -> &'static str {
        match self.hold.as_ref().map(|hold| hold.response) {
            None | Some(Response::Off | Response::Alert) => "active",
            Some(Response::Throttle) => "throttled",
            Some(Response::Ask) => "asked about",
            Some(Response::Suspend) => "suspended",
        }
    }
}

/// Something that is measured all the time, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Baseline {
    pub what: String,
    pub now: String,
    pub usual: String,
    /// From where on it is an alert.
    pub threshold: String,
}

/// What front-ends ask of the monitor.
pub trait Agents {
    /// All that are known; who was seen last comes first.
    fn list(&self) -> Result<Vec<Watched>, Trouble>;
    /// One of them, with what the record says of it lately.
    fn look(&self, agent: &str) -> Result<(Watched, Vec<Entry>), Trouble>;
    /// Nothing of it runs any more, and what runs is ended. It need not be known yet.
    fn suspend(&self, agent: &str, why: &str) -> Result<Watched, Trouble>;
    /// Whatever held for it holds no more.
    fn resume(&self, agent: &str, why: &str) -> Result<Watched, Trouble>;
}
