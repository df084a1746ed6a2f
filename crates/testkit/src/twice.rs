//! Tests that are made twice: as root, and as the ordinary user. What can't be made here is listed as skipped, and its
//! name says why.

use libtest_mimic::{Failed, Trial};

use crate::contestant::Who;

/// A law, a scenario: whatever is to hold for both.
pub type Check = fn(Who) -> Result<(), String>;

pub fn trials(name: &'static str, check: Check) -> Vec<Trial> {
    [Who::Root, Who::Ordinary].map(|who| trial(name, who, why_not(who), move || check(who))).into()
}

pub fn trial(
    name: &str,
    who: Who,
    why_not: Option<String>,
    check: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Trial {
    let name = format!("{name}_as_{}", if who == Who::Root { "root" } else { "a_user" });
    match why_not {
        Some(why) => Trial::test(format!("{name} (skipped: {why})"), || Ok(())).with_ignored_flag(true),
        None => Trial::test(name, move || check().map_err(Failed::from)),
    }
}

/// Who is not root is a user already.
pub fn why_not(who: Who) -> Option<String> {
    let is_root = rustix::process::geteuid().is_root();
    match who {
        Who::Root if !is_root => Some("needs root".to_owned()),
        Who::Ordinary if is_root && who.user_id() == 65534 => {
            Some(format!("there is no user {}", crate::contestant::TEST_USER))
        }
        _ => None,
    }
}
