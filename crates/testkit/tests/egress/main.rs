//! The way out, as programs inside see it: real clients, real servers of a world that is this machine's loopback.

mod attacks;
mod attacks_load;
mod attacks_secret;
mod clients;
#[path = "../policy/desk.rs"]
mod desk;
mod held;
mod secret;
mod world;

use belljar_testkit::twice;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let all = [clients::ALL, held::ALL, secret::ALL, attacks::ALL, attacks_secret::ALL, attacks_load::ALL].concat();
    let trials: Vec<Trial> = all.into_iter().flat_map(|(name, check)| twice::trials(name, check)).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Errors of all kinds, as what tests say.
pub fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}
