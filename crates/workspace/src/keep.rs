//! Operations on layers: snapshot, roll back, fork, discard, remove, collect. Their cost grows with what was changed, and
//! not with the workspace, unless layers are copies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use model::{Collected, KeptSandbox, Removed, Shown, Watch};

use crate::base::Bases;
use crate::error::{Error, MOST_LAYERS, Result, cannot};
use crate::files::Folder;
use crate::record::{Record, Snapshot};
use crate::session::{self, checked_name, is_untouched, look_at_last_run, make_layer, open_layers, view_of};
use crate::state::State;
use crate::store::{Store, new_id, now};
use crate::{artifacts, base, beside, blobs};

/// What people and programs are told of a sandbox.
pub fn told(store: &Store, record: &Record, running: bool) -> KeptSandbox {
    let known = told_at_once(record, running, is_open(store, record, running));
    let mut disk = 0;
    let mut trouble = None;
    for layer in record.needed().collect::<BTreeSet<_>>() {
        match size(&store.layer(layer)) {
            Ok(bytes) => disk += bytes,
            Err(error) => trouble = Some(error.to_string()),
        }
    }
    KeptSandbox { disk, trouble, ..known }
}

/// What can't be asked is not open to anybody.
pub fn is_open(store: &Store, record: &Record, running: bool) -> bool {
    running && crate::visitors::call_on(store, &record.id).is_ok_and(|host| host.is_some())
}

/// Without how much it takes on disk: to find that out, all of it is looked at.
pub fn told_at_once(record: &Record, running: bool, open: bool) -> KeptSandbox {
    KeptSandbox {
        id: record.id.clone(),
        name: record.name.clone(),
        running,
        open,
        created: record.created / 1000,
        used: record.used / 1000,
        command: record.command.clone(),
        workspaces: record.workspaces.iter().map(|workspace| Shown(workspace.path())).collect(),
        snapshots: record
            .snapshots
            .iter()
            .map(|snapshot| model::Snapshot { name: snapshot.name.clone(), created: snapshot.created / 1000 })
            .collect(),
        disk: 0,
        made: record.made,
        trouble: None,
    }
}

/// Freezes what is there; the sandbox goes on in a new layer over it. `record` is locked by the caller.
pub fn snapshot(
    store: &Store,
    state: &mut State,
    record: &mut Record,
    name: Option<&str>,
    watch: &dyn Watch,
) -> Result<String> {
    let name = match name {
        Some(name) => checked_snapshot(record, name)?,
        None => (1..).map(|number| format!("s{number}")).find(|name| !has(record, name)).unwrap_or_default(),
    };
    look_at_last_run(store, state, record, watch)?;
    let _layer = freeze(store, record, watch)?;
    let frozen = record.layers[..record.layers.len() - 1].to_vec();
    record.snapshots.push(Snapshot { name: name.clone(), created: now(), layers: frozen });
    record.made = true;
    record.used = now();
    saved(store, state, record)?;
    Ok(name)
}

fn has(record: &Record, name: &str) -> bool {
    record.snapshots.iter().any(|snapshot| snapshot.name == name)
}

fn checked_snapshot(record: &Record, name: &str) -> Result<String> {
    let name = checked_name(name)?;
    match has(record, &name) {
        true => Err(Error::SnapshotTaken { sandbox: record.shown(), name }),
        false => Ok(name),
    }
}

/// A new, empty layer on top; to be held until the state knows of it, or who collects takes it for nobody's.
fn freeze(store: &Store, record: &mut Record, watch: &dyn Watch) -> Result<Folder> {
    if record.layers.len() >= MOST_LAYERS {
        return Err(Error::TooManyLayers(record.shown()));
    }
    record.layers.push(new_id()?);
    make_layer(store, record, watch)
}

