//! A policy file, understood: its rules, and the settings that are no rules.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{Action, Asked, Ruling, Strength, Wall};

use crate::host::HostPattern;
use crate::immutable::Immutable;
use crate::monitor::MonitorTerms;
use crate::pattern::{Glob, PathPattern};
use crate::rule::Rule;

/// What one owner says: presets, a file, or several of them laid over each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// What holds where no rule speaks, and where that is said.
    pub defaults: BTreeMap<Action, (Ruling, String)>,
    pub rules: Vec<Rule>,
    pub settings: Settings,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Ceilings: a request may ask for less, never for more.
    pub limits: Asked,
    /// All places where workspaces may be, and where that is said; anywhere, if nothing is.
    pub workspaces: Option<(Vec<PathPattern>, String)>,
    /// Given to every sandbox.
    pub read: Vec<PathPattern>,
    pub write: Vec<PathPattern>,
    /// Taken from every sandbox.
    pub hide: Vec<PathPattern>,
    /// Shown apart at the commit gate.
    pub protect: Vec<PathPattern>,
    pub pass: Vec<Glob>,
    pub set: BTreeMap<String, String>,
    /// All languages that may be interpreted, and where that is said; any, if nothing is.
    pub languages: Option<(Vec<String>, String)>,
    pub minimum: Option<Strength>,
    /// Whether images may be pulled.
    pub pull: Option<Ruling>,
    pub accepted_missing: BTreeSet<Wall>,
    pub agents: Vec<AgentTerms>,
    pub approvals: ApprovalTerms,
    pub monitor: MonitorTerms,
    pub findings: FindingTerms,
    /// Whether secrets are taken out of output.
    pub redact: Option<bool>,
    pub secrets: BTreeMap<String, SecretTerms>,
    /// Files whose downloads are kept.
    pub immutable: Vec<Immutable>,
    /// How many bytes of them.
    pub cache: Option<u64>,
}

/// What is said of one secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretTerms {
    /// All places where it may go, each with where that is said; anywhere, if none is.
    pub hosts: Vec<(HostPattern, String)>,
    /// `store`, `env:NAME`, `cmd:COMMAND` or `keyring`.
    pub source: Option<String>,
    /// How long what a command said is used; with the source that it is said of.
    pub ttl: Option<Duration>,
    pub variable: Option<String>,
    pub prefix: Option<String>,
}

/// What to do about findings. Lists go by how grave they are, as in [`model::Severity::ALL`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FindingTerms {
    pub rulings: [Option<Ruling>; 4],
    /// The weakest isolation that will do.
    pub isolation: [Option<Strength>; 4],
    /// Rules and classes that are only told.
    pub ignore: Vec<Glob>,
}

/// How often somebody may ask.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentTerms {
    pub name: Glob,
    pub written: String,
    pub place: String,
    pub rate: Option<Rate>,
    pub concurrent: Option<u64>,
}

/// So many in so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub count: u64,
    pub period: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalTerms {
    pub timeout: Option<Duration>,
    pub approvers: Vec<String>,
    pub always: Option<bool>,
}

impl Sheet {
    /// Lays a later file of the same owner over this one: single values are replaced, lists grow.
    pub fn overlay(&mut self, later: Sheet) {
        let Sheet { defaults, rules, settings } = later;
        self.defaults.extend(defaults);
        self.rules.extend(rules);
        self.settings.overlay(settings);
    }
}

impl Settings {
    fn overlay(&mut self, later: Settings) {
        let Settings {
            limits,
            workspaces,
            read,
            write,
            hide,
            protect,
            pass,
            set,
            languages,
            minimum,
            pull,
            accepted_missing,
            agents,
            approvals,
            monitor,
            findings,
            redact,
            secrets,
            immutable,
            cache,
        } = later;
        self.limits = either(&limits, &self.limits, |later, earlier| later.or(earlier));
        self.read.extend(read);
        self.write.extend(write);
        self.hide.extend(hide);
        self.protect.extend(protect);
        self.pass.extend(pass);
        self.set.extend(set);
        grow(&mut self.workspaces, workspaces);
        grow(&mut self.languages, languages);
        self.minimum = minimum.or(self.minimum);
        self.pull = pull.or(self.pull);
        self.accepted_missing.extend(accepted_missing);
        self.agents.extend(agents);
        let ApprovalTerms { timeout, approvers, always } = approvals;
        self.approvals.timeout = timeout.or(self.approvals.timeout);
        self.approvals.always = always.or(self.approvals.always);
        if !approvers.is_empty() {
            self.approvals.approvers = approvers;
        }
        self.monitor.overlay(monitor);
        let FindingTerms { rulings, isolation, ignore } = findings;
        for (known, later) in self.findings.rulings.iter_mut().zip(rulings) {
            *known = later.or(*known);
        }
        for (known, later) in self.findings.isolation.iter_mut().zip(isolation) {
            *known = later.or(*known);
        }
        self.findings.ignore.extend(ignore);
        self.redact = redact.or(self.redact);
        self.immutable.extend(immutable);
        self.cache = cache.or(self.cache);
        for (name, SecretTerms { hosts, source, ttl, variable, prefix }) in secrets {
            let known = self.secrets.entry(name).or_default();
            known.hosts.extend(hosts);
            if source.is_some() {
                (known.source, known.ttl) = (source, ttl);
            }
            known.variable = variable.or(known.variable.take());
            known.prefix = prefix.or(known.prefix.take());
        }
    }
}

/// A list of all that may be grows by what is laid over it.
fn grow<T>(known: &mut Option<(Vec<T>, String)>, later: Option<(Vec<T>, String)>) {
    match (known.as_mut(), later) {
        (Some((known, _)), Some((more, _))) => known.extend(more),
        (None, later) => *known = later,
        (Some(_), None) => {}
    }
}

/// The lower of each limit.
pub fn lowest(left: &Asked, right: &Asked) -> Asked {
    either(left, right, |left, right| match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    })
}

/// Joins limit by limit; times are taken as nanoseconds, so that one rule does for all.
fn either(left: &Asked, right: &Asked, join: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Asked {
    let time = |time: Option<Duration>| time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let times = |left, right| join(time(left), time(right)).map(Duration::from_nanos);
    let Asked { wall_time, millicpus, cpu_time, memory, processes, disk, open_files, output } = left;
    Asked {
        wall_time: times(*wall_time, right.wall_time),
        millicpus: join(millicpus.map(u64::from), right.millicpus.map(u64::from))
            .map(|number| u32::try_from(number).unwrap_or(u32::MAX)),
        cpu_time: times(*cpu_time, right.cpu_time),
        memory: join(*memory, right.memory),
        processes: join(*processes, right.processes),
        disk: join(*disk, right.disk),
        open_files: join(*open_files, right.open_files),
        output: join(*output, right.output),
    }
}
