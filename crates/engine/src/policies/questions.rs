//! Questions about policies: what would it say, what is in force, what would another one change?

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use model::{
    Action, Changed, Check, Checked, Comparison, Context, Endpoint, Envelope, Host, HostName, InForce, Inspected,
    Judgement, NetworkAsked, Opening, Outcome, OutgoingRequest, Policies, Principal, Remark, Replay, Resource, Said,
    SaidLine, Trouble, Trusted, agents,
};
use policy::{GateRules, Owner, Policy};
use serde_json::json;

use super::{Loaded, Trust, code, ignored, load, project_files, read_existing, recorded};
use crate::inspect::{Begun, Eyes, Pieces};
use crate::survey::by_letter;
use crate::told::Telling;
use crate::user::User;
use crate::{Engine, door, inspect, record, rules};

impl Policies for Engine {
    fn check(&self, asked: &Check, agent: Option<&str>, candidate: Option<&Path>) -> Result<Checked, Trouble> {
        let here = Here::look(agent)?;
        let loaded = self.load_here(&here, candidate)?;
        let envelope = here.envelope(asked)?;
        let judgement = match &envelope.resource {
            Resource::Host { .. } | Resource::Request { .. } => at_the_gate(&loaded.policy, &envelope)?,
            _ => loaded.policy.weigh(&envelope),
        };
        let found = self.look_at_code(asked, &here)?.findings;
        let judgement = judgement.with(loaded.policy.weigh_findings(&found));
        Ok(Telling::of_the_process().checked(Checked { judgement, envelope, revision: loaded.policy.revision }))
    }

    fn show(&self) -> Result<InForce, Trouble> {
        let here = Here::look(None)?;
        let Loaded { policy, files, .. } = self.load_here(&here, None)?;
        Ok(InForce { revision: policy.revision.clone(), voices: policy.said(), notes: policy.notes, files })
    }

    fn lint(&self, file: Option<&Path>) -> Result<Vec<Remark>, Trouble> {
        let here = Here::look(None)?;
        match file {
            Some(file) => {
                let text = read_existing(&here.full(file)).map_err(trouble)?;
                let home = here.user.home.clone().unwrap_or_else(|| PathBuf::from("/"));
                let owner =
                    if file.file_name() == Some(OsStr::new(super::PROJECT)) { Owner::Project } else { Owner::User };
                let mut remarks = policy::lint(text.source(), &home.to_string_lossy(), owner);
                remarks.extend(ignored_in(&here.full(file))?);
                Ok(remarks)
            }
            None => match load(&self.languages, &here.user, &here.folders, None) {
                Ok(loaded) => {
                    let mut remarks = loaded.policy.remarks();
                    for file in &loaded.files {
                        remarks.extend(ignored_in(Path::new(&file.file))?);
                    }
                    Ok(remarks)
                }
                Err(outcome) => {
                    let Trouble { message, fix: _ } = trouble(outcome);
                    let (place, message) = split_place(&message);
                    Ok(vec![Remark { is_error: true, place, message }])
                }
            },
        }
    }

