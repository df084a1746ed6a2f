//! Code that keeps its variables. Each cell is a request of its own: judged, scanned and recorded as the command that would run just
//! this code, and only then handed to an interpreter that waits in an open sandbox. What comes of it passes the release gate.

use std::cell::RefCell;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use model::{
    Cell, CellAnswer, CellDone, CellError, CellHears, CellLanguage, CellNews, CellNot, CellPart, CellResult, CellWork,
    ContextDeed, ContextShown, KeptSandbox, MOST_CODE, Makes, Outcome, Parcel, PartKind, Request, Trouble,
    is_context_name,
};
use secrets::terminal::Cleaner;
use serde_json::{Value, json};

use crate::judge::Admitted;
use crate::record::Record;
use crate::release::{OfFiles, Release};
use crate::told::Telling;
use crate::{Engine, enclose, layers};

/// What interpreters run in place of a cell's code: each takes cells and tells what came of them.
const OF_PYTHON: &str = include_str!("kernel.py");
const OF_JAVASCRIPT: &str = include_str!("kernel.js");
const OF_BASH: &str = include_str!("kernel.sh");

mod branch;

pub use branch::handed_over;

/// The word after which each interpreter takes code, and the kernel.
fn way_in(language: CellLanguage) -> (&'static str, &'static str) {
    match language {
        CellLanguage::Python => ("-c", OF_PYTHON),
        CellLanguage::Javascript => ("-e", OF_JAVASCRIPT),
        CellLanguage::Bash => ("-c", OF_BASH),
    }
}

impl Engine {
    pub(crate) fn cell(&self, which: &str, request: &Request, cell: &Cell) -> Result<CellDone, CellNot> {
        let known = self.open_for_contexts(which, cell)?;
        self.dealt_with(&known, request, cell, |_| Ok((cell.code.clone(), None)), || Ok(()))
    }

    /// `with`: what the context is handed when it is allowed. `meanwhile`: what is done while it works on that.
    fn dealt_with(
        &self,
        known: &KeptSandbox,
        request: &Request,
        cell: &Cell,
        with: impl FnOnce(&Admitted) -> Result<(String, Option<Parcel>), Trouble>,
        meanwhile: impl FnOnce() -> Result<(), Trouble>,
    ) -> Result<CellDone, CellNot> {
        let (takes, _) = way_in(cell.language);
        let command: Vec<OsString> = [cell.program.as_str(), takes, &cell.code].map(OsString::from).to_vec();
        let request = Request { command, ..request.clone() };
        let request = self.workspaces.request(&known.id, &request).map_err(CellNot::Trouble)?;
        let record = match self.record() {
            Ok(record) => record,
            Err(outcome) => return Ok(CellDone { outcome, answer: None }),
        };
        record.is_cell_of(cell.context(), cell.language.name());
        let heard = Rc::new(RefCell::new(Heard::default()));
        let (mut outcome, release) = match self.admit(&request, Some(&known.id), &record) {
            Ok(admitted) => {
                let outcome = match with(&admitted) {
                    Ok(with) => {
                        let work = work(cell, with, &heard);
                        self.cell_admitted(known, &request, (work, &admitted), &record, meanwhile)
                    }
                    Err(trouble) => layers::not_set_up(trouble),
                };
                (layers::told_whole(&admitted, &record, outcome), Some(admitted.release))
            }
            Err(outcome) => (outcome, None),
        };
        record.watched_to_the_end(&mut outcome);
        let ran = matches!(outcome, Outcome::Ran(_));
        let answer = release.filter(|_| ran).map(|release| answered(cell, heard.take(), &release));
        if let Some(answer) = &answer {
            record.rail.say("code.ran", false, told(answer));
        }
        let outcome = Telling::of(&request).outcome(record.ended(&request, outcome));
        Ok(CellDone { outcome, answer })
    }

