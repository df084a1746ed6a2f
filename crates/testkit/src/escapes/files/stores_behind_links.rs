//! Reads what a credential store of a granted home leads to: who keeps dotfiles in one folder has links for stores.

use std::os::unix::fs::symlink;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/stores_behind_links",
    wall: Wall::Files,
    about: "read the file that a credential store in a granted home is a link to",
    flags: &["--read", "/root", "--read", "/home/belljar-test"],
    prepare: |field| {
        let home = support::home(field.who);
        let real = home.join(support::token(field)).join("credentials");
        field.tell("credentials", real.display());
        let store = home.join(".bluemix");
        symlink(&real, &store)?;
        field.keep(support::Removed(store));
        support::bait(field, &[real])
    },
    inside: |inside| inside.steal(inside.hint("credentials")?),
    judge: None,
    control: Control::Bare,
};
