//! Attacks on the commit gate, as root and as an ordinary user, by hostile code in a sandbox whose changes are taken.
//! Each has a control: where the gate is absent, because the workspace is written to directly or because the layer is
//! copied over the real files, the attack succeeds. What happened is seen on the host.

#[path = "commit_gate/bench.rs"]
mod bench;
#[path = "commit_gate/canary.rs"]
mod canary;
#[path = "commit_gate/human.rs"]
mod human;
#[path = "commit_gate/kinds.rs"]
mod kinds;
#[path = "commit_gate/links.rs"]
mod links;
#[path = "commit_gate/names.rs"]
mod names;
#[path = "commit_gate/protected.rs"]
mod protected;
#[path = "commit_gate/state.rs"]
mod state;

use belljar_testkit::Who;
use libtest_mimic::{Arguments, Trial};

/// One attack: it panics if it succeeds, or if its control does not.
type Attack = (&'static str, fn(Who));

fn main() {
    let arguments = Arguments::from_args();
    let root = rustix::process::geteuid().is_root();
    let rooms = [
        canary::ATTACKS,
        human::ATTACKS,
        kinds::ATTACKS,
        links::ATTACKS,
        names::ATTACKS,
        protected::ATTACKS,
        state::ATTACKS,
    ];
    let trials = rooms.into_iter().flatten().flat_map(|attack| [Who::Root, Who::Ordinary].map(|who| (attack, who)));
    let trials = trials.map(|((name, attack), who)| {
        let attack = *attack;
        let run = move || {
            attack(who);
            Ok(())
        };
        Trial::test(format!("gate/{name}::{}", who.name()), run).with_ignored_flag(!root)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
