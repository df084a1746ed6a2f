//! A double-forked process in a session of its own outlives the run.

use std::time::Duration;

use model::Wall;

use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "resources/outlive",
    wall: Wall::CleanUp,
    about: "leave a double-forked daemon behind that writes after the end",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let late = inside.workspace.join("late");
        // SAFETY: a fork in a process with one thread.
        unsafe {
            if libc::fork() == 0 {
                libc::setsid();
                if libc::fork() == 0 {
                    std::thread::sleep(Duration::from_millis(700));
                    let written = std::fs::write(&late, "still here");
                    libc::_exit(i32::from(written.is_err()));
                }
                libc::_exit(0);
            }
        }
        Ok(())
    },
    judge: Some(|field, _| {
        // Twice as long as the daemon waits: what has not written by then is not there.
        std::thread::sleep(Duration::from_millis(1400));
        match field.workspace.join("late").exists() {
            true => Verdict::Broken("the daemon wrote after the end".to_owned()),
            false => Verdict::Held,
        }
    }),
    control: Control::Bare,
};
