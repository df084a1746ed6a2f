//! Runs a program whose file carries capabilities.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use model::Wall;

use super::support::judge_by_loot;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/capable_program",
    wall: Wall::Privileges,
    about: "run a program in the workspace that carries file capabilities",
    flags: &[],
    prepare: |field| {
        let path = field.workspace.join("capable");
        fs::copy("/bin/cat", &path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        // vfs_cap_data of version 2 with the effective bit: reading any file (2), and binding any port (10).
        let mut record = Vec::new();
        for word in [0x0200_0001u32, 1 << 2 | 1 << 10, 0, 0, 0] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
        let name = c"security.capability".as_ptr();
        // SAFETY: all three outlive the call, and the length is the record's.
        let set = unsafe { libc::setxattr(path.as_ptr(), name, record.as_ptr().cast(), record.len(), 0) };
        if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    },
    inside: |inside| {
        let output = Command::new(inside.workspace.join("capable")).arg("/proc/self/status").output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let held = |line: &&str| line.split_whitespace().nth(1).is_some_and(|set| set.bytes().any(|it| it != b'0'));
        match text.lines().filter(|line| line.starts_with("CapEff") || line.starts_with("CapPrm")).find(held) {
            Some(line) => inside.loot(line),
            None => Err(io::ErrorKind::PermissionDenied.into()),
        }
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