/// Saves a record whose topmost layer is new; without it, the layer is removed again.
fn saved(store: &Store, state: &mut State, record: &Record) -> Result<()> {
    let saved = state.save(record, &BTreeMap::new());
    if saved.is_err() {
        store.remove_layer(record.top())?;
    }
    saved
}

/// Back to a snapshot, or the newest. What was done since is gone.
pub fn roll_back(
    store: &Store,
    state: &mut State,
    record: &mut Record,
    name: Option<&str>,
    watch: &dyn Watch,
) -> Result<String> {
    look_at_last_run(store, state, record, watch)?;
    let found = found(record, name)?;
    let before = record.layers.clone();
    start_over(store, state, record, found.layers, watch)?;
    store.remove_layers(state, before)?;
    Ok(found.name)
}

/// The snapshot of this name, or the newest.
fn found(record: &Record, name: Option<&str>) -> Result<Snapshot> {
    let found = match name {
        None => record.snapshots.last(),
        Some(name) => record.snapshots.iter().find(|snapshot| snapshot.name == name),
    };
    found.cloned().ok_or_else(|| {
        let known: Vec<String> = record.snapshots.iter().map(|snapshot| snapshot.name.clone()).collect();
        match name {
            Some(name) if !known.is_empty() => {
                Error::NoSuchSnapshot { sandbox: record.shown(), name: name.to_owned(), known }
            }
            _ => Error::NoSnapshots(record.shown()),
        }
    })
}

/// Throws all changes away.
pub fn discard(store: &Store, state: &mut State, record: &mut Record, watch: &dyn Watch) -> Result<()> {
    record.moment = None;
    let before = record.layers.clone();
    start_over(store, state, record, Vec::new(), watch)?;
    store.remove_layers(state, before)
}

/// The record goes on over these layers, with a new one on top.
fn start_over(
    store: &Store,
    state: &mut State,
    record: &mut Record,
    layers: Vec<String>,
    watch: &dyn Watch,
) -> Result<()> {
    record.layers = layers;
    record.layers.push(new_id()?);
    record.used = now();
    let _layer = make_layer(store, record, watch)?;
    saved(store, state, record)?;
    for number in 0..record.workspaces.len() {
        let mut bases = state.bases(&record.id, number)?;
        // What a snapshot changed was something else before, also for whoever comes back to it later.
        let snapshots = record.snapshots.iter().map(|snapshot| &snapshot.layers);
        for layers in snapshots.chain([&record.layers]).filter(|layers| !layers.is_empty()) {
            let then = Record { layers: layers.clone(), ..record.clone() };
            let view = view_of(store, &then, number, &open_layers(store, &then, number)?)?;
            bases = base::stale(&view, bases);
        }
        let stale: Vec<Vec<u8>> = bases.into_keys().collect();
        if !stale.is_empty() {
            state.forget_bases(&record.id, number, &stale)?;
        }
    }
    Ok(())
}

pub fn remove(store: &Store, state: &mut State, record: &Record) -> Result<()> {
    state.remove(&record.id)?;
    // Of a host that was killed.
    crate::visitors::expect_no_more(store, &record.id)?;
    store.remove_layers(state, record.needed().cloned().collect::<BTreeSet<_>>())
}

/// Sandboxes that begin where this one is.
pub fn fork(
    store: &Store,
    state: &mut State,
    record: &mut Record,
    count: usize,
    watch: &dyn Watch,
) -> Result<Vec<Record>> {
    look_at_last_run(store, state, record, watch)?;
    let _layer = freeze(store, record, watch)?;
    record.made = true;
    record.used = now();
    saved(store, state, record)?;
    let mut bases = BTreeMap::new();
    for number in 0..record.workspaces.len() {
        bases.insert(number, state.bases(&record.id, number)?);
    }
    let frozen = &record.layers[..record.layers.len() - 1];
    let mut forks = Vec::with_capacity(count);
    for number in 1..=count {
        let name = record.name.as_ref().map(|name| fork_name(name, number));
        let mut layers = frozen.to_vec();
        layers.push(new_id()?);
        let now = now();
        let mut fork = Record {
            id: new_id()?,
            name,
            made: true,
            created: now,
            used: now,
            layers,
            snapshots: Vec::new(),
            ..record.clone()
        };
        let _layer = make_layer(store, &fork, watch)?;
        match state.save(&fork, &bases) {
            Err(Error::Taken(_)) => {
                fork.name = None;
                state.save(&fork, &bases)?;
            }
            done => done?,
        }
        forks.push(fork);
    }
    Ok(forks)
}

