//! Stops and ends the process that watches over the others, so that what comes after is watched by nobody.

use model::Wall;

use super::support::{bait, is_among_the_hosts, judge_by_bait, set_bait};
use crate::inside::{TRIED, call};
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "kernel/end_first_process",
    wall: Wall::Processes,
    about: "stop and kill the sandbox's own first process",
    flags: &[],
    prepare: |field| set_bait(field).map(drop),
    inside: |inside| {
        // Bare, somebody else stands in for the host's first process.
        let target = if is_among_the_hosts(inside) { bait(inside)? as u64 } else { 1 };
        // Others are passed on to whoever the first process started, which is us.
        for signal in [libc::SIGSTOP, libc::SIGSEGV, libc::SIGKILL] {
            call(libc::SYS_kill, [target, signal as u64, 0, 0, 0, 0])?;
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(())
    },
    judge: Some(|field, run| {
        // Only a living first process can say how we ended, and belljar says the same; peers say nothing but their code.
        let code = run.status.and_then(|status| status.code());
        let told = &run.result;
        let ours = told["outcome"] == "ran" && told["signal"].is_null() && told["exit"].as_i64() == code.map(i64::from);
        // Sent to nobody, or refused: what the attacker itself ends with, and its proof is written after the last signal.
        let orderly = matches!(code, Some(0 | 1)) && (told.is_null() || ours) && field.workspace.join(TRIED).exists();
        match judge_by_bait(field, run) {
            Verdict::Held if !orderly => Verdict::Broken(format!("the end was not orderly: {:?}", run.status)),
            other => other,
        }
    }),
    control: Control::Bare,
};
