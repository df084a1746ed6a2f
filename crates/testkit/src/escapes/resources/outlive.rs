//! A double-forked process in a session of its own outlives the run.

use std::time::{Duration, Instant};

use model::Wall;

use crate::{Attack, Control, Verdict};

/// How long the daemon lives if nobody ends it, and how long we look for a sign of life.
const ALIVE: Duration = Duration::from_secs(8);
const WATCHED: Duration = Duration::from_secs(3);

pub const ATTACK: Attack = Attack {
    id: "resources/outlive",
    wall: Wall::CleanUp,
    about: "leave a double-forked daemon behind that writes after the end",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let beats = inside.workspace.join("beats");
        // SAFETY: forks in a process with one thread; the descriptors are the daemon's own copies; waiting
        // takes no buffer.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::setsid();
                if libc::fork() == 0 {
                    // As a daemon does: whoever reads our output must not wait for us.
                    for fd in 0..3 {
                        libc::close(fd);
                    }
                    let until = Instant::now() + ALIVE;
                    for beat in 0u32.. {
                        if Instant::now() > until || std::fs::write(&beats, beat.to_string()).is_err() {
                            libc::_exit(0);
                        }
                        std::thread::sleep(Duration::from_millis(10));
                    }
                }
                libc::_exit(0);
            }
            // Until the daemon has its session: then ending our group does not end it.
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        Ok(())
    },
    judge: Some(|field, _| {
        let beats = field.workspace.join("beats");
        let first = std::fs::read(&beats).ok();
        let until = Instant::now() + WATCHED;
        while Instant::now() < until {
            if std::fs::read(&beats).ok() != first {
                return Verdict::Broken("the daemon wrote after the end".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Verdict::Held
    }),
    control: Control::Bare,
};
