//! WebAssembly: modules and components do what they were granted, and nothing else.

mod attacks;
mod files;
mod hostile;
mod languages;
mod stories;
mod table;
mod warm;

use belljar_testkit::module_attacks::{self, ModuleAttack};
use belljar_testkit::modules::why_not;
use belljar_testkit::twice;
use belljar_testkit::{Verdict, Who};
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
    for attack in module_attacks::ALL {
        for who in [Who::Root, Who::Ordinary] {
            let why_not = twice::why_not(who).or_else(|| missing.clone());
            trials.push(twice::trial(&attack.id.replace('/', "::"), who, why_not, move || held(attack, who)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Without a sandbox it succeeds, and as a module of either kind it does not.
fn held(attack: &'static ModuleAttack, who: Who) -> Result<(), String> {
    match module_attacks::control(attack, who) {
        Verdict::Broken(_) => {}
        other => return Err(format!("the control proves nothing: {other:?}")),
    }
    match module_attacks::trials(attack, who) {
        Verdict::Held => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
