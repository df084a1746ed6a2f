//! The release gate for files: what was asked for is collected when the run has ended, looked into, and judged by the
//! policy that was in force when it began.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use model::paths::{is_below, is_within};
use model::{
    Access, Action, Artifact, Artifacts, Context, Envelope, Examined, Examiner, Files, Gathered, Grant, Judgement,
    Origin, Outcome, Place, Principal, Reason, ReleaseGate, Request, Resource, Ruling, Trouble, UNKNOWN_KIND, Withheld,
    agents,
};
use policy::Policy;
use workspace::artifacts::{Bounds, Direct, Pattern, Wanted, Wish, Writable};
use workspace::{Run, Workspaces};

use crate::judge::usage;
use crate::policies::{self, recorded};
use crate::user::User;
use crate::{Engine, survey};

/// Patterns of one request.
const MOST_PATTERNS: usize = 64;
/// Where no policy says what is the largest.
const LARGEST: u64 = 100 << 20;
const MOST: usize = 1000;
const TOTAL: u64 = 1 << 30;
/// Of one run: the record is for people who compare policies.
const MOST_RECORDED: usize = 200;

/// What is to be collected of one run.
pub struct Collecting<'a> {
    gate: Gate<'a>,
    wanted: Vec<Wanted>,
    /// Where real files change.
    direct: Vec<Direct>,
}

/// Whether patterns can be understood at all, and lie in a workspace.
pub fn validate(request: &Request) -> Result<(), Outcome> {
    if request.artifacts.is_empty() {
        return Ok(());
    }
    if request.artifacts.len() > MOST_PATTERNS {
        return Err(usage(
            format!("{} patterns of artifacts are named; {MOST_PATTERNS} is the most", request.artifacts.len()),
            "name a folder: `--artifact out`",
        ));
    }
    let folders = survey::workspace_folders(request)?;
    for text in &request.artifacts {
        let bad = |why: String| {
            usage(
                format!("`{}` can't name artifacts: {why}", text.escape_debug()),
                "name a folder or a pattern in the workspace: `--artifact out`, `--artifact '**/*.png'`",
            )
        };
        Pattern::read(text).map_err(|error| bad(error.to_string()))?;
        if text.starts_with('/') && !folders.iter().any(|folder| within(text, folder).is_some()) {
            return Err(bad("it is in no workspace".to_owned()));
        }
    }
    Ok(())
}

/// The rest of an absolute pattern behind a folder.
fn within<'a>(text: &'a str, folder: &Path) -> Option<&'a str> {
    let folder = folder.to_str()?.trim_end_matches('/');
    text.strip_prefix(folder).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The patterns of one workspace.
fn wanted(request: &Request, workspace: &Path) -> Wanted {
    let own = |text: &String| match text.starts_with('/') {
        true => within(text, workspace).and_then(|rest| Pattern::read(if rest.is_empty() { "." } else { rest }).ok()),
        false => Pattern::read(text).ok(),
    };
    Wanted { workspace: workspace.to_owned(), patterns: request.artifacts.iter().filter_map(own).collect() }
}

impl Engine {
    /// Before the run: whatever it does, it does not change the rules, nor which folder is looked into.
    pub(crate) fn collecting(&self, request: &Request, grant: &Grant) -> Result<Option<Collecting<'_>>, Outcome> {
        if request.artifacts.is_empty() {
            return Ok(None);
        }
        let files = &grant.powers().files;
        let workspaces: Vec<&Path> = files.places.iter().filter(|place| is_workspace(place)).map(path).collect();
        let is_written = |place: &Place| is_workspace(place) && place.access == Access::Layered;
        let writable = writable(files, &workspaces);
        if writable.is_empty() && !files.places.iter().any(is_written) {
            return Err(usage(
                "there are no artifacts where no workspace can be written to".to_owned(),
                "go to a project, or name one with `--workspace`; and not with `--workspace-mode readonly`",
            ));
        }
        let direct: Result<Vec<Direct>, _> = writable.iter().map(Direct::open).collect();
        let direct = direct.map_err(|error| crate::layers::not_set_up(error.into()))?;
        let wanted = workspaces.iter().map(|workspace| wanted(request, workspace)).collect();
        Ok(Some(Collecting { gate: self.release_gate(request, grant, &workspaces)?, wanted, direct }))
    }

    fn release_gate(&self, request: &Request, grant: &Grant, workspaces: &[&Path]) -> Result<Gate<'_>, Outcome> {
        let user = User::of_the_process();
        let policy = policies::load(&self.languages, &user, &survey::workspace_folders(request)?, None)?.policy;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let context = Context {
            directory: text(&grant.powers().command.directory),
            home: user.home.as_deref().map(text).unwrap_or_default(),
            workspaces: workspaces.iter().map(|workspace| text(workspace)).collect(),
            workspace_mode: request.workspace_mode,
        };
        let agent = request.agent.clone().or_else(|| agents::detected(std::env::vars_os()));
        let principal = Principal { user: user.name, agent };
        let seen = RefCell::default();
        Ok(Gate { policy, principal, context, examiner: self.examiner.as_ref(), seen })
    }
}

fn is_workspace(place: &Place) -> bool {
    place.origin == Origin::Workspace
}

fn path(place: &Place) -> &Path {
    &place.path
}

