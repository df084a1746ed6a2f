//! The policy's say at the commit gate: which changes are shown apart, asked about, or never taken.

mod proposal;

use std::path::Path;

use model::{
    Action, Apart, Approval, Change, Changes, Context, Crossing, Envelope, Gatekeeper, Judgement, OpenGate, Principal,
    Question, Reason, Refusal, Resource, Ruling, Taken, ThingKind, Trouble, Watch, agents,
};
use policy::{Care, PathPattern, Policy};

use crate::Engine;
use crate::approvals::When;
use crate::policies::{self, recorded, trouble};
use crate::user::User;

/// Of one taking: the record is for people who compare policies, not a list of every file of a build.
const MOST_RECORDED: usize = 200;

/// Of what an agent takes.
const BY_AGENT: &str = "apply.by-agent";
const WHY_BY_AGENT: &str = "an agent asks to take changes onto real files, which only a person may let it";

/// More are told once a rule, not once a path.
const MOST_REASONS: usize = 20;

/// The policy in force for the workspaces of one sandbox.
pub struct CommitGate {
    policy: Policy,
    principal: Principal,
    context: Context,
}

impl Engine {
    pub(crate) fn commit_gate(&self, which: &str) -> Result<CommitGate, Trouble> {
        let folders = self.workspaces.folders(which)?;
        let user = User::of_the_process();
        let policy = policies::load(&self.languages, &user, &folders, None).map_err(trouble)?.policy;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let context = Context {
            directory: folders.first().map(|folder| text(folder)).unwrap_or_default(),
            home: user.home.as_deref().map(text).unwrap_or_default(),
            workspaces: folders.iter().map(|folder| text(folder)).collect(),
            workspace_mode: model::WorkspaceMode::Cow,
        };
        let principal = Principal { user: user.name, agent: agents::detected(std::env::vars_os()) };
        Ok(CommitGate { policy, principal, context })
    }
}

impl CommitGate {
    /// Whoever has nothing to say is not asked for every path.
    pub fn keeper(&self) -> &dyn Gatekeeper {
        if self.policy.is_built_in() { &OpenGate } else { self }
    }

    /// The same, where a person must agree to everything.
    pub fn keeper_who_asks(&self) -> Asking<'_> {
        Asking(self.keeper())
    }

    /// Says of each change what would become of it.
    pub fn mark(&self, changes: &mut Changes) {
        for Change { workspace, path, is, protected, asked, refused, .. } in &mut changes.changes {
            let folder = is.as_ref().is_none_or(|is| is.kind == ThingKind::Folder);
            let Crossing { named, asked: ask, never } = self.keeper().at(&workspace.0.join(&path.0), folder);
            *protected = protected.take().or(named.map(|apart| apart.reason));
            *asked = ask;
            *refused = refused.take().or(never);
        }
    }

    /// Asks a person about what has `asked_digest`.
    pub fn ask(&self, engine: &Engine, taken: &Taken, agent: Option<&str>) -> Result<Approval, Refusal> {
        let shown = proposal::shown(taken, &self.context.workspaces);
        let mut reasons: Vec<Reason> = Vec::new();
        for deed in &taken.asked {
            // As it was asked about: what is more than that does no harm in a question.
            let judgement = self.weigh(&deed.workspace.0.join(&deed.path.0), false);
            for reason in judgement.reasons.into_iter().filter(|reason| reason.ruling == Ruling::Ask) {
                // Of many changes a rule is told once, or nobody could be asked: the list has them all.
                if reasons.len() < MOST_REASONS || !is_told(&reason, &reasons) {
                    reasons.push(reason);
                }
            }
        }
        let mut principal = self.principal.clone();
        if let Some(agent) = agent {
            principal.agent = Some(agent.to_owned());
            reasons.push(Reason {
                ruling: Ruling::Ask,
                rule: BY_AGENT.to_owned(),
                place: String::new(),
                why: WHY_BY_AGENT.to_owned(),
                action: Action::Commit,
                about: format!("{} changes of sandbox {}", taken.asked.len(), taken.sandbox),
                grant: "take them yourself: `belljar apply`".to_owned(),
            });
        }
        let question = Question::new(principal, shown, reasons, Vec::new(), self.policy.revision.clone());
        engine.ask_a_person(&question, &self.policy, When::Now)
    }

    /// Keeps what somebody wanted to take, for `belljar policy test`.
    pub fn record(&self, taken: &Taken, watch: &dyn Watch) {
        if self.policy.is_built_in() {
            return;
        }
        let Taken { taken, conflicts, held_back, refused, asked, .. } = taken;
        let wanted = [taken, asked, refused, held_back, conflicts].into_iter().flatten().take(MOST_RECORDED);
        let envelopes: Vec<_> = wanted.map(|deed| self.envelope(&deed.workspace.0.join(&deed.path.0))).collect();
        let environment: Vec<_> = std::env::vars_os().collect();
        recorded::write(&envelopes, &environment, watch);
    }

    fn envelope(&self, path: &Path) -> Envelope {
        Envelope {
            principal: self.principal.clone(),
            action: Action::Commit,
            resource: Resource::Path(path.to_string_lossy().into_owned()),
            context: self.context.clone(),
        }
    }

    /// Of several patterns the innermost folder: who protects `deploy` and `deploy/keys` wants the keys named.
    fn apart(&self, path: &str, folder: bool) -> Option<Apart> {
        let workspaces = &self.context.workspaces;
        let root = |pattern: &PathPattern| {
            let itself = || (!folder && pattern.is_below(path, workspaces)).then_some(path);
            pattern.root_of(path, workspaces, Care::Forgiving).or_else(itself)
        };
        let found = self.policy.protect().filter_map(|pattern| Some((root(pattern)?, pattern)));
        let (root, pattern) = found.max_by_key(|(root, _)| root.len())?;
        let reason = format!("`{}` is listed under `files.protect`", pattern.written);
        Some(Apart { root: root.into(), reason })
    }

    fn weigh(&self, path: &Path, folder: bool) -> Judgement {
        let envelope = self.envelope(path);
        // A link in the place of a folder brings everything that rules on what is in that folder are about.
        if folder { self.policy.weigh(&envelope) } else { self.policy.weigh_around(&envelope) }
    }
}

/// A gatekeeper who lets nothing pass without a person.
pub struct Asking<'a>(&'a dyn Gatekeeper);

impl Gatekeeper for Asking<'_> {
    fn at(&self, path: &Path, folder: bool) -> Crossing {
        let crossing = self.0.at(path, folder);
        let asked = crossing.asked.or_else(|| Some(format!("{WHY_BY_AGENT}; rule: {BY_AGENT}")));
        Crossing { asked, ..crossing }
    }
}

fn is_told(new: &Reason, told: &[Reason]) -> bool {
    told.iter().any(|reason| (&reason.rule, &reason.place) == (&new.rule, &new.place))
}

impl Gatekeeper for CommitGate {
    fn at(&self, path: &Path, folder: bool) -> Crossing {
        let judgement = self.weigh(path, folder);
        let reason = &judgement.reasons[0];
        let place = if reason.place.is_empty() { String::new() } else { format!(" ({})", reason.place) };
        let said = format!("{}; rule: {}{place}", reason.why, reason.rule);
        let text = path.to_string_lossy();
        Crossing {
            named: self.apart(&text, folder),
            asked: (judgement.ruling == Ruling::Ask).then(|| said.clone()),
            never: (judgement.ruling == Ruling::Deny).then_some(said),
        }
    }
}