    /// What can be known before anything is judged.
    fn open_for_contexts(&self, which: &str, cell: &Cell) -> Result<KeptSandbox, CellNot> {
        let trouble = |message: String, fix: &str| Trouble { message, fix: fix.to_owned() };
        let name = cell.context();
        if !is_context_name(name) {
            let what = format!("`{}` is no name for a context", name.escape_debug());
            return Err(CellNot::Wrong(trouble(what, "use up to 64 letters, digits, `-`, `_` and `.`")));
        }
        if cell.code.len() > MOST_CODE {
            let what = format!("the code has {} bytes, and {MOST_CODE} are the most of one cell", cell.code.len());
            return Err(CellNot::Wrong(trouble(what, "put it in a file of the sandbox, and run that")));
        }
        if cell.code.contains('\0') {
            let what = "the code has a zero byte, which no interpreter takes".to_owned();
            return Err(CellNot::Wrong(trouble(what, "leave it out")));
        }
        let (known, host) = self.open_one(which)?;
        let there = self.listed(&host)?;
        match (there.iter().find(|context| context.name == name), cell.makes) {
            (None, Makes::Never) => {
                let what = format!("there is no context `{name}` in it");
                Err(CellNot::NoContext(trouble(what, "make it first; what it had is gone if it ended meanwhile")))
            }
            (Some(_), Makes::Always) => {
                let what = format!("there is a context `{name}` already");
                Err(CellNot::Conflict(trouble(what, "choose another name, or restart it")))
            }
            (Some(context), _) if context.language != cell.language => {
                let what = format!("the context `{name}` is one of {}", context.language.name());
                Err(CellNot::Conflict(trouble(what, "use another, or none: each language has one of its own")))
            }
            (Some(context), _) if context.busy => {
                let what = format!("something runs in the context `{name}`");
                Err(CellNot::Conflict(trouble(what, "wait for its end, interrupt it, or use another context")))
            }
            (None, Makes::IfMissing | Makes::Always) if there.len() >= model::MOST_CONTEXTS => {
                let what = format!("there are {} contexts in it, which are the most", there.len());
                Err(CellNot::Conflict(trouble(what, "remove one that is not needed")))
            }
            _ => Ok(known),
        }
    }

    fn cell_admitted(
        &self,
        known: &KeptSandbox,
        request: &Request,
        (work, admitted): (CellWork, &Admitted),
        record: &Record<'_>,
        meanwhile: impl FnOnce() -> Result<(), Trouble>,
    ) -> Outcome {
        let host = match self.workspaces.call_on(&known.id) {
            Ok(Some(host)) => host,
            Ok(None) => return layers::not_set_up(closed(&known.id)),
            Err(trouble) => return layers::not_set_up(trouble),
        };
        record.is_over(&known.id);
        match enclose::to_run_a_cell(&self.backends, request, admitted, record, work, host) {
            Ok(sandbox) => {
                let done = meanwhile();
                let outcome = sandbox.supervise();
                done.map_or_else(layers::not_set_up, |()| outcome)
            }
            Err(outcome) => outcome,
        }
    }

    pub(crate) fn contexts_of(&self, which: &str) -> Result<Vec<ContextShown>, CellNot> {
        let (_, host) = self.open_one(which)?;
        self.listed(&host)
    }

    pub(crate) fn done_to_context(&self, which: &str, context: &str, deed: ContextDeed) -> Result<(), CellNot> {
        let (known, host) = self.open_one(which)?;
        let found = is_context_name(context)
            .then(|| self.backends.iter().find_map(|backend| backend.do_to_context(&host, context, deed)));
        let done = found.flatten().unwrap_or(Ok(false)).map_err(CellNot::Trouble)?;
        if !done {
            let message = format!("there is no context `{}` in it", context.escape_debug());
            return Err(CellNot::NoContext(Trouble { message, fix: "list those that there are".to_owned() }));
        }
        let kind = match deed {
            ContextDeed::Interrupt => "context.interrupted",
            ContextDeed::End => "context.ended",
        };
        let data = json!({"sandbox": known.id, "context": context});
        self.record_done(kind, false, data).map_err(CellNot::Trouble)
    }