/// The same of one that somebody works in meanwhile: what they write to is copied first, and goes on as it is.
pub fn fork_beside(
    store: &Store,
    state: &mut State,
    record: &Record,
    count: usize,
    watch: &dyn Watch,
) -> Result<Vec<Record>> {
    if record.layers.len() + 1 >= MOST_LAYERS {
        return Err(Error::TooManyLayers(record.shown()));
    }
    let now = now();
    let below = record.layers[..record.layers.len() - 1].to_vec();
    let snapshots = Vec::new();
    let mut fork = Record { made: true, created: now, used: now, snapshots, ..record.clone() };
    let copies = record.workspaces.iter().any(|workspace| workspace.copied);
    // Held until somebody is known who needs it, or who collects takes it for nobody's.
    let mut held = None;
    if !copies && !is_untouched(store, record)? {
        fork.layers = below.clone();
        fork.layers.push(new_id()?);
        held = Some(make_layer(store, &fork, watch)?);
    } else {
        fork.layers = below;
    }
    let frozen = fork.layers.clone();
    let mut made: Vec<Record> = Vec::with_capacity(count);
    let mut make = || -> Result<()> {
        if held.is_some() {
            for number in 0..record.workspaces.len() {
                let upper = |layer: &str| store.layer(layer).join(number.to_string()).join("upper");
                beside::copy(&upper(record.top()), &upper(fork.top()))?;
            }
        }
        for number in 1..=count {
            let mut one = Record { id: new_id()?, layers: frozen.clone(), ..fork.clone() };
            one.name = record.name.as_ref().map(|name| fork_name(name, number));
            one.layers.push(new_id()?);
            // A whole copy is one of what is right below it.
            let around = if copies { record.layers.clone() } else { Vec::new() };
            let whole = Record { layers: around.into_iter().chain([one.top().to_owned()]).collect(), ..one.clone() };
            let _layer = make_layer(store, if copies { &whole } else { &one }, watch)?;
            made.push(one);
            let Some(one) = made.last_mut() else { return Ok(()) };
            let bases = all_bases(store, state, record, one)?;
            one.moment = None;
            match state.save(one, &bases) {
                Err(Error::Taken(_)) => {
                    one.name = None;
                    state.save(one, &bases)?;
                }
                done => done?,
            }
        }
        Ok(())
    };
    match make() {
        Ok(()) => Ok(made),
        Err(error) => {
            for one in &made {
                state.remove(&one.id)?;
                store.remove_layer(one.top())?;
            }
            if held.is_some() {
                store.remove_layer(fork.top())?;
            }
            Err(error)
        }
    }
}

/// What the paths that a fork changes were before: what is known of it already, and what can be found out now.
fn all_bases(store: &Store, state: &State, record: &Record, fork: &Record) -> Result<BTreeMap<usize, Bases>> {
    let mut all = session::bases_now(store, state, fork, &record.id)?;
    for number in 0..record.workspaces.len() {
        all.entry(number).or_default().extend(state.bases(&record.id, number)?);
    }
    Ok(all)
}

