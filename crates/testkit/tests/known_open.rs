//! Attacks that are known to succeed. When one no longer does, it belongs among the others.

use belljar_testkit::{Contestant, Verdict, Who, escapes::kernel::KNOWN_OPEN, trial::trial};

#[test]
fn what_is_known_to_be_open_still_is() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be root and somebody else");
        return;
    }
    for attack in KNOWN_OPEN {
        let verdicts = [Who::Root, Who::Ordinary].map(|who| trial(attack, Contestant::Belljar, who));
        eprintln!("{}: {verdicts:?}", attack.id);
        let open = verdicts.iter().any(|verdict| matches!(verdict, Verdict::Broken(_)));
        assert!(open, "{} holds now: move it to ATTACKS", attack.id);
    }
}
