//! Tests that need a program which may not be here.

use std::path::{Path, PathBuf};

use belljar_testkit::Who;
use belljar_testkit::contestant::peers_folder;
use belljar_testkit::twice::{self, Check};
use libtest_mimic::Trial;

/// Name, programs that must be there, and what is to hold.
pub type Needing = (&'static str, &'static [&'static str], Check);

/// Where everybody's programs are: what is below somebody's home could not be reached by the ordinary user.
const FOLDERS: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"];

/// The interpreter that has the clients which `cargo xtask test` installs.
pub const PYTHON: &str = "clients/bin/python3";

pub fn trials((name, needs, check): Needing) -> Vec<Trial> {
    let absent = needs.iter().find(|program| found(program).is_none());
    let absent = absent.map(|program| format!("no {} on this host", program.replace('/', "-")));
    let trial = |who| twice::trial(name, who, absent.clone().or(twice::why_not(who)), move || check(who));
    [Who::Root, Who::Ordinary].map(trial).into()
}

/// By its name, or below the folder of peers if there is a `/` in it.
pub fn found(program: &str) -> Option<PathBuf> {
    let places = match program.contains('/') {
        true => vec![peers_folder().join(program)],
        false => FOLDERS.map(|folder| Path::new(folder).join(program)).into(),
    };
    places.into_iter().find(|place| place.exists())
}

pub fn python() -> String {
    peers_folder().join(PYTHON).to_string_lossy().into_owned()
}
