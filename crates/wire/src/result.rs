//! The result as programs read it. A wire type: changes to the model do not change it by themselves.

use model::{
    Alert, Artifact, Captured, Denial, Denied, Enforcement, Exit, Finding, ImageUsed, Leftover, Outcome, Overrun,
    Redacted, Timing, Traffic, Unguarded, Usage,
};
use serde::Serialize;

#[derive(Serialize)]
pub struct ResultObject<'a> {
    version: u32,
    outcome: &'static str,
    /// What belljar itself exits with.
    code: u8,
    /// Under this id, everything of it is in the record: `belljar log --run ID`.
    run: Option<&'a str>,
    exit: Option<i32>,
    signal: Option<i32>,
    overrun: Option<Overrun>,
    usage: Option<Usage>,
    denials: Denials<'a>,
    denials_not_listed: u64,
    /// What scanners said of the code before it ran, the gravest first.
    #[serde(skip_serializing_if = "<[Finding]>::is_empty")]
    findings: &'a [Finding],
    /// Code that could not be looked at, and why.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    not_scanned: &'a [String],
    output_dropped: u64,
    /// What went out to the network, where there was a way, and what was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'a Traffic>,
    /// What the monitor said of it.
    #[serde(skip_serializing_if = "<[Alert]>::is_empty")]
    alerts: &'a [Alert],
    /// What was taken out of the output.
    #[serde(skip_serializing_if = "<[Redacted]>::is_empty")]
    redacted: &'a [Redacted],
    /// What it said, where that was asked for.
    #[serde(flatten)]
    captured: Option<&'a Captured>,
    /// Variables that are secrets by their names, and whose values are too short or too common to be taken out.
    #[serde(skip_serializing_if = "<[Unguarded]>::is_empty")]
    unguarded: &'a [Unguarded],
    backend: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    backend_because: &'a str,
    /// What it stood on, if that was an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'a ImageUsed>,
    enforcement: Option<&'a Enforcement>,
    accepted_gaps: Vec<&'static str>,
    /// What it changed in its workspaces, and in which sandbox that is kept.
    changes: Option<&'a Leftover>,
    /// Files that it handed over, or would have. Only where some were asked for.
    #[serde(flatten)]
    artifacts: Option<ArtifactsObject<'a>>,
    error: Option<ErrorObject<'a>>,
    #[serde(skip_serializing_if = "<[Timing]>::is_empty")]
    timing: &'a [Timing],
}

#[derive(Serialize)]
struct ArtifactsObject<'a> {
    artifacts: &'a [Artifact],
    artifacts_not_listed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts_trouble: Option<&'a str>,
}

/// What was refused: of a command that ran, calls; of one that did not, what the policy says and what would help.
#[derive(Serialize)]
#[serde(untagged)]
enum Denials<'a> {
    Calls(&'a [Denial]),
    Rules(&'a [Denied]),
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    fix: &'a str,
}

/// What belljar exits with.
pub fn code(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Ran(finished) => match (finished.overrun, finished.exit) {
            (Some(Overrun::WallTime), _) => 124,
            (_, Exit::Code(code)) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
            (_, Exit::Signal(signal)) => u8::try_from(128 + (signal & 0x7f)).unwrap_or(u8::MAX),
        },
        Outcome::Refused(refusal) if refusal.unanswered => 122,
        Outcome::Refused(_) => 123,
        Outcome::NotSetUp(_) => 125,
        Outcome::NotStarted(failure) if failure.found => 126,
        Outcome::NotStarted(_) => 127,
    }
}

pub fn object(outcome: &Outcome) -> ResultObject<'_> {
    let mut object = ResultObject {
        version: 1,
        outcome: "",
        code: code(outcome),
        run: None,
        exit: None,
        signal: None,
        overrun: None,
        usage: None,
        denials: Denials::Calls(&[]),
        denials_not_listed: 0,
        findings: &[],
        not_scanned: &[],
        output_dropped: 0,
        network: None,
        alerts: &[],
        redacted: &[],
        captured: None,
        unguarded: &[],
        backend: None,
        backend_because: "",
        image: None,
        enforcement: None,
        accepted_gaps: Vec::new(),
        changes: None,
        artifacts: None,
        error: None,
        timing: &[],
    };
    match outcome {
        Outcome::Ran(finished) => {
            object.outcome = "ran";
            object.run = Some(&finished.run).filter(|run| !run.is_empty()).map(String::as_str);
            match finished.exit {
                Exit::Code(code) => object.exit = Some(code),
                Exit::Signal(signal) => object.signal = Some(signal),
            }
            object.overrun = finished.overrun;
            object.usage = Some(finished.usage);
            object.denials = Denials::Calls(&finished.denials);
            object.denials_not_listed = finished.denials_not_listed;
            object.findings = &finished.inspected.findings;
            object.not_scanned = &finished.inspected.unread;
            object.output_dropped = finished.output_dropped;
            object.alerts = &finished.alerts;
            object.redacted = &finished.redacted;
            object.network = finished.traffic.as_ref();
            object.captured = finished.captured.as_ref();
            object.unguarded = &finished.unguarded;
            object.backend = Some(&finished.backend);
            object.backend_because = &finished.because;
            object.image = finished.image.as_ref();
            object.enforcement = Some(&finished.enforcement);
            object.accepted_gaps = finished.accepted_gaps.iter().map(|(wall, _)| wall.name()).collect();
            object.changes = finished.leftover.as_ref();
            object.artifacts = finished.gathered.as_ref().map(|gathered| ArtifactsObject {
                artifacts: &gathered.artifacts,
                artifacts_not_listed: gathered.not_listed,
                artifacts_trouble: gathered.trouble.as_deref(),
            });
            object.timing = &finished.timing;
        }
        Outcome::Refused(refusal) => {
            object.outcome = "refused";
            object.denials = Denials::Rules(&refusal.denied);
            object.error = Some(ErrorObject {
                message: &refusal.message,
                wall: None,
                rule: Some(&refusal.rule),
                fix: &refusal.hint,
            });
        }
        Outcome::NotSetUp(failure) => {
            object.outcome = "not-set-up";
            let wall = failure.wall.map(|wall| wall.name());
            object.error = Some(ErrorObject { message: &failure.message, wall, rule: None, fix: &failure.fix });
        }
        Outcome::NotStarted(failure) => {
            object.outcome = "not-started";
            object.error = Some(ErrorObject { message: &failure.message, wall: None, rule: None, fix: &failure.fix });
        }
    }
    object
}
