//! Makes files of its own in the system's folders, by their names and aliases.

use std::fs;
use std::path::PathBuf;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

fn places(name: &str) -> [PathBuf; 8] {
    ["/usr", "/usr/local/bin", "/usr/bin", "/etc", "/opt", "/etc/alternatives", "/var/lib", "/etc/ssl/certs"]
        .map(|folder| format!("{folder}/{name}").into())
}

pub const ATTACK: Attack = Attack {
    id: "files/system_folders",
    wall: Wall::Files,
    about: "make a file in the system's folders",
    flags: &[],
    prepare: |field| {
        let name = support::token(field);
        places(&name).into_iter().for_each(|place| field.keep(support::Removed(place)));
        field.tell("name", name);
        Ok(())
    },
    inside: |inside| {
        let places = places(inside.hint("name")?);
        let aliases = places.clone().map(|place| format!("/proc/self/root{}", place.display()).into());
        support::any(places.iter().chain(&aliases).map(|place: &PathBuf| fs::write(place, "made")))
    },
    judge: Some(|field, _| match places(&field.hint("name").unwrap_or_default()).iter().find(|place| place.exists()) {
        Some(place) => Verdict::Broken(format!("made on the host: {}", place.display())),
        None => Verdict::Held,
    }),
    control: Control::BareAsRoot,
};
