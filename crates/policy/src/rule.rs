//! One rule: what it is about, and what it says.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::OnceLock;

use model::{Action, Envelope, Resource, Ruling, WorkspaceMode};
use shell::{Simple, Word};

use crate::argument::{ArgumentPattern, Told};
use crate::calling_off;
use crate::host::{HostPattern, read_host};
use crate::paths::{self, Named, Whereabouts};
use crate::pattern::{Care, Glob, PathPattern, is_plain};
use crate::ready::Ready;
use crate::subcommand::Subcommand;
use crate::url::RequestPattern;

#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub id: Cow<'static, str>,
    /// `file:line`, or the name of a preset.
    pub place: Cow<'static, str>,
    pub actions: Cow<'static, [Action]>,
    pub conditions: Conditions,
    pub then: Ruling,
    pub why: Cow<'static, str>,
    /// Of a person who answers for it: of the user's own policy or the machine's, and of no preset or project.
    pub own: bool,
}

/// All must hold.
#[derive(Clone, Debug)]
pub enum Conditions {
    Known(Vec<Condition>),
    /// Of a preset's rule, worked out when they are first needed.
    Later(&'static Ready, OnceLock<Vec<Condition>>),
}

impl Conditions {
    pub fn all(&self) -> &[Condition] {
        match self {
            Conditions::Known(conditions) => conditions,
            Conditions::Later(ready, worked_out) => worked_out.get_or_init(|| ready.worked_out()),
        }
    }

    pub fn add(&mut self, condition: Condition) {
        let mut all = self.all().to_vec();
        all.push(condition);
        *self = Conditions::Known(all);
    }

    /// Patterns for paths. Presets' rules on paths are worked out at once, so none is left out.
    pub fn paths(&self) -> impl Iterator<Item = &PathPattern> {
        let known = match self {
            Conditions::Known(conditions) => conditions.as_slice(),
            Conditions::Later(..) => &[],
        };
        known.iter().flat_map(|condition| match condition {
            Condition::Path(patterns) => patterns.as_slice(),
            _ => &[],
        })
    }

    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathPattern> {
        let known = match self {
            Conditions::Known(conditions) => conditions.as_mut_slice(),
            Conditions::Later(..) => &mut [],
        };
        known.iter_mut().flat_map(|condition| match condition {
            Condition::Path(patterns) => patterns.as_mut_slice(),
            _ => &mut [],
        })
    }

    /// Looked at before the conditions are worked out.
    fn may_hold(&self, part: &Part<'_>) -> bool {
        match self {
            Conditions::Known(_) => true,
            Conditions::Later(ready, _) => ready.may_be_about(part),
        }
    }
}

impl PartialEq for Conditions {
    fn eq(&self, other: &Conditions) -> bool {
        self.all() == other.all()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    Agent(Vec<Glob>),
    Program(Vec<Glob>),
    /// One of them.
    Subcommand(Vec<Subcommand>),
    /// None of them.
    OtherThan(Vec<Subcommand>),
    Arguments(Vec<ArgumentPattern>),
    Without(Vec<ArgumentPattern>),
    /// The first argument is none of them.
    UnlessFirst(Vec<ArgumentPattern>),
    /// It does not talk to these alone.
    UnlessHosts(Vec<String>),
    FedBy(Vec<Glob>),
    Writes(bool),
    Path(Vec<PathPattern>),
    Host(Vec<HostPattern>),
    Request(RequestPattern),
    /// None of them.
    OtherRequests(Vec<RequestPattern>),
    Name(Vec<Glob>),
    Language(Vec<String>),
    /// The list of a section that says "only these": what is in none.
    LanguageIsNot(Vec<String>),
    LargerThan(u64),
    Mode(WorkspaceMode),
}

/// What a rule is held against: the envelope, and of a command line one command.
pub struct Part<'a> {
    pub envelope: &'a Envelope,
    pub command: Option<&'a Simple>,
    /// What the command's program is called, if that is known: nearly every rule wants to know.
    pub name: Option<&'a str>,
    /// Where the command may start.
    place: Option<&'a Whereabouts>,
    /// Paths that the command names: looked up once, for all rules. And whether all are in plain letters.
    named: OnceCell<(Vec<Named>, bool)>,
    /// A path stands for everything below it, too.
    around: bool,
    /// A connection stands for whatever request may come over it.
    requests: bool,
}

impl<'a> Part<'a> {
    pub fn of(envelope: &'a Envelope, command: Option<&'a Simple>) -> Part<'a> {
        let name = command.and_then(Simple::name);
        Part { envelope, command, name, place: None, named: OnceCell::new(), around: false, requests: false }
    }

