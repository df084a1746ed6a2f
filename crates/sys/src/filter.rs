//! System-call rules to a kernel filter.
//!
//! The program is a binary search over the call's number: about eight steps to a verdict instead of hundreds.
//! It is short to check and to compile in the kernel, which tries every number once when a filter is installed,
//! remembers those that are always allowed, and from then on lets them pass without running it at all.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Allow,
    /// Someone outside is asked, who answers for the kernel.
    Notify,
    /// Fails at once, without anyone being asked.
    Fail(u16),
}

/// Half of an argument. The low one is all that the kernel takes of an `int`: a look at 64 bits could be led astray
/// with rubbish in the high half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    Low(u8),
    High(u8),
}

impl Half {
    fn of(self, arguments: &[u64; 6]) -> u32 {
        match self {
            Half::Low(argument) => arguments[usize::from(argument)] as u32,
            Half::High(argument) => (arguments[usize::from(argument)] >> 32) as u32,
        }
    }

    // struct seccomp_data: six 64-bit arguments from 16 on, the low half first.
    fn offset(self) -> u32 {
        match self {
            Half::Low(argument) => 16 + 8 * u32::from(argument),
            Half::High(argument) => 20 + 8 * u32::from(argument),
        }
    }
}

/// What decides about one call: an action, or a look at an argument that leads to another rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    Always(Action),
    Look(Box<Look>),
}

/// `half & mask` in one of an arm's spans (first and last) leads to that arm's rule, anything else to `otherwise`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    pub half: Half,
    pub mask: u32,
    pub arms: Vec<(Vec<(u32, u32)>, Rule)>,
    pub otherwise: Rule,
}

impl Rule {
    /// Leads on to `then` for any of `values` of an `int` argument.
    pub fn look(argument: u8, arms: Vec<(Vec<u32>, Rule)>, otherwise: Rule) -> Rule {
        let spans = |values: Vec<u32>| values.into_iter().map(|value| (value, value)).collect();
        let arms = arms.into_iter().map(|(values, rule)| (spans(values), rule)).collect();
        Rule::Look(Box::new(Look { half: Half::Low(argument), mask: u32::MAX, arms, otherwise }))
    }

    /// Leads on to `then` if none of the bits of `mask` is set.
    pub fn without_bits(argument: u8, mask: u32, then: Rule, otherwise: Rule) -> Rule {
        Rule::Look(Box::new(Look { half: Half::Low(argument), mask, arms: vec![(vec![(0, 0)], then)], otherwise }))
    }

    /// What the filter will answer, for those who test rules without the kernel.
    pub fn decide(&self, arguments: &[u64; 6]) -> Action {
        match self {
            Rule::Always(action) => *action,
            Rule::Look(look) => {
                let value = look.half.of(arguments) & look.mask;
                let fits = |spans: &[(u32, u32)]| spans.iter().any(|(first, last)| (*first..=*last).contains(&value));
                look.arms
                    .iter()
                    .find(|(spans, _)| fits(spans))
                    .map_or(&look.otherwise, |(_, rule)| rule)
                    .decide(arguments)
            }
        }
    }
}

/// Rules by call number. A call without a rule is notified, and so is a call of a foreign ABI.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

const UNKNOWN: Rule = Rule::Always(Action::Notify);

impl Rules {
    pub fn set(&mut self, number: u32, rule: Rule) {
        let number = number as usize;
        if self.0.len() <= number {
            self.0.resize(number + 1, UNKNOWN);
        }
        self.0[number] = rule;
    }

    pub fn get(&self, number: u32) -> &Rule {
        self.0.get(number as usize).unwrap_or(&UNKNOWN)
    }
}

/// A filter as the kernel takes it.
#[derive(Clone, Debug)]
pub struct Program(pub(crate) Vec<libc::sock_filter>);

impl Program {
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// For where nobody can be asked: what would be asked about fails with `errno`.
    pub fn without_a_listener(mut self, errno: u16) -> Program {
        let asks = returns(Action::Notify).k;
        let ends = self.0.iter_mut().filter(|instruction| instruction.code == RETURN && instruction.k == asks);
        ends.for_each(|instruction| instruction.k = returns(Action::Fail(errno)).k);
        self
    }

    /// To be handed to another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = |one: &libc::sock_filter| {
            let [low, high] = one.code.to_le_bytes();
            let value = one.k.to_le_bytes();
            [low, high, one.jt, one.jf, value[0], value[1], value[2], value[3]]
        };
        self.0.iter().flat_map(bytes).collect()
    }

    /// `None` for what is no whole number of instructions. Whether they make sense, the kernel looks at.
    pub fn from_bytes(bytes: &[u8]) -> Option<Program> {
        let (instructions, rest) = bytes.as_chunks::<8>();
        let one = |[low, high, jt, jf, value @ ..]: &[u8; 8]| libc::sock_filter {
            code: u16::from_le_bytes([*low, *high]),
            jt: *jt,
            jf: *jf,
            k: u32::from_le_bytes(*value),
        };
        rest.is_empty().then(|| Program(instructions.iter().map(one).collect()))
    }
}

