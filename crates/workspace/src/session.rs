//! One run over layers: they are made before it, and looked at after it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use model::{Kept, Leftover, Place, Request, Stack, Tally, Watch};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid};

use crate::base::{self, Bases};
use crate::changes::{Side, described};
use crate::copied;
use crate::error::{Error, Result, cannot};
use crate::files::Folder;
use crate::layer::{self, View};
use crate::manifest;
use crate::record::{Record, Settings, Workspace};
use crate::remove;
use crate::state::State;
use crate::store::{CLAIM, Store, new_id, now};

/// Changes that are told one by one; the digest is about all.
const MOST_LISTED: usize = 100;

/// A run that has layers of its own to write to.
pub struct Session {
    pub(crate) store: Store,
    pub(crate) record: Record,
    /// The lock on the topmost layer.
    layer: Folder,
    /// The state knows of the sandbox already.
    pub(crate) known: bool,
    /// When the command may start.
    begun: i64,
}

/// What a new sandbox is to be over.
#[derive(Clone, Copy)]
pub struct Wish<'a> {
    pub places: &'a [&'a Place],
    pub request: &'a Request,
    /// Where paths of the request start.
    pub from: &'a Path,
    /// In copies, because this host can do no better.
    pub copied: bool,
}

impl Session {
    /// Layers for one run.
    pub fn begin(store: &Store, wish: &Wish<'_>, watch: &dyn Watch) -> Result<Session> {
        let session = Session::make_ready(store, wish, watch)?;
        session.claim()?;
        Ok(session)
    }

    /// The same before anybody asks for it: it is nobody's, and not listed, until `come_true`.
    pub fn make_ready(store: &Store, wish: &Wish<'_>, watch: &dyn Watch) -> Result<Session> {
        let mut record = new_record(store, wish)?;
        let layer = make_layer(store, &record, watch)?;
        let (moment, begun) = moment(store, &record, &layer)?;
        record.moment = Some(moment);
        record.boot = Some(boot());
        Ok(Session { store: store.clone(), record, layer, known: false, begun })
    }

    /// Somebody asked for it: it begins now, with the folders as they are now.
    pub fn come_true(&mut self) -> Result<()> {
        let (moment, begun) = moment(&self.store, &self.record, &self.layer)?;
        self.record.moment = Some(moment);
        let now = now();
        (self.record.created, self.record.used) = (now, now);
        self.claim()?;
        // As whoever builds the sandbox waits, where that comes after.
        if begun > 0 {
            sys::clock::await_tick(begun);
        }
        Ok(())
    }

    /// The layers of a kept sandbox.
    pub fn resume(
        store: &Store,
        state: &mut State,
        which: &str,
        request: &Request,
        watch: &dyn Watch,
    ) -> Result<Session> {
        let (mut record, layer) = store.lock(state, which)?.into_parts();
        check_places(&record)?;
        look_at_last_run(store, state, &mut record, watch)?;
        for number in 0..record.workspaces.len() {
            renew_work(&store.layer(record.top()).join(number.to_string()), &record.workspaces[number])?;
        }
        let (moment, begun) = moment(store, &record, &layer)?;
        record.moment = Some(moment);
        record.boot = Some(boot());
        record.used = now();
        record.command = command(request);
        state.save(&record, &BTreeMap::new())?;
        Ok(Session { store: store.clone(), record, layer, known: true, begun })
    }

    /// Makes a sandbox without running anything.
    pub fn create(
        store: &Store,
        state: &mut State,
        wish: &Wish<'_>,
        name: Option<&str>,
        watch: &dyn Watch,
    ) -> Result<Record> {
        let mut record = new_record(store, wish)?;
        record.name = name.map(checked_name).transpose()?;
        record.made = true;
        let layer = make_layer(store, &record, watch)?;
        let saved = state.save(&record, &BTreeMap::new());
        drop(layer);
        if saved.is_err() {
            store.remove_layer(record.top())?;
        }
        saved.map(|()| record)
    }