    /// The same, where a path stands for everything below it.
    pub fn around(envelope: &'a Envelope) -> Part<'a> {
        Part { around: true, ..Part::of(envelope, None) }
    }

    /// The same, where a connection stands for whatever request may come over it.
    pub fn opening(envelope: &'a Envelope) -> Part<'a> {
        Part { requests: true, ..Part::of(envelope, None) }
    }

    /// The same, of a command that starts where those before it in its line lead to.
    pub fn from(self, place: &'a Whereabouts) -> Part<'a> {
        Part { place: Some(place), ..self }
    }

    pub fn stands_for_requests(&self) -> bool {
        self.requests
    }

    fn place(&self) -> Cow<'a, Whereabouts> {
        let here = || Cow::Owned(Whereabouts::at(&self.envelope.context.directory));
        self.place.map_or_else(here, Cow::Borrowed)
    }

    fn named(&self, command: &Simple) -> (&[Named], bool) {
        let (named, plain) = self.named.get_or_init(|| {
            let named = paths::named(command, &self.place(), &self.envelope.context.home);
            let plain = named.iter().all(|named| is_plain(named.path()));
            (named, plain)
        });
        (named, *plain)
    }
}

impl Rule {
    /// Whether it is about this.
    pub fn matches(&self, part: &Part<'_>) -> Told {
        if !self.actions.contains(&part.envelope.action) || !self.conditions.may_hold(part) {
            return Told::No;
        }
        let care = if self.then == Ruling::Allow { Care::Exact } else { Care::Forgiving };
        // The least of all: one condition that does not hold is enough.
        let mut told = Told::Yes;
        for condition in self.conditions.all() {
            told = told.min(condition.holds(part, care, self.then));
            if told == Told::No {
                break;
            }
        }
        told
    }
}

impl Rule {
    /// Is about requests, and not about all that goes to a host.
    pub fn reads(&self) -> bool {
        self.actions.contains(&Action::Connect)
            && self
                .conditions
                .all()
                .iter()
                .any(|one| matches!(one, Condition::Request(_) | Condition::OtherRequests(_)))
    }

    /// Hosts that it names; none, where it is about any.
    pub fn hosts(&self) -> Option<&[HostPattern]> {
        self.conditions.all().iter().find_map(|condition| match condition {
            Condition::Host(patterns) => Some(patterns.as_slice()),
            _ => None,
        })
    }

    /// All but what it says of hosts and requests: whether it is a rule for this principal at all.
    pub fn concerns(&self, part: &Part<'_>) -> bool {
        let care = if self.then == Ruling::Allow { Care::Exact } else { Care::Forgiving };
        let of_network =
            |one: &&Condition| matches!(one, Condition::Host(_) | Condition::Request(_) | Condition::OtherRequests(_));
        let rest = self.conditions.all().iter().filter(|one| !of_network(one));
        self.actions.contains(&Action::Connect)
            && rest.into_iter().all(|one| one.holds(part, care, self.then) != Told::No)
    }
}

/// What somebody asks for may be a pattern itself: `*.example.org`. What allows must be about all of it, and what asks about
/// any part. Of what denies a part, the gate keeps that part closed.
fn is_host(pattern: &HostPattern, name: &str, port: u16, care: Care, then: Ruling) -> bool {
    match read_host(name) {
        Some(host) if port > 0 => pattern.matches(&host, port, care),
        _ => HostPattern::of_envelope(name, port).is_some_and(|asked| match then {
            Ruling::Ask => pattern.meets(&asked, care),
            Ruling::Allow | Ruling::Deny => pattern.covers(&asked, care),
        }),
    }
}

pub fn is_host_of(pattern: &HostPattern, name: &str) -> bool {
    match read_host(name) {
        Some(host) => pattern.names(&host),
        None => HostPattern::of_envelope(name, 0).is_some_and(|asked| pattern.covers_names(&asked)),
    }
}

impl Condition {
    fn holds(&self, part: &Part<'_>, care: Care, then: Ruling) -> Told {
        let Part { envelope, command, name, place: _, named: _, around, requests } = part;
        match self {
            Condition::Agent(names) => {
                let user = format!("user:{}", envelope.principal.user);
                // A claimed name can bring a no, never a yes.
                let claimed = envelope.principal.agent.iter().filter(|_| care == Care::Forgiving);
                let known = claimed.chain(std::iter::once(&user));
                known.into_iter().any(|name| names.iter().any(|glob| glob.matches(name, care))).into()
            }
            Condition::Program(names) => command.map_or(Told::No, |command| program(names, command, *name, care)),
            Condition::Subcommand(wanted) => {
                command.map_or(Told::No, |command| subcommand(wanted, command, *name, care))
            }
            Condition::OtherThan(known) => {
                command.map_or(Told::No, |command| subcommand(known, command, *name, care).opposite())
            }
            Condition::Arguments(wanted) => command.map_or(Told::No, |command| arguments(wanted, &command.arguments)),
            Condition::Without(unwanted) => command.map_or(Told::No, |command| without(unwanted, command, care)),
            Condition::UnlessFirst(unwanted) => {
                command.map_or(Told::No, |command| calling_off::by_first(unwanted, &command.arguments).opposite())
            }
            Condition::UnlessHosts(hosts) => command.map_or(Told::No, |command| {
                let told = calling_off::by_hosts(hosts, name.unwrap_or_default(), &command.arguments).opposite();
                // `http_proxy=x curl localhost` talks to x.
                let is_plain = command.assignments.iter().all(|(name, _)| HARMLESS.contains(&name.as_str()));
                if is_plain { told } else { told.max(Told::Maybe) }
            }),
            Condition::FedBy(programs) => command
                .is_some_and(|command| {
                    let is_named = |source: &String| programs.iter().any(|glob| glob.matches(source, care));
                    match care {
                        // What goes through `mytool` may still be what `curl` brought.
                        Care::Exact => !command.fed_by.is_empty() && command.fed_by.iter().all(is_named),
                        Care::Forgiving => command.fed_by.iter().any(is_named),
                    }
                })
                .into(),
            Condition::Writes(wanted) => command.is_some_and(|command| command.writes.is_empty() != *wanted).into(),
            Condition::Path(patterns) => match (&envelope.resource, command) {
                (Resource::Path(path), _) => {
                    let workspaces = &envelope.context.workspaces;
                    let around = *around && care == Care::Forgiving;
                    // What allows means this path alone; what asks or denies also means it by its other name.
                    let twin = paths::twin(path).filter(|_| care == Care::Forgiving);
                    let is_it = |pattern: &PathPattern| {
                        pattern.matches(path, workspaces, care)
                            || twin.as_ref().is_some_and(|twin| pattern.matches(twin, workspaces, care))
                            || around && pattern.is_below(path, workspaces)
                    };
                    patterns.iter().any(is_it).into()
                }
                (_, Some(command)) => is_named(patterns, part, command, care),
                _ => Told::No,
            },
            Condition::Host(patterns) => match &envelope.resource {
                Resource::Host { name, port } | Resource::Request { host: name, port, .. } => {
                    patterns.iter().any(|pattern| is_host(pattern, name, *port, care, then)).into()
                }
                // A secret goes to a host; which port is the connection's question.
                Resource::Secret { host, .. } => patterns.iter().any(|pattern| is_host_of(pattern, host)).into(),
                _ => Told::No,
            },
            Condition::Request(pattern) => match &envelope.resource {
                Resource::Request { method, path, .. } => pattern.matches(method, path, care).into(),
                // Of a connection, nobody knows yet: each request is judged by itself, at the gate.
                _ => (*requests && then != Ruling::Deny).into(),
            },
            Condition::OtherRequests(patterns) => match &envelope.resource {
                // What is called off is called off by exactly these.
                Resource::Request { method, path, .. } => {
                    (!patterns.iter().any(|pattern| pattern.matches(method, path, Care::Exact))).into()
                }
                _ => (*requests && then != Ruling::Deny).into(),
            },
            Condition::Name(globs) => match &envelope.resource {
                Resource::Variable(name)
                | Resource::Wall(name)
                | Resource::Secret { name, .. }
                | Resource::Artifact { name, .. } => globs.iter().any(|glob| glob.matches(name, care)).into(),
                _ => Told::No,
            },
            Condition::Language(languages) => match &envelope.resource {
                Resource::Code { language: Some(language), .. } => languages.contains(language).into(),
                Resource::Code { language: None, .. } => Told::Maybe,
                _ => Told::No,
            },
            Condition::LanguageIsNot(languages) => match &envelope.resource {
                Resource::Code { language: Some(language), .. } => (!languages.contains(language)).into(),
                // Nobody can tell that it is one of them.
                Resource::Code { language: None, .. } => Told::Yes,
                _ => Told::No,
            },
            Condition::LargerThan(most) => match &envelope.resource {
                Resource::Code { bytes, .. } | Resource::Artifact { bytes, .. } => (bytes > most).into(),
                _ => Told::No,
            },
            Condition::Mode(mode) => (envelope.context.workspace_mode == *mode).into(),
        }
    }

    /// Whether there is such a thing in envelopes of this action: a rule that never holds is a hole.
    pub fn can_hold(&self, action: Action) -> bool {
        use Action::{Code, Commit, Connect, Environment, Exec, Gap, Read, Release, SecretUse, Write};
        match self {
            Condition::Agent(_) | Condition::Mode(_) => true,
            Condition::Program(_) | Condition::Subcommand(_) | Condition::OtherThan(_) => action == Exec,
            Condition::Arguments(_) | Condition::Without(_) => action == Exec,
            Condition::UnlessFirst(_) | Condition::UnlessHosts(_) => action == Exec,
            Condition::FedBy(_) | Condition::Writes(_) => action == Exec,
            Condition::Path(_) => matches!(action, Exec | Read | Write | Commit),
            Condition::Host(_) => matches!(action, Connect | SecretUse),
            Condition::Request(_) | Condition::OtherRequests(_) => action == Connect,
            Condition::Name(_) => matches!(action, Environment | Gap | SecretUse | Release),
            Condition::Language(_) | Condition::LanguageIsNot(_) => action == Code,
            Condition::LargerThan(_) => matches!(action, Code | Release),
        }
    }

    pub fn key(&self) -> &'static str {
        match self {
            Condition::Agent(_) => "agent",
            Condition::Program(_) => "program",
            Condition::Subcommand(_) => "subcommand",
            Condition::OtherThan(_) => "other_than",
            Condition::Arguments(_) => "args",
            Condition::Without(_) => "without",
            Condition::UnlessFirst(_) => "unless_first",
            Condition::UnlessHosts(_) => "unless_hosts",
            Condition::FedBy(_) => "fed_by",
            Condition::Writes(_) => "writes",
            Condition::Path(_) => "path",
            Condition::Host(_) => "host",
            Condition::Request(_) | Condition::OtherRequests(_) => "method` or `url",
            Condition::Name(_) => "name",
            Condition::Language(_) | Condition::LanguageIsNot(_) => "language",
            Condition::LargerThan(_) => "larger_than",
            Condition::Mode(_) => "workspace_mode",
        }
    }
}

/// Variables that only change how things look.
const HARMLESS: &[&str] = &["CI", "COLUMNS", "FORCE_COLOR", "LANG", "LC_ALL", "NO_COLOR", "TERM", "TZ"];

/// A program of this name, wherever it lies. But only the system's own is surely it: a rule that allows `git` does not
/// allow `./git`. A program that is only known when it runs is no rule's: the reading says that it is unclear.
fn program(names: &[Glob], command: &Simple, name: Option<&str>, care: Care) -> Told {
    let Some(name) = name else { return Told::No };
    let is_named = names.iter().any(|glob| glob.matches(name, care));
    (is_named && (care == Care::Forgiving || is_the_systems(command))).into()
}

/// The system's own program, and no variable is set that may decide what it loads or starts: `GIT_EXTERNAL_DIFF=./x git diff`.
pub fn is_the_systems(command: &Simple) -> bool {
    let harmless = |(name, _): &(String, Word)| HARMLESS.contains(&name.as_str());
    command.is_standard() && command.assignments.iter().all(harmless)
}

fn subcommand(wanted: &[Subcommand], command: &Simple, name: Option<&str>, care: Care) -> Told {
    let Some(name) = name else { return Told::No };
    wanted.iter().map(|subcommand| subcommand.matches(name, &command.arguments, care)).max().unwrap_or(Told::No)
}

/// Flags anywhere; other words in their order, whatever stands between.
fn arguments(wanted: &[ArgumentPattern], given: &[Word]) -> Told {
    let words: Vec<&ArgumentPattern> = wanted.iter().filter(|pattern| !pattern.is_flag()).collect();
    let mut told = in_order(&words, given);
    // A flag has many spellings: it is looked for where the words are right.
    for flag in wanted.iter().filter(|pattern| pattern.is_flag()) {
        if told == Told::No {
            break;
        }
        told = told.min(flag.stands_in(given));
    }
    told
}

/// With as many sure words as possible: what is only known when it runs stands in for one where nothing else does.
fn in_order(wanted: &[&ArgumentPattern], given: &[Word]) -> Told {
    // best[i]: how surely the first i patterns are found in what was read.
    let mut best = vec![Told::No; wanted.len() + 1];
    best[0] = Told::Yes;
    for word in given {
        for at in (0..wanted.len()).rev() {
            let found = best[at].min(wanted[at].matches(word));
            best[at + 1] = best[at + 1].max(found);
        }
    }
    best[wanted.len()]
}

/// What allows is called off by anything that may be meant; what asks or denies only by what surely is.
fn without(unwanted: &[ArgumentPattern], command: &Simple, care: Care) -> Told {
    let given = &command.arguments;
    let found = match care {
        Care::Exact => unwanted.iter().flat_map(|pattern| given.iter().map(|word| pattern.may_slip_by(word))).max(),
        Care::Forgiving => Some(calling_off::by_word(unwanted, command.name().unwrap_or_default(), given)),
    };
    found.unwrap_or(Told::No).opposite()
}

/// Any argument or redirection that is such a path, from where the command starts. Of what is only known when it runs,
/// the known beginning counts: `$X` could be anything, and to ask about each would be to ask about everything. Files
/// that must not be seen are the wall's business.
fn is_named(patterns: &[PathPattern], part: &Part<'_>, command: &Simple, care: Care) -> Told {
    let model::Context { home, workspaces, .. } = &part.envelope.context;
    if care == Care::Exact {
        let surely = paths::surely_named(command, &part.place(), home);
        let is_it = |path: &String| patterns.iter().any(|pattern| pattern.matches(path, workspaces, care));
        return surely.iter().any(is_it).into();
    }
    let (named, plain) = part.named(command);
    let about = |path: &String| {
        let may_be = |pattern: &&PathPattern| !plain || pattern.may_be_about(path);
        patterns.iter().filter(may_be).any(|pattern| pattern.matches(path, workspaces, care))
    };
    let told = named.iter().map(|named| match named {
        Named::Whole(path) if about(path) => Told::Yes,
        Named::Beginning(path) if about(path) => Told::Maybe,
        Named::Somewhere(path) if patterns.iter().any(|pattern| pattern.may_end_in(path)) => Told::Maybe,
        _ => Told::No,
    });
    told.max().unwrap_or(Told::No)
}
