//! Moves `.git` away, with its read-only hooks in it, and puts another in its place: hooks that the host would run.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/read_only_part_below_a_moved_folder",
    wall: Wall::Files,
    about: "move the folder around a read-only part away and put another in its place",
    flags: &["--read", ".git/hooks"],
    prepare: |field| support::put_in_workspace(field, ".git/hooks/pre-commit", "untouched").map(drop),
    inside: |inside| {
        let here = |name: &str| inside.workspace.join(name);
        fs::rename(here(".git"), here("elsewhere"))?;
        fs::create_dir_all(here(".git/hooks"))?;
        fs::write(here(".git/hooks/pre-commit"), "changed")
    },
    judge: Some(|field, _| match fs::read_to_string(field.workspace.join(".git/hooks/pre-commit")) {
        Ok(contents) if contents == "untouched" => Verdict::Held,
        _ => Verdict::Broken("the host would run another hook".to_owned()),
    }),
    control: Control::Bare,
};
