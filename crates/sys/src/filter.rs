//! System-call rules to a kernel filter.
//!
//! The program is a binary search over the call's number: about eight steps to a verdict instead of hundreds.
//! It is short to check and to compile in the kernel, which tries every number once when a filter is installed,
//! remembers those that are always allowed, and from then on lets them pass without running it at all.

use std::collections::BTreeMap;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Allow,
    /// Someone outside is asked, who answers for the kernel.
    Notify,
    /// Fails at once, without anyone being asked.
    Fail(u16),
}

/// A test on one argument. Narrow ones see the low 32 bits, which is all that the kernel takes of an `int`:
/// a test on 64 bits could be passed with rubbish in the high half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// `argument & mask == value`
    Bits { argument: u8, mask: u32, value: u32 },
    /// `first <= argument <= last`
    Between { argument: u8, first: u32, last: u32 },
    /// All 64 bits are zero: a null pointer.
    Null { argument: u8 },
}

impl Test {
    pub const fn is(argument: u8, value: u32) -> Test {
        Test::Bits { argument, mask: u32::MAX, value }
    }

    pub const fn none_of(argument: u8, mask: u32) -> Test {
        Test::Bits { argument, mask, value: 0 }
    }

    /// What the kernel will see, for those who test rules without it.
    pub fn passes(&self, arguments: &[u64; 6]) -> bool {
        match *self {
            Test::Bits { argument, mask, value } => arguments[argument as usize] as u32 & mask == value,
            Test::Between { argument, first, last } => (first..=last).contains(&(arguments[argument as usize] as u32)),
            Test::Null { argument } => arguments[argument as usize] == 0,
        }
    }
}

/// What decides about one call: the first case whose tests all pass, or else `otherwise`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub cases: Vec<(Vec<Test>, Action)>,
    pub otherwise: Action,
}

impl Rule {
    pub fn always(action: Action) -> Rule {
        Rule { cases: Vec::new(), otherwise: action }
    }

    /// What the filter will answer, for those who test rules without the kernel.
    pub fn decide(&self, arguments: &[u64; 6]) -> Action {
        let case = self.cases.iter().find(|(tests, _)| tests.iter().all(|test| test.passes(arguments)));
        case.map_or(self.otherwise, |(_, action)| *action)
    }
}

/// Rules by call number. A call without a rule is notified, and so is a call of a foreign ABI.
pub type Rules = BTreeMap<u32, Rule>;

/// A filter as the kernel takes it.
#[derive(Clone, Debug)]
pub struct Program(pub(crate) Vec<libc::sock_filter>);

impl Program {
    pub fn length(&self) -> usize {
        self.0.len()
    }
}

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xC000_00B7;

/// The x32 ABI borrows the native one's mark, and sets this bit in the number.
const FOREIGN_BIT: u32 = 0x4000_0000;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const IF_ABOVE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

// struct seccomp_data: number at 0, architecture at 4, six 64-bit arguments from 16 on (low half first).
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const fn low(argument: u8) -> u32 {
    16 + 8 * argument as u32
}
const fn high(argument: u8) -> u32 {
    low(argument) + 4
}

/// Compiles `rules`. Pure: the same rules give the same program.
pub fn compile(rules: &Rules) -> Program {
    let mut program = vec![
        op(LOAD, ARCHITECTURE),
        branch(IF_EQUAL, NATIVE, 1, 0),
        returns(Action::Notify),
        op(LOAD, NUMBER),
        branch(IF_AT_LEAST, FOREIGN_BIT, 0, 1),
        returns(Action::Notify),
    ];
    search(&spans(rules), &mut program);
    Program(program)
}

/// Neighbouring numbers with the same verdict, as (first number, rule); the last span has no end.
fn spans(rules: &Rules) -> Vec<(u32, &Rule)> {
    static UNKNOWN: Rule = Rule { cases: Vec::new(), otherwise: Action::Notify };
    let mut spans = vec![(0, rules.get(&0).unwrap_or(&UNKNOWN))];
    let mut next = 1;
    let mut add = |number: u32, rule| {
        if spans.last().is_none_or(|(_, before)| *before != rule) {
            spans.push((number, rule));
        }
    };
    for (number, rule) in rules.range(1..) {
        if *number > next {
            add(next, &UNKNOWN);
        }
        add(*number, rule);
        next = number + 1;
    }
    add(next, &UNKNOWN);
    spans
}

/// The number is loaded; narrows it down to one span.
fn search(spans: &[(u32, &Rule)], code: &mut Vec<libc::sock_filter>) {
    if let [(_, rule)] = spans {
        return body(rule, code);
    }
    let (below, above) = spans.split_at(spans.len() / 2);
    let pivot = above[0].0;
    let at = code.len();
    code.push(branch(IF_AT_LEAST, pivot, 0, 0));
    search(below, code);
    let skip = code.len() - at - 1;
    match u8::try_from(skip) {
        Ok(skip) => code[at].jt = skip,
        // Conditional jumps reach 255 instructions, plain ones any distance.
        Err(_) => {
            code[at].jf = 1;
            code.insert(at + 1, op(JUMP, skip as u32));
        }
    }
    search(above, code);
}

/// Cases in order. Loading an argument loses the number, which is not needed any more.
fn body(rule: &Rule, code: &mut Vec<libc::sock_filter>) {
    for (tests, action) in &rule.cases {
        // Where this case's tests jump to when they fail is known once they are all there.
        let start = code.len();
        for test in tests {
            match *test {
                Test::Bits { argument, mask, value } => {
                    code.push(op(LOAD, low(argument)));
                    if mask != u32::MAX {
                        code.push(op(AND, mask));
                    }
                    code.push(op(IF_EQUAL, value));
                }
                Test::Between { argument, first, last } => {
                    code.push(op(LOAD, low(argument)));
                    code.push(op(IF_AT_LEAST, first));
                    code.push(op(IF_ABOVE, last));
                }
                Test::Null { argument } => {
                    for half in [low(argument), high(argument)] {
                        code.push(op(LOAD, half));
                        code.push(op(IF_EQUAL, 0));
                    }
                }
            }
        }
        code.push(returns(*action));
        let end = code.len();
        for (at, instruction) in code.iter_mut().enumerate().skip(start) {
            // A case is a handful of instructions.
            let out = (end - at - 1) as u8;
            match instruction.code {
                IF_EQUAL | IF_AT_LEAST => instruction.jf = out,
                // The only test that is passed by being false.
                IF_ABOVE => instruction.jt = out,
                _ => {}
            }
        }
    }
    code.push(returns(rule.otherwise));
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

/// The name of a call of the native ABI.
pub fn call_name(number: u32) -> Option<&'static str> {
    syscalls::Sysno::new(number as usize).map(|call| call.name())
}

/// The number of a call of the native ABI.
pub fn call_number(name: &str) -> Option<u32> {
    name.parse::<syscalls::Sysno>().ok().map(|call| call.id() as u32)
}
