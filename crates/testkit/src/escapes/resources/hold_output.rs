//! A daemon that keeps standard output open: whoever reads to its end would wait for the daemon.

use std::time::Duration;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "resources/hold_output",
    wall: Wall::CleanUp,
    about: "keep the reader of its output waiting by a daemon that holds it open",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::mark(inside)?;
        support::daemon(|| support::pause(Duration::from_secs(8)))?;
        std::io::Write::write_all(&mut std::io::stdout(), b"all I have to say")
    },
    // The trial reads for five seconds after the end, and takes what has come to an end by then.
    judge: Some(|field, run| {
        let left = support::nothing_lives_on(field, run);
        match run.stdout.is_empty() {
            true => Verdict::Broken("the output came to no end".to_owned()),
            false => left,
        }
    }),
    control: Control::Bare,
};
