//! Lays filters of its own over the sandbox's: a thousand that allow all, and one that asks a listener of its own
//! who says "carry on".

use std::io;
use std::time::{Duration, Instant};

use model::Wall;

use super::support::judge_by_loot;
use crate::inside::call;
use crate::{Attack, Control};

const NEW_LISTENER: u64 = 8;
const TRACE: u32 = 0x7ff0_0000;
const LOG: u32 = 0x7ffc_0000;
const ASK: u32 = 0x7fc0_0000;
const ALLOW: u32 = 0x7fff_0000;

/// A kernel of its own looks through all of them at each call and slowly: there it is some hundreds in this time.
const AT_MOST: Duration = Duration::from_secs(3);

/// Calls that no sandbox allows. The second is known to kernels of their own, too: join a keyring of one's own.
const FORBIDDEN: [(&str, i64, u64); 2] = [("userfaultfd", libc::SYS_userfaultfd, 1), ("keyctl", libc::SYS_keyctl, 1)];

pub const ATTACK: Attack = Attack {
    id: "kernel/own_filter",
    wall: Wall::SystemCalls,
    about: "overrule the call filter by filters of one's own, or by a listener that lets calls continue",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        // Until the kernel has enough of it.
        let begun = Instant::now();
        let laid = (0..1000).take_while(|_| begun.elapsed() < AT_MOST && install(&allow_all(), 0).is_ok()).count();
        for (verdict, value) in [("allow", ALLOW), ("log", LOG), ("trace", TRACE)] {
            for (name, number, first) in FORBIDDEN {
                install(&only(number, value), 0)?;
                if call(number, [first, 0, 0, 0, 0, 0]).is_ok() {
                    inside.loot(format!("{name} under {laid} filters and {verdict}\n"))?;
                }
            }
        }
        let (name, number, first) = FORBIDDEN[0];
        let listener = install(&only(number, ASK), NEW_LISTENER)?;
        let waiting = std::thread::spawn(move || call(number, [first, 0, 0, 0, 0, 0]));
        carry_on(listener)?;
        if waiting.join().is_ok_and(|result| result.is_ok()) {
            inside.loot(format!("{name} by a listener of its own\n"))?;
        }
        Ok(())
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};

pub fn allow_all() -> Vec<libc::sock_filter> {
    vec![instruction(0x06, 0, 0, ALLOW)]
}

/// This verdict on one call, and all others are allowed.
fn only(number: i64, verdict: u32) -> Vec<libc::sock_filter> {
    vec![
        instruction(0x20, 0, 0, 0),
        instruction(0x15, 0, 1, number as u32),
        instruction(0x06, 0, 0, verdict),
        instruction(0x06, 0, 0, ALLOW),
    ]
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

pub fn install(filter: &[libc::sock_filter], flags: u64) -> io::Result<u64> {
    call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0, 0, 0, 0])?;
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    call(libc::SYS_seccomp, [1, flags, &raw const program as u64, 0, 0, 0])
}

/// Answers one waiting call with "continue".
fn carry_on(listener: u64) -> io::Result<()> {
    const RECEIVE: u64 = 0xC050_2100;
    const SEND: u64 = 0xC018_2101;
    const CONTINUE: u64 = 1;
    // A stricter filter refuses the call before anybody is asked.
    let mut ready = libc::pollfd { fd: listener as i32, events: libc::POLLIN, revents: 0 };
    if call(libc::SYS_poll, [&raw mut ready as u64, 1, 2000, 0, 0, 0])? == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut asked = [0u64; 10];
    call(libc::SYS_ioctl, [listener, RECEIVE, asked.as_mut_ptr() as u64, 0, 0, 0])?;
    // struct seccomp_notif_resp: the id, the value, and error and flags as one word.
    let answer = [asked[0], 0, CONTINUE << 32];
    call(libc::SYS_ioctl, [listener, SEND, answer.as_ptr() as u64, 0, 0, 0]).map(drop)
}