    fn schema(&self, language: Option<&str>) -> Result<&'static str, Trouble> {
        let Some(name) = language else { return Ok(policy::SCHEMA) };
        let found = self.languages.iter().find(|language| language.name().eq_ignore_ascii_case(name));
        found.map(|language| language.schema()).ok_or_else(|| {
            let names: Vec<_> = self.languages.iter().map(|language| language.name()).collect();
            Trouble {
                message: format!("there is no rule language `{}`", name.escape_debug()),
                fix: format!("the languages are: {}", names.join(", ")),
            }
        })
    }

    fn compare(&self, candidate: &Path) -> Result<Comparison, Trouble> {
        let here = Here::look(None)?;
        let now = lines(&self.load_here(&here, None)?.policy);
        let then = lines(&self.load_here(&here, Some(candidate))?.policy);
        let missing = |from: &[String], other: &[String]| {
            from.iter().filter(|line| !other.contains(line)).cloned().collect::<Vec<_>>()
        };
        Ok(Comparison { only_now: missing(&now, &then), only_then: missing(&then, &now) })
    }

    fn replay(&self, candidate: &Path, recording: Option<&Path>) -> Result<Replay, Trouble> {
        let here = Here::look(None)?;
        let now = self.load_here(&here, None)?.policy;
        let then = self.load_here(&here, Some(candidate))?.policy;
        let mut replay = Replay::default();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut order: Vec<Envelope> = Vec::new();
        for (line, envelope) in read_recorded(&here, recording)? {
            replay.replayed += 1;
            let times = seen.entry(line).or_default();
            *times += 1;
            if *times == 1 {
                order.push(envelope);
            }
        }
        for envelope in order {
            let (before, after) = (now.weigh(&envelope), then.weigh(&envelope));
            if before.ruling == after.ruling {
                continue;
            }
            // What made it so: the new strictest word, or the old one that is gone.
            let told = if after.ruling > before.ruling { &after.reasons[0] } else { &before.reasons[0] };
            let line = serde_json::to_string(&envelope).unwrap_or_default();
            let changed = Changed {
                now: before.ruling,
                then: after.ruling,
                rule: told.rule.clone(),
                place: told.place.clone(),
                why: told.why.clone(),
                times: seen.get(&line).copied().unwrap_or(1),
                envelope,
            };
            if after.ruling > before.ruling {
                replay.newly_denied.push(changed)
            } else {
                replay.newly_allowed.push(changed)
            }
        }
        Ok(replay)
    }

    fn trust(&self, folder: &Path) -> Result<Trusted, Trouble> {
        let (here, file, text) = project_file(folder)?;
        // Read as what it will be: nobody trusts what can't be understood.
        let home = here.user.home.clone().unwrap_or_else(|| PathBuf::from("/"));
        let remarks = policy::lint(text.source(), &home.to_string_lossy(), Owner::Project);
        if let Some(error) = remarks.into_iter().find(|remark| remark.is_error) {
            return Err(Trouble {
                message: format!("{}: {}", error.place, error.message),
                fix: "mend it before you trust it".to_owned(),
            });
        }
        may_trust()?;
        let mut trust = Trust::read(&here.user).map_err(trouble)?;
        // As long as it is not trusted it speaks for itself; then its words are among the user's.
        let folder: Vec<PathBuf> = file.parent().map(Path::to_owned).into_iter().collect();
        let policy = load(&self.languages, &here.user, &folder, None).map_err(trouble)?.policy;
        let place = format!("{}:", file.display());
        let is_its = |owner: &str, line: &SaidLine| owner == Owner::Project.name() || line.place.starts_with(&place);
        let lines = |Said { owner, lines }: Said| lines.into_iter().filter(move |line| is_its(owner, line));
        let says = policy.said().into_iter().flat_map(lines).collect();
        let digest = blake3::hash(text.text.as_bytes()).to_hex();
        record::settled("policy.trusted", json!({"file": file.to_string_lossy(), "blake3": digest.as_str()}))?;
        trust.set(&here.user, &file, Some(&text.text))?;
        Ok(Trusted { file, says })
    }

    fn distrust(&self, folder: &Path) -> Result<PathBuf, Trouble> {
        let (here, file, _) = project_file(folder)?;
        let mut trust = Trust::read(&here.user).map_err(trouble)?;
        if !trust.knows(&file) {
            return Err(Trouble {
                message: format!("`{}` is not trusted", file.display()),
                fix: "nothing to do".to_owned(),
            });
        }
        record::settled("policy.distrusted", json!({"file": file.to_string_lossy()}))?;
        trust.set(&here.user, &file, None)?;
        Ok(file)
    }
}

/// Names of findings that a file ignores and that there are none of. What is no file on its own, as a preset, has none.
fn ignored_in(file: &Path) -> Result<Vec<Remark>, Trouble> {
    if file.extension() != Some(OsStr::new("toml")) || !file.is_file() {
        return Ok(Vec::new());
    }
    let text = read_existing(file).map_err(trouble)?;
    let formats = rules::own_formats()?.unwrap_or_else(secrets::Formats::built_in);
    let source = text.source();
    Ok(ignored::remarks(source.file, source.text, rules::load()?, &formats))
}

/// Whoever asks for more can't grant it to themselves.
fn may_trust() -> Result<(), Trouble> {
    let environment: Vec<_> = std::env::vars_os().collect();
    let Some(who) = agents::no_person(&environment) else { return Ok(()) };
    Err(Trouble {
        message: format!("{who} may not trust a project's policy"),
        fix: "do it in a terminal of your own".to_owned(),
    })
}

