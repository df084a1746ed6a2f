//! Work on a sandbox's files from outside: judged and recorded like a command in it, done behind its walls, and what comes out
//! passes the release gate.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use model::{
    FileAnswer, FileEntry, FileFailure, FileHears, FileNews, FileOperation, FileTrouble, FileWork, FilesNot,
    MOST_ARCHIVED, MOST_ARCHIVED_BYTES, MOST_FILE_BYTES, MOST_LISTED_FILES, Outcome, Overrun, Request, SetupFailure,
    Streams, ThingKind,
};
use serde_json::{Value, json};

use crate::judge::Admitted;
use crate::record::Record;
use crate::release::Release;
use crate::told::Telling;
use crate::{Engine, archive, enclose, layers};

impl Engine {
    pub(crate) fn work_on_files(
        &self,
        which: &str,
        operation: &FileOperation,
        input: Vec<u8>,
    ) -> Result<FileAnswer, FilesNot> {
        let not = |outcome| FilesNot::Entered(Box::new(outcome));
        if input.len() as u64 > most_input(operation) {
            return Err(FilesNot::Done(too_large(operation)));
        }
        // What is granted to it does not depend on the command: see `live`.
        let nothing = Request { command: vec!["/bin/true".into()], ..Request::default() };
        let request = self.workspaces.request(which, &nothing).map_err(|trouble| not(layers::not_set_up(trouble)))?;
        let record = self.record().map_err(not)?;
        let wanted = asked(operation, &input);
        record.concerns(wanted.clone());
        let heard = Rc::new(RefCell::new(Heard::default()));
        let (mut outcome, release) = match self.admit(&request, Some(which), &record) {
            Ok(admitted) => {
                let outcome = self.work_admitted(which, &request, operation, input, &admitted, &record, &heard);
                drop(admitted.traffic());
                (outcome, Some(admitted.release))
            }
            Err(outcome) => (outcome, None),
        };
        record.watched_to_the_end(&mut outcome);
        let heard = heard.take();
        let answer = release.and_then(|release| answer(operation, &outcome, heard, &release));
        record.rail.say("files.worked", false, done(operation, wanted, answer.as_ref()));
        let outcome = Telling::of(&request).outcome(record.ended(&request, outcome));
        match answer {
            Some(Ok(answer)) if matches!(outcome, Outcome::Ran(_)) => Ok(answer),
            Some(Err(failure)) => Err(FilesNot::Done(failure)),
            _ => Err(not(outcome)),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "each is another part of one request")]
    fn work_admitted(
        &self,
        which: &str,
        request: &Request,
        operation: &FileOperation,
        input: Vec<u8>,
        admitted: &Admitted,
        record: &Record<'_>,
        heard: &Rc<RefCell<Heard>>,
    ) -> Outcome {
        let known = match self.workspaces.identify(which) {
            Ok(known) => known,
            Err(trouble) => return layers::not_set_up(trouble),
        };
        let host = match self.workspaces.call_on(&known.id) {
            Ok(host) => host,
            Err(trouble) => return layers::not_set_up(trouble),
        };
        record.is_over(&known.id);
        let directory = known.workspaces.first().map_or_else(|| PathBuf::from("/"), |workspace| workspace.0.clone());
        let length = input.len() as u64;
        let work = || FileWork {
            operation: operation.clone(),
            directory,
            length,
            hears: Box::new(Hearing { heard: heard.clone(), most: most_heard(operation) }),
        };
        let mut outcome = match host {
            Some(host) => {
                let streams = Streams { input, ..Streams::default() };
                match enclose::to_work_on_files(
                    &self.backends,
                    request,
                    admitted,
                    &[],
                    record,
                    (streams, work(), Some(host)),
                ) {
                    Ok(sandbox) => sandbox.supervise(),
                    Err(outcome) => return outcome,
                }
            }
            None if matches!(operation, FileOperation::Watch { .. }) => {
                return layers::not_set_up(model::Trouble {
                    message: format!(
                        "sandbox {} is not open, so nothing happens in it that could be watched",
                        known.id
                    ),
                    fix: "open it first".to_owned(),
                });
            }
            None => {
                let told = Telling::of(request).request(request);
                let run = match self.workspaces.resume(which, &told) {
                    Ok(run) => run,
                    Err(trouble) => return layers::not_set_up(trouble),
                };
                let streams = match admitted.streams(record) {
                    Ok(streams) => Streams { input, ..streams },
                    Err(outcome) => return outcome,
                };
                let stacks = run.stacks();
                match enclose::to_work_on_files(
                    &self.backends,
                    request,
                    admitted,
                    &stacks,
                    record,
                    (streams, work(), None),
                ) {
                    Ok(sandbox) => {
                        let mut outcome =
                            layers::left((&self.backends, &self.workspaces), run, record, sandbox.supervise(), None);
                        if let Outcome::Ran(finished) = &mut outcome {
                            finished.leftover = None;
                        }
                        outcome
                    }
                    Err(outcome) => {
                        return match run.abandon() {
                            Ok(()) => outcome,
                            Err(error) => layers::not_set_up(error.into()),
                        };
                    }
                }
            }
        };
        if let Outcome::Ran(finished) = &mut outcome {
            record.run().clone_into(&mut finished.run);
        }
        outcome
    }
}

