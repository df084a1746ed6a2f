//! Our closed list of system calls as a profile that container engines take.
//!
//! An engine's profile has no program in it, only lists: a call is allowed if all comparisons of one of its lines hold. So
//! each rule is taken apart into lines that compare bits (`masked`): with any other comparison, rubbish in the half of
//! an argument that the kernel does not look at would lead the filter astray.

use std::collections::BTreeMap;

use native::closed_list;
use serde::Serialize;
use sys::filter::{Action, Half, Look, Rule};
use syscalls::Sysno as Call;

/// The profile, as the engine reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    default_action: &'static str,
    default_errno_ret: u16,
    architectures: &'static [&'static str],
    syscalls: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    names: Vec<&'static str>,
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno_ret: Option<u16>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<Comparison>,
}

/// Those bits of an argument that are in `value` are as in `value_two`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Comparison {
    index: u8,
    value: u64,
    value_two: u64,
    op: &'static str,
}

const EPERM: u16 = 1;
#[cfg(target_arch = "x86_64")]
const HERE: &[&str] = &["SCMP_ARCH_X86_64"];
#[cfg(target_arch = "aarch64")]
const HERE: &[&str] = &["SCMP_ARCH_AARCH64"];

/// Calls about which the native supervisor is asked and says yes: nobody is asked here. Core files are off by a limit
/// that only root could raise.
const NOBODY_IS_ASKED: &[Call] = &[Call::execve, Call::execveat, Call::prlimit64, Call::setrlimit];
const PR_SET_DUMPABLE: u32 = 4;

/// Beyond all calls that there are.
const HIGHEST: u32 = 1024;

/// What is known of an argument's bits: which, and what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Masked {
    mask: u64,
    value: u64,
}

type Conditions = [Masked; 6];

pub fn profile() -> Profile {
    let mut plain: Vec<&'static str> = Vec::new();
    let mut failing: BTreeMap<u16, Vec<&'static str>> = BTreeMap::new();
    let mut lines = Vec::new();
    for (call, rule) in all() {
        for (conditions, action) in apart(call, &rule) {
            let args = comparisons(&conditions);
            match action {
                Action::Allow if args.is_empty() => plain.push(call.name()),
                Action::Fail(errno) if args.is_empty() => failing.entry(errno).or_default().push(call.name()),
                Action::Allow => lines.push(Line { names: vec![call.name()], action: ALLOW, errno_ret: None, args }),
                Action::Fail(errno) => {
                    lines.push(Line { names: vec![call.name()], action: FAIL, errno_ret: Some(errno), args });
                }
                Action::Notify => {}
            }
        }
    }
    let mut syscalls = vec![Line { names: plain, action: ALLOW, errno_ret: None, args: Vec::new() }];
    let failing = failing.into_iter();
    syscalls.extend(failing.map(|(errno, names)| Line {
        names,
        action: FAIL,
        errno_ret: Some(errno),
        args: Vec::new(),
    }));
    syscalls.extend(lines);
    Profile { default_action: FAIL, default_errno_ret: EPERM, architectures: HERE, syscalls }
}

const ALLOW: &str = "SCMP_ACT_ALLOW";
const FAIL: &str = "SCMP_ACT_ERRNO";

fn all() -> impl Iterator<Item = (Call, Rule)> {
    let rules = closed_list::rules(closed_list::Options::default());
    (0..HIGHEST).filter_map(move |number| Some((Call::new(number as usize)?, rules.get(number).clone())))
}

/// Every set of conditions under which something else happens than the default.
fn apart(call: Call, rule: &Rule) -> Vec<(Conditions, Action)> {
    if NOBODY_IS_ASKED.contains(&call) {
        return vec![(Conditions::default(), Action::Allow)];
    }
    let mut found = Vec::new();
    walk(rule, Conditions::default(), &mut found);
    if call == Call::prctl {
        let mut dumpable = Conditions::default();
        dumpable[0] = Masked { mask: u32::MAX.into(), value: PR_SET_DUMPABLE.into() };
        found.push((dumpable, Action::Allow));
    }
    found
}

fn walk(rule: &Rule, known: Conditions, found: &mut Vec<(Conditions, Action)>) {
    match rule {
        Rule::Always(Action::Notify) => {}
        Rule::Always(action) => found.push((known, *action)),
        Rule::Look(look) => split(look, 0, 0, &known, found),
    }
}