    pub fn record(&self) -> &Record {
        &self.record
    }

    pub fn stacks(&self) -> Vec<Stack> {
        stacks(&self.store, &self.record, self.begun)
    }

    /// Nothing ran: as if it had never been.
    pub fn abandon(self) -> Result<()> {
        if self.known {
            return Ok(());
        }
        self.store.remove_layer(self.record.top())
    }

    /// Of a run that changed nothing, the layer: it is listed no more, and only has to be removed.
    pub fn forget_if_untouched(&self) -> Result<Option<String>> {
        if self.known || !is_untouched(&self.store, &self.record)? {
            return Ok(None);
        }
        self.store.unclaim(self.record.top())?;
        Ok(Some(self.record.top().to_owned()))
    }

    /// Looks at what the run changed. A sandbox of a run that changed nothing is gone after this.
    pub fn finish(mut self, watch: &dyn Watch) -> Result<Option<Leftover>> {
        if let Some(layer) = self.forget_if_untouched()? {
            self.store.remove_layer(&layer)?;
            return Ok(None);
        }
        let mut state = self.store.state()?;
        look_at_last_run(&self.store, &mut state, &mut self.record, watch)?;
        let side = Side::of(&self.store, &state, &self.record)?;
        let (mut changes, mut manifest) = (Vec::new(), manifest::Making::new());
        for part in &side.parts {
            let differences = part.differences(&[])?;
            manifest.add(part.place.as_os_str().as_encoded_bytes(), &differences);
            changes.extend(described(part, differences)?);
        }
        let tally = Tally::of(&changes);
        changes.truncate(MOST_LISTED);
        if !self.known {
            if tally.all() == 0 {
                state.remove(&self.record.id)?;
                self.store.remove_layer(self.record.top())?;
                return Ok(None);
            }
            self.store.unclaim(self.record.top())?;
        }
        drop(self.layer);
        Ok((tally.all() > 0).then(|| Leftover {
            sandbox: self.record.shown(),
            tally,
            trouble: None,
            manifest: Some(manifest.finish()),
            listed: changes,
        }))
    }

    fn claim(&self) -> Result<()> {
        let path = self.store.layer(self.record.top()).join(CLAIM);
        let write = || -> std::io::Result<()> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = rustix::fs::openat(self.layer.fd(), CLAIM, flags, Mode::from_raw_mode(0o600))?;
            std::fs::File::from(file).write_all(&serde_json::to_vec(&self.record)?)
        };
        write().map_err(cannot("write", path))
    }
}

fn command(request: &Request) -> Vec<String> {
    request.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

fn new_record(store: &Store, wish: &Wish<'_>) -> Result<Record> {
    let Wish { places, request, from, copied } = *wish;
    let mut workspaces = Vec::with_capacity(places.len());
    for place in places {
        if model::paths::is_within(store.folder(), &place.path) {
            return Err(Error::Around { place: place.path.clone(), state: store.folder().to_owned() });
        }
        let seen = Folder::open(&place.path).and_then(|folder| folder.seen()).map_err(cannot("open", &place.path))?;
        workspaces.push(Workspace {
            path: place.path.clone().into_os_string(),
            device: seen.device,
            inode: seen.inode,
            owner: place.owner,
            copied,
        });
    }
    let now = now();
    Ok(Record {
        id: new_id()?,
        name: None,
        made: false,
        created: now,
        used: now,
        command: command(request),
        settings: Settings::of(request, from),
        workspaces,
        layers: vec![new_id()?],
        snapshots: Vec::new(),
        moment: None,
        boot: None,
    })
}

pub fn checked_name(name: &str) -> Result<String> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let like_an_id = name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let good = !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(known)
        && !name.starts_with(['-', '.'])
        && name != "last"
        && !like_an_id;
    if good { Ok(name.to_owned()) } else { Err(Error::BadName(name.to_owned())) }
}

