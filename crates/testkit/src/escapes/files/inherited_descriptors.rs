//! Uses descriptors that the caller had open and did not close: a file, and a folder to start from.

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/inherited_descriptors",
    wall: Wall::Inheritance,
    about: "use files and folders that the caller left open above 2",
    flags: &[],
    prepare: |field| {
        for path in [field.outside.join("secret"), field.outside.clone()] {
            let file = fs::File::open(path)?;
            // Low and high numbers, and without the flag that closes them at exec.
            for lowest in [3, 700] {
                // SAFETY: takes integers; the new descriptor is ours alone.
                let copy = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD, lowest) };
                if copy < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                // SAFETY: as above.
                field.keep(unsafe { OwnedFd::from_raw_fd(copy) });
            }
        }
        Ok(())
    },
    inside: |inside| {
        let mut buffer = [0u8; 128];
        let mut read = |fd: u64| {
            let read = call(libc::SYS_pread64, [fd, buffer.as_mut_ptr() as u64, 128, 0, 0, 0])?;
            inside.loot(&buffer[..read as usize])
        };
        support::any((3..1024).flat_map(|fd| {
            let below = call(libc::SYS_openat, [fd, c"secret".as_ptr() as u64, 0, 0, 0, 0]);
            [read(fd), below.and_then(&mut read)]
        }))
    },
    judge: None,
    control: Control::Bare,
};
