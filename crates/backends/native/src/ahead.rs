//! A first process that is begun before it is known what for: what every sandbox of this host begins with takes as long as
//! deciding on one, and there is another processor to do it on. Nothing of anybody's is in it, and nothing runs in it until it
//! gets orders; without any, it is ended.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use guest::wire;
use sys::process::{self, Alone, Forked, Processors, Together};
use sys::{identity, signals};

use crate::groups::Group;
use crate::host::{Host, Identity};
use crate::plan::{self, Blueprint, Groundwork};

/// What was done for a sandbox that is likely to be wanted.
pub enum Expected {
    /// Its first process, beside whoever decides on it.
    Begun(Ahead),
    /// No processor would have time for that: all of it is done on one, in its turn. To take turns with others on several costs a tenth
    /// of a start and more.
    Together(Together),
}

impl Expected {
    pub fn of(host: &Host) -> Option<Expected> {
        match process::who_wants_to_run() {
            Some((running, processors)) if running >= processors => Together::stay().map(Expected::Together),
            _ => Ahead::begin(host).map(Expected::Begun),
        }
    }
}

pub struct Ahead {
    first: Begun,
    ground: Groundwork,
    /// The host's mounts as we see them, where the child sees a copy of them and takes what is granted from that.
    mounts: Option<OwnedFd>,
}

/// A first process that runs. Whoever drops it ends it.
pub struct Begun {
    pub pid: i32,
    /// What it was born into, which holds nothing yet.
    pub group: Option<Group>,
    /// Nothing, once it is somebody else's to end.
    ends: Option<(OwnedFd, OwnedFd)>,
    /// Where it may run once its walls stand, if it is kept apart from us until then: what we do for it, we do at the same time.
    pub apart: Option<Processors>,
}

impl Begun {
    pub fn new(pid: i32, handle: OwnedFd, wire: OwnedFd) -> Begun {
        Begun { pid, group: None, ends: Some((handle, wire)), apart: None }
    }

    pub fn wire(&self) -> Option<BorrowedFd<'_>> {
        self.ends.as_ref().map(|(_, wire)| wire.as_fd())
    }

    /// Its handle, its wire and its group: from here on it is the caller's to end.
    pub fn hand_over(mut self) -> Option<(OwnedFd, OwnedFd, Option<Group>)> {
        let (handle, wire) = self.ends.take()?;
        Some((handle, wire, self.group.take()))
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some((handle, _)) = &self.ends {
            // It ends with us at the latest.
            match process::signal(handle.as_fd(), 9).and_then(|()| process::wait(self.pid, false)) {
                Ok(_) | Err(_) => {}
            }
        }
        let_go(self.group.take());
    }
}

/// Nobody is in it any more.
fn let_go(group: Option<Group>) {
    match group.map_or(Ok(()), Group::remove) {
        // Its keeper tries again at our end.
        Ok(()) | Err(_) => {}
    }
}

impl Ahead {
    /// Nothing, where it can't be begun: whoever launches one then finds out why, and says it.
    pub fn begin(host: &Host) -> Option<Ahead> {
        if host.identity == Identity::PowerlessRoot {
            return None;
        }
        let alone = Alone::prove().ok()?;
        let ground = plan::groundwork(host);
        // Root opens what is granted itself, when it is.
        let mounts = match ground.maps {
            Some(_) => None,
            None => Some(sys::mounts::watched().ok()?),
        };
        let group = Group::make_for_birth(&host.groups, alone).ok()?;
        match Ahead::fork(&ground, group.as_ref(), alone) {
            Some(mut first) => {
                first.group = group;
                Some(Ahead { first, ground, mounts })
            }
            None => {
                let_go(group);
                None
            }
        }
    }

    /// Ended again, if anything goes wrong.
    fn fork(ground: &Groundwork, group: Option<&Group>, alone: Alone) -> Option<Begun> {
        let (ours, theirs) = wire::pair().ok()?;
        // For the child: what a terminal sends is not for it.
        let mask = signals::block_all().ok()?;
        let forked = process::fork_into(alone, ground.namespaces, group.and_then(Group::birthplace));
        if let Ok(Forked::Child) = forked {
            drop(ours);
            guest::first::follow_when_told(&ground.steps, theirs, alone)
        }
        let restored = signals::restore(&mask);
        let Ok(Forked::Parent { pid, handle }) = forked else { return None };
        // From here on, whoever drops this ends it.
        let mut first = Begun::new(pid, handle, ours);
        first.apart = restored.and_then(|()| process::stay_elsewhere(pid)).ok()?;
        if let Some((user, group)) = ground.maps {
            identity::map_other(pid, user, group).ok()?;
            wire::release(first.wire()?).ok()?;
        }
        Some(first)
    }

    /// The first process, if it is one that `blueprint` could begin with, and sees the host as it is.
    pub fn fit_for(self, blueprint: &Blueprint) -> Option<Begun> {
        let Groundwork { namespaces, maps, steps } = &blueprint.ground;
        let fits = *namespaces == self.ground.namespaces
            && *maps == self.ground.maps
            && steps.len() == self.ground.steps.len()
            // Set for all that we start, which this is not any more.
            && blueprint.processors.is_none()
            && (self.first.group.is_none() || blueprint.ceiling.is_some())
            // What was mounted or unmounted since, it does not know of.
            && self.mounts.as_ref().is_none_or(|mounts| !sys::mounts::have_changed(mounts.as_fd()));
        fits.then_some(self.first)
    }
}
