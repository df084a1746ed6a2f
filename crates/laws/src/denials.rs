//! Refused calls: whatever is called, by whomever, the list stays short, counts all, and is safe to look at.

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use native::hostile::{Denials, Options, answer, describe, program_name, rules};
use sys::filter::{Program, Rules, compile, interpret, native_architecture};
use sys::seccomp::{Answer, Asked};

use crate::{made_of, shown, words};

const MOST_LISTED: usize = 200;
const MOST_OF_ONE: usize = 20;

static REAL: LazyLock<[(Rules, Program); 2]> = LazyLock::new(|| {
    [false, true].map(|strict| {
        let rules = rules(Options { no_sockets: strict, fixed_affinity: strict, carrier: !strict });
        let program = compile(&rules);
        (rules, program)
    })
});

#[derive(Arbitrary, Debug)]
struct Call {
    thread: u8,
    native: bool,
    architecture: u32,
    number: u16,
    /// Of the numbers of the foreign ABI that shares our architecture's mark.
    high: bool,
    arguments: [u64; 6],
    name: Vec<u8>,
    times: u8,
}

pub fn law(bytes: &[u8]) {
    let Some(calls) = made_of::<Vec<Call>>(bytes) else { return };
    let mut denials = Denials::default();
    let mut recorded = 0;
    for Call { thread, native, architecture, number, high, arguments, name, times } in &calls {
        let architecture = if *native { native_architecture() } else { *architecture };
        let number = u32::from(number % 1024) | if *high { 0x4000_0000 } else { 0 };
        let asked = Asked { id: 0, thread: i32::from(*thread), number, architecture, arguments: *arguments };
        is_judged_by_the_rules(&asked);
        if answer(&asked) == Answer::Pretend {
            assert!(architecture == native_architecture() && !high, "a foreign call is said to succeed: {asked:?}");
        }
        let (call, detail) = describe(&asked);
        shown::is_one_line(&call);
        shown::is_one_line(detail.as_deref().unwrap_or_default());
        for time in 0..=*times {
            denials.record(&Asked { thread: asked.thread + i32::from(time), ..asked }, || program_name(name));
            recorded += 1;
        }
    }
    let listed: u64 = denials.list.iter().map(|denial| denial.times).sum();
    assert_eq!(listed + denials.not_listed, recorded, "refusals were lost");
    assert!(denials.list.len() <= MOST_LISTED, "{} are listed", denials.list.len());
    for denial in &denials.list {
        shown::is_one_line(&denial.program);
        let alike = denials.list.iter().filter(|other| other.call == denial.call).count();
        assert!(alike <= MOST_OF_ONE, "{alike} of {}", denial.call);
    }
    words::are_safe(&words::ran(denials.list, denials.not_listed));
}

fn is_judged_by_the_rules(asked: &Asked) {
    for (rules, program) in REAL.iter() {
        let foreign = asked.architecture != native_architecture() || asked.number >= 0x4000_0000;
        let said = interpret(program, asked.architecture, asked.number, &asked.arguments);
        let expected = match foreign {
            true => sys::filter::Action::Notify,
            false => rules.get(asked.number).decide(&asked.arguments),
        };
        assert_eq!(said, Some(expected), "{asked:?}");
    }
}
