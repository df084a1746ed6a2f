//! Writes into a named pipe in a folder that is granted for reading. A read-only mount does not stop it.

use std::fs;
use std::io::Read;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/pipe_in_a_read_grant",
    wall: Wall::Landlock,
    about: "write into a named pipe of the host's in a folder that is granted for reading",
    flags: &["--read", "../outside"],
    prepare: |field| {
        let pipe = field.outside.join("pipe");
        let text = support::c_text(&pipe);
        let mode = u64::from(libc::S_IFIFO | 0o666);
        call(libc::SYS_mknodat, [libc::AT_FDCWD as u64, text.as_ptr() as u64, mode, 0, 0, 0])?;
        field.give(&pipe)?;
        let mut end = support::for_reading().open(&pipe)?;
        let trace = field.root.join("received");
        support::meanwhile(field, move |stop| {
            while !stop.load(Ordering::Relaxed) {
                if end.read(&mut [0; 64]).is_ok_and(|read| read > 0) {
                    fs::write(&trace, "")?;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(())
        });
        Ok(())
    },
    inside: |inside| {
        use std::io::Write;
        support::for_writing().open(inside.outside.join("pipe"))?.write_all(b"hello")?;
        // The reader looks every few milliseconds, and what nobody has read is lost with us.
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    },
    judge: Some(|field, _| match field.root.join("received").exists() {
        true => Verdict::Broken("the host's reader got something".to_owned()),
        false => Verdict::Held,
    }),
    control: Control::Bare,
};