impl Engine {
    /// As `run` would look at it, but for what comes in on standard input.
    fn look_at_code(&self, asked: &Check, here: &Here) -> Result<Inspected, Trouble> {
        let eyes = Eyes::new(&self.workspaces, None);
        let of = |words: &[String]| inspect::of_words(words, &here.directory, &here.folders, &Begun::default(), &eyes);
        let pieces = match asked {
            Check::Line(line) => of(&["sh".to_owned(), "-c".to_owned(), line.clone()]),
            Check::Words(words) => {
                of(&words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
            }
            Check::Code { file, language } => {
                Pieces::of_file(&here.full(file), file.display().to_string(), language.as_deref())
            }
            Check::Read(_) | Check::Write(_) | Check::Commit(_) | Check::Host { .. } => return Ok(Inspected::default()),
        };
        pieces.scan(None)
    }

    fn load_here(&self, here: &Here, candidate: Option<&Path>) -> Result<Loaded, Trouble> {
        let candidate = candidate.map(|file| here.full(file));
        load(&self.languages, &here.user, &here.folders, candidate.as_deref()).map_err(trouble)
    }
}

fn project_file(folder: &Path) -> Result<(Here, PathBuf, super::Text), Trouble> {
    let here = Here::look(None)?;
    let folder = std::fs::canonicalize(here.full(folder)).map_err(|error| Trouble {
        message: format!("cannot find `{}`: {error}", folder.display()),
        fix: "name a project's folder".to_owned(),
    })?;
    let found = project_files(&folder).map_err(trouble)?;
    let (file, text) = found.into_iter().next().ok_or_else(|| Trouble {
        message: format!("there is no `{}` in `{}` or above it", super::PROJECT, folder.display()),
        fix: "go to the project, or name its folder".to_owned(),
    })?;
    Ok((here, file, text))
}

/// Who asks, and where.
struct Here {
    user: User,
    agent: Option<String>,
    directory: PathBuf,
    folders: Vec<PathBuf>,
}

impl Here {
    fn look(agent: Option<&str>) -> Result<Here, Trouble> {
        let directory = std::env::current_dir().and_then(std::fs::canonicalize).map_err(|error| Trouble {
            message: format!("the current folder can't be found: {error}"),
            fix: "change to a folder that exists and that you may enter".to_owned(),
        })?;
        if let Some(agent) = agent {
            door::agent(agent).map_err(trouble)?;
        }
        let agent = agent.map(str::to_owned).or_else(|| agents::detected(std::env::vars_os()));
        Ok(Here { user: User::of_the_process(), agent, folders: vec![directory.clone()], directory })
    }

    fn full(&self, path: &Path) -> PathBuf {
        by_letter(&self.directory.join(path))
    }

    fn envelope(&self, asked: &Check) -> Result<Envelope, Trouble> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (action, resource) = match asked {
            Check::Line(line) => (Action::Exec, Resource::Shell(line.clone())),
            Check::Words(words) => {
                let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
                (Action::Exec, Resource::Command(words))
            }
            Check::Code { file, language } => (Action::Code, code::look(&self.full(file), language.as_deref())?),
            Check::Read(path) => (Action::Read, Resource::Path(text(&real(&self.full(path))))),
            Check::Write(path) => (Action::Write, Resource::Path(text(&real(&self.full(path))))),
            Check::Commit(path) => (Action::Commit, Resource::Path(text(&real(&self.full(path))))),
            Check::Host { name, port, request } => (Action::Connect, {
                let host = host(name)?.to_string();
                match request {
                    None => Resource::Host { name: host, port: *port },
                    Some((method, path)) if path.starts_with('/') => {
                        Resource::Request { host, port: *port, method: method.clone(), path: path.clone() }
                    }
                    Some((_, path)) => {
                        return Err(Trouble {
                            message: format!("`{}` is no path of a request", path.escape_debug()),
                            fix: "begin it with `/`".to_owned(),
                        });
                    }
                }
            }),
        };
        let context = Context {
            directory: text(&self.directory),
            home: self.user.home.as_deref().map(text).unwrap_or_default(),
            workspaces: vec![text(&self.directory)],
            workspace_mode: Default::default(),
        };
        let principal = Principal { user: self.user.name.clone(), agent: self.agent.clone() };
        Ok(Envelope { principal, action, resource, context })
    }
}

/// A name or an address, in the one form in which the gate sees it.
fn host(name: &str) -> Result<Host, Trouble> {
    door::host(name).map_err(trouble)?;
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse().ok().map(Host::Address);
    address.or_else(|| HostName::read(name).map(Host::Name)).ok_or_else(|| Trouble {
        message: format!("`{}` is no host", name.escape_debug()),
        fix: "write a name such as `example.org`, or an address such as `192.0.2.7`".to_owned(),
    })
}

