//! Forks of a live context. A process can't be moved behind other walls, so its variables are: the context writes them, as bytes
//! that nobody outside ever looks at, and code in a new context reads them, in a fork of the sandbox that stands by itself.

use std::cell::RefCell;
use std::os::fd::{AsFd, OwnedFd};

use model::{
    Branched, Cell, CellDone, CellLanguage, CellNot, KeptSandbox, LeftBehind, Makes, Parcel, ParcelDeed, Request,
    Trouble,
};
use serde::Deserialize;
use serde_json::json;
use sys::{descriptors, parcel, signals};

use crate::Engine;

/// To remove a fork that others open and let go of at the same moment.
const MOST_TRIES: u32 = 10;
/// What deals with variables inside: handed over like a cell, when it is needed.
const SAVES: &str = include_str!("branch.py");
const LOADS: &str = include_str!("load.py");
/// What is judged in its place: the code is ours, and what may start is the interpreter.
const JUDGED: &str = "pass";
const MOST_FORKS: usize = 64;
/// Of what is told of variables that stay behind.
const MOST_LEFT: usize = 1000;

impl Engine {
    pub(crate) fn context_forked(
        &self,
        which: &str,
        request: &Request,
        cell: &Cell,
        (count, bytes): (usize, OwnedFd),
        begun: &dyn Fn(&[KeptSandbox]),
    ) -> Result<Branched, CellNot> {
        if !(1..=MOST_FORKS).contains(&count) {
            let fix = format!("ask for 1 to {MOST_FORKS}");
            return Err(CellNot::Wrong(Trouble { message: format!("{count} forks can't be made at once"), fix }));
        }
        // Of one that is there, whatever language it is of.
        let found = self.contexts_of(which)?.into_iter().find(|context| context.name == cell.context());
        let language = found.map_or(cell.language, |context| context.language);
        if language != CellLanguage::Python {
            let message = format!(
                "`{}` is a context of {}, and only those of python can be forked",
                cell.context(),
                language.name()
            );
            return Err(CellNot::Wrong(Trouble {
                message,
                fix: "fork the sandbox without it: its files go along".to_owned(),
            }));
        }
        let cell = Cell { code: JUDGED.to_owned(), makes: Makes::Never, ..cell.clone() };
        let known = self.open_for_contexts(which, &cell)?;
        let failed = |what: &'static str| {
            move |error: std::io::Error| Trouble {
                message: format!("cannot {what}: {error}"),
                fix: "try again".to_owned(),
            }
        };
        let mask = signals::block_all().map_err(|error| CellNot::Trouble(failed("block signals")(error)))?;
        let forks = RefCell::new(Vec::new());
        let done = self.dealt_with(
            &known,
            request,
            &cell,
            |admitted| {
                let most = admitted.grant.powers().limits.memory;
                parcel::bound(bytes.as_fd(), most).map_err(failed("make room for variables"))?;
                let bytes = bytes.try_clone().map_err(failed("make room for variables"))?;
                Ok((SAVES.to_owned(), Some(Parcel { deed: ParcelDeed::Save(most), bytes })))
            },
            || {
                let made = self.workspaces.fork_beside(&known.id, count)?;
                begun(&made);
                forks.replace(made);
                Ok(())
            },
        );
        let forks = forks.take();
        let branched = done.and_then(|done| {
            let branched = branched(done, forks.clone());
            if branched.is_whole() {
                parcel::shut(bytes.as_fd()).map_err(|error| {
                    let message = format!("the context still has a hand on the variables that it wrote: {error}");
                    CellNot::Conflict(Trouble { message, fix: "end what it started, or restart it".to_owned() })
                })?;
                let ids: Vec<&str> = forks.iter().map(|fork| fork.id.as_str()).collect();
                let left: Vec<&str> = branched.left.iter().take(20).map(|left| left.name.as_str()).collect();
                let data = json!({
                    "sandbox": known.id, "context": cell.context(), "forks": ids, "left": left,
                    "left_count": branched.left.len(),
                });
                self.record_done("context.forked", false, data).map_err(CellNot::Trouble)?;
            }
            Ok(branched)
        });
        // Whoever calls may start others, who shall hear signals.
        signals::restore(&mask).map_err(|error| CellNot::Trouble(failed("listen for signals again")(error)))?;
        match branched {
            Ok(branched) if branched.is_whole() => Ok(branched),
            not => {
                let removed = forks.iter().try_for_each(|fork| self.unmade(fork));
                removed.map_err(CellNot::Trouble)?;
                not.map(|branched| Branched { forks: Vec::new(), ..branched })
            }
        }
    }

    /// Whoever was told of it may have opened it already, or be about to, and sees to its end then.
    fn unmade(&self, fork: &KeptSandbox) -> Result<(), Trouble> {
        let mut tries = 0;
        loop {
            match self.workspaces.identify(&fork.id) {
                Ok(known) if !known.running => {}
                Ok(_) | Err(_) => return Ok(()),
            }
            tries += 1;
            match self.workspaces.remove(&fork.id) {
                Ok(_) => return Ok(()),
                // Opened since we looked; or let go of again since.
                Err(_) if tries < MOST_TRIES => {}
                Err(trouble) => return Err(trouble),
            }
        }
    }

    pub(crate) fn context_taken_up(
        &self,
        which: &str,
        request: &Request,
        cell: &Cell,
        comes: OwnedFd,
    ) -> Result<Branched, CellNot> {
        let cell = Cell { code: JUDGED.to_owned(), makes: Makes::Always, ..cell.clone() };
        let known = self.open_for_contexts(which, &cell)?;
        let with = Parcel { deed: ParcelDeed::Load, bytes: comes };
        let done = self.dealt_with(&known, request, &cell, |_| Ok((LOADS.to_owned(), Some(with))), || Ok(()))?;
        Ok(branched(done, Vec::new()))
    }
}

pub fn handed_over(bytes: &OwnedFd) -> std::io::Result<OwnedFd> {
    let (here, there) = descriptors::wire()?;
    descriptors::send(here.as_fd(), b"parcel", &[bytes.as_fd()])?;
    Ok(there)
}

/// What the context tells of it: a claim, like every result.
#[derive(Default, Deserialize)]
struct Told {
    left: Vec<LeftBehind>,
}

fn branched(done: CellDone, forks: Vec<KeptSandbox>) -> Branched {
    let CellDone { outcome, mut answer } = done;
    let results = answer.as_mut().map(|answer| std::mem::take(&mut answer.results)).unwrap_or_default();
    let told = results.first().and_then(|result| result.parts.first());
    let told: Told = told.and_then(|part| serde_json::from_str(&part.data).ok()).unwrap_or_default();
    let mut left = told.left;
    left.truncate(MOST_LEFT);
    Branched { outcome, answer, forks, left }
}
