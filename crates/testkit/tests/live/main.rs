//! `belljar open`, `exec`, `stop`: sandboxes that stay, as root and as an ordinary user.

mod attacks;
mod code;
mod stories;

use belljar_testkit::twice;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let trials: Vec<Trial> = [
        ("every_attack_is_held_behind_walls_that_stood_already", attacks::held as twice::Check),
        ("every_attack_is_held_where_a_warm_interpreter_came_in", attacks::held_by_warm_starts),
    ]
    .iter()
    .chain(stories::ALL)
    .chain(code::ALL)
    .flat_map(|(name, check)| twice::trials(name, *check))
    .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
