//! What the engine asks of this room, and nothing else: each call opens what it needs, and leaves nothing open.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use model::{
    Artifact, Changes, Collected, Gatekeeper, Gathered, KeptSandbox, Place, Request, Stack, Taken, Taking, Trouble,
    Watch,
};

use crate::apply::{self, Turn};
use crate::changes::{Side, described, pairs, write_patch};
use crate::error::{Error, Result};
use crate::record::Record;
use crate::session::{self, Session, Wish};
use crate::sight::KeptView;
use crate::state::State;
use crate::store::Store;
use crate::{artifacts, copied, keep, visitors};

/// A run under way over layers.
pub type Run = Session;

pub struct Workspaces {
    folder: Option<PathBuf>,
    watch: Box<dyn Watch>,
    /// Layers that nobody needs, where they are left for later.
    later: RefCell<Option<Vec<String>>>,
    /// An open sandbox that was asked about, for who asks about it again.
    met: RefCell<Option<Record>>,
}

/// Where a tenant's state lies, once that was said.
static GIVEN: OnceLock<PathBuf> = OnceLock::new();

/// From here on, all state of this process lies there, whatever variables and the user's record say. The first word holds: a
/// process serves one tenant.
pub fn state_lies_in(folder: PathBuf) {
    GIVEN.get_or_init(|| folder);
}

/// What was said of it.
pub fn given_state() -> Option<&'static Path> {
    GIVEN.get().map(PathBuf::as_path)
}

/// Where the user's sandboxes are kept, or would be.
pub fn state_folder() -> Option<PathBuf> {
    Store::of_the_user().map(|store| store.folder().to_owned())
}

/// How layers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means<'a> {
    /// Laid over the real files by the kernel, or copied where that is known not to work.
    Best,
    /// Copied: what is wrong with the other way was found out by trying.
    Copies { why: &'a str, fix: &'a str },
}

impl Workspaces {
    /// In the user's folder for state.
    pub fn of_the_user(watch: Box<dyn Watch>) -> Workspaces {
        let folder = Store::of_the_user().map(|store| store.folder().to_owned());
        Workspaces { folder, watch, later: RefCell::default(), met: RefCell::default() }
    }

    pub fn at(folder: PathBuf, watch: Box<dyn Watch>) -> Workspaces {
        Workspaces { folder: Some(folder), watch, later: RefCell::default(), met: RefCell::default() }
    }

    pub fn watch(&self) -> &dyn Watch {
        self.watch.as_ref()
    }

    fn store(&self) -> Result<Store> {
        let folder = self.folder.clone().ok_or_else(|| Error::State {
            path: "$HOME/.local/state".into(),
            why: "XDG_STATE_HOME is not set, and HOME is not a folder".to_owned(),
        })?;
        let mut store = Store::at(folder);
        store.ready()?;
        Ok(store)
    }

    fn open(&self) -> Result<(Store, State)> {
        let store = self.store()?;
        let state = store.state()?;
        Ok((store, state))
    }

    /// The same, after whatever was cut off is finished or undone.
    fn open_to_change(&self) -> Result<(Store, State)> {
        let (store, mut state) = self.open()?;
        if !state.journals()?.is_empty() {
            let turn = Turn::take(&store)?;
            for said in apply::recover(&turn, &mut state, self.watch())? {
                self.watch.warn(&said);
            }
        }
        Ok((store, state))
    }

    /// Whether layers have to be copies here, with what is said about that.
    fn copies(&self, store: &Store, places: &[&Place], means: Means<'_>) -> bool {
        let (why, fix) = match means {
            Means::Best => (copied::needed(store, places), "see `belljar doctor`"),
            Means::Copies { why, fix } => (Some(why.to_owned()), fix),
        };
        if let Some(why) = &why {
            self.watch
                .warn(&format!("{why}: the workspace is copied as a whole, which takes time and space; fix: {fix}"));
        }
        why.is_some()
    }

    /// Layers for one run over these places.
    pub fn begin(
        &self,
        places: &[&Place],
        request: &Request,
        from: &Path,
        means: Means<'_>,
    ) -> std::result::Result<Run, Trouble> {
        let store = self.store()?;
        let copied = self.copies(&store, places, means);
        Ok(Session::begin(&store, &Wish { places, request, from, copied }, self.watch())?)
    }

    /// The same for a run that is yet to be asked for: see `Run::come_true`.
    pub fn make_ready(&self, places: &[&Place], request: &Request, from: &Path) -> std::result::Result<Run, Trouble> {
        let store = self.store()?;
        let copied = self.copies(&store, places, Means::Best);
        Ok(Session::make_ready(&store, &Wish { places, request, from, copied }, self.watch())?)
    }

