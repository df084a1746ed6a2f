//! Does one task with the same `Service` that the command line has.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{
    Against, CellDone, CellNot, Check, EntryQuery, FileOperation, FilesNot, Given, KeptSandbox, NewSecret, Outcome,
    Ready, SecretSource, SecretText, Service, Taking, Trouble, Wording,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::branches;
use crate::files::{self, BadFiles};
use crate::job::{Answer, Asked, Files, Job, Setting, Task};
use crate::recorded;
use crate::templates::{self, BadTemplate};
use crate::traffic;
use crate::wish::{Wish, is_within};

/// Of what is written to files with one job; the engine has smaller limits for each kind.
const MOST_INPUT: u64 = 512 << 20;
/// What a policy is called that is in a workspace.
const POLICY: &str = "belljar.toml";
/// Nothing was used as long ago as this.
const NEVER: Duration = Duration::from_secs(u64::MAX / 1_000);
/// Entries of the record at once.
const MOST_ENTRIES: usize = 1_000;

/// With what it came to, what is still to be tidied up when that was said. `ready`: what was asked for stands, and this goes on.
pub fn carry_out(job: Job, service: &dyn Service, ready: &dyn Fn(Value)) -> (Answer, Option<Place>) {
    let Job { setting, task } = job;
    let (wish, folder, files) = match task {
        Task::Run { wish, folder, files } => (wish, folder, files),
        Task::Usher { id } => return (ushered(service, &id, &setting, ready).unwrap_or_else(|answer| answer), None),
        Task::Open { id } => return (opened(service, &id, ready).unwrap_or_else(|answer| answer), None),
        Task::ForkContext { id, wish, cell, count } => {
            let forked = branches::forked(service, &setting, &id, (wish, cell, count), ready);
            return (forked.unwrap_or_else(|answer| answer), None);
        }
        task => return (answered(task, &setting, service).unwrap_or_else(|answer| answer), None),
    };
    service.expect();
    let named = wish.workspace.clone();
    let begun = wish.request(&setting).map_err(wrong).and_then(|request| {
        let place = enter(&setting, named, &folder, &files)?;
        Ok((request, place))
    });
    match begun {
        Ok((request, place)) => ran(service.run(&request), place, service),
        Err(answer) => (answer, None),
    }
}

/// Its host, until somebody stops it.
fn opened(service: &dyn Service, id: &str, ready: &dyn Fn(Value)) -> Result<Answer, Answer> {
    let kept = idle(service, id)?;
    service.expect();
    go_to(kept.workspaces.first().map_or(Path::new("/"), |workspace| workspace))?;
    let outcome = service.sandboxes().stay(&kept.id, &|open| ready(serde_json::to_value(open).unwrap_or_default()));
    Ok(told(&outcome, service))
}

/// Leads visitors in until nobody asks for that, or the sandbox ends.
fn ushered(service: &dyn Service, id: &str, setting: &Setting, ready: &dyn Fn(Value)) -> Result<Answer, Answer> {
    let kept = open(service, id)?;
    let asked = rustix::stdio::stdin().try_clone_to_owned();
    let asked = asked.map_err(|error| wrong(format!("there is nobody who could ask: {error}")))?;
    let agent = setting.agent.as_deref();
    service.visits().usher(&kept.id, agent, asked, &|| ready(Value::Null)).map_err(trouble)?;
    Ok(Answer::Done(Value::Null))
}

