//! Leaves a set-user-id file in the workspace, for other users of the host to run.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use model::Wall;

use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "kernel/make_set_uid",
    wall: Wall::SystemCalls,
    about: "give a file set-user-id or set-group-id bits by every call that takes a mode",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let here = libc::AT_FDCWD as u64;
        let create = (libc::O_CREAT | libc::O_WRONLY | libc::O_EXCL) as u64;
        // struct open_how: flags, mode, resolve.
        let mut refused = Ok(());
        for (mode, suffix) in [(0o4755u64, "user"), (0o2755, "group"), (0o4755 | 1 << 32, "high"), (0o104755, "kind")] {
            let name =
                |way: &str| CString::new(inside.workspace.join(format!("{way}-{suffix}")).as_os_str().as_bytes());
            let how = [create, mode & 0o7777, 0];
            let (existing, opened, openedat, opened2, created, node, nodeat, folder) = (
                name("existing")?,
                name("open")?,
                name("openat")?,
                name("openat2")?,
                name("creat")?,
                name("mknod")?,
                name("mknodat")?,
                name("mkdir")?,
            );
            let at = |name: &CString| name.as_ptr() as u64;
            let descriptor = call(libc::SYS_openat, [here, at(&existing), create, 0o755, 0, 0])?;
            for (number, arguments) in [
                (libc::SYS_open, [at(&opened), create, mode, 0, 0, 0]),
                (libc::SYS_openat, [here, at(&openedat), create, mode, 0, 0]),
                (libc::SYS_openat2, [here, at(&opened2), how.as_ptr() as u64, 24, 0, 0]),
                (libc::SYS_creat, [at(&created), mode, 0, 0, 0, 0]),
                (libc::SYS_mknod, [at(&node), mode | 0o100000, 0, 0, 0, 0]),
                (libc::SYS_mknodat, [here, at(&nodeat), mode | 0o100000, 0, 0, 0]),
                (libc::SYS_mkdir, [at(&folder), mode, 0, 0, 0, 0]),
                (libc::SYS_fchmod, [descriptor, mode, 0, 0, 0, 0]),
                (libc::SYS_fchmodat, [here, at(&existing), mode, 0, 0, 0]),
                (452, [here, at(&existing), mode, 0, 0, 0]),
                (libc::SYS_chmod, [at(&existing), mode, 0, 0, 0, 0]),
            ] {
                if let Err(error) = call(number, arguments) {
                    refused = Err(error);
                }
            }
        }
        refused
    },
    judge: Some(|field, _| {
        let Ok(entries) = fs::read_dir(&field.workspace) else {
            return Verdict::Unclear("the workspace can't be read".to_owned());
        };
        let names: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.mode() & 0o6000 != 0))
            .map(|entry| entry.file_name().display().to_string())
            .collect();
        match names.is_empty() {
            true => Verdict::Held,
            false => Verdict::Broken(names.join(", ")),
        }
    }),
    control: Control::Bare,
};
