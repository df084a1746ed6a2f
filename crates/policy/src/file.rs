//! The form of a policy file, as people write it. What it means is in `compile/`.
//!
//! The comments here are what `belljar policy schema` and editors show: they speak to whoever writes a policy.

mod monitor;

use std::collections::BTreeMap;
use std::ops::Range;

use model::{Ruling, WorkspaceMode};
use serde::Deserialize;
use toml::Spanned;

#[cfg(test)]
use schemars::JsonSchema;

pub use monitor::Monitor;

// A text whose place in the file is remembered, for errors. No comment for the schema: there it is a text.
#[derive(Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(transparent, inline))]
#[serde(transparent)]
pub struct Text(#[cfg_attr(test, schemars(with = "String"))] Spanned<String>);

impl Text {
    /// From no file.
    pub fn unplaced(text: &str) -> Text {
        Text(Spanned::new(0..0, text.to_owned()))
    }

    pub fn get_ref(&self) -> &String {
        self.0.get_ref()
    }

    pub fn span(&self) -> Range<usize> {
        self.0.span()
    }
}

/// What may run, what it may do, and who is asked.
#[derive(Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(title = "belljar policy"))]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The version of this format: 1.
    #[cfg_attr(test, schemars(with = "u32", range(min = 1, max = 1)))]
    pub version: Spanned<u32>,
    /// Presets to begin with: a level (`locked`, `balanced` or `open`), languages, agents.
    #[serde(default)]
    pub extends: Vec<Text>,
    /// Rules of presets that shall not hold, by their ids. In a preset, of those that it extends.
    #[serde(default)]
    pub disable: Vec<Text>,
    /// What holds for an action that no rule speaks of.
    #[serde(default)]
    pub defaults: Defaults,
    #[serde(default)]
    pub files: Files,
    #[serde(default)]
    pub environment: Environment,
    /// Ceilings: whoever asks may ask for less, never for more.
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub network: Network,
    /// Secrets by name, and where they may go.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Secret>"))]
    pub secrets: BTreeMap<Spanned<String>, Secret>,
    #[serde(default)]
    pub code: Code,
    #[serde(default)]
    pub isolation: Isolation,
    /// Who may do what, and how often. Not in a project's file.
    #[serde(default)]
    pub agent: Vec<Agent>,
    /// How people are asked. Not in a project's file.
    #[serde(default)]
    pub approvals: Approvals,
    /// What follows from what the monitor sees. Not in a project's file.
    #[serde(default)]
    pub monitor: Monitor,
    /// What to do about what scanners find in code that goes in.
    #[serde(default)]
    pub findings: Findings,
    #[serde(default)]
    pub release: Release,
    #[serde(default)]
    pub commit: Commit,
    /// Rules. All that match are heard, and the strictest wins.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Rule>"))]
    pub rule: Vec<Spanned<Rule>>,
}

/// A ruling for each action.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Starting a command.
    pub exec: Option<Answer>,
    /// Having code interpreted.
    pub code: Option<Answer>,
    /// Seeing files that are not granted otherwise (`--read`).
    pub read: Option<Answer>,
    /// Changing real files directly (`--write`, `--workspace-mode direct`).
    pub write: Option<Answer>,
    /// Passing on a variable of the asker's environment (`--env NAME`).
    pub environment: Option<Answer>,
    /// Going without a wall that the host can't hold (`--accept-gap`).
    pub gap: Option<Answer>,
    /// Reaching a host.
    pub connect: Option<Answer>,
    /// Having a secret added to a request that goes out.
    #[serde(rename = "secret.use")]
    pub secret_use: Option<Answer>,
    /// Giving output and files back.
    pub release: Option<Answer>,
    /// Taking changes onto the real files.
    pub commit: Option<Answer>,
}

/// `allow`, `ask` or `deny`, with its place.
#[derive(Clone, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(transparent)]
pub struct Answer(#[cfg_attr(test, schemars(with = "Rulings"))] pub Spanned<Ruling>);

// For the schema alone: the model knows nothing of schemas.
#[cfg(test)]
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)]
enum Rulings {
    Allow,
    Ask,
    Deny,
}

#[cfg(test)]
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)]
enum Modes {
    Cow,
    Direct,
    Readonly,
}

