//! Makes nodes for the disk that the workspace is on and for kernel memory, and opens them.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/devices_made",
    wall: Wall::Files,
    about: "make device nodes wherever one may write, and open them",
    flags: &[],
    prepare: |field| {
        field.tell("disk", fs::metadata(&field.outside)?.dev());
        Ok(())
    },
    inside: |inside| {
        let disk: u64 = inside.hint("disk")?.parse().unwrap_or_default();
        let memory = libc::makedev(1, 1);
        let name = format!("node-{}", std::process::id());
        let home = std::env::var("HOME").unwrap_or_default();
        let folders = [inside.workspace.display().to_string(), "/tmp".into(), "/dev/shm".into(), "/dev".into(), home];
        // Bare, only the workspace: what is made elsewhere would stay.
        let folders = if std::env::var_os("BELLJAR").is_some() { &folders[..] } else { &folders[..1] };
        support::any(folders.iter().flat_map(|folder| {
            [(libc::S_IFBLK, disk), (libc::S_IFCHR, memory), (libc::S_IFCHR, libc::makedev(5, 1))].map(
                |(kind, device)| {
                    let path = format!("{folder}/{name}-{kind}-{device}");
                    let text = support::c_text(&path);
                    let mode = u64::from(kind | 0o600);
                    call(libc::SYS_mknodat, [libc::AT_FDCWD as u64, text.as_ptr() as u64, mode, device, 0, 0])?;
                    support::for_reading().open(&path)?;
                    inside.loot(format!("opened {path}\n"))
                },
            )
        }))
    },
    judge: Some(|field, run| {
        let is_device = |kind: fs::FileType| kind.is_block_device() || kind.is_char_device();
        let node = support::on_disk(&field.workspace).into_iter().find(|(_, stat)| is_device(stat.file_type()));
        match node {
            Some((path, _)) => Verdict::Broken(format!("a device node on the host: {}", path.display())),
            None => support::nothing_gained(field, run),
        }
    }),
    control: Control::BareAsRoot,
};