/// One that begins where this one is, or was at a snapshot, with a name of its own.
pub fn branch(
    store: &Store,
    state: &mut State,
    record: &mut Record,
    (snapshot, name): (Option<&str>, Option<&str>),
    watch: &dyn Watch,
) -> Result<Record> {
    let name = name.map(checked_name).transpose()?;
    look_at_last_run(store, state, record, watch)?;
    let mut layers = match snapshot {
        Some(_) => found(record, snapshot)?.layers,
        None => {
            let _layer = freeze(store, record, watch)?;
            record.made = true;
            record.used = now();
            saved(store, state, record)?;
            record.layers[..record.layers.len() - 1].to_vec()
        }
    };
    let mut bases = BTreeMap::new();
    for number in 0..record.workspaces.len() {
        let mut known = state.bases(&record.id, number)?;
        // What was only changed after the snapshot is not changed here.
        let then = Record { layers: layers.clone(), ..record.clone() };
        let view = view_of(store, &then, number, &open_layers(store, &then, number)?)?;
        for path in base::stale(&view, known.clone()).into_keys() {
            known.remove(&path);
        }
        bases.insert(number, known);
    }
    layers.push(new_id()?);
    let now = now();
    let id = new_id()?;
    let snapshots = Vec::new();
    let branch = Record { id, name, made: true, created: now, used: now, layers, snapshots, ..record.clone() };
    let _layer = make_layer(store, &branch, watch)?;
    let saved = state.save(&branch, &bases);
    if saved.is_err() {
        store.remove_layer(branch.top())?;
    }
    saved.map(|()| branch)
}

fn fork_name(name: &str, number: usize) -> String {
    let start: String = name.chars().take(56).collect();
    format!("{start}-{number}")
}

/// Removes sandboxes that were not used for so long, and what nobody refers to.
pub fn collect(store: &Store, state: &mut State, older_than: u64, only_tell: bool) -> Result<Collected> {
    let mut collected = Collected::default();
    let deadline = now().saturating_sub(older_than.saturating_mul(1000));
    let records = store.records(state)?;
    for (record, running) in &records {
        if *running || record.used > deadline {
            continue;
        }
        if !only_tell {
            // Whoever uses it this very moment keeps it.
            let Ok(_lock) = store.lock(state, &record.id) else { continue };
            state.remove(&record.id)?;
        }
        let command =
            if record.command.is_empty() { String::new() } else { format!(" (`{}`)", record.command.join(" ")) };
        collected.removed.push(Removed { what: format!("sandbox {}{command}", record.shown()), bytes: 0 });
    }
    let kept: BTreeSet<String> = match only_tell {
        true => records
            .iter()
            .filter(|(record, running)| *running || record.used > deadline)
            .flat_map(|(record, _)| record.needed().cloned())
            .collect(),
        false => state.records()?.iter().flat_map(|record| record.needed().cloned()).collect(),
    };
    for id in store.layer_names()? {
        if kept.contains(&id) {
            continue;
        }
        // Held by whoever makes it or works with it, until the state knows of it: so the state is asked again.
        let Ok(_lock) = store.lock_layer(&id) else { continue };
        let is_needed = || -> Result<bool> {
            Ok(state.records()?.iter().any(|record| record.needed().any(|needed| *needed == id)))
        };
        if !only_tell && is_needed()? {
            continue;
        }
        // Another version's, perhaps: what nobody understands is named and stays.
        if store.has_unknown_claim(&id)? {
            collected.foreign.push(Shown(store.layer(&id)));
            continue;
        }
        let bytes = size(&store.layer(&id)).map_err(cannot("measure", store.layer(&id)))?;
        collected.bytes += bytes;
        collected.removed.push(Removed { what: format!("layer {}", id.get(..8).unwrap_or(&id)), bytes });
        if !only_tell {
            store.remove_layer(&id)?;
        }
    }
    for artifact in artifacts::outdated(state, deadline / 1000)? {
        let id = artifact.id.get(..8).unwrap_or(&artifact.id);
        let path = artifact.path.display();
        match only_tell {
            // What it shares with others would stay: this is the most that is given back.
            true if artifact.withheld().is_none() => collected.bytes += artifact.size,
            true => {}
            false => state.remove_artifact(&artifact.id)?,
        }
        collected.removed.push(Removed { what: format!("artifact {id} ({path})"), bytes: 0 });
    }
    if !only_tell {
        collect_blobs(store, state, &mut collected)?;
    }
    collected.foreign.extend(foreign(store)?);
    Ok(collected)
}