/// Both are answers; the second only ends it earlier.
fn answered(task: Task, setting: &Setting, service: &dyn Service) -> Result<Answer, Answer> {
    let sandboxes = service.sandboxes();
    Ok(match task {
        Task::Run { .. } | Task::MakeReady { .. } => return Err(wrong("there is no such warm interpreter".to_owned())),
        Task::Permit { id, wish } => {
            let kept = id.map(|id| found(service, &id)).transpose()?;
            let named = wish.workspace.clone();
            let request = wish.request(setting).map_err(wrong)?;
            let own = kept.as_ref().and_then(|kept| kept.workspaces.first()).map(|workspace| workspace.0.clone());
            go_to(&own.or(named).unwrap_or_else(|| "/".into()))?;
            match service.permit(&request, kept.as_ref().map(|kept| kept.id.as_str())) {
                Ok(permitted) => done(&permitted),
                Err(outcome) => told(&outcome, service),
            }
        }
        Task::Explain { wish } => {
            let named = wish.workspace.clone();
            let request = wish.request(setting).map_err(wrong)?;
            go_to(&named.unwrap_or_else(|| "/".into()))?;
            match service.explain(&request) {
                Ok(plan) => done(&plan),
                Err(outcome) => told(&outcome, service),
            }
        }
        Task::Doctor => done(&service.diagnose()),
        Task::Create { wish, folder, files, name } => {
            free(service, name.as_deref())?;
            let named = wish.workspace.clone();
            let request = wish.request(setting).map_err(wrong)?;
            let own = enter(setting, named, &folder, &files)?;
            match sandboxes.create(&request, name.as_deref()) {
                Ok(made) => done(&made),
                Err(outcome) => {
                    leave(own)?;
                    told(&outcome, service)
                }
            }
        }
        Task::Sandboxes => done(&sandboxes.list().map_err(trouble)?),
        Task::Sandbox { id } => done(&found(service, &id)?),
        Task::RunIn { id, wish } => {
            let kept = met(service, &id)?;
            if !kept.open {
                idle(service, &id)?;
            }
            let request = wish.request(setting).map_err(wrong)?;
            go_to(kept.workspaces.first().map_or(Path::new("/"), |workspace| workspace))?;
            told(&sandboxes.run_in(&kept.id, &request), service)
        }
        Task::Changes { id, other, paths } => {
            let (kept, paths) = (found(service, &id)?, below(service, &id, paths)?);
            match other {
                None => done(&sandboxes.changes(&kept.id, &paths).map_err(trouble)?),
                Some(other) => {
                    let other = found(service, &other)?;
                    done(&sandboxes.compare(&kept.id, &other.id, &paths).map_err(trouble)?)
                }
            }
        }
        Task::Patch { id, other, paths } => {
            let (kept, paths) = (found(service, &id)?, below(service, &id, paths)?);
            let other = other.map(|other| found(service, &other)).transpose()?.map(|other| other.id);
            let patch =
                sandboxes.patch(&kept.id, other.as_deref(), &paths, Wording::WithoutSecrets).map_err(trouble)?;
            Answer::Done(json!({"patch": String::from_utf8_lossy(&patch.bytes), "taken_out": patch.taken_out}))
        }
        Task::Apply { id, paths, favor, check, by_agent } => {
            let (kept, paths) = (idle(service, &id)?, below(service, &id, paths)?);
            // Whoever holds an agent's token is that agent, whatever door it came by.
            let agent = setting.agent.clone().or_else(|| by_agent.then(|| "unknown".to_owned()));
            let taking = Taking { paths, favor: favor.map(Into::into), check, agreed: None, agent };
            done(&sandboxes.apply(&kept.id, &taking).map_err(trouble)?)
        }
        Task::Discard { id } => {
            let kept = idle(service, &id)?;
            done(&sandboxes.discard(&kept.id).map_err(trouble)?)
        }
        Task::Remove { id } => {
            let kept = idle(service, &id)?;
            let removed = sandboxes.remove(&kept.id).map_err(trouble)?;
            sweep(setting, service)?;
            done(&removed)
        }
        Task::Snapshot { id, name } => {
            // What is changed meanwhile would be half in it.
            let kept = idle(service, &id)?;
            let name = sandboxes.snapshot(&kept.id, name.as_deref()).map_err(trouble)?;
            Answer::Done(json!({"sandbox": kept.id, "snapshot": name}))
        }
        Task::RollBack { id, snapshot } => {
            let kept = idle(service, &id)?;
            if let Some(name) = &snapshot
                && !kept.snapshots.iter().any(|snapshot| snapshot.name == *name)
            {
                return Err(Answer::NotFound);
            }
            let name = sandboxes.roll_back(&kept.id, snapshot.as_deref()).map_err(trouble)?;
            Answer::Done(json!({"sandbox": kept.id, "snapshot": name}))
        }
        Task::Fork { id, count } => {
            let kept = found(service, &id)?;
            done(&sandboxes.fork(&kept.id, count).map_err(trouble)?)
        }
        Task::Branch { id, snapshot, name } => {
            free(service, name.as_deref())?;
            // What is changed meanwhile would be half in it.
            let kept = idle(service, &id)?;
            if let Some(named) = &snapshot
                && !kept.snapshots.iter().any(|snapshot| snapshot.name == *named)
            {
                return Err(Answer::NotFound);
            }
            done(&sandboxes.branch(&kept.id, snapshot.as_deref(), name.as_deref()).map_err(trouble)?)
        }
        Task::Templates => done(&templates::list(&setting.templates).map_err(no_template)?),
        Task::Template { name } => {
            Answer::Done(templates::read(&setting.templates, &name).map_err(no_template)?.ok_or(Answer::NotFound)?)
        }
        Task::SetTemplate { name, template, files, policy } => {
            files::check(&files).map_err(bad)?;
            if let Some(policy) = policy {
                let (place, file) = written(setting, POLICY, policy)?;
                let remarks = service.policies().lint(Some(&file));
                leave(place)?;
                if let Some(remark) = remarks.map_err(trouble)?.into_iter().find(|remark| remark.is_error) {
                    return Err(wrong(format!("its policy can't be understood: {}", remark.message)));
                }
            }
            templates::write(&setting.templates, &name, &template).map_err(no_template)?;
            Answer::Done(template)
        }
        Task::RemoveTemplate { name } => match templates::remove(&setting.templates, &name).map_err(no_template)? {
            true => Answer::Done(json!({"name": name})),
            false => return Err(Answer::NotFound),
        },
        Task::Recorded { run } => recorded::run(service, &run)?,
        Task::Artifacts { of } => done(&service.artifacts().list(of.as_deref()).map_err(trouble)?),
        Task::Artifact { id } => done(&artifact(service, &id)?),
        Task::ArtifactContents { id } => {
            artifact(service, &id)?;
            let copied = service.artifacts().copy(&id, &mut io::stdout().lock()).map_err(trouble)?;
            done(&copied)
        }
        Task::Questions => done(&service.approvals().parked(None).map_err(trouble)?),
        Task::Question { id } => {
            let parked = question(service, &id)?;
            let mut value = serde_json::to_value(&parked).map_err(broken)?;
            value["would_stand"] = serde_json::to_value(service.approvals().would_stand(&parked)).map_err(broken)?;
            Answer::Done(value)
        }
        Task::Reply { id, digest, decision, reason } => {
            let parked = question(service, &id)?;
            if digest.is_some_and(|digest| digest != parked.digest) {
                let what = "the question is not the one that was seen".to_owned();
                return Err(Answer::Conflict { what, hint: "look at it again, and answer that".to_owned() });
            }
            let conflict = |what: &str, hint: &str| Answer::Conflict { what: what.to_owned(), hint: hint.to_owned() };
            match service.approvals().answer(&parked, &model::Answer { decision, reason }).map_err(trouble)? {
                Given::Taken => Answer::Done(json!({"id": id, "decision": decision})),
                Given::TooLate => conflict("nobody waits for an answer any more", "ask again"),
                Given::NotAccepted => conflict("whoever asked did not accept the answer", "see the run that asked"),
            }
        }
        Task::Policy { id } => {
            let kept = id.map(|id| found(service, &id)).transpose()?;
            let own = kept.as_ref().and_then(|kept| kept.workspaces.first());
            go_to(own.map_or(Path::new("/"), |workspace| workspace))?;
            done(&service.policies().show().map_err(trouble)?)
        }
        Task::Lint { text } => {
            let (place, file) = written(setting, "policy.toml", text)?;
            let remarks = service.policies().lint(Some(&file));
            leave(place)?;
            done(&remarks.map_err(trouble)?)
        }
        Task::Check { command, agent, id } => {
            let kept = id.map(|id| found(service, &id)).transpose()?;
            let own = kept.as_ref().and_then(|kept| kept.workspaces.first());
            go_to(own.map_or(Path::new("/"), |workspace| workspace))?;
            let agent = setting.agent.clone().or(agent);
            let words = command.into_iter().map(Into::into).collect();
            done(&service.policies().check(&Check::Words(words), agent.as_deref(), None).map_err(trouble)?)
        }
        Task::Secrets => done(&service.secrets().list().map_err(trouble)?),
        Task::SetSecret { name, value, hosts } => {
            let secrets = service.secrets();
            secrets.awaits_value().map_err(trouble)?;
            if !model::is_secret_name(&name) {
                return Err(wrong(format!("`{}` is no name of a secret", name.escape_debug())));
            }
            let value =
                SecretText::read(value.0.as_bytes()).map_err(|bad| wrong(format!("the value can't be kept: {bad}")))?;
            // Only the sealed file: a variable or a command would be the server's own.
            let source = SecretSource::Store;
            let new = NewSecret { name, source, value: Some(value), hosts, ttl: None, variable: None, prefix: None };
            done(&secrets.set(new).map_err(trouble)?)
        }
        Task::RemoveSecret { name } => {
            let secrets = service.secrets();
            if !secrets.list().map_err(trouble)?.iter().any(|secret| secret.name == name) {
                return Err(Answer::NotFound);
            }
            done(&secrets.remove(&name).map_err(trouble)?)
        }
        Task::Agents => done(&service.agents().list().map_err(trouble)?),
        Task::Entries { query, most } => done(&entries(service, query, most.min(MOST_ENTRIES))?),
        Task::Verify => {
            let found = service.records().verify(&Against::default()).or_else(or_none)?;
            let sound = found.is_sound();
            let mut value = serde_json::to_value(&found).map_err(broken)?;
            value["sound"] = sound.into();
            Answer::Done(value)
        }
        Task::Receipt { run } => {
            let query = EntryQuery { run: Some(run.clone()), ..EntryQuery::default() };
            let any = service.records().newest(&query, 1).or_else(or_none)?;
            if run.len() < 32 || any.is_empty() {
                return Err(Answer::NotFound);
            }
            Answer::Done(service.records().receipt(&run).map_err(trouble)?)
        }
        Task::Scan { folder, files } => {
            let place = enter(setting, None, &folder, &files)?;
            let scanned = service.scans().scan(&[PathBuf::from(".")]);
            leave(place)?;
            done(&scanned.map_err(trouble)?)
        }
        Task::Network { id, denied, after, most } => {
            let kept = met(service, &id)?;
            let most = most.min(MOST_ENTRIES);
            done(&traffic::of(service.records(), &kept.id, denied, after, most).or_else(or_none)?)
        }
        Task::TakeUpContext { id, wish, cell } => branches::taken_up(service, setting, &id, (wish, cell))?,
        // Done by whoever carries it out, who stays or says something before it is done.
        Task::Open { .. } | Task::Usher { .. } | Task::ForkContext { .. } => {
            return Err(wrong("a sandbox is opened by itself".to_owned()));
        }
        Task::Pause { id, pause } => {
            let kept = open(service, &id)?;
            done(&sandboxes.pause(&kept.id, pause).map_err(trouble)?)
        }
        Task::Stop { id, why } => {
            let kept = open(service, &id)?;
            let stopped = match why {
                None => sandboxes.stop(&kept.id),
                Some(why) => sandboxes.expire(&kept.id, &why),
            };
            done(&stopped.map_err(trouble)?)
        }
        Task::Files { id, operation } => worked_on(service, &id, &operation)?,
        Task::Cell { id, wish, cell } => {
            let kept = met(service, &id)?;
            let request = wish.request(setting).map_err(wrong)?;
            go_to(kept.workspaces.first().map_or(Path::new("/"), |workspace| workspace))?;
            let CellDone { outcome, answer } = sandboxes.run_cell(&kept.id, &request, &cell).map_err(no_cell)?;
            let mut told = told(&outcome, service);
            if let (Answer::Outcome(value), Some(answer)) = (&mut told, answer) {
                value["cell"] = serde_json::to_value(&answer).map_err(broken)?;
            }
            told
        }
        Task::Contexts { id } => done(&sandboxes.contexts(&met(service, &id)?.id).map_err(no_cell)?),
        Task::Context { id, context, deed } => {
            let kept = met(service, &id)?;
            sandboxes.do_to_context(&kept.id, &context, deed).map_err(no_cell)?;
            Answer::Done(json!({"sandbox": kept.id, "context": context}))
        }
        Task::Sweep { layers } => {
            let removed = sweep(setting, service)?;
            if layers {
                // Nobody's: no sandbox that is kept is as old as that.
                sandboxes.collect(NEVER, false).map_err(trouble)?;
            }
            Answer::Done(json!({"removed": removed}))
        }
    })
}