/// Of input.
fn most_input(operation: &FileOperation) -> u64 {
    match operation {
        FileOperation::Write { .. } => MOST_FILE_BYTES,
        // Headers are part of it.
        FileOperation::Unpack { .. } => MOST_ARCHIVED_BYTES + (MOST_ARCHIVED << 10),
        _ => 0,
    }
}

fn too_large(operation: &FileOperation) -> FileFailure {
    let message = match most_input(operation) {
        0 => format!("`{}` takes no input", operation.name()),
        most => format!("what is sent is more than {} MiB", most >> 20),
    };
    FileFailure { kind: FileTrouble::TooLarge, message, fix: "send less at once".to_owned() }
}

/// Of what is heard, whatever it is.
fn most_heard(operation: &FileOperation) -> u64 {
    match operation {
        FileOperation::Pack { .. } => MOST_ARCHIVED_BYTES,
        _ => MOST_FILE_BYTES,
    }
}

/// What was told from inside. All of it is a claim.
#[derive(Default)]
struct Heard {
    /// Contents, each after the entry that it is of.
    parts: Vec<(FileEntry, Vec<u8>)>,
    matches: Vec<model::FileMatch>,
    bytes: u64,
    end: Option<FileNews>,
    nonsense: bool,
}

struct Hearing {
    heard: Rc<RefCell<Heard>>,
    most: u64,
}

impl FileHears for Hearing {
    fn hear(&mut self, news: FileNews, out: &mut Vec<u8>) {
        let heard = &mut *self.heard.borrow_mut();
        match news {
            FileNews::Content(bytes) => {
                heard.bytes += bytes.len() as u64;
                match heard.parts.last_mut() {
                    Some((_, content)) if heard.bytes <= self.most => content.extend_from_slice(&bytes),
                    _ => heard.nonsense = true,
                }
            }
            FileNews::Entry(entry) if (heard.parts.len() as u64) < MOST_ARCHIVED.max(MOST_LISTED_FILES) => {
                heard.parts.push((entry, Vec::new()));
            }
            FileNews::Match(found) if (heard.matches.len() as u64) < model::MOST_MATCHES => heard.matches.push(found),
            FileNews::Event(event) => {
                if let Ok(line) = serde_json::to_vec(&event) {
                    out.extend(line);
                    out.push(b'\n');
                }
            }
            FileNews::Done { .. } | FileNews::Failed(_) => heard.end = Some(news),
            FileNews::Entry(_) | FileNews::Match(_) | FileNews::Nonsense => heard.nonsense = true,
        }
    }
}

fn broken(message: &str) -> FileFailure {
    FileFailure {
        kind: FileTrouble::Broken,
        message: message.to_owned(),
        fix: "something inside may have ended it; try again".to_owned(),
    }
}

