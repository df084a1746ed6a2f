//! One thread swaps a folder for a link out of the workspace, the other reads and writes through it all the while.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/symlink_swap",
    wall: Wall::Files,
    about: "swap a folder for a link out of the workspace while it is used",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let folder = inside.workspace.join("folder");
        let link = inside.workspace.join("link");
        fs::create_dir(&folder)?;
        fs::write(folder.join("secret"), "of no worth")?;
        fs::write(folder.join("target"), "of no worth")?;
        symlink(&inside.outside, &link)?;
        let (one, other) = (support::c_text(&folder), support::c_text(&link));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let here = libc::AT_FDCWD as u64;
                let (one, other) = (one.as_ptr() as u64, other.as_ptr() as u64);
                let exchange = u64::from(libc::RENAME_EXCHANGE);
                while !stop.load(Ordering::Relaxed) {
                    if call(libc::SYS_renameat2, [here, one, here, other, exchange, 0]).is_err() {
                        break;
                    }
                }
            });
            let until = Instant::now() + Duration::from_millis(400);
            let mut outcome = Err(io::ErrorKind::PermissionDenied.into());
            while Instant::now() < until {
                let got = fs::read(folder.join("secret")).is_ok_and(|bytes| bytes.starts_with(b"secret-"));
                if got {
                    outcome = inside.steal(inside.secret_file());
                }
                // Only what exists: the attack is not to make files elsewhere.
                if let Err(error) = support::overwrite(&folder.join("target")) {
                    outcome = outcome.or(Err(error));
                }
            }
            stop.store(true, Ordering::Relaxed);
            outcome
        })
    },
    judge: Some(|field, _| match (field.target_is_untouched(), field.looted()) {
        (true, false) => Verdict::Held,
        (untouched, looted) => Verdict::Broken(format!("written: {}, read: {looted}", !untouched)),
    }),
    control: Control::Bare,
};
