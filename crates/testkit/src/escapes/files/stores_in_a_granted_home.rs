//! Reads credential stores in a home that is granted whole: they are never visible, whatever is granted around them.

use model::Wall;

use super::support;
use crate::{Attack, Control};

const STORES: &[&str] = &[".oci", ".aliyun", ".ethereum", ".electrum", ".config/doctl", ".config/solana", ".mutt"];

pub const ATTACK: Attack = Attack {
    id: "files/stores_in_a_granted_home",
    wall: Wall::Files,
    about: "read credential stores in a home that is granted whole",
    flags: &["--read", "/root", "--read", "/home/belljar-test"],
    prepare: |field| {
        let home = support::home(field.who);
        field.tell("home", home.display());
        field.tell("name", support::token(field));
        let paths: Vec<_> = STORES.iter().map(|store| home.join(store).join(support::token(field))).collect();
        support::bait(field, &paths)
    },
    inside: |inside| {
        let (home, name) = (inside.hint("home")?, inside.hint("name")?);
        let homes = [home.to_owned(), format!("/proc/self/root{home}"), format!("{home}/../{home}")];
        let paths =
            homes.iter().flat_map(|home| STORES.iter().map(move |store| format!("{home}/{store}/{name}").into()));
        support::steal_any(inside, paths)
    },
    judge: None,
    control: Control::Bare,
};