    fn open_one(&self, which: &str) -> Result<(KeptSandbox, OwnedFd), CellNot> {
        let known = self.workspaces.identify(which).map_err(CellNot::Trouble)?;
        let host = self.workspaces.call_on(&known.id).map_err(CellNot::Trouble)?;
        host.map(|host| (known.clone(), host)).ok_or_else(|| CellNot::Closed(closed(&known.id)))
    }

    fn listed(&self, host: &OwnedFd) -> Result<Vec<ContextShown>, CellNot> {
        let listed = self.backends.iter().find_map(|backend| backend.contexts(host));
        listed.unwrap_or_else(|| Ok(Vec::new())).map_err(CellNot::Trouble)
    }
}

fn work(cell: &Cell, (code, parcel): (String, Option<Parcel>), heard: &Rc<RefCell<Heard>>) -> CellWork {
    let (takes, kernel) = way_in(cell.language);
    CellWork {
        context: cell.context().to_owned(),
        language: cell.language,
        makes: cell.makes,
        kernel: vec![takes.to_owned(), kernel.to_owned()],
        code,
        parcel,
        hears: Box::new(Hearing(heard.clone())),
    }
}

fn closed(id: &str) -> Trouble {
    Trouble {
        message: format!("sandbox {id} is not open"),
        fix: "open it first: contexts live in what stays".to_owned(),
    }
}

/// What was told of a cell. All of it but the first and the last is a claim.
#[derive(Default)]
struct Heard {
    fresh: bool,
    number: u64,
    results: Vec<HeardResult>,
    error: Option<CellError>,
    interrupted: bool,
    left_out: u64,
    lost: Option<String>,
}

/// The number that the kernel gave it, whether it is the value of the cell, and the ways to show it.
type HeardResult = (u32, bool, Vec<(PartKind, Vec<u8>)>);

/// How much there can be of it is held by whoever reads it.
struct Hearing(Rc<RefCell<Heard>>);

impl CellHears for Hearing {
    fn hear(&mut self, news: CellNews) {
        let heard = &mut *self.0.borrow_mut();
        match news {
            CellNews::Begun { fresh, number } => (heard.fresh, heard.number) = (fresh, number),
            CellNews::Part { result, value, kind, bytes } => {
                match heard.results.iter_mut().find(|(number, ..)| *number == result) {
                    Some((_, _, parts)) => parts.push((kind, bytes)),
                    None => heard.results.push((result, value, vec![(kind, bytes)])),
                }
            }
            CellNews::Failed(error) => heard.error = Some(error),
            CellNews::Done { interrupted, left_out } => (heard.interrupted, heard.left_out) = (interrupted, left_out),
            CellNews::Lost(why) => heard.lost = Some(why),
        }
    }
}

fn answered(cell: &Cell, heard: Heard, release: &Release) -> CellAnswer {
    let Heard { fresh, number, results, error, interrupted, mut left_out, lost } = heard;
    let mut gate = Gate { release: release.of_files(), redacted: 0 };
    let mut shown = Vec::new();
    for (_, value, parts) in results {
        let before = parts.len();
        let parts: Vec<CellPart> = parts.into_iter().filter_map(|(kind, bytes)| gate.part(kind, &bytes)).collect();
        left_out += (before - parts.len()) as u64;
        if !parts.is_empty() {
            shown.push(CellResult { value, parts });
        }
    }
    let error = error.map(|CellError { name, value, traceback }| CellError {
        name: gate.text(name.as_bytes()),
        value: gate.text(value.as_bytes()),
        traceback: gate.text(traceback.as_bytes()),
    });
    CellAnswer {
        context: cell.context().to_owned(),
        language: cell.language,
        fresh,
        kept: lost.is_none(),
        lost,
        number,
        interrupted,
        results: shown,
        left_out,
        redacted: gate.redacted,
        error,
    }
}

/// The release gate for what a cell results in: without secrets, and without what commands a terminal.
struct Gate {
    release: OfFiles,
    redacted: u64,
}

