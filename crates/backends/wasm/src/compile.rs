//! Compiles a module in a jar of its own, which has nothing but the module and hands out nothing but the code.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use model::{Backend, Command, Exit, Finished, Grant, Outcome, Outlet, Overrun, Streams};
use native::Native;
use sys::signals;

use crate::cache::Cache;
use crate::failure::Failure;
use crate::module::Module;
use crate::worker::{self, Worker};

/// At most; a run that may take less may also only compile for so long.
const LONGEST: Duration = Duration::from_secs(300);
/// Code is some times larger than what it was compiled from.
const LARGEST_CODE: u64 = 1 << 30;

/// Where the code then is; none if it can't be kept.
pub fn compile(
    native: &Native,
    grant: &Grant,
    worker: &Worker,
    module: &Module,
    cache: &Cache,
    name: &str,
) -> Result<Option<PathBuf>, Failure> {
    // Without a place for it, a module is compiled where it runs.
    let Ok(lent) = cache.lend(&module.bytes) else { return Ok(None) };
    let Some(place) = worker::seen(lent.path.clone()) else { return Ok(None) };
    let command = Command {
        program: worker.place.path.clone(),
        arguments: vec![worker::NAME.into(), "compile".into(), lent.path.clone().into()],
        directory: "/".into(),
        terminal: false,
    };
    let alone = grant.alone(command, vec![worker.place.clone(), place], LONGEST, LARGEST_CODE);
    let (code, words) = (Kept::default(), Kept::default());
    let streams = Streams {
        output: Some(Box::new(code.clone())),
        error: Some(Box::new(words.clone())),
        apart: true,
        ..Streams::default()
    };
    // The payload's mask is the caller's, and to watch a sandbox blocks all signals for good: there will be another.
    let mask = signals::block_all().map_err(|error| Failure::setup(format!("cannot block signals: {error}"), ""))?;
    let opened = native.open(&alone, &[], streams, false);
    let outcome = opened.map_err(Failure::Setup)?.supervise();
    signals::restore(&mask).map_err(|error| Failure::setup(format!("cannot restore signals: {error}"), ""))?;
    let finished = match outcome {
        Outcome::Ran(finished) => finished,
        other => return Err(Failure::Ended(Box::new(other))),
    };
    drop(lent);
    judge(&finished, &words.take(), grant)?;
    Ok(cache.keep(name, &code.take()).ok())
}

/// Whether there is code, or whose fault it is that there is none.
fn judge(finished: &Finished, words: &[u8], grant: &Grant) -> Result<(), Failure> {
    let cannot = |why: String, fix: &str| Err(Failure::not_started(true, format!("cannot run it: {why}"), fix));
    match (finished.overrun, finished.exit) {
        (None, Exit::Code(0)) if finished.output_dropped == 0 => Ok(()),
        (Some(Overrun::WallTime), _) => {
            let time = grant.powers().limits.wall_time.map_or(LONGEST, |time| time.min(LONGEST));
            cannot(
                format!("the module takes longer than {} s to compile", time.as_secs()),
                "give it more time, or make it smaller",
            )
        }
        (Some(Overrun::CpuTime), _) => {
            cannot("to compile the module takes more processor time than granted".to_owned(), "raise `--cpu-time`")
        }
        (Some(Overrun::Memory), _) => {
            cannot("to compile the module takes more memory than granted".to_owned(), "raise `--memory`")
        }
        (Some(Overrun::Cancelled | Overrun::Suspended | Overrun::Disk), _) => {
            Err(Failure::Ended(Box::new(Outcome::Ran(Box::new(finished.clone())))))
        }
        (None, Exit::Code(_)) => {
            let said = String::from_utf8_lossy(words);
            let said = said.trim().trim_start_matches("belljar-wasm: ");
            // A module chose these words: nothing in them commands a terminal.
            let said: String = said.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
            cannot(said, "see `belljar help run` for which modules run")
        }
        (None, Exit::Signal(signal)) => cannot(
            format!("the compiler was ended by signal {signal} while it read the module"),
            "this may be an attack, or a fault of the compiler: do not trust the module",
        ),
    }
}

/// Keeps what passes, and lets nothing pass.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Kept {
    fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl Outlet for Kept {
    fn pass(&mut self, bytes: &[u8], _: &mut Vec<u8>) {
        self.0.borrow_mut().extend_from_slice(bytes);
    }
    fn end(&mut self, _: &mut Vec<u8>) {}
    fn holds(&self) -> bool {
        false
    }
    fn rest(&mut self, _: &mut Vec<u8>) {}
}
