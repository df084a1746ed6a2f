//! System-call rules to a kernel filter.
//!
//! The program is a binary search over the call's number: about eight steps to a verdict instead of hundreds.
//! It is short to check and to compile in the kernel, which tries every number once when a filter is installed,
//! remembers those that are always allowed, and from then on lets them pass without running it at all.

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

// struct seccomp_data: number at 0, architecture at 4.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

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
    let mut spans = vec![(0, rules.get(0))];
    for number in 1..=rules.0.len() as u32 {
        let rule = rules.get(number);
        if spans.last().is_none_or(|(_, before)| *before != rule) {
            spans.push((number, rule));
        }
    }
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

/// Loading an argument loses the number, which is not needed any more.
fn body(rule: &Rule, code: &mut Vec<libc::sock_filter>) {
    let look = match rule {
        Rule::Always(action) => return code.push(returns(*action)),
        Rule::Look(look) => look,
    };
    code.push(op(LOAD, look.half.offset()));
    if look.mask != u32::MAX {
        code.push(op(AND, look.mask));
    }
    // Tests first, each jumping to its arm; then what happens otherwise; then the arms, whose places are now known.
    let mut jumps = Vec::new();
    for (arm, (spans, _)) in look.arms.iter().enumerate() {
        for (first, last) in spans {
            if first == last {
                jumps.push((code.len(), arm));
                code.push(op(IF_EQUAL, *first));
            } else {
                code.push(branch(IF_AT_LEAST, *first, 0, 1));
                jumps.push((code.len(), arm));
                code.push(op(IF_ABOVE, *last));
            }
        }
    }
    body(&look.otherwise, code);
    for (arm, (_, rule)) in look.arms.iter().enumerate() {
        // A whole rule is some dozens of instructions: every jump in it is short.
        for (at, _) in jumps.iter().filter(|(_, to)| *to == arm) {
            let distance = (code.len() - at - 1) as u8;
            match code[*at].code {
                // "Not above the last" is the only test that leads to its arm by being false.
                IF_ABOVE => code[*at].jf = distance,
                _ => code[*at].jt = distance,
            }
        }
        body(rule, code);
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

/// The name of a call of the native ABI.
pub fn call_name(number: u32) -> Option<&'static str> {
    syscalls::Sysno::new(number as usize).map(|call| call.name())
}

/// The number of a call of the native ABI.
pub fn call_number(name: &str) -> Option<u32> {
    name.parse::<syscalls::Sysno>().ok().map(|call| call.id() as u32)
}