fn ran(outcome: Outcome, own: Place, service: &dyn Service) -> (Answer, Option<Place>) {
    let kept = matches!(&outcome, Outcome::Ran(finished) if finished.leftover.is_some());
    (told(&outcome, service), (!kept).then_some(own))
}

/// The same where the sandbox is there already, over a folder that its files still have to be put into.
pub fn run_ready(
    setting: &Setting,
    wish: Wish,
    files: &Files,
    own: Place,
    service: &dyn Service,
    ready: Box<dyn Ready + '_>,
) -> (Answer, Option<Place>) {
    let filled = own.folder.as_deref().map_or(Ok(()), |place| files::fill(place, files).map_err(bad));
    let request = wish.request(setting).map_err(wrong);
    match filled.and(request) {
        Ok(request) => ran(ready.run(&request), own, service),
        Err(answer) => (answer, Some(own)),
    }
}

/// A folder that was made for a job; nothing, if it works in one of the host's.
pub struct Place {
    folder: Option<PathBuf>,
    /// As long as it is kept, nobody sweeps it.
    _held: Option<File>,
}

impl Place {
    pub fn new(setting: &Setting, folder: &str, files: &Files) -> Result<Place, Answer> {
        enter(setting, None, folder, files)
    }
}

/// Its input is read only where there is something to write.
fn worked_on(service: &dyn Service, id: &str, operation: &FileOperation) -> Result<Answer, Answer> {
    let kept = met(service, id)?;
    // Where a command in it would begin, so that it stands behind the same walls.
    go_to(kept.workspaces.first().map_or(Path::new("/"), |workspace| workspace))?;
    let mut input = Vec::new();
    if matches!(operation, FileOperation::Write { .. } | FileOperation::Unpack { .. }) {
        let read = io::stdin().lock().take(MOST_INPUT).read_to_end(&mut input);
        read.map_err(|error| wrong(format!("what is to be written can't be read: {error}")))?;
    }
    match service.sandboxes().files(&kept.id, operation, input) {
        Ok(mut answer) => {
            let content = std::mem::take(&mut answer.content);
            let mut output = io::stdout().lock();
            let written = output.write_all(&content).and_then(|()| output.flush());
            written.map_err(|error| wrong(format!("nobody takes what was read: {error}")))?;
            Ok(done(&answer))
        }
        Err(FilesNot::Done(failure)) => Err(Answer::Files(failure)),
        Err(FilesNot::Entered(outcome)) => {
            // A command that runs in one that is not open has it for itself.
            let taken = matches!(*outcome, Outcome::NotSetUp(_)) && !kept.open;
            if taken {
                idle(service, id)?;
            }
            Err(told(&outcome, service))
        }
    }
}

