//! WebAssembly: modules and components do what they were granted, and nothing else.

mod attacks;
mod files;
mod hostile;
mod languages;
mod stories;
mod table;
mod warm;

use belljar_testkit::Who;
use belljar_testkit::modules::why_not;
use belljar_testkit::twice;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let missing = why_not();
    let mut trials: Vec<Trial> = Vec::new();
    for (name, check) in [stories::ALL, files::ALL, hostile::ALL, attacks::ALL, languages::ALL, warm::ALL].concat() {
        for who in [Who::Root, Who::Ordinary] {
            let why_not = twice::why_not(who).or_else(|| missing.clone()).or_else(|| languages::why_not(name));
            trials.push(twice::trial(name, who, why_not, move || check(who)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
