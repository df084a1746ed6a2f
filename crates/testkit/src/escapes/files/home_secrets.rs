//! Reads what lies in the user's home: keys, credentials, histories, profiles.

use model::Wall;

use super::support;
use crate::{Attack, Control};

const STORES: &[&str] = &[
    ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".mozilla", ".config/gcloud", ".config/google-chrome/Default",
    ".azure", ".password-store", ".local/share/keyrings", "Documents", ".",
];

pub const ATTACK: Attack = Attack {
    id: "files/home_secrets",
    wall: Wall::Files,
    about: "read keys, credentials, profiles and loose files in the user's home",
    flags: &[],
    prepare: |field| {
        let home = support::home(field.who);
        field.tell("home", home.display());
        field.tell("name", support::token(field));
        let paths: Vec<_> = STORES.iter().map(|store| home.join(store).join(support::token(field))).collect();
        support::bait(field, &paths)
    },
    inside: |inside| {
        let (home, name) = (inside.hint("home")?, inside.hint("name")?);
        let named = std::env::var("HOME").unwrap_or_default();
        let homes = [home.to_owned(), named, format!("/proc/self/root{home}"), format!("/proc/1/root{home}")];
        let places =
            homes.iter().flat_map(|home| STORES.iter().map(move |store| format!("{home}/{store}/{name}").into()));
        support::steal_any(inside, places)
    },
    judge: None,
    control: Control::Bare,
};
