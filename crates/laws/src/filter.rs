//! Filters: whatever the rules, the program that the kernel gets says what the rules say.

use arbitrary::{Arbitrary, Unstructured};
use sys::filter::{Action, Half, Look, Rule, Rules, compile, interpret, native_architecture};

use crate::made_of;

/// More than any kernel has calls, and the compiler takes.
const NUMBERS: u32 = 600;
/// Numbers from here on are of another ABI, whatever the architecture says.
const FOREIGN: u32 = 0x4000_0000;
const DEEPEST: usize = 4;

pub fn law(bytes: &[u8]) {
    let Some(Case { rules, calls, edges }) = made_of(bytes) else { return };
    let mut table = Rules::default();
    for (number, rule) in rules {
        table.set(number, rule);
    }
    let program = compile(&table);
    let at_edges = |call: &Call| {
        let mut arguments = call.arguments;
        for (argument, edge) in arguments.iter_mut().zip(edges.iter().cycle().skip(call.edge.into())) {
            *argument = u64::from(*edge) | *argument << 32;
        }
        Call { arguments, ..*call }
    };
    for call in calls.iter().flat_map(|call| [*call, at_edges(call)]) {
        let Call { native, architecture, number, arguments, .. } = call;
        let architecture = if native { native_architecture() } else { architecture };
        let foreign = architecture != native_architecture() || number >= FOREIGN;
        let expected = if foreign { Action::Notify } else { table.get(number).decide(&arguments) };
        let said = interpret(&program, architecture, number, &arguments);
        assert_eq!(said, Some(expected), "{call:?} of {table:?}");
    }
}

#[derive(Debug)]
struct Case {
    rules: Vec<(u32, Rule)>,
    calls: Vec<Call>,
    /// Values that decide something.
    edges: Vec<u32>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Call {
    native: bool,
    architecture: u32,
    number: u32,
    arguments: [u64; 6],
    edge: u8,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(from: &mut Unstructured<'a>) -> arbitrary::Result<Case> {
        let mut edges = vec![0, u32::MAX];
        let mut rules = Vec::new();
        for _ in 0..from.int_in_range(0..=12)? {
            let number = from.int_in_range(0..=NUMBERS)?;
            let rule = rule(from, DEEPEST, &mut edges)?;
            // Runs of calls with one rule, as real lists have them.
            let run = from.int_in_range(0..=3u32)?;
            rules.extend((number..=number + run).map(|number| (number, rule.clone())));
        }
        let mut calls: Vec<Call> = (0..8).map(|_| from.arbitrary()).collect::<Result<_, _>>()?;
        for (call, (number, _)) in calls.iter_mut().skip(2).zip(rules.iter().rev()) {
            *call = Call { native: true, number: *number, ..*call };
        }
        Ok(Case { rules, calls, edges })
    }
}

fn rule(from: &mut Unstructured<'_>, deep: usize, edges: &mut Vec<u32>) -> arbitrary::Result<Rule> {
    if deep == 0 || from.ratio(1, 3)? {
        return Ok(Rule::Always(match from.int_in_range(0..=2)? {
            0 => Action::Allow,
            1 => Action::Notify,
            _ => Action::Fail(from.arbitrary()?),
        }));
    }
    let argument = from.int_in_range(0..=5)?;
    let half = if from.arbitrary()? { Half::Low(argument) } else { Half::High(argument) };
    let mask = if from.arbitrary()? { u32::MAX } else { from.arbitrary()? };
    let mut arms = Vec::new();
    for _ in 0..from.int_in_range(0..=3)? {
        let mut spans = Vec::new();
        for _ in 0..from.int_in_range(0..=3)? {
            let (first, last) = (from.arbitrary::<u32>()?, from.arbitrary::<u32>()?);
            // A single value as often as a span; sometimes more of them than a conditional jump can pass over.
            let last = if from.arbitrary()? { first } else { last };
            let (times, apart) =
                if from.ratio(1, 6)? { (from.arbitrary::<u8>()?, from.arbitrary()?) } else { (1, 0u32) };
            let moved = |time: u8| apart.wrapping_mul(time.into());
            spans.extend((0..times).map(|time| (first.wrapping_add(moved(time)), last.wrapping_add(moved(time)))));
            if edges.len() < 64 {
                edges.extend([first, last, first.wrapping_sub(1), last.wrapping_add(1)]);
            }
        }
        arms.push((spans, rule(from, deep - 1, edges)?));
    }
    Ok(Rule::Look(Box::new(Look { half, mask, arms, otherwise: rule(from, deep - 1, edges)? })))
}
