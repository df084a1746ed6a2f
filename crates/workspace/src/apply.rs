//! Takes a sandbox's changes: recover what was cut off, judge each change, write, and remember what was taken.

use std::collections::{BTreeMap, BTreeSet};

use model::{Deed, Gatekeeper, Shown, Taken, Taking, Watch};
use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::asked;
use crate::base::{self, Base, Bases, Kind};
use crate::changes::{Part, Side, Version, hash_of, readable, same_contents, shown};
use crate::commit::{Plan, Start, Went};
use crate::error::{Result, cannot};
use crate::files::Seen;
use crate::gate::{self, Decision, Judged};
use crate::record::Record;
use crate::session;
use crate::state::{Phase, State};
use crate::store::{Store, new_id};

/// Held while anybody writes to real files.
pub struct Turn {
    _lock: std::os::fd::OwnedFd,
}

impl Turn {
    /// Waits until nobody else does.
    pub fn take(store: &Store) -> Result<Turn> {
        let path = store.folder().join("apply.lock");
        let lock = || -> rustix::io::Result<std::os::fd::OwnedFd> {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600))?;
            rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        lock().map(|lock| Turn { _lock: lock }).map_err(cannot("lock", &path))
    }
}

/// Finishes or undoes what others were cut off from; says which. For whoever has the turn.
pub fn recover(_turn: &Turn, state: &mut State, watch: &dyn Watch) -> Result<Vec<String>> {
    let mut said = Vec::new();
    for (id, phase, text) in state.journals()? {
        let plan: Plan = serde_json::from_str(&text)
            .map_err(|error| crate::error::Error::State { path: id.clone().into(), why: error.to_string() })?;
        let sandbox = plan.sandbox.get(..8).unwrap_or(&plan.sandbox);
        let earlier = format!("an earlier `belljar apply` of {sandbox} was cut off");
        let recovered = match phase {
            Phase::Staging => Ok(format!("{earlier} before it changed a file; it is undone")),
            Phase::Taking => match plan.go(Start::CutOff, watch).and_then(|_| plan.sync()) {
                Ok(()) => Ok(format!("{earlier} half-way; it is finished now")),
                Err(error) => {
                    undo(state, &plan).map(|()| format!("{earlier} half-way; it is undone, because: {error}"))
                }
            },
            Phase::Undoing => plan.back().map(|()| format!("{earlier} while it was undone; it is undone now")),
        };
        match recovered {
            Ok(words) => {
                plan.clear()?;
                state.end_journal(&id)?;
                said.push(words);
            }
            // Its folder may be away for a while. That keeps nobody from working on others.
            Err(error) => said.push(format!("{earlier}, and can't be finished yet: {error}")),
        }
    }
    Ok(said)
}

/// Puts back what was taken. From here on whoever comes next goes on with that.
fn undo(state: &mut State, plan: &Plan) -> Result<()> {
    state.write_journal(&plan.id, &plan.sandbox, Phase::Undoing, &written(plan)?)?;
    plan.back()
}

fn written(plan: &Plan) -> Result<String> {
    serde_json::to_string(plan)
        .map_err(|error| crate::error::Error::State { path: plan.sandbox.clone().into(), why: error.to_string() })
}