/// Paths: absolute, from `~/`, or relative to the workspace (in a project's file: to that file).
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Where workspaces may be; anywhere, if nothing is named. Globs work: `~/code/*`.
    #[serde(default)]
    pub workspaces: Vec<Text>,
    /// Can be read in every sandbox, where they exist.
    #[serde(default)]
    pub read: Vec<Text>,
    /// Can be changed directly in every sandbox, where they exist.
    #[serde(default)]
    pub write: Vec<Text>,
    /// Can't be seen in any sandbox.
    #[serde(default)]
    pub hide: Vec<Text>,
    /// Changes to these are shown apart and taken only when named. Globs work: `deploy/**`.
    #[serde(default)]
    pub protect: Vec<Text>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Variables of the asker that every sandbox gets. `*` stands for any letters: `NPM_CONFIG_*`.
    #[serde(default)]
    pub pass: Vec<Text>,
    /// Variables that every sandbox gets with this value.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub set: BTreeMap<Spanned<String>, String>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Ends it after this time: `30s`, `5m`.
    pub timeout: Option<Text>,
    /// Processors: `2`, `0.5`.
    pub cpus: Option<Text>,
    /// Processor time of all processes together.
    pub cpu_time: Option<Text>,
    /// Memory of all processes together: `512M`.
    pub memory: Option<Text>,
    /// Processes and threads.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub pids: Option<Spanned<u64>>,
    /// Bytes it may write in each writable place: `8G`.
    pub disk: Option<Text>,
    /// Files it may have open in one process.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub files: Option<Spanned<u64>>,
    /// Bytes of output that are passed on.
    pub output: Option<Text>,
}

