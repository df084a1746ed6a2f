//! The way out, as programs inside see it: real clients, real servers of a world that is this machine's loopback.
//! What is not installed is skipped, and the name of the skipped test says why.

mod attacks;
mod attacks_load;
mod attacks_names;
mod attacks_secret;
mod attacks_state;
mod attacks_tls;
mod cached;
mod cached_attacks;
mod clients;
mod clients_fetch;
mod clients_git;
mod clients_packages;
mod clients_programs;
mod clients_raw;
#[path = "../policy/desk.rs"]
mod desk;
mod forwarded;
mod gvisor;
mod held;
mod namespace;
mod needing;
mod outside;
mod secret;
mod secret_fetched;
mod served;
mod watched;
mod world;

use belljar_testkit::twice;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let all = [
        cached::ALL,
        cached_attacks::ALL,
        clients::ALL,
        held::ALL,
        forwarded::ALL,
        outside::ALL,
        secret::ALL,
        secret_fetched::ALL,
        watched::ALL,
        attacks::ALL,
        attacks_secret::ALL,
        attacks_load::ALL,
        attacks_state::ALL,
        attacks_tls::ALL,
    ]
    .concat();
    let mut trials: Vec<Trial> = all.into_iter().flat_map(|(name, check)| twice::trials(name, check)).collect();
    let needing = [
        cached::NEEDING,
        clients_fetch::ALL,
        clients_git::ALL,
        clients_packages::ALL,
        clients_programs::ALL,
        clients_raw::ALL,
        attacks_tls::NEEDING,
        gvisor::ALL,
    ];
    trials.extend(needing.concat().into_iter().flat_map(needing::trials));
    trials.extend(attacks_names::trials());
    trials.extend(attacks_state::full_disk_trials());
    trials.extend(cached::full_disk_trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Errors of all kinds, as what tests say.
pub fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}