impl Serialize for Program {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.to_bytes())
    }
}

impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Program, D::Error> {
        let bytes = <&[u8]>::deserialize(from)?;
        Program::from_bytes(bytes).ok_or_else(|| D::Error::custom("no whole number of instructions"))
    }
}

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xC000_00B7;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const IF_ABOVE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

// struct seccomp_data: number at 0, architecture at 4.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

/// Compiles `rules`. Pure: the same rules give the same program.
///
/// A call of a foreign ABI that borrows the native mark has a number above all others, and so no rule.
pub fn compile(rules: &Rules) -> Program {
    let mut code = Code::default();
    let native = code.search(&spans(rules));
    code.load(NUMBER, native);
    let native = code.here();
    let foreign = code.verdict(Action::Notify);
    code.branch(IF_EQUAL, NATIVE, native, foreign);
    let check = code.here();
    code.load(ARCHITECTURE, check);
    code.finish()
}

/// Neighbouring numbers with the same verdict, as (first number, rule); the last span has no end.
fn spans(rules: &Rules) -> Vec<(u32, &Rule)> {
    let mut spans = vec![(0, rules.get(0))];
    for number in 1..=rules.0.len() as u32 {
        let rule = rules.get(number);
        if spans.last().is_none_or(|(_, before)| *before != rule) {
            spans.push((number, rule));
        }
    }
    spans
}

/// An instruction, by its distance from the end of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Label(usize);

/// A program in the making, from its end to its start: jumps only lead forward, so every place that one leads to is
/// known when it is written, and whatever has been written can be used again. Short programs are installed sooner.
#[derive(Default)]
struct Code<'a> {
    /// The last instruction first.
    reversed: Vec<libc::sock_filter>,
    verdicts: Vec<(Action, Label)>,
    looks: Vec<(&'a Look, Label)>,
}

/// How far a conditional jump reaches.
const REACH: usize = u8::MAX as usize;

impl<'a> Code<'a> {
    /// The instruction written last, which will be run first.
    fn here(&self) -> Label {
        Label(self.reversed.len() - 1)
    }

    /// What the next instruction to be written would have to jump over to get there.
    fn distance(&self, to: Label) -> usize {
        self.reversed.len() - 1 - to.0
    }

    fn push(&mut self, instruction: libc::sock_filter) -> Label {
        self.reversed.push(instruction);
        self.here()
    }

    /// Returning `action`, near enough for the next few instructions.
    fn verdict(&mut self, action: Action) -> Label {
        // Two are pushed at most before a branch is: room for both.
        let near = self.verdicts.iter().find(|(known, at)| *known == action && self.distance(*at) + 2 <= REACH);
        if let Some((_, at)) = near {
            return *at;
        }
        let at = self.push(returns(action));
        self.verdicts.retain(|(known, _)| *known != action);
        self.verdicts.push((action, at));
        at
    }

    fn rule(&mut self, rule: &'a Rule) -> Label {
        match rule {
            Rule::Always(action) => self.verdict(*action),
            Rule::Look(look) => match self.looks.iter().find(|(known, _)| *known == &**look) {
                Some((_, at)) => *at,
                None => {
                    let at = self.look(look);
                    self.looks.push((look, at));
                    at
                }
            },
        }
    }

