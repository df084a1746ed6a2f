//! Finds and reads the policies that have a say here.
//!
//! Where they lie is not for whoever asks to choose. The user's policy is looked for in the home that the user record
//! names; a variable (`XDG_CONFIG_HOME`, `HOME`) can add another, which is heard as well, but can't take that one away.

mod checked;
mod code;
mod ignored;
mod links;
mod questions;
pub use questions::trouble;
pub mod recorded;
mod trust;

use std::cell::RefCell;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::paths::is_within;
use model::{ForeignRules, Outcome, PolicyFile, RuleLanguage, RuleText, Trouble};
use policy::{BadPolicy, Found, LARGEST, Owner, Policy, Project, Source};

use crate::approvals;
use crate::judge::usage;
use crate::user::User;

use checked::Marks;
pub use trust::Trust;

/// The machine's own, above all others. Only root can write there.
pub const MANAGED: &str = "/etc/belljar";
/// A project's, in its folder or one above.
pub const PROJECT: &str = "belljar.toml";

/// All that was found, read and joined.
pub struct Loaded {
    pub policy: Policy,
    /// Folders and files that policies come from: whoever writes there makes the rules.
    pub folders: Vec<PathBuf>,
    pub project_files: Vec<PathBuf>,
    /// For those who want to know.
    pub files: Vec<PolicyFile>,
    /// Where is counted how often somebody asks, if it is not for variables to say.
    pub counted_in: Option<PathBuf>,
}

/// A text with the path it came from.
#[derive(Clone, Debug)]
struct Text {
    file: String,
    text: String,
}

impl Text {
    fn source(&self) -> Source<'_> {
        Source { file: &self.file, text: &self.text }
    }
}

/// For work in these folders. `instead`: this file is taken for the user's own.
pub fn load(
    languages: &[Box<dyn RuleLanguage>],
    user: &User,
    workspaces: &[PathBuf],
    instead: Option<&Path>,
) -> Result<Loaded, Outcome> {
    let folders = config_folders(user);
    let managed = managed()?;
    let mut own: Vec<Text> = Vec::new();
    match instead {
        Some(file) => own.push(read_existing(file)?),
        None => {
            for folder in &folders {
                own.extend(read(&folder.join("policy.toml"))?);
            }
        }
    }
    let mut projects: Vec<(PathBuf, Text)> = Vec::new();
    for workspace in workspaces {
        // All of them: one that is nearer must not silence one above. The nearest comes last, to be laid over the others.
        for (file, text) in project_files(workspace)?.into_iter().rev() {
            if !projects.iter().any(|(known, _)| *known == file) {
                projects.push((file, text));
            }
        }
    }
    let mut foreign_texts = Vec::new();
    for language in languages {
        let managed = foreign_files(Path::new(MANAGED), language.extension())?;
        foreign_texts.push((language, Owner::Managed, managed));
        for folder in &folders {
            foreign_texts.push((language, Owner::User, foreign_files(folder, language.extension())?));
        }
    }
    foreign_texts.retain(|(_, _, texts)| !texts.is_empty());

    let project_files: Vec<PathBuf> = projects.iter().map(|(file, _)| file.clone()).collect();
    let nothing = managed.is_none() && own.is_empty() && projects.is_empty() && foreign_texts.is_empty();
    if nothing {
        return Ok(Loaded { policy: Policy::built_in(), folders, project_files, files: Vec::new(), counted_in: None });
    }

    let trust = if projects.is_empty() { Trust::default() } else { Trust::read(user)? };
    let marks = Marks::below(user.home.as_deref());
    let mut foreign: Vec<(Owner, Box<dyn ForeignRules>)> = Vec::new();
    for (language, owner, texts) in &foreign_texts {
        let texts: Vec<RuleText<'_>> =
            texts.iter().map(|text| RuleText { file: &text.file, text: &text.text }).collect();
        let known = marks.know(language.as_ref(), *owner, &texts);
        let rules = if known { language.read_again(&texts) } else { language.read(&texts) };
        let rules = rules.map_err(|bad| {
            usage(format!("{}:{}: {}", bad.file, bad.line, bad.message), &format!("{}; {NOTHING_RUNS}", bad.hint))
        })?;
        if !known {
            // Nobody's safety rests on it: without a mark they are checked at each start.
            match marks.remember(language.as_ref(), *owner, &texts) {
                Ok(()) | Err(_) => {}
            }
        }
        foreign.push((*owner, rules));
    }
    let home = user.home.clone().or_else(|| variable("HOME")).unwrap_or_else(|| PathBuf::from("/"));
    let home = home.to_string_lossy();
    let read_presets = RefCell::new(Vec::new());
    let own_presets = |name: &str| {
        let found = own_preset(folders.first(), name)?;
        read_presets.borrow_mut().extend(found.clone());
        Ok(found.map(|Text { file, text }| (file, text)))
    };
    let project_folders: Vec<String> = projects
        .iter()
        .map(|(file, _)| file.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned())
        .collect();
    // Beside a policy that no variable leads away from.
    let firm = managed.is_some() || folders.first().is_some_and(|folder| user.home.is_some() && folder.is_dir());
    let own_state = user.home.as_ref().filter(|_| firm).map(|home| home.join(".local/state/belljar"));
    let counted_in = workspace::given_state().map(Path::to_owned).or(own_state);
    let files = listed(&managed, &own, &projects, &trust, &foreign_texts);
    let project_texts = &projects;
    let projects = projects.iter().zip(&project_folders).map(|((file, text), folder)| Project {
        source: text.source(),
        folder,
        // In one project, it gives nothing to another.
        trusted: trust.covers(file, &text.text) && workspaces.iter().all(|workspace| is_within(workspace, folder)),
    });
    let mut policy = Policy::assemble(Found {
        home: &home,
        managed: managed.as_ref().map(Text::source),
        user: own.iter().map(Text::source).collect(),
        projects: projects.collect(),
        presets: &own_presets,
        foreign,
        revision: String::new(),
    })
    .map_err(bad)?;
    let texts = managed.iter().chain(&own).chain(project_texts.iter().map(|(_, text)| text));
    let texts = texts.chain(foreign_texts.iter().flat_map(|(_, _, texts)| texts));
    let approvers = policy.approving().approvers;
    if !approvers.is_empty() {
        approvals::reaches(Path::new(approvals::SPOOL), &approvers)
            .map_err(|Trouble { message, fix }| usage(message, &fix))?;
    }
    let trusted = project_texts.iter().map(|(file, text)| trust.covers(file, &text.text));
    policy.revision = revision(texts.chain(read_presets.borrow().iter()), trusted);
    let folders_of_work: Vec<String> = workspaces.iter().map(|folder| folder.to_string_lossy().into_owned()).collect();
    let links = links::among(policy.beginnings(&folders_of_work));
    policy.told_of(&links, &folders_of_work);
    Ok(Loaded { policy, folders, project_files, files, counted_in })
}