pub(crate) fn no_cell(not: CellNot) -> Answer {
    let (CellNot::Closed(Trouble { message, fix })
    | CellNot::NoContext(Trouble { message, fix })
    | CellNot::Conflict(Trouble { message, fix })
    | CellNot::Wrong(Trouble { message, fix })
    | CellNot::Trouble(Trouble { message, fix })) = not.clone();
    match not {
        CellNot::Closed(_) | CellNot::Conflict(_) => Answer::Conflict { what: message, hint: fix },
        CellNot::NoContext(_) => Answer::NoContext { what: message, hint: fix },
        CellNot::Wrong(_) => Answer::Wrong { what: message, hint: fix },
        CellNot::Trouble(_) => Answer::Trouble { message, fix },
    }
}

/// Goes to where the job works: a folder of the host's, or a new one with its files; that one is ours to remove.
fn enter(setting: &Setting, named: Option<PathBuf>, folder: &str, files: &Files) -> Result<Place, Answer> {
    if let Some(named) = named {
        if !files.is_empty() {
            return Err(wrong("`files` are put into a new workspace, so there can't be another".to_owned()));
        }
        go_to(&named)?;
        return Ok(Place { folder: None, _held: None });
    }
    let (place, held) = files::make(&setting.work, folder, files).map_err(bad)?;
    go_to(&place)?;
    Ok(Place { folder: Some(place), _held: Some(held) })
}

