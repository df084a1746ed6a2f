//! The way out, as programs inside see it: real clients, real servers of a world that is this machine's loopback.
//! What is not installed is skipped, and the name of the skipped test says why.

mod attacks;
mod attacks_load;
mod attacks_secret;
mod clients;
mod clients_fetch;
mod clients_git;
mod clients_packages;
mod clients_programs;
mod clients_raw;
#[path = "../policy/desk.rs"]
mod desk;
mod gvisor;
mod held;
mod needing;
mod outside;
mod secret;
mod served;
mod world;

use belljar_testkit::twice;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let all =
        [clients::ALL, held::ALL, outside::ALL, secret::ALL, attacks::ALL, attacks_secret::ALL, attacks_load::ALL]
            .concat();
    let mut trials: Vec<Trial> = all.into_iter().flat_map(|(name, check)| twice::trials(name, check)).collect();
    let needing = [
        clients_fetch::ALL,
        clients_git::ALL,
        clients_packages::ALL,
        clients_programs::ALL,
        clients_raw::ALL,
        gvisor::ALL,
    ];
    trials.extend(needing.concat().into_iter().flat_map(needing::trials));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Errors of all kinds, as what tests say.
pub fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}
