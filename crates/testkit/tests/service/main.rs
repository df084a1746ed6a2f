//! The service as its clients meet it: a real server, on loopback and on a socket of its own, as root and as a user.

mod attacks;
mod begins;
mod branches;
mod client;
mod code;
mod described;
#[path = "../policy/desk.rs"]
mod desk;
mod doors;
mod ends;
mod files;
mod floods;
mod live;
mod ports;
mod remembered;
mod revisions;
mod server;
mod settings;
mod shares;
mod stories;
mod tenants;
mod terminals;
mod warm;

use belljar_testkit::contestant::belljar;
use belljar_testkit::{Who, twice};
use libtest_mimic::{Arguments, Trial};

fn main() {
    let missing = (!belljar().with_file_name("belljar-service").exists())
        .then(|| "belljar-service is not built beside belljar".to_owned());
    let mut trials: Vec<Trial> = Vec::new();
    let all = [
        stories::ALL,
        tenants::ALL,
        attacks::ALL,
        ends::ALL,
        files::ALL,
        live::ALL,
        warm::ALL,
        code::ALL,
        branches::ALL,
        revisions::ALL,
        settings::ALL,
        shares::ALL,
        begins::ALL,
        remembered::ALL,
        doors::ALL,
        floods::ALL,
    ];
    for (name, check) in all.concat() {
        for who in [Who::Root, Who::Ordinary] {
            trials.push(twice::trial(name, who, missing.clone().or_else(|| twice::why_not(who)), move || check(who)));
        }
    }
    let alone = missing.clone().or_else(terminals::why_not);
    for (name, check) in [terminals::ALL, ports::ALL].concat() {
        for who in [Who::Root, Who::Ordinary] {
            trials.push(twice::trial(name, who, alone.clone().or_else(|| twice::why_not(who)), move || check(who)));
        }
    }
    let missing = missing.or_else(described::why_not).or_else(|| twice::why_not(Who::Root));
    trials.push(twice::trial("what_the_service_says_of_itself_is_so", Who::Root, missing, || {
        described::check(Who::Root)
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Errors of all kinds, as what tests say.
pub fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

pub fn holds(is: bool, what: impl std::fmt::Display) -> Result<(), String> {
    if is { Ok(()) } else { Err(what.to_string()) }
}
