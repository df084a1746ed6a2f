//! Attacks on policies: from inside a sandbox, by what whoever asks chooses, and by the files themselves. Each has a
//! control that shows that it would succeed where the policy is not.

mod asked;
mod desk;
mod files;
mod inside;
mod often;
mod others;
mod owners;
mod paths;
mod people;

use belljar_testkit::twice;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut trials: Vec<Trial> = Vec::new();
    for (name, check) in [inside::ALL, files::ALL, paths::ALL, asked::ALL, often::ALL, people::ALL].concat() {
        trials.extend(twice::trials(name, check));
    }
    trials.extend(owners::trials());
    trials.extend(others::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