    /// Looks at what a run changed; see `Run::finish`. `let_go` makes sure that nothing has its layers mounted any more: whoever is
    /// next to use them mounts them anew.
    pub fn finish(&self, run: Run, let_go: &dyn Fn()) -> std::result::Result<Option<model::Leftover>, Trouble> {
        if let Some(layer) = run.forget_if_untouched()? {
            match &mut *self.later.borrow_mut() {
                Some(later) => later.push(layer),
                None => {
                    let_go();
                    self.store()?.remove_layer(&layer)?;
                }
            }
            return Ok(None);
        }
        let_go();
        Ok(run.finish(self.watch())?)
    }

    /// From here on, what only has to be removed is left to `tidy`: somebody waits for an answer.
    pub fn leave_for_later(&self) {
        self.later.borrow_mut().get_or_insert_default();
    }

    pub fn tidy(&self) -> std::result::Result<(), Trouble> {
        let layers = self.later.borrow_mut().as_mut().map(std::mem::take).unwrap_or_default();
        let store = self.store()?;
        Ok(layers.iter().try_for_each(|layer| store.remove_layer(layer))?)
    }

    /// Where layers would be, for whoever only wants to know.
    pub fn preview(&self, places: &[&Place]) -> Vec<Stack> {
        let folder = self.folder.clone().unwrap_or_else(|| "/".into());
        let stack = |(number, place): (usize, &&Place)| Stack {
            place: place.path.clone(),
            kept: model::Kept::Overlay {
                earlier: Vec::new(),
                layer: folder.join("layers/ID").join(number.to_string()),
            },
            begun: 0,
        };
        places.iter().enumerate().map(stack).collect()
    }

    pub fn create(
        &self,
        places: &[&Place],
        request: &Request,
        from: &Path,
        name: Option<&str>,
    ) -> std::result::Result<KeptSandbox, Trouble> {
        let (store, mut state) = self.open()?;
        let copied = self.copies(&store, places, Means::Best);
        let record = Session::create(&store, &mut state, &Wish { places, request, from, copied }, name, self.watch())?;
        Ok(keep::told(&store, &record, false))
    }

    /// One that somebody wants to run something in. Of an open one, the same as when it was met: nobody changes it meanwhile.
    fn to_run_in(&self, which: &str) -> Result<(Store, Record)> {
        if let Some(record) = self.met.borrow().as_ref().filter(|record| record.id == which) {
            return Ok((self.store()?, record.clone()));
        }
        let (store, mut state) = self.open_to_change()?;
        let (record, _) = store.find(&mut state, which)?;
        Ok((store, record))
    }

    /// The request for a run in a kept sandbox.
    pub fn request(&self, which: &str, request: &Request) -> std::result::Result<Request, Trouble> {
        let (_, record) = self.to_run_in(which)?;
        Ok(record.settings.request(&record.workspaces, request))
    }

    pub fn resume(&self, which: &str, request: &Request) -> std::result::Result<Run, Trouble> {
        let (store, mut state) = self.open()?;
        Ok(Session::resume(&store, &mut state, which, request, self.watch())?)
    }

    /// Where a sandbox that stays is visited, for whoever holds it.
    pub fn expect_visitors(&self, run: &Run) -> std::result::Result<OwnedFd, Trouble> {
        Ok(visitors::expect(&self.store()?, run.record())?)
    }

    pub fn expect_no_more_visitors(&self, id: &str) -> std::result::Result<(), Trouble> {
        Ok(visitors::expect_no_more(&self.store()?, id)?)
    }

    /// A way to the host of a sandbox; nothing if it has none.
    pub fn call_on(&self, id: &str) -> std::result::Result<Option<OwnedFd>, Trouble> {
        Ok(visitors::call_on(&self.store()?, id)?)
    }

    pub fn list(&self) -> std::result::Result<Vec<KeptSandbox>, Trouble> {
        let (store, mut state) = self.open()?;
        let records = store.records(&mut state)?;
        Ok(records.iter().map(|(record, running)| keep::told(&store, record, *running)).collect())
    }

    /// The folders that kept sandboxes are over.
    pub fn under(&self) -> std::result::Result<Vec<PathBuf>, Trouble> {
        let (store, mut state) = self.open()?;
        let records = store.records(&mut state)?;
        Ok(records.iter().flat_map(|(record, _)| &record.workspaces).map(|workspace| workspace.path()).collect())
    }

    pub fn find(&self, which: &str) -> std::result::Result<KeptSandbox, Trouble> {
        let (store, mut state) = self.open()?;
        let (record, running) = store.find(&mut state, which)?;
        Ok(keep::told(&store, &record, running))
    }

    /// The same at once: how much it takes on disk is not looked at.
    pub fn identify(&self, which: &str) -> std::result::Result<KeptSandbox, Trouble> {
        self.met.take();
        if let Some(record) = visitors::known(&self.store()?, which)? {
            let told = keep::told_at_once(&record, true, true);
            self.met.replace(Some(record));
            return Ok(told);
        }
        let (store, mut state) = self.open()?;
        let (record, running) = store.find(&mut state, which)?;
        Ok(keep::told_at_once(&record, running, keep::is_open(&store, &record, running)))
    }

