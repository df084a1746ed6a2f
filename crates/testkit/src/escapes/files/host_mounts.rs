//! Looks in the lists of mounts for what is mounted on the host, and reads it.

use std::fs;
use std::path::PathBuf;

use model::Wall;

use super::support;
use crate::field::Field;
use crate::{Attack, Control, Verdict};

struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        let path = support::c_text(&self.0);
        // SAFETY: the path is a terminated string that outlives the call.
        if unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) } < 0 {
            eprintln!("still mounted: {}: {}", self.0.display(), std::io::Error::last_os_error());
        }
    }
}

fn mounted(field: &Field) -> PathBuf {
    field.outside.join(format!("mounted-{}", field.who.name()))
}

pub const ATTACK: Attack = Attack {
    id: "files/host_mounts",
    wall: Wall::Files,
    about: "find what the host has mounted in the lists of mounts, and read there",
    flags: &[],
    prepare: |field| {
        let place = mounted(field);
        fs::create_dir(&place)?;
        let path = support::c_text(&place);
        // SAFETY: all strings are terminated and outlive the call.
        let result =
            unsafe { libc::mount(c"none".as_ptr(), path.as_ptr(), c"tmpfs".as_ptr(), 0, c"size=64k".as_ptr().cast()) };
        if result < 0 {
            return Err(std::io::Error::last_os_error());
        }
        field.keep(Unmounted(place.clone()));
        fs::write(place.join("inner"), &field.secret)?;
        Ok(())
    },
    inside: |inside| {
        let lists = ["self/mountinfo", "self/mounts", "mounts", "1/mountinfo", "self/mountstats"];
        support::steal_any(inside, lists.map(|list| format!("/proc/{list}").into()))
    },
    judge: Some(|field, _| {
        let place = mounted(field).display().to_string();
        match field.looted() || String::from_utf8_lossy(&field.loot()).contains(&place) {
            true => Verdict::Broken("a mount of the host's is listed".to_owned()),
            false => Verdict::Held,
        }
    }),
    control: Control::Bare,
};
