//! Ends a process of the host by its number, by every call that sends a signal.

use std::io;

use model::Wall;

use super::support::{bait, is_among_the_hosts, judge_by_bait, set_bait};
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/signal_host",
    wall: Wall::Processes,
    about: "signal a process of the host by number, by group, by thread, by descriptor, and all that can be seen",
    flags: &[],
    prepare: |field| set_bait(field).map(drop),
    inside: |inside| {
        let bait = bait(inside)? as u64;
        // struct siginfo with the code of sigqueue(3).
        let mut details = [0u32; 32];
        (details[0], details[2]) = (libc::SIGKILL as u32, -1i32 as u32);
        let details = details.as_ptr() as u64;
        let kill = libc::SIGKILL as u64;
        let mut answers: Vec<io::Result<u64>> = vec![
            call(libc::SYS_kill, [bait.wrapping_neg(), kill, 0, 0, 0, 0]),
            call(libc::SYS_tkill, [bait, kill, 0, 0, 0, 0]),
            call(libc::SYS_tgkill, [bait, bait, kill, 0, 0, 0]),
            call(libc::SYS_rt_sigqueueinfo, [bait, kill, details, 0, 0, 0]),
            call(libc::SYS_rt_tgsigqueueinfo, [bait, bait, kill, details, 0, 0]),
            call(libc::SYS_pidfd_open, [bait, 0, 0, 0, 0, 0])
                .and_then(|descriptor| call(libc::SYS_pidfd_send_signal, [descriptor, kill, 0, 0, 0, 0])),
            call(libc::SYS_kill, [bait, kill, 0, 0, 0, 0]),
        ];
        if !is_among_the_hosts(inside) {
            answers.push(call(libc::SYS_kill, [-1i64 as u64, kill, 0, 0, 0, 0]));
        }
        answers.into_iter().collect::<io::Result<Vec<u64>>>().map(drop)
    },
    judge: Some(judge_by_bait),
    control: Control::Bare,
};