/// The folders that the sandbox was made over are still where they were.
pub fn check_places(record: &Record) -> Result<()> {
    for workspace in &record.workspaces {
        open_place(record, workspace)?;
    }
    Ok(())
}

/// The real folder of a workspace, if it is the one that the sandbox was made over.
pub fn open_place(record: &Record, workspace: &Workspace) -> Result<Folder> {
    let path = workspace.path();
    let folder = Folder::open(&path).map_err(cannot("open", &path))?;
    let seen = folder.seen().map_err(cannot("look at", &path))?;
    match (seen.device, seen.inode) == (workspace.device, workspace.inode) {
        true => Ok(folder),
        false => Err(Error::Replaced { sandbox: record.shown(), path }),
    }
}

/// The topmost layer of a record, made anew and locked.
pub fn make_layer(store: &Store, record: &Record, watch: &dyn Watch) -> Result<Folder> {
    let layer = store.make_layer(record.top())?;
    let made = record.workspaces.iter().enumerate().try_for_each(|(number, workspace)| {
        let path = store.layer(record.top()).join(number.to_string());
        match workspace.copied {
            true => copied::make(store, record, number, &path, watch),
            false => make_pair(&path, workspace).map_err(cannot("make", &path)),
        }
    });
    match made {
        Ok(()) => Ok(layer),
        Err(error) => {
            store.remove_layer(record.top())?;
            Err(error)
        }
    }
}

/// The kernel leaves a note in its own folder that the layer may not be whole on disk, and lays nothing over it again
/// until somebody who knows removes that. We know: the machine has not gone down since, or we have said so.
fn renew_work(part: &Path, workspace: &Workspace) -> Result<()> {
    if workspace.copied {
        return Ok(());
    }
    let renew = || -> std::io::Result<()> {
        let folder = Folder::open(part)?;
        remove::tree(folder.fd(), std::ffi::OsStr::new("work"))?;
        make_private(&part.join("work"), workspace.owner)
    };
    renew().map_err(cannot("renew", part))
}