fn collect_blobs(store: &Store, state: &State, collected: &mut Collected) -> Result<()> {
    let path = store.blobs().folder().to_owned();
    // Whoever keeps something this moment has not written down yet that it is needed: then another time. So only now is
    // it asked what is needed.
    let Some(folder) = store.blobs().hold_alone() else { return Ok(()) };
    let needed: BTreeSet<String> = state.hashes()?.iter().map(ToString::to_string).collect();
    for name in folder.names().map_err(cannot("list", &path))? {
        let Ok(text) = String::from_utf8(name.clone()) else { continue };
        let is_blob = text.len() >= 64 && text.as_bytes()[..64].iter().all(u8::is_ascii_hexdigit);
        if (is_blob || blobs::is_draft(&text)) && !needed.contains(&text) {
            collected.bytes += folder.look(&name).ok().flatten().map_or(0, |seen| seen.bytes);
            std::fs::remove_file(path.join(&text)).map_err(cannot("remove", path.join(&text)))?;
        }
    }
    Ok(())
}

/// What other parts of belljar keep in the same folder.
const KEPT_BY_OTHERS: [&[u8]; 11] = [
    b"agents", b"approvals", b"downloads", b"engines", b"gvisor", b"ledger", b"monitor", b"secrets", b"settings",
    b"spool", b"wasm",
];

/// What lies in our folder and is not ours.
fn foreign(store: &Store) -> Result<Vec<Shown>> {
    let mut foreign = Vec::new();
    let ours = |name: &[u8]| {
        let begins = [&b"state.sqlite"[..], b"envelopes.jsonl"].iter().any(|known| name.starts_with(known));
        begins
            || KEPT_BY_OTHERS.contains(&name)
            || matches!(name, b"layers" | b"blobs" | b"apply.lock" | b"engine-work" | b"live")
    };
    for (path, known) in [(store.folder().to_owned(), true), (store.layers(), false)] {
        let Ok(folder) = Folder::open(&path) else { continue };
        for name in folder.names().map_err(cannot("list", &path))? {
            let text = String::from_utf8_lossy(&name);
            let is_ours = if known { ours(&name) } else { crate::store::is_id(&text) };
            if !is_ours {
                foreign.push(Shown(path.join(crate::changes::shown(&name))));
            }
        }
    }
    Ok(foreign)
}

/// Bytes that a tree takes on disk.
pub fn size(path: &Path) -> std::io::Result<u64> {
    // A deep tree is walked from ever deeper folders: from the top each time, its depth would count twice.
    const FAR: usize = 2000;
    let mut bytes = 0;
    let mut waiting = vec![(Rc::new(Folder::open(path)?), Vec::new())];
    while let Some((from, path)) = waiting.pop() {
        let folder = match from.below(&path) {
            Ok(folder) => folder,
            // The kernel's own, which it closes to everybody; or gone.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied || crate::files::is_absent(&error) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        let folder = Rc::new(folder);
        let (from, path) = if path.len() > FAR { (folder.clone(), Vec::new()) } else { (from, path) };
        for name in folder.names()? {
            let seen = match folder.look_at(std::os::unix::ffi::OsStrExt::from_bytes(name.as_slice())) {
                Ok(Some(seen)) => seen,
                Ok(None) => continue,
                // Somebody else who looks has closed it again.
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => continue,
                Err(error) => return Err(error),
            };
            bytes += seen.bytes;
            if seen.is_folder() {
                waiting.push((from.clone(), crate::files::join(&path, &name)));
            }
        }
    }
    Ok(bytes)
}
