//! Attacks on what a run hands over: by what it puts where a file is expected, by sizes and numbers, by names, and by what
//! happens on the host meanwhile. Each has a control: an ordinary file beside it is collected.

mod bench;
mod bounds;
mod kept;
mod kinds;
mod names;
mod open;
mod rules;

use belljar_testkit::twice;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut trials: Vec<Trial> = Vec::new();
    for (name, check) in [kinds::ALL, bounds::ALL, names::ALL, open::ALL, rules::ALL, kept::ALL].concat() {
        trials.extend(twice::trials(name, check));
    }
    trials.extend(open::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