/// Hosts: `pypi.org`, `*.npmjs.org` (one label or more), `*` (any name), `10.0.0.0/8:5432`, `localhost:5432`. Without a port,
/// what allows means 443, and what asks or denies any.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Network {
    #[serde(default)]
    pub allow: Vec<Text>,
    /// A person is asked at the first request.
    #[serde(default)]
    pub ask: Vec<Text>,
    #[serde(default)]
    pub deny: Vec<Text>,
    /// Hosts to download from: GET and HEAD, on 443 and 80 if no port is said. Everything else asks.
    #[serde(default)]
    pub download: Vec<Text>,
    /// Hosts of repositories: to fetch is allowed, to push asks.
    #[serde(default)]
    pub git: Vec<Text>,
    /// Files that never change once they are published, such as `files.example.org/packages/**/*.whl`: of hosts whose requests
    /// are read, what was downloaded of these is kept for the next sandbox. It allows nothing.
    #[serde(default)]
    pub immutable: Vec<Text>,
    /// How much of such downloads is kept: `8G`, if not said. `none` keeps nothing, and gives nothing that was kept.
    pub cache: Option<Text>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// Where it may go; nowhere else, if some are named.
    #[serde(default)]
    pub hosts: Vec<Text>,
    /// Where its value is: `store`, `env:NAME`, `cmd:COMMAND`, `keyring`. `store`, if not said. Not in a project's file.
    pub source: Option<Text>,
    /// How long what a command said is used before it is asked again: `5m`. 15 minutes, if not said. Only with `cmd:COMMAND`.
    pub ttl: Option<Text>,
    /// The variable inside that stands for it; its name, if not said. Not in a project's file.
    pub variable: Option<Text>,
    /// How what stands for it begins, for tools that look: `ghp_`. Not in a project's file.
    pub prefix: Option<Text>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// Languages that may be interpreted; all, if none is named.
    #[serde(default)]
    pub languages: Vec<Text>,
    /// The most bytes of one piece of code: `1M`.
    pub largest: Option<Text>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    /// The weakest kind of wall that will do: `namespaces` (the host's kernel), `user-kernel` (a kernel of its own in
    /// user space), `machine` (a virtual machine).
    pub minimum: Option<Text>,
    /// Whether an image that the container engine does not have may be pulled: `allow`, `ask` or `deny`, which is so
    /// where nothing is said.
    pub pull: Option<Text>,
    /// Walls that may be missing.
    #[serde(default)]
    pub accept_gaps: Vec<Text>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Whom it is about: an agent's name or `user:NAME`. `*` stands for any letters.
    pub name: Text,
    /// All that it may do; everything, if nothing is named.
    #[serde(default)]
    pub actions: Vec<Text>,
    /// Languages that it may have interpreted; all, if none is named.
    #[serde(default)]
    pub languages: Vec<Text>,
    /// How often it may ask: `60/m`, `10/s`, `500/h`.
    pub rate: Option<Text>,
    /// How many runs it may have at once.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub concurrent: Option<Spanned<u64>>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    /// How long a question waits for an answer; then it is a no. `5m` if not said.
    pub timeout: Option<Text>,
    /// Users who may answer, by name or number, or `group:NAME`; whoever asks, and root, if none is named.
    #[serde(default)]
    pub approvers: Vec<Text>,
    /// Whether an answer may hold from now on (`--always`). It may, if not said.
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    pub always: Option<Spanned<bool>>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Findings {
    pub critical: Option<Answer>,
    pub high: Option<Answer>,
    pub medium: Option<Answer>,
    pub low: Option<Answer>,
    /// The weakest kind of isolation in which code with such findings may run.
    #[serde(default)]
    pub isolation: FindingsIsolation,
    /// Rules and classes whose findings are only told, such as `network` or `python.process.*`.
    #[serde(default)]
    pub ignore: Vec<Text>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FindingsIsolation {
    pub critical: Option<Text>,
    pub high: Option<Text>,
    pub medium: Option<Text>,
    pub low: Option<Text>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Whether secrets are taken out of what a sandbox says. They are, if not said.
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    pub redact: Option<Spanned<bool>>,
    /// The most bytes of one file that goes back to the asker.
    pub largest: Option<Text>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// Paths whose changes a person is asked about, even when they are named.
    #[serde(default)]
    pub ask: Vec<Text>,
    /// Paths whose changes are never taken.
    #[serde(default)]
    pub deny: Vec<Text>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A name for it, for `disable` and for messages; its number, if not said.
    pub id: Option<Text>,
    pub when: When,
    #[cfg_attr(test, schemars(with = "Rulings"))]
    pub then: Ruling,
    /// What a person or a model is told.
    pub why: String,
    /// What it is about, checked when the file is read: commands, paths, hosts … Where it is about sizes: `python of 2M`;
    /// about requests: `GET https://example.org/a`.
    #[serde(default)]
    pub matches: Vec<Text>,
    /// What it is not about.
    #[serde(default)]
    pub passes: Vec<Text>,
}

/// All that is said must hold; of a list, one.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct When {
    /// `exec`, if a program is named; `connect`, if a host is; `code`, if a language is.
    #[serde(default)]
    pub action: Few,
    /// An agent's name, or `user:NAME`.
    #[serde(default)]
    pub agent: Few,
    /// A program by its name, wherever it lies. `npm|yarn` is one or the other.
    #[serde(default)]
    pub program: Few,
    /// What the program is told to do: its first words that are no options, such as `push` or `remote add|set-url`. `**` stands
    /// for any number of words: `** deploy`.
    #[serde(default)]
    pub subcommand: Few,
    /// Subcommands that it is not about.
    #[serde(default)]
    pub other_than: Few,
    /// Arguments that must be there: flags anywhere, other words in this order. `--force|-f` is one or the other, `-c alias.*` an
    /// option with such a value.
    #[serde(default)]
    pub args: Vec<Text>,
    /// Arguments that must not be there. A rule that asks or denies is only called off by exactly one of these, as an option of
    /// its own that nothing takes back: neither by `-o --dry-run` nor by `--dry-run --no-dry-run`. `-X GET` is an option with its
    /// value.
    #[serde(default)]
    pub without: Vec<Text>,
    /// What must not be the first argument: `--version` as in `docker --version`, but not as in `docker run x --version`.
    #[serde(default)]
    pub unless_first: Vec<Text>,
    /// Hosts that a rule on `curl`, `ping` or `dig` is not about, where the command talks to no other: `localhost`.
    #[serde(default)]
    pub unless_hosts: Vec<Text>,
    /// Programs whose output it runs, as in `curl … | sh`. `*` is any.
    #[serde(default)]
    pub fed_by: Few,
    /// Whether a redirection writes to a file, as in `echo x > y`.
    pub writes: Option<bool>,
    /// A file or folder: what is read, written or taken; of a command, any argument or redirection.
    #[serde(default)]
    pub path: Few,
    #[serde(default)]
    pub host: Few,
    /// Methods of a request: `GET`. What goes to the host is then read.
    #[serde(default)]
    pub method: Few,
    /// Paths of a request: `/repos/*/issues`, `/v1/**`; with a `?`, what follows it as well. What goes to the host is then read.
    #[serde(default)]
    pub url: Few,
    /// A variable, a wall, a secret or an artifact.
    #[serde(default)]
    pub name: Few,
    #[serde(default)]
    pub language: Few,
    /// More bytes than this.
    pub larger_than: Option<Text>,
    /// How the workspace is given: `cow`, `direct`, `readonly`.
    #[cfg_attr(test, schemars(with = "Option<Modes>"))]
    pub workspace_mode: Option<WorkspaceMode>,
}

/// One text or a list of them.
#[derive(Default)]
#[cfg_attr(test, derive(JsonSchema), schemars(transparent))]
pub struct Few(#[cfg_attr(test, schemars(with = "OneOrMore"))] pub Vec<Text>);

// For the schema alone.
#[cfg(test)]
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl<'de> Deserialize<'de> for Few {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Few, D::Error> {
        // Spans only survive where they are asked for directly, so the value's kind is looked at in a visitor of one.
        let value = Spanned::<OneOrList>::deserialize(deserializer)?;
        let span = value.span();
        Ok(Few(match value.into_inner() {
            OneOrList::One(text) => vec![Text(Spanned::new(span, text))],
            OneOrList::List(texts) => texts.into_iter().map(|text| Text(Spanned::new(span.clone(), text))).collect(),
        }))
    }
}

enum OneOrList {
    One(String),
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for OneOrList {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<OneOrList, D::Error> {
        struct Either;
        impl<'de> serde::de::Visitor<'de> for Either {
            type Value = OneOrList;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a text or a list of texts")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OneOrList, E> {
                Ok(OneOrList::One(text.to_owned()))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<OneOrList, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrList::List(texts))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