/// `record` is locked by the caller.
pub fn apply(
    store: &Store,
    state: &mut State,
    record: &mut Record,
    taking: &Taking,
    keeper: &dyn Gatekeeper,
    watch: &dyn Watch,
) -> Result<Taken> {
    let turn = Turn::take(store)?;
    let recovered = recover(&turn, state, watch)?;
    if state.has_journal(&record.id)? {
        let why = recovered.last().cloned().unwrap_or_default();
        return Err(crate::error::Error::Unfinished { sandbox: record.shown(), why });
    }
    session::look_at_last_run(store, state, record, watch)?;
    let side = Side::of(store, state, record)?;
    let mut judged: Vec<(usize, Judged<'_>)> = Vec::new();
    for (part, named) in side.wanted(&taking.paths)? {
        let differences = part.differences(&named)?;
        judged.extend(
            gate::judge(part, differences, &named, taking.favor, keeper)?.into_iter().map(|one| (part.number, one)),
        );
    }
    let asked_digest = asked::digest(&side, &judged)?;
    if taking.agreed.is_some() && taking.agreed != asked_digest {
        return Err(crate::error::Error::Changed { sandbox: record.shown() });
    }
    if let Some(asked_digest) = asked_digest.filter(|_| taking.agreed.is_none()) {
        let proposed = if taking.check { Vec::new() } else { asked::proposed(&side, &judged)? };
        let mut taken = Taken { sandbox: record.shown(), recovered, asked_digest, proposed, ..Taken::default() };
        for (number, one) in &judged {
            let Some(part) = side.parts.get(*number) else { continue };
            tell(part, one, false, &mut taken);
            if let Some(why) = &one.asks {
                let (workspace, path) = (Shown(part.place.clone()), Shown::of(one.difference.path));
                taken.asked.push(Deed { workspace, path, what: why.clone() });
            }
        }
        // Nothing is, as long as somebody must agree to a part of it: it is one change.
        if !taking.check {
            taken.taken.clear();
        }
        return Ok(taken);
    }
    let mut beaten = Beaten::new();
    if !taking.check {
        beaten = carry_out(state, record, &side, &judged, watch)?;
        remember(store, state, record, &side, &judged, &beaten)?;
    }
    let mut taken = Taken { sandbox: record.shown(), recovered, ..Taken::default() };
    for (number, one) in &judged {
        let Some(part) = side.parts.get(*number) else { continue };
        tell(part, one, beaten.contains(&(*number, one.difference.path.to_owned())), &mut taken);
    }
    taken.complete = !taking.check && Side::of(store, state, record)?.changes(&[])?.is_empty();
    Ok(taken)
}

/// Paths where somebody else was faster, each with the number of its workspace.
type Beaten = BTreeSet<(usize, Vec<u8>)>;

/// Does what was decided.
fn carry_out(
    state: &mut State,
    record: &Record,
    side: &Side,
    judged: &[(usize, Judged<'_>)],
    watch: &dyn Watch,
) -> Result<Beaten> {
    let judged: Vec<(usize, &Judged<'_>)> = judged.iter().map(|(number, one)| (*number, one)).collect();
    let mut plan = Plan::of(new_id()?, &record.id, &record.workspaces, &judged);
    if plan.steps.is_empty() {
        return Ok(Beaten::new());
    }
    state.write_journal(&plan.id, &record.id, Phase::Staging, &written(&plan)?)?;
    let end = |state: &mut State, plan: &Plan| -> Result<()> {
        plan.clear()?;
        state.end_journal(&plan.id)
    };
    let staged = plan.stage(&judged, watch);
    let ready = staged.and_then(|()| state.write_journal(&plan.id, &record.id, Phase::Taking, &written(&plan)?));
    if let Err(error) = ready {
        end(state, &plan)?;
        return Err(error);
    }
    let went = match plan.go(Start::Fresh, watch) {
        Ok(went) => went,
        Err(error) => {
            // If this fails, what was there before is still beside, and the journal says so to whoever comes next.
            undo(state, &plan)?;
            end(state, &plan)?;
            forgive(state, record, side, &plan)?;
            return Err(error);
        }
    };
    // If this fails the journal stays, and whoever comes next does it again.
    plan.sync()?;
    end(state, &plan)?;
    let beaten = plan.steps.iter().zip(went).filter(|(_, went)| *went == Went::Beaten);
    Ok(beaten.map(|(step, _)| (step.workspace, step.path.clone())).collect())
}

/// Files that we moved and put back have a new time of change, which is ours and nobody's edit.
fn forgive(state: &mut State, record: &Record, side: &Side, plan: &Plan) -> Result<()> {
    let mut bases: BTreeMap<usize, Bases> = BTreeMap::new();
    for step in &plan.steps {
        let Some(part) = side.parts.get(step.workspace) else { continue };
        let Some(base) = part.bases.get(&step.path) else { continue };
        let seen = readable(part.host.look(&step.path)).map_err(cannot("look at", shown(&step.path)))?;
        if let Some(seen) = seen
            && (seen.inode, seen.modified, seen.size, seen.mode) == (base.inode, base.modified, base.size, base.mode)
        {
            let base = Base { changed: seen.changed, ..base.clone() };
            bases.entry(step.workspace).or_default().insert(step.path.clone(), base);
        }
    }
    state.save(record, &bases)
}

/// From now on, what was taken is what was there before.
fn remember(
    store: &Store,
    state: &mut State,
    record: &Record,
    side: &Side,
    judged: &[(usize, Judged<'_>)],
    beaten: &Beaten,
) -> Result<()> {
    let mut settled: BTreeMap<usize, Bases> = BTreeMap::new();
    let mut gone: BTreeMap<usize, Vec<Vec<u8>>> = BTreeMap::new();
    for (number, one) in judged {
        let path = one.difference.path;
        let decided =
            matches!(one.decision, Decision::Take | Decision::Merge { .. } | Decision::Nothing | Decision::KeepHost);
        // A folder that somebody has something in stays, and that settles it.
        if !decided || beaten.contains(&(*number, path.to_owned())) && !is_folder(one.host) {
            continue;
        }
        let Some(part) = side.parts.get(*number) else { continue };
        match one.difference.is {
            None => gone.entry(*number).or_default().push(path.to_owned()),
            Some(is) => {
                let base = settled_base(store, part, path, is).map_err(cannot("look at", shown(path)))?;
                settled.entry(*number).or_default().insert(path.to_owned(), base);
            }
        }
    }
    state.save(record, &settled)?;
    for (number, paths) in gone {
        state.forget_bases(&record.id, number, &paths)?;
    }
    Ok(())
}

/// The sandbox's version as what was there before, with the host's times where it is there now.
fn settled_base(store: &Store, part: &Part, path: &[u8], is: Version<'_>) -> std::io::Result<Base> {
    let Version::In(layer, seen) = is else { return Err(std::io::ErrorKind::InvalidData.into()) };
    let mut base = Base::of(&seen);
    base.mode &= 0o777;
    base.hash = match base.kind {
        Kind::File => store.blobs().keep_file(layer, path, base::LARGEST_KEPT, u64::MAX)?,
        Kind::Link => hash_of(path, is)?,
        Kind::Folder | Kind::Special => None,
    };
    // Only where the host holds just that. A merge, somebody's own version, or an edit since is theirs, and times of
    // it would pass it off as ours: the next taking would write over it.
    // Held by `commit_gate/human.rs`.
    if let Some(there) = readable(part.host.look(path))?
        && Kind::of(&there) == base.kind
        && same_contents(path, is, Version::In(&part.host, there))?
        && part.host.look(path)? == Some(there)
    {
        (base.inode, base.modified, base.changed) = (there.inode, there.modified, there.changed);
    }
    Ok(base)
}

fn is_folder(seen: Option<Seen>) -> bool {
    seen.is_some_and(|seen| seen.is_folder())
}

fn tell(part: &Part, one: &Judged<'_>, beaten: bool, taken: &mut Taken) {
    let deed = |what: &str| Deed {
        workspace: Shown(part.place.clone()),
        path: Shown::of(one.difference.path),
        what: what.to_owned(),
    };
    if beaten && one.difference.is.is_none() && is_folder(one.host) {
        taken.taken.push(deed("left, because something is in it"));
        return;
    }
    if beaten {
        taken.conflicts.push(deed("it changed on the host at the last moment"));
        return;
    }
    match &one.decision {
        Decision::Take => taken.taken.push(deed(match (&one.difference.was, &one.difference.is, &one.host) {
            (_, None, _) => "deleted",
            (_, Some(_), None) => "added",
            _ => "written",
        })),
        Decision::Merge { .. } => taken.taken.push(deed("merged with the change on the host")),
        Decision::Nothing => taken.taken.push(deed("the same on the host already")),
        Decision::KeepHost => taken.taken.push(deed("left as it is on the host")),
        Decision::Conflict(why) => taken.conflicts.push(deed(why)),
        Decision::HoldBack(why) => taken.held_back.push(deed(why)),
        Decision::Refuse(why) => taken.refused.push(deed(why)),
    }
}
