//! `mytool | sh`: what a shell runs is only known when it runs. Who answers for `mytool` can say so, by a rule of their own
//! that names both.
//!
//! The rule holds for a line that is this pipe and nothing else. Whatever else a line starts could make `mytool` another
//! program, or put other words into what it prints.

use model::Ruling;
use shell::Simple;

use crate::argument::Told;
use crate::rule::{Condition, Part, Rule, is_the_systems};

/// The command of a line that runs what others print, and the names of these, if that is all that the line does.
pub fn by(commands: &[Simple]) -> Option<(&Simple, &[String])> {
    let mut fed = commands.iter().filter(|command| !command.fed_by.is_empty());
    let (Some(shell), None) = (fed.next(), fed.next()) else { return None };
    // `sh -c 'mytool | sh'`: all of what the outer one was given has been read.
    let is_around = |command: &Simple| {
        command.code.as_ref().is_some_and(|code| code.language == "shell")
            && is_the_systems(command)
            && is_told(command)
    };
    let prints = |command: &Simple| {
        let is_named = command.name().is_some_and(|name| shell.fed_by.iter().any(|known| known == name));
        is_named && is_the_systems(command) && is_told(command)
    };
    let others = || commands.iter().filter(|command| !std::ptr::eq(*command, shell));
    let all = others().all(|command| is_around(command) || prints(command));
    // Whatever is said to print is there to be looked at.
    let there = shell.fed_by.iter().all(|name| others().any(|command| command.name() == Some(name) && prints(command)));
    (all && there && is_told(shell)).then_some((shell, shell.fed_by.as_slice()))
}

/// Nothing of it is only known when it runs, and nothing is put into its input.
fn is_told(command: &Simple) -> bool {
    command.arguments.iter().all(|word| word.known().is_some()) && command.reads.is_empty()
}

/// Whether a rule says that what is printed may be run: it names the shell and what prints, each in full.
pub fn trusts(rule: &Rule, part: &Part<'_>) -> bool {
    if rule.then != Ruling::Allow || !rule.own {
        return false;
    }
    let (mut shell, mut printing) = (false, false);
    for condition in rule.conditions.all() {
        match condition {
            Condition::Program(names) => shell = names.iter().all(|name| name.is_plain()),
            Condition::FedBy(names) => printing = names.iter().all(|name| name.is_plain()),
            _ => {}
        }
    }
    shell && printing && rule.matches(part) == Told::Yes
}