fn bad(bad: BadFiles) -> Answer {
    match bad {
        BadFiles::Wrong(what) => wrong(what),
        BadFiles::Io { path, source } => Answer::Trouble {
            message: format!("cannot make `{}`: {source}", path.display()),
            fix: "see that the service's folder can be written to".to_owned(),
        },
    }
}

fn written(setting: &Setting, name: &str, text: String) -> Result<(Place, PathBuf), Answer> {
    let files = Files::from([(name.to_owned(), crate::job::Contents::Text(text))]);
    let folder = format!("{:032x}", u128::from(std::process::id()) << 64 | u128::from(clock()));
    let place = enter(setting, None, &folder, &files)?;
    let file = place.folder.as_ref().map(|folder| folder.join(name));
    Ok((place, file.ok_or_else(|| wrong("there is no folder for it".to_owned()))?))
}

/// Nanoseconds: with a process's number, a name that nobody else has.
fn clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos() & u128::from(u64::MAX)).unwrap_or_default()
}

/// A folder that nothing was changed over is needed by nobody.
pub fn leave(place: Place) -> Result<(), Answer> {
    let Some(place) = place.folder else { return Ok(()) };
    // Nobody stands in a folder that is about to go.
    go_to(Path::new("/"))?;
    std::fs::remove_dir_all(&place).map_err(|error| Answer::Trouble {
        message: format!("cannot remove `{}`: {error}", place.display()),
        fix: "remove it yourself".to_owned(),
    })
}

