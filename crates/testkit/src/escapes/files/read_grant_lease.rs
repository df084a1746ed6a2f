//! Takes a lease on a file that is granted for reading: whoever opens it for writing on the host then has to wait.

use std::fs;
use std::os::fd::AsRawFd;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

const WAITS: &str = "the-host-waits";

pub const ATTACK: Attack = Attack {
    id: "files/read_grant_lease",
    wall: Wall::SystemCalls,
    about: "hold up the host's writers by a lease on a file that is granted for reading",
    flags: &["--read", "../outside"],
    prepare: |field| {
        let (target, trace) = (field.outside.join("target"), field.root.join(WAITS));
        support::once_ready(field, move || match support::for_writing().open(target) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => fs::write(trace, ""),
            other => other.map(drop),
        });
        Ok(())
    },
    inside: |inside| {
        let file = fs::File::open(inside.target_file())?;
        // The lease's holder is told by this signal, which would end us.
        // SAFETY: takes integers.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
        let lease = |kind: i32| {
            call(libc::SYS_fcntl, [file.as_raw_fd() as u64, libc::F_SETLEASE as u64, kind as u64, 0, 0, 0]).map(drop)
        };
        support::any([lease(libc::F_RDLCK), lease(libc::F_WRLCK)])?;
        support::let_the_host_act(inside)
    },
    judge: Some(|field, _| match field.root.join(WAITS).exists() {
        true => Verdict::Broken("the host could not open its own file for writing".to_owned()),
        false => Verdict::Held,
    }),
    control: Control::Bare,
};
