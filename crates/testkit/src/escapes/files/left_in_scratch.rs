//! Leaves files in /tmp, /dev/shm and the home, where others would find them.

use std::fs;
use std::path::PathBuf;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

fn places(home: &str, name: &str) -> [PathBuf; 4] {
    ["/tmp", "/var/tmp", "/dev/shm", home].map(|folder| format!("{folder}/{name}").into())
}

pub const ATTACK: Attack = Attack {
    id: "files/left_in_scratch",
    wall: Wall::CleanUp,
    about: "leave files in the host's /tmp, /var/tmp, /dev/shm or home",
    flags: &[],
    prepare: |field| {
        let (home, name) = (support::home(field.who).display().to_string(), support::token(field));
        places(&home, &name).into_iter().for_each(|place| field.keep(support::Removed(place)));
        field.tell("home", home);
        field.tell("name", name);
        Ok(())
    },
    inside: |inside| {
        let places = places(inside.hint("home")?, inside.hint("name")?);
        support::any(places.iter().map(|place| fs::write(place, "left")))
    },
    judge: Some(|field, _| {
        let hint = |name| field.hint(name).unwrap_or_default();
        match places(&hint("home"), &hint("name")).iter().find(|place| place.exists()) {
            Some(place) => Verdict::Broken(format!("left on the host: {}", place.display())),
            None => Verdict::Held,
        }
    }),
    control: Control::Bare,
};
