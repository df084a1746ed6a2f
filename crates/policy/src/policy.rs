//! All that has a say, and how it is joined: each owner is a voice, and the strictest voice wins.
//!
//! The machine's managed policy is one voice. The user's is another: presets, their file, and the project's file once
//! they trust it, laid over each other. A project's file that nobody trusts is a voice of its own, so whatever it says
//! can only make things stricter.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{Action, Asked, ForeignRules, Ruling, Strength, Wall};

use crate::compile::{Owner, compile};
use crate::file::{File, Text};
use crate::host::HostPattern;
use crate::immutable::Immutable;
use crate::pattern::{PathPattern, Roots};
use crate::presets;
use crate::reader::{BadPolicy, Source, nearest, read};
use crate::sheet::{AgentTerms, SecretTerms, Sheet, lowest};

/// What the owner of the machine, the user and the project allow.
pub struct Policy {
    pub(crate) voices: Vec<Voice>,
    /// Of all texts that had a say.
    pub revision: String,
    /// What a reader should know, such as a part that has no effect.
    pub notes: Vec<String>,
}

/// One owner's say.
pub struct Voice {
    pub owner: Owner,
    pub sheet: Sheet,
    pub foreign: Vec<Box<dyn ForeignRules>>,
}

/// What was found on the disk, for `Policy::assemble`.
pub struct Found<'a> {
    pub home: &'a str,
    pub managed: Option<Source<'a>>,
    /// Usually one. Each is a voice of its own, so a second can't take away from the first.
    pub user: Vec<Source<'a>>,
    pub projects: Vec<Project<'a>>,
    /// Presets of the user's or the machine's own, by name.
    pub presets: &'a OwnPresets<'a>,
    /// Rules in other languages, read already.
    pub foreign: Vec<(Owner, Box<dyn ForeignRules>)>,
    /// A digest of every text that had a say.
    pub revision: String,
}

/// The place and the text of a preset, if there is one of that name.
pub type OwnPresets<'a> = dyn Fn(&str) -> Result<Option<(String, String)>, BadPolicy> + 'a;

pub struct Project<'a> {
    pub source: Source<'a>,
    /// Where the file lies.
    pub folder: &'a str,
    /// The user trusts exactly this text.
    pub trusted: bool,
}

/// How people are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approving {
    pub timeout: Duration,
    pub approvers: Vec<String>,
    pub always: bool,
}

/// What it means may change with the version.
const BUILT_IN: &str = concat!("built-in-", env!("CARGO_PKG_VERSION"));
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
const DEFAULT_CACHE: u64 = 8 << 30;
/// Levels, one of which everything else is laid over.
const LEVELS: [&str; 3] = ["locked", "balanced", "open"];
/// What holds where no level is named: all that the walls can hold is allowed.
const DEFAULT_LEVEL: &str = "open";
/// Presets that presets extend.
const DEEPEST: usize = 8;

impl Policy {
    /// What holds without any file. Known by heart: most starts need no more, and have no time to read a preset.
    pub fn built_in() -> Policy {
        let place = format!("preset:{DEFAULT_LEVEL}");
        let allowed = |action: Action| (action, (Ruling::Allow, place.clone()));
        let defaults: BTreeMap<_, _> = Action::ALL.into_iter().map(allowed).collect();
        let sheet = Sheet { defaults, ..Sheet::default() };
        Policy {
            voices: vec![Voice { owner: Owner::User, sheet, foreign: Vec::new() }],
            revision: BUILT_IN.to_owned(),
            notes: Vec::new(),
        }
    }