    /// The id of one that somebody wants to run something in, and a way to its host, if it has one.
    pub fn visit(&self, which: &str) -> std::result::Result<(String, Option<OwnedFd>), Trouble> {
        let (store, record) = self.to_run_in(which)?;
        let host = visitors::call_on(&store, &record.id)?;
        Ok((record.id, host))
    }

    /// A sandbox that may run meanwhile; its changes as they are now.
    fn side(&self, store: &Store, state: &mut State, which: &str) -> Result<Side> {
        let (mut record, running) = store.find(state, which)?;
        if !running && record.moment.is_some() {
            // Whoever begins a run with it this moment looks itself.
            match store.lock(state, &record.id) {
                Ok(locked) => {
                    let (locked, _lock) = locked.into_parts();
                    record = locked;
                    session::look_at_last_run(store, state, &mut record, self.watch())?;
                }
                Err(Error::Busy(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Side::of(store, state, &record)
    }

    pub fn changes(&self, which: &str, paths: &[PathBuf]) -> std::result::Result<Changes, Trouble> {
        let (store, mut state) = self.open_to_change()?;
        let side = self.side(&store, &mut state, which)?;
        Ok(Changes { sandbox: side.record.shown(), changes: side.changes(paths)? })
    }

    pub fn compare(&self, which: &str, other: &str, paths: &[PathBuf]) -> std::result::Result<Changes, Trouble> {
        let (store, mut state) = self.open_to_change()?;
        let one = self.side(&store, &mut state, which)?;
        let other = self.side(&store, &mut state, other)?;
        let mut changes = Vec::new();
        for (before, after) in pairs(&one, &other)? {
            let wanted = wanted_in(&other, after, paths)?;
            if let Some(wanted) = wanted {
                changes.extend(described(after, before.against(after, &wanted)?)?);
            }
        }
        Ok(Changes { sandbox: format!("{} against {}", other.record.shown(), one.record.shown()), changes })
    }

    pub fn patch(&self, which: &str, other: Option<&str>, paths: &[PathBuf]) -> std::result::Result<Vec<u8>, Trouble> {
        let (store, mut state) = self.open_to_change()?;
        let one = self.side(&store, &mut state, which)?;
        let Some(other) = other else { return Ok(one.patch(paths)?) };
        let other = self.side(&store, &mut state, other)?;
        let mut out = Vec::new();
        for (before, after) in pairs(&one, &other)? {
            if let Some(wanted) = wanted_in(&other, after, paths)? {
                write_patch(after, &before.against(after, &wanted)?, &mut out)?;
            }
        }
        Ok(out)
    }

    /// Where its workspaces are.
    pub fn folders(&self, which: &str) -> std::result::Result<Vec<PathBuf>, Trouble> {
        let (store, mut state) = self.open()?;
        let (record, _) = store.find(&mut state, which)?;
        Ok(record.workspaces.iter().map(|workspace| PathBuf::from(&workspace.path)).collect())
    }

    /// What a kept sandbox would find.
    pub fn view(&self, which: &str) -> std::result::Result<KeptView, Trouble> {
        let (store, record) = self.to_run_in(which)?;
        Ok(KeptView::new(store, record))
    }

    pub fn apply(&self, which: &str, taking: &Taking, keeper: &dyn Gatekeeper) -> std::result::Result<Taken, Trouble> {
        let (store, mut state) = self.open()?;
        let (mut record, lock) = store.lock(&mut state, which)?.into_parts();
        let taken = apply::apply(&store, &mut state, &mut record, taking, keeper, self.watch())?;
        if taken.complete {
            self.let_go(&store, &mut state, &mut record)?;
        }
        drop(lock);
        Ok(taken)
    }

    /// Nothing is left in it: gone, unless it was made to be used again.
    fn let_go(&self, store: &Store, state: &mut State, record: &mut Record) -> Result<()> {
        match record.made {
            true => keep::discard(store, state, record, self.watch()),
            false => keep::remove(store, state, record),
        }
    }

    pub fn discard(&self, which: &str) -> std::result::Result<KeptSandbox, Trouble> {
        let (store, mut state) = self.open_to_change()?;
        let (mut record, lock) = store.lock(&mut state, which)?.into_parts();
        let told = keep::told(&store, &record, false);
        self.let_go(&store, &mut state, &mut record)?;
        drop(lock);
        Ok(told)
    }

    pub fn remove(&self, which: &str) -> std::result::Result<KeptSandbox, Trouble> {
        let (store, mut state) = self.open_to_change()?;
        let (record, lock) = store.lock(&mut state, which)?.into_parts();
        let told = keep::told(&store, &record, false);
        keep::remove(&store, &mut state, &record)?;
        drop(lock);
        Ok(told)
    }

    pub fn snapshot(&self, which: &str, name: Option<&str>) -> std::result::Result<String, Trouble> {
        let (store, mut state) = self.open_to_change()?;
        let (mut record, lock) = store.lock(&mut state, which)?.into_parts();
        let name = keep::snapshot(&store, &mut state, &mut record, name, self.watch())?;
        drop(lock);
        Ok(name)
    }

    pub fn roll_back(&self, which: &str, snapshot: Option<&str>) -> std::result::Result<String, Trouble> {
        let (store, mut state) = self.open_to_change()?;
        let (mut record, lock) = store.lock(&mut state, which)?.into_parts();
        let name = keep::roll_back(&store, &mut state, &mut record, snapshot, self.watch())?;
        drop(lock);
        Ok(name)
    }

    pub fn fork(&self, which: &str, count: usize) -> std::result::Result<Vec<KeptSandbox>, Trouble> {
        let (store, mut state) = self.open_to_change()?;
        let (mut record, lock) = store.lock(&mut state, which)?.into_parts();
        let forks = keep::fork(&store, &mut state, &mut record, count, self.watch())?;
        drop(lock);
        Ok(forks.iter().map(|fork| keep::told(&store, fork, false)).collect())
    }

    /// The same of one that is open: what it is at this moment, while it goes on.
    pub fn fork_beside(&self, which: &str, count: usize) -> std::result::Result<Vec<KeptSandbox>, Trouble> {
        let (store, mut state) = self.open_to_change()?;
        let (record, _) = store.find(&mut state, which)?;
        session::check_places(&record)?;
        let forks = keep::fork_beside(&store, &mut state, &record, count, self.watch())?;
        Ok(forks.iter().map(|fork| keep::told_at_once(fork, false, false)).collect())
    }

    pub fn branch(
        &self,
        which: &str,
        snapshot: Option<&str>,
        name: Option<&str>,
    ) -> std::result::Result<KeptSandbox, Trouble> {
        let (store, mut state) = self.open_to_change()?;
        let (mut record, lock) = store.lock(&mut state, which)?.into_parts();
        let branch = keep::branch(&store, &mut state, &mut record, (snapshot, name), self.watch())?;
        drop(lock);
        Ok(keep::told(&store, &branch, false))
    }

    pub fn collect(&self, older_than: Duration, only_tell: bool) -> std::result::Result<Collected, Trouble> {
        let (store, mut state) = self.open_to_change()?;
        Ok(keep::collect(&store, &mut state, older_than.as_secs(), only_tell)?)
    }

    /// What a run made, before its layers go; `run`: the one that has ended, if it has layers.
    pub fn gather(&self, run: Option<&Run>, wish: &artifacts::Wish<'_>) -> std::result::Result<Gathered, Trouble> {
        Ok(artifacts::gather(&self.store()?, run, wish)?)
    }

    pub fn artifacts(&self, of: Option<&str>) -> std::result::Result<Vec<Artifact>, Trouble> {
        let (store, mut state) = self.open()?;
        Ok(artifacts::list(&store, &mut state, of)?)
    }

    pub fn artifact(&self, which: &str) -> std::result::Result<Artifact, Trouble> {
        let (_, state) = self.open()?;
        Ok(artifacts::find_one(&state, which)?.artifact)
    }

    pub fn copy_artifact(&self, which: &str, to: &mut dyn std::io::Write) -> std::result::Result<Artifact, Trouble> {
        let (store, state) = self.open()?;
        Ok(artifacts::copy(&store, &state, which, to)?)
    }

    pub fn remove_artifact(&self, which: &str) -> std::result::Result<Artifact, Trouble> {
        let (store, mut state) = self.open()?;
        Ok(artifacts::remove(&store, &mut state, which)?)
    }

    /// Whether changes can be kept apart at all, and how; for whoever asks about this host.
    pub fn examine(&self) -> (bool, String) {
        // Who only asks makes nothing.
        let store = match &self.folder {
            Some(folder) if !folder.exists() => Ok(Store::at(folder.clone())),
            _ => self.store(),
        };
        match store {
            Ok(store) => match copied::needed(&store, &[]) {
                None => (true, format!("in {}", store.folder().display())),
                Some(why) => (false, why),
            },
            Err(error) => (false, error.to_string()),
        }
    }
}

/// Which paths of one part are meant; nothing if none of it is.
fn wanted_in(side: &Side, part: &crate::changes::Part, paths: &[PathBuf]) -> Result<Option<Vec<Vec<u8>>>> {
    let wanted = side.wanted(paths)?;
    Ok(wanted.into_iter().find(|(known, _)| known.number == part.number).map(|(_, wanted)| wanted))
}