type Foreign<'a> = (&'a Box<dyn RuleLanguage>, Owner, Vec<Text>);

fn listed(
    managed: &Option<Text>,
    own: &[Text],
    projects: &[(PathBuf, Text)],
    trust: &Trust,
    foreign: &[Foreign<'_>],
) -> Vec<PolicyFile> {
    let file =
        |text: &Text, owner: Owner, trusted| PolicyFile { file: text.file.clone(), owner: owner.name(), trusted };
    let managed = managed.iter().map(|text| file(text, Owner::Managed, None));
    let own = own.iter().map(|text| file(text, Owner::User, None));
    let projects = projects.iter().map(|(path, text)| file(text, Owner::Project, Some(trust.covers(path, &text.text))));
    let foreign = foreign.iter().flat_map(|(_, owner, texts)| texts.iter().map(move |text| file(text, *owner, None)));
    managed.chain(own).chain(projects).chain(foreign).collect()
}

const NOTHING_RUNS: &str = "nothing runs with a policy that can't be understood";

fn bad(bad: BadPolicy) -> Outcome {
    usage(bad.to_string(), &format!("mend the policy file; {NOTHING_RUNS}"))
}

/// Where the user's policy is: in the recorded home, and where variables say.
pub fn config_folders(user: &User) -> Vec<PathBuf> {
    let recorded = user.home.as_ref().map(|home| home.join(".config"));
    let said = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")));
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in recorded.into_iter().chain(said).map(|folder| folder.join("belljar")) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Where we write what somebody trusts and agreed to, and where it counts: only in the recorded home. A variable could
/// otherwise bring answers that nobody gave.
pub fn settings_folder(user: &User) -> Option<PathBuf> {
    // The first is the recorded home's, where there is one; services often have a record with a home that is not there.
    let lives = user.home.as_ref().is_some_and(|home| home.is_dir());
    let mut folders = config_folders(user);
    if lives { folders.into_iter().next() } else { folders.pop() }
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn managed() -> Result<Option<Text>, Outcome> {
    let file = Path::new(MANAGED).join("policy.toml");
    let Some(text) = read(&file)? else { return Ok(None) };
    belongs_to_root(&file)?;
    Ok(Some(text))
}

/// A managed policy that others can write is no better than theirs.
fn belongs_to_root(file: &Path) -> Result<(), Outcome> {
    for path in [file, Path::new(MANAGED)] {
        let shown = path.display();
        let stat = std::fs::metadata(path).map_err(|error| {
            usage(format!("cannot look at the managed policy `{shown}`: {error}"), "make it readable")
        })?;
        if stat.uid() != 0 || stat.mode() & 0o022 != 0 {
            return Err(usage(
                format!("the managed policy `{shown}` can be changed by others than root"),
                &format!("`chown root {shown} && chmod go-w {shown}`"),
            ));
        }
    }
    Ok(())
}

/// Every project's file at or above a folder, the nearest first.
fn project_files(folder: &Path) -> Result<Vec<(PathBuf, Text)>, Outcome> {
    let mut found = Vec::new();
    for around in folder.ancestors() {
        let file = around.join(PROJECT);
        found.extend(read(&file)?.map(|text| (file, text)));
    }
    Ok(found)
}

fn read_existing(file: &Path) -> Result<Text, Outcome> {
    read(file)?.ok_or_else(|| usage(format!("there is no policy file `{}`", file.display()), "check the path"))
}

/// A file that is not there says nothing; one that can't be read is no reason to go without it.
fn read(file: &Path) -> Result<Option<Text>, Outcome> {
    use io::ErrorKind::{NotADirectory, NotFound};
    let name = file.display().to_string();
    let cannot =
        |why: String| usage(format!("cannot read the policy `{name}`: {why}"), "make it readable, or remove it");
    // Asked first: nearly all of those that are looked for are not there, and one that leads nowhere has to be told apart.
    if let Err(error) = std::fs::symlink_metadata(file)
        && matches!(error.kind(), NotFound | NotADirectory)
    {
        return Ok(None);
    }
    let opened = match recorded::open(file) {
        Ok(opened) => opened,
        Err(error) => {
            return match error.kind() {
                NotFound if std::fs::symlink_metadata(file).is_ok() => {
                    Err(cannot("it is a link that leads nowhere".to_owned()))
                }
                NotFound | NotADirectory => Ok(None),
                _ => Err(cannot(error.to_string())),
            };
        }
    };
    let mut bytes = Vec::new();
    opened.take(LARGEST as u64 + 1).read_to_end(&mut bytes).map_err(|error| cannot(error.to_string()))?;
    if bytes.len() > LARGEST {
        return Err(cannot(format!("it is larger than {LARGEST} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| cannot("it is no text in UTF-8".to_owned()))?;
    Ok(Some(Text { file: name, text }))
}

/// Files in another rule language, in the order of their names.
fn foreign_files(folder: &Path, extension: &str) -> Result<Vec<Text>, Outcome> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => {
            let message = format!("cannot look for policies in `{}`: {error}", folder.display());
            return Err(usage(message, "make it readable"));
        }
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| {
            usage(format!("cannot look for policies in `{}`: {error}", folder.display()), "make it readable")
        })?;
        let path = entry.path();
        if path.extension().is_some_and(|known| known == extension) {
            files.push(path);
        }
    }
    files.sort();
    if folder == Path::new(MANAGED) {
        files.iter().try_for_each(|file| belongs_to_root(file))?;
    }
    let texts = files.iter().map(|file| read_existing(file)).collect::<Result<_, _>>()?;
    Ok(texts)
}

/// Files of rules in a folder, by name and text.
pub fn rule_files(folder: &Path, extension: &str) -> Result<Vec<(String, String)>, Outcome> {
    let texts = foreign_files(folder, extension)?;
    Ok(texts.into_iter().map(|Text { file, text }| (file, text)).collect())
}

/// A preset of the machine's own, or else of the user's; no variable leads to others.
fn own_preset(settings: Option<&PathBuf>, name: &str) -> Result<Option<Text>, BadPolicy> {
    let fit = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if name.is_empty() || !name.chars().all(fit) {
        return Ok(None);
    }
    let bad = |file: &Path, outcome: Outcome| {
        let message = questions::trouble(outcome).message;
        BadPolicy { file: file.display().to_string(), line: 1, message }
    };
    let managed = Path::new(MANAGED).join(format!("presets/{name}.toml"));
    if let Some(text) = read(&managed).map_err(|outcome| bad(&managed, outcome))? {
        for path in [&managed, &Path::new(MANAGED).join("presets")] {
            belongs_to_root(path).map_err(|outcome| bad(&managed, outcome))?;
        }
        return Ok(Some(text));
    }
    let Some(own) = settings.map(|folder| folder.join(format!("presets/{name}.toml"))) else { return Ok(None) };
    read(&own).map_err(|outcome| bad(&own, outcome))
}

/// Of every text and where it came from, and whether a project's is trusted; also tells versions of presets apart.
fn revision<'a>(texts: impl Iterator<Item = &'a Text>, trusted: impl Iterator<Item = bool>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    for Text { file, text } in texts {
        for part in [file, text] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
    }
    hasher.update(&trusted.map(u8::from).collect::<Vec<u8>>());
    hasher.finalize().to_hex().to_string()
}