/// Nothing: it was not even begun, and the outcome says why.
fn answer(
    operation: &FileOperation,
    outcome: &Outcome,
    heard: Heard,
    release: &Release,
) -> Option<Result<FileAnswer, FileFailure>> {
    let finished = match outcome {
        Outcome::Ran(finished) => finished,
        Outcome::NotStarted(failure) => return Some(Err(broken(&failure.message))),
        Outcome::Refused(_) | Outcome::NotSetUp(SetupFailure { .. }) => return None,
    };
    if finished.overrun == Some(Overrun::WallTime) {
        return Some(Err(FileFailure {
            kind: FileTrouble::TooLong,
            message: "it took too long, and was ended".to_owned(),
            fix: "ask for less at once".to_owned(),
        }));
    }
    // However it was ended, what was to be watched was watched until then.
    let watches = matches!(operation, FileOperation::Watch { .. });
    Some(match heard.end {
        Some(FileNews::Failed(failure)) if !heard.nonsense => Err(failure),
        Some(FileNews::Done { count, bytes, skipped, cut, digest }) if !heard.nonsense => {
            let answer = FileAnswer { count, bytes, skipped, cut, digest, ..FileAnswer::default() };
            released(operation, answer, heard.parts, heard.matches, release)
        }
        None if watches => Ok(FileAnswer::default()),
        _ => Err(broken("whoever did it inside ended before it was done")),
    })
}

/// What may be told of it, without secrets.
fn released(
    operation: &FileOperation,
    mut answer: FileAnswer,
    parts: Vec<(FileEntry, Vec<u8>)>,
    matches: Vec<model::FileMatch>,
    release: &Release,
) -> Result<FileAnswer, FileFailure> {
    match operation {
        FileOperation::Read { from, length, .. } => {
            let Some((entry, content)) = parts.into_iter().next() else { return Err(broken("nothing was read")) };
            if content.len() as u64 != answer.bytes || length.is_some_and(|length| answer.bytes > length) {
                return Err(broken("other bytes came than were told of"));
            }
            let (content, redacted) = release.of_files().told(&content);
            if redacted > 0 && (*from > 0 || length.is_some()) {
                return Err(FileFailure {
                    kind: FileTrouble::Denied,
                    message: "there is a secret in this part of it, which is not told".to_owned(),
                    fix: "read all of it: what is secret is left out there".to_owned(),
                });
            }
            answer.entries = vec![entry];
            (answer.content, answer.redacted) = (content, redacted);
        }
        FileOperation::Pack { .. } => {
            let mut parts = parts;
            let release = release.of_files();
            for (entry, content) in &mut parts {
                if entry.kind == ThingKind::File {
                    let (told, redacted) = release.told(content);
                    (*content, entry.size) = (told, 0);
                    answer.redacted += redacted;
                }
            }
            answer.content = archive::of(&parts);
        }
        FileOperation::Search { .. } => {
            answer.matches = matches;
            let release = release.of_files();
            for found in &mut answer.matches {
                let (told, redacted) = release.told(found.text.as_bytes());
                if redacted > 0 {
                    found.text = String::from_utf8_lossy(&told).into_owned();
                    answer.redacted += redacted;
                }
            }
        }
        _ => {
            answer.entries = parts.into_iter().map(|(entry, _)| entry).collect();
            answer.entries.sort_by(|left, right| left.path.cmp(&right.path));
        }
    }
    Ok(answer)
}

fn asked(operation: &FileOperation, input: &[u8]) -> Value {
    let mut data = json!({"operation": operation.name(), "path": operation.path()});
    match operation {
        FileOperation::Move { to, .. } => data["to"] = json!(to),
        FileOperation::Write { .. } | FileOperation::Unpack { .. } => {
            data["bytes"] = json!(input.len());
            data["blake3"] = json!(blake3::hash(input).to_hex().as_str());
        }
        _ => {}
    }
    data
}

/// What was asked, and what came of it. Of what was written the digest is ours; of what was read it is that of what was told.
fn done(operation: &FileOperation, mut data: Value, answer: Option<&Result<FileAnswer, FileFailure>>) -> Value {
    match answer {
        Some(Ok(answer)) => {
            (data["done"], data["count"], data["redacted"]) =
                (json!(true), json!(answer.count), json!(answer.redacted));
            if !operation.changes() {
                data["bytes"] = json!(answer.bytes);
            }
            if !answer.content.is_empty() {
                data["blake3"] = json!(blake3::hash(&answer.content).to_hex().as_str());
            }
        }
        Some(Err(failure)) => (data["done"], data["why"]) = (json!(false), json!(failure.message)),
        None => data["done"] = json!(false),
    }
    data
}
