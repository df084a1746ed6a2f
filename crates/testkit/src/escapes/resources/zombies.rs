//! A daemon with two thousand dead children that it never waits for.

use std::time::Duration;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/zombies",
    wall: Wall::CleanUp,
    about: "leave 2,000 zombies and their parent behind",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::mark(inside)?;
        let (ready, told) = rustix::pipe::pipe()?;
        support::daemon(move || {
            for _ in 0..2_000 {
                if support::fork(|| ()).is_err() {
                    break;
                }
            }
            drop(told);
            support::pause(Duration::from_secs(6));
        })?;
        // Until they are all there: the pipe ends when its last holder lets go, and that is the daemon.
        rustix::io::read(&ready, &mut [0u8; 1]).map(drop).map_err(Into::into)
    },
    judge: Some(support::nothing_lives_on),
    control: Control::Bare,
};
