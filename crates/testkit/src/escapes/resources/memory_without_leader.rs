//! A process whose first thread has ended: /proc shows it as a zombie that has nothing.

use model::Wall;

use super::support::{self, TOO_MUCH};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/memory_without_leader",
    wall: Wall::Memory,
    about: "touch 200 MiB in a process whose first thread has ended, with --memory 64M",
    flags: &["--memory", "64M"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        let brief = inside.clone();
        let child = support::fork(move || {
            std::thread::spawn(move || {
                support::pause(std::time::Duration::from_millis(50));
                let filled = support::fill_mapping(TOO_MUCH, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None);
                support::pause(support::UNTIL_SEEN);
                let told = filled.and_then(|()| brief.loot("200 MiB without a first thread"));
                std::process::exit(i32::from(told.is_err()));
            });
            // SAFETY: ends this thread only; the other one owns all it uses.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        })?;
        support::wait(child).map(drop)
    },
    judge: Some(support::stopped_for_memory),
    control: Control::Bare,
};
