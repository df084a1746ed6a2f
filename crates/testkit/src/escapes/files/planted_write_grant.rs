//! The same for a folder that the user grants for writing: an output folder that has become a link.

use std::fs;
use std::os::unix::fs::symlink;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/planted_write_grant",
    wall: Wall::Files,
    about: "have a folder outside made writable by a link, planted earlier, on the way to a granted one",
    flags: &["--write", "packages/data"],
    prepare: |field| {
        let data = field.outside.join("data");
        fs::create_dir(&data)?;
        field.give(&data)?;
        field.put("data/inner", "untouched", 0o644)?;
        symlink("../outside", field.workspace.join("packages"))
    },
    inside: |inside| {
        let names = [inside.outside.join("data/inner"), inside.workspace.join("packages/data/inner")];
        support::any(names.iter().map(|name| support::overwrite(name)))
    },
    judge: Some(|field, _| match fs::read_to_string(field.outside.join("data/inner")) {
        Ok(contents) if contents == "untouched" => Verdict::Held,
        _ => Verdict::Broken("a file outside was changed".to_owned()),
    }),
    control: Control::Bare,
};