pub(crate) fn go_to(folder: &Path) -> Result<(), Answer> {
    std::env::set_current_dir(folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied => {
            wrong(format!("cannot go to `{}`: {error}", folder.display()))
        }
        _ => Answer::Trouble {
            message: format!("cannot go to `{}`: {error}", folder.display()),
            fix: "see that it is a folder that this user may enter".to_owned(),
        },
    })
}

/// What was made for jobs that are gone, and that no sandbox is over. What somebody works in stays (with or without layers), and is looked for first: whoever
/// ends meanwhile and keeps something is in the list that is made after that.
fn sweep(setting: &Setting, service: &dyn Service) -> Result<u64, Answer> {
    let work = work(setting);
    let idle = files::idle(&work).map_err(|error| untidy(&work, &error))?;
    let needed = needed(service)?;
    files::sweep(idle, &needed).map_err(|error| untidy(&work, &error))
}

fn needed(service: &dyn Service) -> Result<Vec<PathBuf>, Answer> {
    service.sandboxes().under().map_err(trouble)
}

/// Symbolic links above it would make the same folder look like another.
fn work(setting: &Setting) -> PathBuf {
    std::fs::canonicalize(&setting.work).unwrap_or_else(|_| setting.work.clone())
}

fn untidy(work: &Path, error: &io::Error) -> Answer {
    Answer::Trouble {
        message: format!("cannot tidy up `{}`: {error}", work.display()),
        fix: "see that the service's folder can be written to".to_owned(),
    }
}

/// Nobody has the name yet.
fn free(service: &dyn Service, name: Option<&str>) -> Result<(), Answer> {
    let Some(name) = name.filter(|name| found(service, name).is_ok()) else { return Ok(()) };
    let what = format!("there is a sandbox `{name}` already");
    Err(Answer::Conflict { what, hint: "choose another name, or none".to_owned() })
}

fn no_template(bad: BadTemplate) -> Answer {
    match bad {
        BadTemplate::Name(_) | BadTemplate::TooMany => wrong(bad.to_string()),
        BadTemplate::Io { .. } | BadTemplate::Broken { .. } => {
            Answer::Trouble { message: bad.to_string(), fix: "see the service's folder, or write it anew".to_owned() }
        }
    }
}

/// Exactly this one, by its id or name.
fn found(service: &dyn Service, id: &str) -> Result<KeptSandbox, Answer> {
    let meant = |kept: &KeptSandbox| kept.id == id || kept.name.as_deref() == Some(id);
    if let Ok(kept) = service.sandboxes().find(id)
        && meant(&kept)
    {
        return Ok(kept);
    }
    // One that goes without layers is only in the list; and whatever is the matter is said by that.
    let all = service.sandboxes().list().map_err(trouble)?;
    all.into_iter().find(meant).ok_or(Answer::NotFound)
}

/// The same at once, for those who only work in it.
pub(crate) fn met(service: &dyn Service, id: &str) -> Result<KeptSandbox, Answer> {
    // What it says to a start of an id, or to `last`, is an answer to another question.
    let meant = |kept: &KeptSandbox| kept.id == id || kept.name.as_deref() == Some(id);
    service.sandboxes().identify(id).ok().filter(meant).ok_or(Answer::NotFound)
}