    /// Reads and joins everything. One file that can't be understood is an error of the whole.
    pub fn assemble(found: Found<'_>) -> Result<Policy, BadPolicy> {
        let Found { home, managed, user, projects, presets, foreign, revision } = found;
        let roots = Roots { home, project: None };
        let shelf = Shelf { own: presets, roots };
        let mut notes = Vec::new();
        let mut voices = Vec::new();
        if let Some(source) = managed {
            voices.push(Voice::new(Owner::Managed, shelf.sheet(source, roots, Owner::Managed, None)?));
        }

        let mut own = Vec::new();
        for source in &user {
            own.push(shelf.sheet(*source, roots, Owner::User, Some(DEFAULT_LEVEL))?);
        }
        if own.is_empty() {
            own.push(shelf.preset(DEFAULT_LEVEL, 0)?.unwrap_or_default());
        }
        let mut strangers = Vec::new();
        for Project { source, folder, trusted } in projects {
            let roots = Roots { home, project: Some(folder) };
            let said = shelf.sheet(source, roots, Owner::Project, None)?;
            match own.first_mut() {
                Some(first) if trusted => first.overlay(said),
                _ => {
                    notes.extend(has_no_effect(&said, source.file));
                    strangers.push(Voice::new(Owner::Project, said));
                }
            }
        }
        voices.extend(own.into_iter().map(|sheet| Voice::new(Owner::User, sheet)));
        voices.extend(strangers);
        for (owner, rules) in foreign {
            match voices.iter_mut().find(|voice| voice.owner == owner) {
                Some(voice) => voice.foreign.push(rules),
                None => voices.push(Voice { owner, sheet: Sheet::default(), foreign: vec![rules] }),
            }
        }
        Ok(Policy { voices, revision, notes })
    }

    /// One file by itself, as its owner would use it: for those who look at it before it counts.
    pub fn of_one_file(source: Source<'_>, home: &str) -> Result<Policy, BadPolicy> {
        Policy::assemble(Found {
            home,
            managed: None,
            user: vec![source],
            projects: Vec::new(),
            presets: &|_| Ok(None),
            foreign: Vec::new(),
            revision: String::new(),
        })
    }

    /// No file has a say.
    pub fn is_built_in(&self) -> bool {
        self.revision == BUILT_IN
    }

    /// The lowest ceilings of all voices.
    pub fn limits(&self) -> Asked {
        self.voices.iter().fold(Asked::default(), |known, voice| lowest(&known, &voice.sheet.settings.limits))
    }

    /// Voices that can give: a stranger's file can't.
    pub(crate) fn giving(&self) -> impl Iterator<Item = &Voice> {
        self.voices.iter().filter(|voice| voice.owner != Owner::Project)
    }

    pub fn read(&self) -> impl Iterator<Item = &PathPattern> {
        self.giving().flat_map(|voice| &voice.sheet.settings.read)
    }

    pub fn write(&self) -> impl Iterator<Item = &PathPattern> {
        self.giving().flat_map(|voice| &voice.sheet.settings.write)
    }

    pub fn hide(&self) -> impl Iterator<Item = &PathPattern> {
        self.voices.iter().flat_map(|voice| &voice.sheet.settings.hide)
    }

    pub fn protect(&self) -> impl Iterator<Item = &PathPattern> {
        self.voices.iter().flat_map(|voice| &voice.sheet.settings.protect)
    }

    /// Where workspaces may be, for each voice that says so, and where it does.
    pub fn workspaces(&self) -> impl Iterator<Item = (&[PathPattern], &str)> {
        let said = self.voices.iter().filter_map(|voice| voice.sheet.settings.workspaces.as_ref());
        said.map(|(patterns, place)| (patterns.as_slice(), place.as_str()))
    }

    /// Whether every sandbox gets this variable of the asker.
    pub fn passes(&self, variable: &str) -> bool {
        use crate::pattern::Care;
        self.giving().any(|voice| voice.sheet.settings.pass.iter().any(|glob| glob.matches(variable, Care::Exact)))
    }

    /// Variables that every sandbox gets. Of two that set the same, the managed policy wins.
    pub fn set(&self) -> BTreeMap<&str, &str> {
        let mut set = BTreeMap::new();
        for voice in self.giving() {
            for (name, value) in &voice.sheet.settings.set {
                set.entry(name.as_str()).or_insert(value.as_str());
            }
        }
        set
    }

    /// How many bytes of downloads are kept: the least that anybody says.
    pub fn cache(&self) -> u64 {
        self.voices.iter().filter_map(|voice| voice.sheet.settings.cache).min().unwrap_or(DEFAULT_CACHE)
    }

    /// Whose downloads are kept, as somebody who can give says.
    pub(crate) fn immutable(&self) -> impl Iterator<Item = &Immutable> {
        self.giving().flat_map(|voice| &voice.sheet.settings.immutable)
    }