/// As the gate would answer a sandbox for which nothing was asked: a default opens no host.
fn at_the_gate(policy: &Policy, envelope: &Envelope) -> Result<Judgement, Trouble> {
    let Envelope { principal, context, resource, .. } = envelope;
    let refused = |refusal| trouble(Outcome::Refused(refusal));
    let gate = GateRules::new(policy, principal.clone(), context.clone(), &NetworkAsked::default()).map_err(refused)?;
    Ok(match resource {
        Resource::Request { host: name, port, method, path } => {
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            gate.request(&OutgoingRequest {
                destination: Endpoint { host: host(name)?, port: *port },
                method: method.clone(),
                path: path.to_owned(),
                query: query.to_owned(),
                body: None,
            })
        }
        Resource::Host { name, port } => match gate.opening(&Endpoint { host: host(name)?, port: *port }) {
            Opening::Whole(judgement) | Opening::Read(judgement) => judgement,
        },
        _ => policy.weigh(envelope),
    })
}

/// Free of links as far as it exists: a rule on a path is a rule on what it leads to.
fn real(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|around| {
        let real = std::fs::canonicalize(around).ok()?;
        Some(real.join(path.strip_prefix(around).ok()?))
    });
    // `join` of nothing leaves a slash at the end.
    found.map_or_else(|| path.to_owned(), |path| by_letter(&path))
}

/// A file that somebody names may be larger than those we write.
const LARGEST_RECORDING: u64 = 64 << 20;

fn read_recorded(here: &Here, recording: Option<&Path>) -> Result<Vec<(String, Envelope)>, Trouble> {
    let files = match recording {
        Some(file) => vec![here.full(file)],
        None => recorded::files().into_iter().filter(|file| file.exists()).collect(),
    };
    let mut envelopes = Vec::new();
    for file in &files {
        let cannot = |error: std::io::Error| Trouble {
            message: format!("cannot read `{}`: {error}", file.display()),
            fix: "name a file with an envelope on each line".to_owned(),
        };
        let mut text = String::new();
        let opened = recorded::open(file).map_err(cannot)?;
        opened.take(LARGEST_RECORDING).read_to_string(&mut text).map_err(cannot)?;
        if text.len() as u64 == LARGEST_RECORDING {
            let limit = std::io::Error::other(format!("it is larger than {} MiB", LARGEST_RECORDING >> 20));
            return Err(cannot(limit));
        }
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let envelope: Envelope = serde_json::from_str(line).map_err(|error| Trouble {
                message: format!("{}:{}: this is no envelope: {error}", file.display(), number + 1),
                fix: "take the `envelope` that `belljar check --json` prints".to_owned(),
            })?;
            envelopes.push((serde_json::to_string(&envelope).unwrap_or_default(), envelope));
        }
    }
    if envelopes.is_empty() {
        return Err(Trouble {
            message: "nothing was recorded that could be replayed".to_owned(),
            fix: "run something with a policy in force, or name a file with `--envelopes`".to_owned(),
        });
    }
    Ok(envelopes)
}

fn lines(policy: &Policy) -> Vec<String> {
    let said = policy.said();
    said.iter()
        .flat_map(|Said { owner, lines }| lines.iter().map(move |line| format!("{owner}: {}", line.text)))
        .collect()
}

pub fn trouble(outcome: Outcome) -> Trouble {
    match outcome {
        Outcome::NotSetUp(failure) => Trouble { message: failure.message, fix: failure.fix },
        Outcome::Refused(refusal) => Trouble { message: refusal.message, fix: refusal.hint },
        Outcome::NotStarted(failure) => Trouble { message: failure.message, fix: failure.fix },
        Outcome::Ran(_) => Trouble { message: "it ran".to_owned(), fix: String::new() },
    }
}

/// `file:line: message` as place and message.
fn split_place(message: &str) -> (String, String) {
    let mut parts = message.splitn(3, ": ");
    match (parts.next(), parts.next(), parts.next()) {
        (Some(place), Some(rest), None) if place.contains(':') => (place.to_owned(), rest.to_owned()),
        (Some(place), Some(first), Some(rest)) if place.contains(':') => (place.to_owned(), format!("{first}: {rest}")),
        _ => (String::new(), message.to_owned()),
    }
}