/// The same, if somebody stays with it.
fn open(service: &dyn Service, id: &str) -> Result<KeptSandbox, Answer> {
    let kept = met(service, id)?;
    if !kept.open {
        let what = "the sandbox is not open".to_owned();
        return Err(Answer::Conflict { what, hint: "open it, or end the run that goes on in it".to_owned() });
    }
    Ok(kept)
}

/// The same, if nothing runs in it.
fn idle(service: &dyn Service, id: &str) -> Result<KeptSandbox, Answer> {
    let kept = met(service, id)?;
    if kept.running {
        let (what, hint) = match kept.open {
            true => ("the sandbox is open", "stop it first: `POST /v1/sandboxes/{id}/stop`"),
            false => ("something runs in the sandbox", "wait for its end, or end it"),
        };
        return Err(Answer::Conflict { what: what.to_owned(), hint: hint.to_owned() });
    }
    Ok(kept)
}

/// Paths as a client writes them: from the workspace on.
fn below(service: &dyn Service, id: &str, paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, Answer> {
    if let Some(path) = paths.iter().find(|path| !is_within(path)) {
        return Err(wrong(format!("`{}` is no path below the workspace", path.display())));
    }
    let kept = found(service, id)?;
    let around: Vec<PathBuf> = kept.workspaces.into_iter().map(|workspace| workspace.0).collect();
    Ok(paths.iter().flat_map(|path| around.iter().map(move |workspace| workspace.join(path))).collect())
}

fn artifact(service: &dyn Service, id: &str) -> Result<model::Artifact, Answer> {
    let all = service.artifacts().list(None).map_err(trouble)?;
    all.into_iter().find(|artifact| artifact.id == id).ok_or(Answer::NotFound)
}

fn question(service: &dyn Service, id: &str) -> Result<model::Parked, Answer> {
    let all = service.approvals().parked(None).map_err(trouble)?;
    all.into_iter().find(|parked| parked.id == id).ok_or(Answer::NotFound)
}

fn entries(service: &dyn Service, query: Asked, most: usize) -> Result<Vec<model::Entry>, Answer> {
    let Asked { run, agent, denied, kinds, since, until, after } = query;
    let first = after.is_some();
    let after = after.unwrap_or_default();
    let query = EntryQuery { run, agent, denied, kinds, since, until, after, ..EntryQuery::default() };
    if !first {
        return service.records().newest(&query, most).or_else(or_none);
    }
    let mut found = Vec::new();
    let mut take = |entry| {
        found.push(entry);
        found.len() < most
    };
    service.records().each(&query, &mut take).or_else(or_none)?;
    Ok(found)
}

/// For a tenant that nothing was done for yet, there is no record; to whoever asks, it is an empty one.
pub(crate) fn or_none<T: Default>(error: Trouble) -> Result<T, Answer> {
    if error.message.starts_with("there is no record at") { Ok(T::default()) } else { Err(trouble(error)) }
}

/// The result as every front-end says it; a sandbox by its whole id, which is what an API takes.
pub fn told(outcome: &Outcome, service: &dyn Service) -> Answer {
    let mut value = match serde_json::to_value(wire::object(outcome)) {
        Ok(value) => value,
        Err(error) => return broken(error),
    };
    if let Outcome::Ran(finished) = outcome
        && let Some(leftover) = &finished.leftover
        && let Ok(kept) = service.sandboxes().find(&leftover.sandbox)
    {
        value["changes"]["sandbox"] = Value::String(kept.id);
    }
    Answer::Outcome(value)
}

fn done(value: &impl Serialize) -> Answer {
    serde_json::to_value(value).map_or_else(broken, Answer::Done)
}

fn broken(error: serde_json::Error) -> Answer {
    Answer::Trouble {
        message: format!("cannot say it as JSON: {error}"),
        fix: "this is a mistake in belljar".to_owned(),
    }
}

fn trouble(trouble: Trouble) -> Answer {
    let Trouble { message, fix } = trouble;
    Answer::Trouble { message, fix }
}

pub fn wrong(what: String) -> Answer {
    Answer::Wrong { what, hint: "see the API's reference: `/v1/reference`".to_owned() }
}