    /// Where a secret may go, as somebody who can give says.
    pub(crate) fn secret_hosts(&self, name: &str) -> impl Iterator<Item = &HostPattern> {
        let terms = self.giving().filter_map(move |voice| voice.sheet.settings.secrets.get(name));
        terms.flat_map(|terms| terms.hosts.iter().map(|(pattern, _)| pattern))
    }

    /// Where the value of a secret is, if the vault is not to say: `store`, `env:NAME`, `cmd:COMMAND` or `keyring`. The managed
    /// policy's word, then the user's.
    pub fn secret_source(&self, name: &str) -> Option<&str> {
        self.of_secret(name, |terms| terms.source.as_deref())
    }

    /// How long what a command said is used: as says who says where it comes from.
    pub fn secret_ttl(&self, name: &str) -> Option<Duration> {
        let mut all = self.giving().filter_map(|voice| voice.sheet.settings.secrets.get(name));
        all.find(|terms| terms.source.is_some()).and_then(|terms| terms.ttl)
    }

    /// The variable inside that has what stands for it.
    pub(crate) fn secret_variable(&self, name: &str) -> Option<&str> {
        self.of_secret(name, |terms| terms.variable.as_deref())
    }

    pub(crate) fn secret_prefix(&self, name: &str) -> Option<&str> {
        self.of_secret(name, |terms| terms.prefix.as_deref())
    }

    fn of_secret<'a>(&'a self, name: &str, value: impl Fn(&'a SecretTerms) -> Option<&'a str>) -> Option<&'a str> {
        self.giving().filter_map(|voice| voice.sheet.settings.secrets.get(name)).find_map(value)
    }

    pub fn minimum(&self) -> Strength {
        self.voices.iter().filter_map(|voice| voice.sheet.settings.minimum).max().unwrap_or_default()
    }

    /// Whether images that are not there may be pulled: somebody says so, and the strictest who says something is heard.
    pub fn pulls(&self) -> Ruling {
        let said = |voice: &Voice| voice.sheet.settings.pull;
        if !self.giving().any(|voice| said(voice).is_some_and(|ruling| ruling != Ruling::Deny)) {
            return Ruling::Deny;
        }
        self.voices.iter().filter_map(said).max().unwrap_or(Ruling::Deny)
    }

    /// Walls that may be missing without anybody asking for it. What one voice gives, another's rules can take.
    pub fn accepted_missing(&self) -> BTreeSet<Wall> {
        self.giving().flat_map(|voice| voice.sheet.settings.accepted_missing.iter().copied()).collect()
    }

    pub fn agents(&self) -> impl Iterator<Item = &AgentTerms> {
        self.voices.iter().flat_map(|voice| &voice.sheet.settings.agents)
    }

    /// How people are asked: the managed policy's word, then the user's.
    pub fn approving(&self) -> Approving {
        let terms = || self.giving().map(|voice| &voice.sheet.settings.approvals);
        Approving {
            timeout: terms().find_map(|terms| terms.timeout).unwrap_or(DEFAULT_TIMEOUT),
            approvers: terms()
                .map(|terms| &terms.approvers)
                .find(|names| !names.is_empty())
                .cloned()
                .unwrap_or_default(),
            always: terms().all(|terms| terms.always != Some(false)),
        }
    }
}

impl Voice {
    fn new(owner: Owner, sheet: Sheet) -> Voice {
        Voice { owner, sheet, foreign: Vec::new() }
    }
}

/// What a file that nobody trusts says in vain.
fn has_no_effect(said: &Sheet, file: &str) -> Option<String> {
    let settings = &said.settings;
    let parts = [
        ("files.read", settings.read.is_empty()),
        ("files.write", settings.write.is_empty()),
        ("environment.pass", settings.pass.is_empty()),
        ("environment.set", settings.set.is_empty()),
        ("isolation.accept_gaps", settings.accepted_missing.is_empty()),
        ("network.allow", !said.rules.iter().any(|rule| rule.id == "network.allow")),
        ("network.download", !said.rules.iter().any(|rule| rule.id == "network.download")),
        ("network.git", !said.rules.iter().any(|rule| rule.id == "network.git")),
        ("network.immutable", settings.immutable.is_empty()),
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|(_, empty)| !empty).map(|(name, _)| name).collect();
    let are = if parts.len() == 1 { "has" } else { "have" };
    (!parts.is_empty()).then(|| {
        format!(
            "{file} is not trusted, so {} {are} no effect; look at it, then `belljar policy trust`",
            parts.join(", ")
        )
    })
}

