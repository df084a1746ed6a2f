//! Rules of presets, as the build made them of their files: data that costs nothing to read. What a rule is about is only worked
//! out when a command comes that it may be about; most rules are never.

use std::borrow::Cow;
use std::sync::OnceLock;

use model::{Action, Ruling, WorkspaceMode};

use crate::compile::{Owner, conditions_of};
use crate::file;
use crate::pattern::{Roots, is_plain, wild};
use crate::reader::{BadPolicy, Source};
use crate::rule::{Condition, Conditions, Part, Rule};

include!(concat!(env!("OUT_DIR"), "/ready.rs"));

/// A `[[rule]]` of a preset.
#[derive(Debug)]
pub struct Ready {
    id: &'static str,
    place: &'static str,
    then: Ruling,
    why: &'static str,
    when: ReadyWhen,
}

/// As `file::When`, key by key; but programs stand one by one.
#[derive(Debug)]
struct ReadyWhen {
    action: &'static [&'static str],
    agent: &'static [&'static str],
    program: &'static [&'static str],
    subcommand: &'static [&'static str],
    other_than: &'static [&'static str],
    args: &'static [&'static str],
    without: &'static [&'static str],
    unless_first: &'static [&'static str],
    unless_hosts: &'static [&'static str],
    fed_by: &'static [&'static str],
    writes: Option<bool>,
    path: &'static [&'static str],
    host: &'static [&'static str],
    method: &'static [&'static str],
    url: &'static [&'static str],
    name: &'static [&'static str],
    language: &'static [&'static str],
    larger_than: Option<&'static str>,
    workspace_mode: Option<WorkspaceMode>,
}

impl ReadyWhen {
    const NOTHING: ReadyWhen = ReadyWhen {
        action: &[],
        agent: &[],
        program: &[],
        subcommand: &[],
        other_than: &[],
        args: &[],
        without: &[],
        unless_first: &[],
        unless_hosts: &[],
        fed_by: &[],
        writes: None,
        path: &[],
        host: &[],
        method: &[],
        url: &[],
        name: &[],
        language: &[],
        larger_than: None,
        workspace_mode: None,
    };

    /// The form that files have.
    fn written(&self) -> file::When {
        // No `..`: a key that is forgotten here would be a hole.
        let ReadyWhen {
            action,
            agent,
            program,
            subcommand,
            other_than,
            args,
            without,
            unless_first,
            unless_hosts,
            fed_by,
            writes,
            path,
            host,
            method,
            url,
            name,
            language,
            larger_than,
            workspace_mode,
        } = self;
        let texts = |list: &[&str]| list.iter().map(|text| file::Text::unplaced(text)).collect::<Vec<_>>();
        let few = |list: &[&str]| file::Few(texts(list));
        file::When {
            action: few(action),
            agent: few(agent),
            program: few(program),
            subcommand: few(subcommand),
            other_than: few(other_than),
            args: texts(args),
            without: texts(without),
            unless_first: texts(unless_first),
            unless_hosts: texts(unless_hosts),
            fed_by: few(fed_by),
            writes: *writes,
            path: few(path),
            host: few(host),
            method: few(method),
            url: few(url),
            name: few(name),
            language: few(language),
            larger_than: larger_than.map(file::Text::unplaced),
            workspace_mode: *workspace_mode,
        }
    }
}

const COMMANDS: &[Action] = &[Action::Exec];

impl Ready {
    /// What it means. Paths begin at somebody's home, so rules on them are worked out at once, and so are the few that say what
    /// they are about.
    pub fn rule(&'static self, roots: Roots<'_>) -> Result<Rule, BadPolicy> {
        let is_plain = self.when.path.is_empty() && self.when.action.is_empty() && !self.when.program.is_empty();
        let (actions, conditions) = if is_plain {
            (Cow::Borrowed(COMMANDS), Conditions::Later(self, OnceLock::new()))
        } else {
            let (actions, conditions) = self.conditions(roots)?;
            (Cow::Owned(actions), Conditions::Known(conditions))
        };
        let Ready { id, place, then, why, when: _ } = self;
        let [id, place, why] = [id, place, why].map(|text| Cow::Borrowed(*text));
        Ok(Rule { id, place, actions, conditions, then: *then, why, own: false })
    }

    /// Whether it is worth while to ask: most commands are of another program.
    pub fn may_be_about(&self, part: &Part<'_>) -> bool {
        let Some(name) = part.name else { return false };
        // Twins of a name are found the long way.
        let names = self.when.program;
        !is_plain(name) || names.iter().any(|known| *known == name || known.contains(['*', '?']) && wild(known, name))
    }

    /// All that must hold. A test sees that it can always be worked out; if not, a rule that allows must not hold, and one
    /// that asks or denies must.
    pub fn worked_out(&self) -> Vec<Condition> {
        let nowhere = Roots { home: "", project: None };
        match self.conditions(nowhere) {
            Ok((_, conditions)) => conditions,
            Err(_) if self.then == Ruling::Allow => vec![Condition::Program(Vec::new())],
            Err(_) => Vec::new(),
        }
    }

    fn conditions(&self, roots: Roots<'_>) -> Result<(Vec<Action>, Vec<Condition>), BadPolicy> {
        let source = Source { file: self.place, text: "" };
        conditions_of(source, &self.when.written(), self.id, roots, Owner::Preset)
    }
}

#[cfg(test)]
mod tests {
    use crate::compile::compile;
    use crate::presets;
    use crate::reader::read;
    use crate::sheet::Sheet;

    use super::*;

    const ROOTS: Roots<'static> = Roots { home: "/home/user", project: None };

    /// What the file says, read as anybody's.
    fn of_file(name: &str) -> Sheet {
        let file = format!("{}/presets/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(file).expect("a preset is a file");
        let source = Source { file: &format!("preset:{name}"), text: &text };
        compile(source, read(source).expect("a sound form"), ROOTS, Owner::Preset).expect("a sound preset")
    }

    #[test]
    fn what_the_build_made_is_what_the_files_say() {
        let mut count = 0;
        for name in presets::names() {
            let made = presets::sheet(name, ROOTS).expect("a preset").expect("a sound preset").0;
            count += ready(name).len();
            assert_eq!(made, of_file(name), "{name}");
        }
        assert!(count > 60, "{count}");
    }

    #[test]
    fn every_rule_can_be_worked_out() {
        for rule in presets::names().into_iter().flat_map(ready) {
            assert!(rule.conditions(ROOTS).is_ok(), "{}", rule.id);
        }
    }
}