impl Gate {
    fn told(&mut self, bytes: &[u8]) -> (Vec<u8>, u64) {
        let (told, redacted) = self.release.told(bytes);
        self.redacted += redacted;
        (told, redacted)
    }

    fn text(&mut self, bytes: &[u8]) -> String {
        let mut clean = Vec::with_capacity(bytes.len());
        let mut cleaner = Cleaner::new();
        cleaner.push(bytes, &mut clean);
        cleaner.finish(&mut clean);
        String::from_utf8_lossy(&self.told(&clean).0).into_owned()
    }

    /// Nothing: it can't be told.
    fn part(&mut self, kind: PartKind, bytes: &[u8]) -> Option<CellPart> {
        let data = if kind.is_binary() {
            let (told, redacted) = self.told(bytes);
            // An image that something was taken out of is none any more.
            if redacted > 0 {
                return None;
            }
            base64(&told)
        } else if kind.is_json() {
            // Written anew, so that a secret is not hidden by how its letters are written.
            let value: Value = serde_json::from_slice(bytes).ok()?;
            let (told, _) = self.told(value.to_string().as_bytes());
            let told = String::from_utf8(told).ok()?;
            serde_json::from_str::<Value>(&told).ok()?;
            told
        } else if kind == PartKind::Text {
            self.text(bytes)
        } else {
            String::from_utf8_lossy(&self.told(bytes).0).into_owned()
        };
        Some(CellPart { kind, data })
    }
}

fn base64(bytes: &[u8]) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// For the record: what came out, by its digest.
fn told(answer: &CellAnswer) -> Value {
    let CellAnswer { context, language, fresh, kept, lost, number, interrupted, results, left_out, redacted, error } =
        answer;
    let mut hasher = blake3::Hasher::new();
    let mut bytes = 0;
    for part in results.iter().flat_map(|result| &result.parts) {
        for word in [part.kind.name(), &part.data] {
            hasher.update(&(word.len() as u64).to_le_bytes());
            hasher.update(word.as_bytes());
        }
        bytes += part.data.len();
    }
    json!({
        "context": context, "language": language, "cell": number, "fresh": fresh, "kept": kept, "lost": lost,
        "interrupted": interrupted, "results": results.len(), "bytes": bytes, "left_out": left_out, "redacted": redacted,
        "blake3": hasher.finalize().to_hex().as_str(), "error": error.as_ref().map(|error| error.name.as_str()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        let known = [("DEPLOY_TOKEN".into(), "fish-under-glass-9137".into())];
        Gate { release: Release::new(true, &known, None, Vec::new()).of_files(), redacted: 0 }
    }

    #[test]
    fn no_kind_of_result_tells_a_secret() {
        let secret = "fish-under-glass-9137";
        for kind in PartKind::ALL {
            let mut gate = gate();
            let bytes = match kind {
                PartKind::Json | PartKind::Plotly => br#"{"a":"\u0066ish-under-glass-9137"}"#.to_vec(),
                PartKind::Png => [b"\x89PNG\r\n\x1a\n\0".as_slice(), secret.as_bytes()].concat(),
                _ => format!("a {secret} b").into_bytes(),
            };
            let told = gate.part(kind, &bytes);
            assert!(gate.redacted > 0, "{kind:?}");
            match told {
                Some(part) => assert!(!kind.is_binary() && !part.data.contains("glass"), "{kind:?}: {}", part.data),
                None => assert!(kind.is_binary(), "{kind:?} is not told at all"),
            }
        }
    }

    #[test]
    fn text_commands_no_terminal_and_what_is_no_json_is_not_told() {
        assert_eq!(gate().part(PartKind::Text, b"a\x1b]0;title\x07b").map(|part| part.data).as_deref(), Some("ab"));
        assert_eq!(gate().part(PartKind::Json, b"{"), None);
    }

    #[test]
    fn a_kernel_is_no_longer_than_a_word_may_be() {
        for language in CellLanguage::ALL {
            let (_, kernel) = way_in(language);
            assert!(kernel.len() < MOST_CODE && !kernel.contains('\0'));
        }
    }
}