/// Where presets are.
struct Shelf<'a> {
    own: &'a OwnPresets<'a>,
    roots: Roots<'a>,
}

impl Shelf<'_> {
    /// A file with everything that it extends. `level`: what it is laid over if it names none.
    fn sheet(
        &self,
        source: Source<'_>,
        roots: Roots<'_>,
        owner: Owner,
        level: Option<&str>,
    ) -> Result<Sheet, BadPolicy> {
        let file = read(source)?;
        let names_level = file.extends.iter().any(|name| LEVELS.contains(&name.get_ref().as_str()));
        let mut sheet = match level {
            Some(level) if !names_level => self.preset(level, 0)?.unwrap_or_default(),
            _ => Sheet::default(),
        };
        for (number, name) in file.extends.iter().enumerate() {
            let is_level = |text: &str| LEVELS.contains(&text);
            let mut earlier = file.extends[..number].iter().map(|earlier| earlier.get_ref().as_str());
            if let Some(known) =
                earlier.find(|known| *known == name.get_ref() || is_level(known) && is_level(name.get_ref()))
            {
                let message = match known == name.get_ref() {
                    true => format!("`{known}` is named twice"),
                    false => format!("`{known}` and `{}` are both levels; name one", name.get_ref()),
                };
                return Err(source.bad(&name.span(), message));
            }
            match self.preset(name.get_ref(), 0)? {
                Some(preset) => sheet.overlay(preset),
                None => {
                    let meant = match nearest(name.get_ref(), &presets::names()) {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => format!("there are: {}", presets::names().join(", ")),
                    };
                    let message = format!("`{}` is no preset; {meant}", name.get_ref().escape_debug());
                    return Err(source.bad(&name.span(), message));
                }
            }
        }
        disable(&mut sheet, &file, source)?;
        sheet.overlay(compile(source, file, roots, owner)?);
        Ok(sheet)
    }

    fn preset(&self, name: &str, depth: usize) -> Result<Option<Sheet>, BadPolicy> {
        if let Some(built_in) = presets::sheet(name, self.roots) {
            let (said, extends) = built_in?;
            let source = Source { file: name, text: "" };
            let mut sheet = self.extended(&extends, source, depth)?;
            sheet.overlay(said);
            return Ok(Some(sheet));
        }
        let Some((place, text)) = (self.own)(name)? else { return Ok(None) };
        let source = Source { file: &place, text: &text };
        let file = read(source)?;
        let mut sheet = self.extended(&file.extends, source, depth)?;
        disable(&mut sheet, &file, source)?;
        sheet.overlay(compile(source, file, self.roots, Owner::User)?);
        Ok(Some(sheet))
    }

    /// What a preset is laid over.
    fn extended(&self, names: &[Text], source: Source<'_>, depth: usize) -> Result<Sheet, BadPolicy> {
        if depth >= DEEPEST {
            return Err(source.bad(&(0..0), "presets extend each other in a circle, or too deeply"));
        }
        let mut sheet = Sheet::default();
        for name in names {
            match self.preset(name.get_ref(), depth + 1)? {
                Some(earlier) => sheet.overlay(earlier),
                None => {
                    let message = format!("`{}` is no preset", name.get_ref().escape_debug());
                    return Err(source.bad(&name.span(), message));
                }
            }
        }
        Ok(sheet)
    }
}

/// Takes away what a file says shall not hold of what it extends.
fn disable(sheet: &mut Sheet, file: &File, source: Source<'_>) -> Result<(), BadPolicy> {
    for id in &file.disable {
        let known = sheet.rules.len();
        sheet.rules.retain(|rule| rule.id != *id.get_ref());
        if sheet.rules.len() == known {
            let ids: Vec<&str> = sheet.rules.iter().map(|rule| rule.id.as_ref()).collect();
            let meant = nearest(id.get_ref(), &ids).map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
            let message = format!("no preset that is extended has a rule `{}`{meant}", id.get_ref().escape_debug());
            return Err(source.bad(&id.span(), message));
        }
    }
    Ok(())
}
