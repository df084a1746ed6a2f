//! What happens is on the record: all of it, in one chain, without the secrets, and out of reach of whoever it is about.

mod attacks;
#[path = "../policy/desk.rs"]
mod desk;
mod receipts;
mod stories;

use belljar_testkit::twice;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut trials: Vec<Trial> = Vec::new();
    for (name, check) in [stories::ALL, attacks::ALL].concat() {
        trials.extend(twice::trials(name, check));
    }
    trials.extend(receipts::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