    /// The number is loaded; narrows it down to one span.
    fn search(&mut self, spans: &[(u32, &'a Rule)]) -> Label {
        if let [(_, rule)] = spans {
            return self.rule(rule);
        }
        let (below, above) = spans.split_at(spans.len() / 2);
        let at_least = self.search(above);
        let less = self.search(below);
        self.branch(IF_AT_LEAST, above[0].0, at_least, less)
    }

    /// Loading an argument loses the number, which is not needed any more.
    fn look(&mut self, look: &'a Look) -> Label {
        let arms: Vec<Label> = look.arms.iter().map(|(_, rule)| self.rule(rule)).collect();
        let mut next = self.rule(&look.otherwise);
        for ((spans, _), arm) in look.arms.iter().zip(arms).rev() {
            for (first, last) in spans.iter().rev() {
                next = if first == last {
                    self.branch(IF_EQUAL, *first, arm, next)
                } else {
                    let not_above = self.branch(IF_ABOVE, *last, next, arm);
                    self.branch(IF_AT_LEAST, *first, not_above, next)
                };
            }
        }
        if look.mask != u32::MAX {
            self.fall_into(next);
            next = self.push(op(AND, look.mask));
        }
        self.load(look.half.offset(), next)
    }

    fn load(&mut self, offset: u32, next: Label) -> Label {
        self.fall_into(next);
        self.push(op(LOAD, offset))
    }

    /// Makes sure that the next instruction to be written goes on at `next`.
    fn fall_into(&mut self, next: Label) {
        if self.distance(next) > 0 {
            self.push(op(JUMP, self.distance(next) as u32));
        }
    }

    fn branch(&mut self, test: u16, value: u32, yes: Label, no: Label) -> Label {
        let yes = self.within_reach(yes);
        let no = self.within_reach(no);
        // The second may have put one more instruction before the first.
        let yes = self.within_reach(yes);
        let (yes, no) = (self.distance(yes) as u8, self.distance(no) as u8);
        self.push(branch(test, value, yes, no))
    }

    /// Somewhere near that leads to `to`: conditional jumps reach 255 instructions, plain ones any distance.
    fn within_reach(&mut self, to: Label) -> Label {
        if self.distance(to) < REACH {
            return to;
        }
        match self.reversed[to.0] {
            verdict if verdict.code == RETURN => self.push(verdict),
            _ => self.push(op(JUMP, self.distance(to) as u32)),
        }
    }

    fn finish(mut self) -> Program {
        self.reversed.reverse();
        Program(self.reversed)
    }
}

fn returns(action: Action) -> libc::sock_filter {
    let value = match action {
        Action::Allow => libc::SECCOMP_RET_ALLOW,
        Action::Notify => libc::SECCOMP_RET_USER_NOTIF,
        Action::Fail(errno) => libc::SECCOMP_RET_ERRNO | u32::from(errno),
    };
    op(RETURN, value)
}

fn op(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

fn branch(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Runs the program as the kernel would, so that a test (or a doubter) can compare it with the rules.
pub fn interpret(program: &Program, architecture: u32, number: u32, arguments: &[u64; 6]) -> Option<Action> {
    let mut accumulator = 0u32;
    let mut at = 0usize;
    loop {
        let instruction = program.0.get(at)?;
        at += 1;
        match instruction.code {
            LOAD => {
                accumulator = match instruction.k {
                    NUMBER => number,
                    ARCHITECTURE => architecture,
                    offset => {
                        let argument = *arguments.get((offset as usize).checked_sub(16)? / 8)?;
                        if offset % 8 == 0 { argument as u32 } else { (argument >> 32) as u32 }
                    }
                };
            }
            AND => accumulator &= instruction.k,
            IF_EQUAL => at += usize::from(if accumulator == instruction.k { instruction.jt } else { instruction.jf }),
            IF_AT_LEAST => {
                at += usize::from(if accumulator >= instruction.k { instruction.jt } else { instruction.jf })
            }
            IF_ABOVE => at += usize::from(if accumulator > instruction.k { instruction.jt } else { instruction.jf }),
            JUMP => at += instruction.k as usize,
            RETURN => {
                return match instruction.k {
                    libc::SECCOMP_RET_ALLOW => Some(Action::Allow),
                    libc::SECCOMP_RET_USER_NOTIF => Some(Action::Notify),
                    value if value & 0xffff_0000 == libc::SECCOMP_RET_ERRNO => Some(Action::Fail(value as u16)),
                    _ => None,
                };
            }
            _ => return None,
        }
    }
}

/// The mark of the ABI this binary is built for.
pub fn native_architecture() -> u32 {
    NATIVE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_longer_than_a_jump_says_what_it_says() {
        // Found by the fuzzer: distances above 255 were once cut to eight bits, and led into another arm.
        for tests in [1, 2, 126, 127, 128, 253, 254, 255, 256, 257, 600] {
            let values: Vec<u32> = (0..tests).map(|value| value * 3).collect();
            let spans = values.iter().map(|value| (*value, value + 1)).collect();
            let wide = Look {
                half: Half::Low(0),
                mask: u32::MAX,
                arms: vec![(spans, Rule::Always(Action::Allow))],
                otherwise: UNKNOWN,
            };
            let single = Rule::look(0, vec![(values, Rule::Always(Action::Allow))], Rule::Always(Action::Fail(1)));
            let mut rules = Rules::default();
            rules.set(3, single);
            rules.set(5, Rule::Look(Box::new(wide)));
            let program = compile(&rules);
            for (number, value) in (0..8).flat_map(|number| (0..3 * tests + 3).map(move |value| (number, value))) {
                let arguments = [u64::from(value), 0, 0, 0, 0, 0];
                let said = interpret(&program, NATIVE, number, &arguments);
                assert_eq!(said, Some(rules.get(number).decide(&arguments)), "{tests} tests, call {number}, {value}");
            }
        }
    }
}