fn make_private(path: &Path, (user, group): (u32, u32)) -> std::io::Result<()> {
    rustix::fs::mkdir(path, Mode::from_raw_mode(0o700))?;
    if user != rustix::process::geteuid().as_raw() {
        rustix::fs::chown(path, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
    }
    Ok(())
}

/// Which start of the machine this is.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// `upper` and `work`. The sandbox sees the former's mode and times as those of the workspace itself.
fn make_pair(path: &Path, workspace: &Workspace) -> std::io::Result<()> {
    let real = Folder::open(&workspace.path())?.seen()?;
    let upper = path.join("upper");
    for folder in [path, &upper, &path.join("work")] {
        make_private(folder, workspace.owner)?;
    }
    rustix::fs::chmod(&upper, Mode::from_raw_mode(real.mode & 0o777))?;
    let time = |nanoseconds: i64| Timespec {
        tv_sec: nanoseconds.div_euclid(1_000_000_000),
        tv_nsec: nanoseconds.rem_euclid(1_000_000_000),
    };
    let times = Timestamps { last_access: time(real.modified), last_modification: time(real.modified) };
    Ok(rustix::fs::utimensat(rustix::fs::CWD, &upper, &times, AtFlags::empty())?)
}

/// What was changed until now is before this. And what the command has to wait for, so that it sees nothing later.
fn moment(store: &Store, record: &Record, layer: &Folder) -> Result<(i64, i64)> {
    let found = sys::clock::moment(layer.fd()).map_err(cannot("look at", store.layer(record.top())))?;
    Ok(found.map_or_else(
        || {
            let now = sys::clock::now();
            (now, now)
        },
        |moment| (moment, 0),
    ))
}

fn stacks(store: &Store, record: &Record, begun: i64) -> Vec<Stack> {
    let stack = |(number, workspace): (usize, &Workspace)| {
        let part = |layer: &String| store.layer(layer).join(number.to_string());
        let layer = store.layer(record.top()).join(number.to_string());
        let kept = match workspace.copied {
            true => Kept::Copy { tree: layer.join("tree") },
            false => {
                let earlier = record.layers.iter().rev().skip(1).map(|layer| part(layer).join("upper"));
                Kept::Overlay { earlier: earlier.collect(), layer }
            }
        };
        Stack { place: workspace.path(), kept, begun }
    };
    record.workspaces.iter().enumerate().map(stack).collect()
}

/// Nothing was changed in the topmost layer.
pub fn is_untouched(store: &Store, record: &Record) -> Result<bool> {
    for (number, workspace) in record.workspaces.iter().enumerate() {
        let path = store.layer(record.top()).join(number.to_string()).join("upper");
        if workspace.copied
            || !Folder::open(&path).and_then(|upper| upper.is_empty()).map_err(cannot("look into", &path))?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Layers of one workspace, the earliest first.
pub fn open_layers(store: &Store, record: &Record, number: usize) -> Result<Vec<(PathBuf, Folder)>> {
    let copied = record.workspaces.get(number).is_some_and(|workspace| workspace.copied);
    let open = |layer: &String| {
        let part = store.layer(layer).join(number.to_string());
        let path = part.join(if copied { "tree" } else { "upper" });
        Folder::open_layer(&path).map(|folder| (path.clone(), folder)).map_err(cannot("open", &path))
    };
    match copied {
        // Each is all of it.
        true => record.layers.last().map(open).into_iter().collect(),
        false => record.layers.iter().map(open).collect(),
    }
}

/// What the sandbox sees of one workspace, where it differs.
pub fn view_of(store: &Store, record: &Record, number: usize, layers: &[(PathBuf, Folder)]) -> Result<View> {
    let layers: Vec<(&Path, &Folder)> = layers.iter().map(|(path, folder)| (path.as_path(), folder)).collect();
    match record.workspaces.get(number).is_some_and(|workspace| workspace.copied) {
        true => copied::view(store, record, number, &layers),
        false => layer::view(&layers),
    }
}

/// Finds out what the files were that a run has changed, if nobody has yet.
pub fn look_at_last_run(store: &Store, state: &mut State, record: &mut Record, watch: &dyn Watch) -> Result<()> {
    if record.moment.is_none() {
        return Ok(());
    }
    if record.boot.as_ref().is_some_and(|then| *then != boot()) {
        watch.warn(&format!(
            "the machine went down while {} ran: what it wrote last may be missing or empty",
            record.shown()
        ));
    }
    let found = bases_now(store, state, record, &record.id)?;
    record.moment = None;
    state.save(record, &found)
}

/// What the files were that it has changed since its moment, as far as that is not known of the sandbox `of`.
pub fn bases_now(store: &Store, state: &State, record: &Record, of: &str) -> Result<BTreeMap<usize, Bases>> {
    let mut found: BTreeMap<usize, Bases> = BTreeMap::new();
    let Some(moment) = record.moment else { return Ok(found) };
    for (number, workspace) in record.workspaces.iter().enumerate() {
        let layers = open_layers(store, record, number)?;
        let view = view_of(store, record, number, &layers)?;
        if view.is_empty() {
            continue;
        }
        let known = state.bases(of, number)?;
        let bases = match workspace.copied {
            true => copied::bases(store, record, number, &view, &known)?,
            false => {
                let host = open_place(record, workspace)?;
                let layers: Vec<(&Path, &Folder)> =
                    layers.iter().map(|(path, folder)| (path.as_path(), folder)).collect();
                base::capture(&view, &known, &host, &layers, moment, &store.blobs())?
            }
        };
        found.insert(number, bases);
    }
    Ok(found)
}