/// Places in workspaces where real files change, each without what is in it and is not for the sandbox to write.
fn writable<'a>(files: &'a Files, workspaces: &[&'a Path]) -> Vec<Writable<'a>> {
    let mut found: Vec<Writable<'a>> = Vec::new();
    for place in files.places.iter().filter(|place| place.access == Access::Write) {
        let around = workspaces.iter().filter(|workspace| is_within(&place.path, workspace));
        let Some(workspace) = around.max_by_key(|workspace| workspace.as_os_str().len()) else { continue };
        // Other places are looked at by themselves, or are not written to.
        let others = files.places.iter().map(path).filter(|other| is_below(other, &place.path));
        let hidden = files.hidden.iter().map(|(path, _)| path.as_path()).filter(|path| is_within(path, &place.path));
        found.push(Writable {
            workspace,
            place: &place.path,
            is_folder: place.folder,
            except: others.chain(hidden).collect(),
            owner: place.owner.0,
        });
    }
    found
}

impl Collecting<'_> {
    /// When it has ended, and before its layers may go. `id`: of the run, by which they are found.
    pub fn collect(&self, workspaces: &Workspaces, run: Option<&Run>, id: &str, outcome: &mut Outcome) {
        let Outcome::Ran(finished) = outcome else { return };
        let Collecting { gate, wanted, direct } = self;
        let bounds = Bounds { largest: gate.largest(), most: MOST, total: TOTAL };
        let gathered = workspaces.gather(run, &Wish { run: id, wanted, direct, bounds, gate });
        finished.gathered = Some(gathered.unwrap_or_else(|trouble| {
            // Nothing was written down, so nothing is released.
            Gathered { trouble: Some(trouble.to_string()), ..Gathered::default() }
        }));
        gate.record(workspaces);
    }
}

/// The policy in force for what one run made.
struct Gate<'a> {
    policy: Policy,
    principal: Principal,
    context: Context,
    examiner: &'a dyn Examiner,
    /// What it was asked about, for the record.
    seen: RefCell<Vec<Envelope>>,
}

impl Gate<'_> {
    fn envelope(&self, name: &str, bytes: u64) -> Envelope {
        Envelope {
            principal: self.principal.clone(),
            action: Action::Release,
            resource: Resource::Artifact { name: name.to_owned(), bytes },
            context: self.context.clone(),
        }
    }

    /// Ours, unless a policy has its own: which then speaks of whatever is too large.
    fn largest(&self) -> u64 {
        let judgement = self.policy.weigh(&self.envelope("any", u64::MAX));
        match judgement.reasons.iter().any(|reason| reason.rule == "release.largest") {
            true => TOTAL,
            false => LARGEST,
        }
    }

    /// Keeps what somebody wanted to have, for `belljar policy test`.
    fn record(&self, workspaces: &Workspaces) {
        let seen = self.seen.take();
        if !self.policy.is_built_in() && !seen.is_empty() {
            let environment: Vec<_> = std::env::vars_os().collect();
            recorded::write(&seen, &environment, workspaces.watch());
        }
    }
}

impl ReleaseGate for Gate<'_> {
    fn at_sight(&self, name: &str, size: u64) -> Option<Withheld> {
        let envelope = self.envelope(name, size);
        let judgement = self.policy.weigh(&envelope);
        let mut seen = self.seen.borrow_mut();
        if seen.len() < MOST_RECORDED {
            seen.push(envelope);
        }
        withheld(&judgement)
    }

    fn within(&self, name: &str, contents: &File, size: u64) -> (Examined, Option<Withheld>) {
        let examined = match self.examiner.examine(name, contents, size) {
            Ok(examined) => examined,
            Err(trouble) => {
                let unknown = Examined { kind: UNKNOWN_KIND.to_owned(), findings: Vec::new() };
                let reason = format!("it could not be examined: {trouble}");
                return (unknown, Some(Withheld::new("artifacts.examined", reason)));
            }
        };
        let reasons = self.policy.weigh_release(&examined.findings);
        let strictest = (!reasons.is_empty()).then(|| Judgement::of(reasons, || silence(name)));
        let withheld = strictest.as_ref().and_then(withheld);
        (examined, withheld)
    }
}

/// What is asked about is withheld: nobody waits for a person with the contents of a run that is over.
fn withheld(judgement: &Judgement) -> Option<Withheld> {
    let reason = judgement.reasons.first()?;
    let place = if reason.place.is_empty() { String::new() } else { format!(" ({})", reason.place) };
    let why = match judgement.ruling {
        Ruling::Allow => return None,
        Ruling::Ask => format!("a person would have to agree: {}", reason.why),
        Ruling::Deny => reason.why.clone(),
    };
    Some(Withheld { reason: why, rule: format!("{}{place}", reason.rule) })
}

fn silence(name: &str) -> Reason {
    Reason {
        ruling: Ruling::Deny,
        rule: "silence".to_owned(),
        place: String::new(),
        why: "nothing allows it".to_owned(),
        action: Action::Release,
        about: name.to_owned(),
        grant: String::new(),
    }
}

impl Artifacts for Engine {
    fn list(&self, of: Option<&str>) -> Result<Vec<Artifact>, Trouble> {
        self.workspaces.artifacts(of)
    }

    fn find(&self, which: &str) -> Result<Artifact, Trouble> {
        self.workspaces.artifact(which)
    }

    fn copy(&self, which: &str, to: &mut dyn Write) -> Result<Artifact, Trouble> {
        self.workspaces.copy_artifact(which, to)
    }

    fn remove(&self, which: &str) -> Result<Artifact, Trouble> {
        self.workspaces.remove_artifact(which)
    }
}

#[cfg(test)]
mod tests;
