//! Leaves files that belong to somebody else, by giving them away and by being somebody else.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, lchown};

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

const SOMEBODY: u32 = 54_321;

pub const ATTACK: Attack = Attack {
    id: "files/foreign_owner",
    wall: Wall::User,
    about: "leave files on the host that belong to somebody else",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let here = |name: &str| inside.workspace.join(name);
        for name in ["plain", "given", "given-by-link", "given-to-a-group"] {
            fs::write(here(name), "")?;
        }
        let given = chown(here("given"), Some(SOMEBODY), None);
        let by_link = lchown(here("given-by-link"), Some(0), Some(SOMEBODY));
        let group = chown(here("given-to-a-group"), None, Some(SOMEBODY));
        let somebody = u64::from(SOMEBODY);
        let being = || {
            call(libc::SYS_setfsgid, [somebody, 0, 0, 0, 0, 0])?;
            call(libc::SYS_setfsuid, [somebody, 0, 0, 0, 0, 0])?;
            let written = fs::write("/proc/self/cwd/made-as-somebody", "");
            call(libc::SYS_setfsuid, [0, 0, 0, 0, 0, 0])?;
            call(libc::SYS_setfsgid, [0, 0, 0, 0, 0, 0])?;
            written
        };
        support::any([given, by_link, group, being()])
    },
    judge: Some(|field, _| {
        let own = field.who.user_id();
        let foreign = support::on_disk(&field.workspace)
            .into_iter()
            .find(|(_, stat)| stat.uid() != own || stat.gid() != own)
            .map(|(path, stat)| format!("{} belongs to {}:{}", path.display(), stat.uid(), stat.gid()));
        foreign.map_or(Verdict::Held, Verdict::Broken)
    }),
    control: Control::BareAsRoot,
};
