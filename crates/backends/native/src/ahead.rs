//! A first process that is begun before it is known what for: what every sandbox of this host begins with takes as long as
//! deciding on one, and there is another processor to do it on. Nothing of anybody's is in it, and nothing runs in it until it
//! gets orders; without any, it is ended.

use std::os::fd::{AsFd, OwnedFd};

use guest::wire;
use sys::process::{self, Alone, Forked};
use sys::{identity, signals};

use crate::groups::Placement;
use crate::host::{Host, Identity};
use crate::plan::{self, Blueprint, Groundwork};

pub struct Ahead {
    /// Nothing, once it is somebody else's.
    first: Option<Begun>,
    ground: Groundwork,
}

/// A first process that runs.
pub struct Begun {
    pub pid: i32,
    pub handle: OwnedFd,
    pub wire: OwnedFd,
}

impl Ahead {
    /// Nothing, where it can't be begun: whoever launches one then finds out why, and says it.
    pub fn begin(host: &Host) -> Option<Ahead> {
        // Into a group of the unified hierarchy one is born, and its limits are not known yet.
        if matches!(host.groups, Placement::Unified { .. }) || host.identity == Identity::PowerlessRoot {
            return None;
        }
        let alone = Alone::prove().ok()?;
        let ground = plan::groundwork(host);
        let (ours, theirs) = wire::pair().ok()?;
        // For the child: what a terminal sends is not for it.
        let mask = signals::block_all().ok()?;
        let forked = process::fork_into(alone, ground.namespaces, None);
        if let Ok(Forked::Child) = forked {
            drop(ours);
            guest::first::follow_when_told(&ground.steps, theirs, alone)
        }
        let restored = signals::restore(&mask);
        let Ok(Forked::Parent { pid, handle }) = forked else { return None };
        // From here on, whoever drops this ends it.
        let maps = ground.maps;
        let ahead = Ahead { first: Some(Begun { pid, handle, wire: ours }), ground };
        restored.and_then(|()| process::go_on_elsewhere(pid)).ok()?;
        if let Some((user, group)) = maps {
            identity::map_other(pid, user, group).ok()?;
            wire::release(ahead.first.as_ref()?.wire.as_fd()).ok()?;
        }
        Some(ahead)
    }

    /// The first process, if it is one that `blueprint` could begin with.
    pub fn fit_for(mut self, blueprint: &Blueprint) -> Option<Begun> {
        let Groundwork { namespaces, maps, steps } = &blueprint.ground;
        let fits = *namespaces == self.ground.namespaces
            && *maps == self.ground.maps
            && steps.len() == self.ground.steps.len()
            // Set for all that we start, which this is not any more.
            && blueprint.processors.is_none();
        if fits { self.first.take() } else { None }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if let Some(Begun { pid, handle, .. }) = &self.first {
            // It ends with us at the latest.
            match process::signal(handle.as_fd(), 9).and_then(|()| process::wait(*pid, false)) {
                Ok(_) | Err(_) => {}
            }
        }
    }
}
