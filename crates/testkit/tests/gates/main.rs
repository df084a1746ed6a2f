//! Attacks on the gates that read: what goes in (scans) and what comes out (secrets, terminal commands). Each has a
//! control that shows what would pass where the gate is not.

mod capturing;
#[path = "../policy/desk.rs"]
mod desk;
mod following;
mod monitor;
mod redaction;
mod scanning;

use belljar_testkit::twice;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut trials: Vec<Trial> = Vec::new();
    for (name, check) in [redaction::ALL, scanning::ALL, following::ALL, capturing::ALL, monitor::ALL].concat() {
        trials.extend(twice::trials(name, check));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
