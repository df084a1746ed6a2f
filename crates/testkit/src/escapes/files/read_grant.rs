//! Changes a file that is granted for reading: by its name, by reopening its descriptor, by mapping it, by its traits.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/read_grant",
    wall: Wall::Files,
    about: "change a file that is granted for reading, or its mode, times and attributes",
    flags: &["--read", "../outside"],
    prepare: |_| Ok(()),
    inside: |inside| {
        let path = inside.target_file();
        let file = fs::File::open(&path)?;
        let fd = file.as_raw_fd() as u64;
        let again = format!("/proc/self/fd/{fd}");
        let (name, only_cut) = (support::c_text(&path), (libc::O_RDONLY | libc::O_TRUNC) as u64);
        let here = libc::AT_FDCWD as u64;
        let map = || {
            let (protection, flags) = ((libc::PROT_READ | libc::PROT_WRITE) as u64, libc::MAP_SHARED as u64);
            let address = call(libc::SYS_mmap, [0, 4096, protection, flags, fd, 0])?;
            // SAFETY: the kernel mapped it for writing, and the file is not empty.
            unsafe { *(address as *mut u8) = b'!' };
            Ok(())
        };
        let attribute = [name.as_ptr() as u64, c"user.mark".as_ptr() as u64, c"x".as_ptr() as u64, 1, 0, 0];
        support::any([
            file.set_permissions(fs::Permissions::from_mode(0o600)),
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)),
            file.set_modified(SystemTime::UNIX_EPOCH),
            call(libc::SYS_setxattr, attribute).map(drop),
            map(),
            call(libc::SYS_ftruncate, [fd, 1, 0, 0, 0, 0]).map(drop),
            call(libc::SYS_openat, [here, name.as_ptr() as u64, only_cut, 0, 0, 0]).map(drop),
            support::overwrite(Path::new(&again)),
            support::overwrite(&path),
            fs::hard_link(&path, inside.workspace.join("second-name"))
                .and_then(|()| support::overwrite(&inside.workspace.join("second-name"))),
            fs::rename(&path, inside.outside.join("moved")),
        ])
    },
    judge: Some(|field, _| {
        let path = field.outside.join("target");
        let Ok(stat) = fs::metadata(&path) else {
            return Verdict::Broken("the file is gone".to_owned());
        };
        let name = support::c_text(&path);
        let marked = call(libc::SYS_getxattr, [name.as_ptr() as u64, c"user.mark".as_ptr() as u64, 0, 0, 0, 0]).is_ok();
        let old = stat.modified().is_ok_and(|time| time == SystemTime::UNIX_EPOCH);
        let mode = stat.permissions().mode() & 0o7777;
        match field.target_is_untouched() && mode == 0o644 && !marked && !old {
            true => Verdict::Held,
            false => Verdict::Broken(format!("changed: mode {mode:o}, marked {marked}, backdated {old}")),
        }
    }),
    control: Control::Bare,
};
