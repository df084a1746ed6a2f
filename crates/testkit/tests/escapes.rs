//! Every attack, as root and as an ordinary user: its control must break out, belljar must hold it.

use belljar_testkit::{Attack, Contestant, Control, Verdict, Who, escapes, trial::trial};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let root = rustix::process::geteuid().is_root();
    let trials = escapes::all()
        .flat_map(|attack| [Who::Root, Who::Ordinary].map(|who| (attack, who)))
        .map(|(attack, who)| {
            let name = format!("{}::{}", attack.id, who.name());
            Trial::test(name, move || check(attack, who)).with_ignored_flag(!root)
        })
        .chain(behind_gvisor(root, &arguments))
        .chain(escapes::known_open().map(|attack| {
            Trial::test(format!("known_open::{}", attack.id), move || still_open(attack)).with_ignored_flag(!root)
        }))
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// The same on a kernel of its own. That the attack works at all is shown above.
fn behind_gvisor(root: bool, arguments: &Arguments) -> impl Iterator<Item = Trial> {
    // Each test is a process of its own, and to ask takes longer than most of them.
    let wanted = arguments.list || arguments.filter.as_ref().is_none_or(|filter| filter.contains("gvisor"));
    let there = wanted && Contestant::Gvisor.version().is_some();
    if wanted && !there {
        eprintln!(
            "skipped: attacks on the gvisor backend, because there is no runsc that it can use (`belljar doctor`)"
        );
    }
    let tried = escapes::all().filter(|attack| escapes::not_on_a_kernel_of_its_own(attack).is_none());
    tried.flat_map(|attack| [Who::Root, Who::Ordinary].map(|who| (attack, who))).map(move |(attack, who)| {
        let name = format!("gvisor::{}::{}", attack.id, who.name());
        Trial::test(name, move || match trial(attack, Contestant::Gvisor, who) {
            Verdict::Held => Ok(()),
            other => Err(format!("{other:?}").into()),
        })
        .with_ignored_flag(!root || !there)
    })
}

fn check(attack: &Attack, who: Who) -> Result<(), Failed> {
    let has_control = match attack.control {
        Control::Bare => true,
        Control::BareAsRoot => who == Who::Root,
        Control::None(_) => false,
    };
    if has_control {
        match trial(attack, Contestant::Bare, who) {
            Verdict::Broken(_) => {}
            other => return Err(format!("the control proves nothing: {other:?}").into()),
        }
    }
    match trial(attack, Contestant::Belljar, who) {
        Verdict::Held => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// A declared limit that holds now must not stay declared.
fn still_open(attack: &Attack) -> Result<(), Failed> {
    let verdicts = [Who::Root, Who::Ordinary].map(|who| trial(attack, Contestant::Belljar, who));
    match verdicts.iter().any(|verdict| matches!(verdict, Verdict::Broken(_))) {
        true => Ok(()),
        false => Err(format!("it holds now, so move it to ATTACKS: {verdicts:?}").into()),
    }
}
