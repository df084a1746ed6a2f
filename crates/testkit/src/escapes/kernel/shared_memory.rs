//! Attaches shared memory of the host, by its key and by its number.

use std::io;

use model::Wall;

use crate::inside::call;
use crate::{Attack, Control};

const REMOVE: i32 = libc::IPC_RMID;
const SIZE: usize = 4096;

/// Removed with the field.
struct Segment(i32);

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: removing takes no buffer.
        if unsafe { libc::shmctl(self.0, REMOVE, std::ptr::null_mut()) } < 0 {
            eprintln!("left behind: shared memory {}", self.0);
        }
    }
}

pub const ATTACK: Attack = Attack {
    id: "kernel/shared_memory",
    wall: Wall::Ipc,
    about: "attach System V shared memory of the host",
    flags: &[],
    prepare: |field| {
        let key = key(&field.secret);
        // SAFETY: a new segment of a page, larger than the secret, mapped for the copy and unmapped after it.
        unsafe {
            let id = libc::shmget(key, SIZE, libc::IPC_CREAT | libc::IPC_EXCL | 0o666);
            if id < 0 {
                return Err(io::Error::last_os_error());
            }
            field.keep(Segment(id));
            let place = libc::shmat(id, std::ptr::null(), 0);
            if place as isize == -1 {
                return Err(io::Error::last_os_error());
            }
            std::ptr::copy_nonoverlapping(field.secret.as_ptr(), place.cast(), field.secret.len());
            libc::shmdt(place);
            field.tell("id", id);
        }
        field.tell("key", key);
        Ok(())
    },
    inside: |inside| {
        let number = |name| inside.hint(name)?.parse::<i32>().map_err(io::Error::other);
        let by_key = call(libc::SYS_shmget, [number("key")? as u64, 0, 0, 0, 0, 0]);
        for id in [by_key.map_or(-1, |id| id as i32), number("id")?] {
            // SAFETY: what the kernel attached is as long as the segment, a page.
            unsafe {
                let place = libc::shmat(id, std::ptr::null(), libc::SHM_RDONLY);
                if place as isize != -1 {
                    inside.loot(std::slice::from_raw_parts(place.cast::<u8>(), SIZE))?;
                }
            }
        }
        Ok(())
    },
    judge: None,
    control: Control::Bare,
};

/// As random as the secret.
pub fn key(secret: &str) -> i32 {
    i32::from_str_radix(secret.get(7..14).unwrap_or_default(), 16).unwrap_or(1).max(1)
}