/// Decides bit by bit of the mask, from the highest: what is all in one arm, or in none, needs no further look.
fn split(look: &Look, mask: u32, value: u32, known: &Conditions, found: &mut Vec<(Conditions, Action)>) {
    let open = look.mask & !mask;
    let (least, most) = (value, value | open);
    let touching = look.arms.iter().position(|(spans, _)| spans.iter().any(|span| span.0 <= most && least <= span.1));
    let whole = |at: usize| look.arms[at].0.iter().any(|span| span.0 <= least && most <= span.1);
    let rule = match touching {
        None => &look.otherwise,
        // The first that fits decides, and arms do not overlap.
        Some(at) if whole(at) => &look.arms[at].1,
        Some(_) => {
            let bit = 1 << (31 - open.leading_zeros().min(31));
            split(look, mask | bit, value, known, found);
            split(look, mask | bit, value | bit, known, found);
            return;
        }
    };
    if let Some(known) = with(known, look.half, mask, value) {
        walk(rule, known, found);
    }
}

/// Both what was known and this; nothing if that can't be.
fn with(known: &Conditions, half: Half, mask: u32, value: u32) -> Option<Conditions> {
    let (argument, shift) = match half {
        Half::Low(argument) => (argument, 0),
        Half::High(argument) => (argument, 32),
    };
    let (mask, value) = (u64::from(mask) << shift, u64::from(value) << shift);
    let mut known = *known;
    let one = known.get_mut(usize::from(argument))?;
    if one.value & mask != value & one.mask {
        return None;
    }
    *one = Masked { mask: one.mask | mask, value: one.value | value };
    Some(known)
}

fn comparisons(conditions: &Conditions) -> Vec<Comparison> {
    let some = (0u8..).zip(conditions).filter(|(_, masked)| masked.mask != 0);
    let comparison = |(index, masked): (u8, &Masked)| Comparison {
        index,
        value: masked.mask,
        value_two: masked.value,
        op: "SCMP_CMP_MASKED_EQ",
    };
    some.map(comparison).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What an engine's filter would answer.
    fn answer(profile: &Profile, call: Call, arguments: &[u64; 6]) -> Action {
        let holds = |one: &Comparison| arguments[usize::from(one.index)] & one.value == one.value_two;
        let mut lines = profile.syscalls.iter().filter(|line| line.names.contains(&call.name()));
        match lines.find(|line| line.args.iter().all(holds)) {
            Some(Line { action: ALLOW, .. }) => Action::Allow,
            Some(Line { errno_ret, .. }) => Action::Fail(errno_ret.unwrap_or(EPERM)),
            None => Action::Fail(EPERM),
        }
    }

    fn arguments() -> impl Strategy<Value = [u64; 6]> {
        let interesting = prop_oneof![
            prop::sample::select(vec![
                0u64, 1, 2, 4, 5, 6, 10, 16, 17, 31, 38, 41, 64, 65, 262, 1024, 1025, 1026, 0x5412, 0x5413,
                0x1_0000_5412, 0xc004_5877, 0o4755, 0o755, 0o100, 0x1000_0000, 0xffff_ffff, 0x1_0000_0000,
            ]),
            any::<u64>(),
        ];
        proptest::array::uniform6(interesting)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

        #[test]
        fn an_engine_answers_as_the_list_says(number in 0u32..HIGHEST, arguments in arguments()) {
            let Some(call) = Call::new(number as usize) else { return Ok(()) };
            let profile = profile();
            let rules = closed_list::rules(closed_list::Options::default());
            let asked = match rules.get(number).decide(&arguments) {
                _ if NOBODY_IS_ASKED.contains(&call) => Action::Allow,
                Action::Notify if call == Call::prctl && arguments[0] as u32 == PR_SET_DUMPABLE => Action::Allow,
                Action::Notify => Action::Fail(EPERM),
                other => other,
            };
            prop_assert_eq!(answer(&profile, call, &arguments), asked, "{}", call.name());
        }
    }

    #[test]
    fn no_line_contradicts_another() {
        // Engines may try lines in any order.
        for (call, rule) in all() {
            let lines = apart(call, &rule);
            for (at, (one, action)) in lines.iter().enumerate() {
                for (other, other_action) in &lines[at + 1..] {
                    let meet = one.iter().zip(other).all(|(a, b)| a.value & b.mask == b.value & a.mask);
                    assert!(!meet || action == other_action, "{}", call.name());
                }
            }
        }
    }

    #[test]
    fn it_is_short_enough_to_be_loaded_at_every_start() {
        let profile = profile();
        assert!(profile.syscalls.len() < 600, "{}", profile.syscalls.len());
        assert!(profile.syscalls.iter().all(|line| !line.names.is_empty()));
    }

    #[test]
    fn what_would_open_the_jar_is_on_no_line() {
        let profile = profile();
        for name in
            ["mount", "unshare_all", "setns", "bpf", "io_uring_setup", "ptrace_all", "keyctl", "open_by_handle_at"]
        {
            assert!(!profile.syscalls.iter().any(|line| line.names.contains(&name)), "{name}");
        }
    }
}
