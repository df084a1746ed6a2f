//! One `[[rule]]`: what it is about, its bounds, and its examples.

use std::ops::Range;

use model::Action;
use toml::Spanned;

use super::{Compiler, Owner};
use crate::argument::ArgumentPattern;
use crate::examples;
use crate::file::{self, Text};
use crate::host::read_host;
use crate::pattern::Glob;
use crate::reader::BadPolicy;
use crate::rule::{Condition, Conditions, Rule};
use crate::subcommand::Subcommand;

/// They are tried at every start.
const MOST_EXAMPLES: usize = 100;
const LONGEST_EXAMPLE: usize = 4096;
/// Spellings in one list of a rule, and letters of each.
const MOST_SPELLINGS: usize = 500;
const LONGEST_SPELLING: usize = 1000;

/// How ids of what is no `[[rule]]` begin.
pub const RESERVED: &[&str] = &[
    "defaults.", "files.", "environment.", "network.", "secrets.", "isolation.", "agent.", "code.", "release.",
    "commit.", "exec.unclear", "silence", "envelope.", "cedar.", "monitor.",
];

/// What a rule is called that has no id.
pub fn unnamed(number: usize) -> String {
    format!("rule.{}", number + 1)
}

impl Compiler<'_> {
    pub(super) fn rule(&self, number: usize, written: Spanned<file::Rule>) -> Result<Rule, BadPolicy> {
        let span = written.span();
        let file::Rule { id, when, then, why, matches, passes } = written.into_inner();
        let id = match id {
            Some(id) => self.id(&id)?,
            None => unnamed(number),
        };
        if why.trim().is_empty() {
            return Err(self.bad(&span, format!("the rule `{id}` does not say why; whoever it stops will ask")));
        }
        self.within_bounds(&when)?;
        let actions = self.actions_of(&when, &id, &span)?;
        let conditions = self.conditions(&when, &id, &actions, &span)?;
        let rule = Rule {
            id: id.into(),
            place: self.place(&span).into(),
            actions: actions.into(),
            conditions: Conditions::Known(conditions),
            then,
            why: why.into(),
            own: matches!(self.owner, Owner::User | Owner::Managed),
        };
        // Presets are tried by tests, once; everybody else's examples each time.
        if self.owner != Owner::Preset {
            if let Some(long) = matches
                .iter()
                .chain(&passes)
                .enumerate()
                .find(|(number, one)| *number >= MOST_EXAMPLES || one.get_ref().len() > LONGEST_EXAMPLE)
            {
                let message = format!("a rule has at most {MOST_EXAMPLES} examples of {LONGEST_EXAMPLE} bytes");
                return Err(self.bad(&long.1.span(), message));
            }
            for (list, wanted) in [(&matches, true), (&passes, false)] {
                for example in list {
                    examples::check(&rule, example.get_ref(), wanted, self.roots)
                        .map_err(|message| self.bad(&example.span(), message))?;
                }
            }
        }
        Ok(rule)
    }

    fn id(&self, text: &Text) -> Result<String, BadPolicy> {
        let known = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
        match text.get_ref() {
            id if id.is_empty() || id.len() > 80 || !id.chars().all(known) => Err(self.bad(
                &text.span(),
                format!("`{}` is no id; use up to 80 letters, digits, `.`, `-` and `_`", id.escape_debug()),
            )),
            id if RESERVED.iter().any(|reserved| id.starts_with(reserved)) => {
                Err(self.bad(&text.span(), format!("`{id}` is a name of belljar's own; choose another")))
            }
            id => Ok(id.clone()),
        }
    }

    fn within_bounds(&self, when: &file::When) -> Result<(), BadPolicy> {
        // No `..`: a list that nobody bounds could be made to take for ever.
        let file::When {
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
            writes: _,
            path,
            host,
            method,
            url,
            name,
            language,
            larger_than: _,
            workspace_mode: _,
        } = when;
        let few = [action, agent, program, subcommand, other_than, fed_by, path, host, method, url, name, language];
        let lists = few.into_iter().map(|few| &few.0).chain([args, without, unless_first, unless_hosts]);
        for list in lists {
            let odd =
                |(number, text): &(usize, &Text)| *number >= MOST_SPELLINGS || text.get_ref().len() > LONGEST_SPELLING;
            if let Some((_, text)) = list.iter().enumerate().find(odd) {
                let message = format!("a list has at most {MOST_SPELLINGS} entries of {LONGEST_SPELLING} bytes");
                return Err(self.bad(&text.span(), message));
            }
        }
        Ok(())
    }

    /// As it is said, or as what is spoken of tells.
    pub(super) fn actions_of(
        &self,
        when: &file::When,
        id: &str,
        span: &Range<usize>,
    ) -> Result<Vec<Action>, BadPolicy> {
        if !when.action.0.is_empty() {
            return self.actions(&when.action.0);
        }
        let command = !when.program.0.is_empty()
            || !when.subcommand.0.is_empty()
            || !when.other_than.0.is_empty()
            || !when.args.is_empty()
            || !when.without.is_empty()
            || !when.unless_first.is_empty()
            || !when.unless_hosts.is_empty()
            || !when.fed_by.0.is_empty()
            || when.writes.is_some();
        let told = match () {
            () if command => Some(Action::Exec),
            () if !when.host.0.is_empty() || !when.method.0.is_empty() || !when.url.0.is_empty() => {
                Some(Action::Connect)
            }
            () if !when.language.0.is_empty() => Some(Action::Code),
            () => None,
        };
        told.map(|action| vec![action]).ok_or_else(|| {
            self.bad(span, format!("the rule `{id}` does not say what it is about; add `action = \"…\"` to `when`"))
        })
    }

    fn subcommands(&self, texts: &[Text]) -> Result<Vec<Subcommand>, BadPolicy> {
        let read = |text: &Text| Subcommand::read(text.get_ref()).map_err(|message| self.bad(&text.span(), message));
        texts.iter().map(read).collect()
    }

    pub(super) fn conditions(
        &self,
        when: &file::When,
        id: &str,
        actions: &[Action],
        span: &Range<usize>,
    ) -> Result<Vec<Condition>, BadPolicy> {
        let file::When {
            action: _,
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
        } = when;
        let globs = |texts: &[Text]| texts.iter().map(|text| Glob::new(text.get_ref())).collect::<Vec<_>>();
        let arguments = |texts: &[Text]| -> Result<Vec<ArgumentPattern>, BadPolicy> {
            let read =
                |text: &Text| ArgumentPattern::read(text.get_ref()).map_err(|message| self.bad(&text.span(), message));
            texts.iter().map(read).collect()
        };
        let mut conditions = Vec::new();
        // What costs least is asked first.
        if let Some(mode) = workspace_mode {
            conditions.push(Condition::Mode(*mode));
        }
        if let Some(writes) = writes {
            conditions.push(Condition::Writes(*writes));
        }
        if !program.0.is_empty() {
            if let Some(text) = program.0.iter().find(|text| text.get_ref().contains('/')) {
                let message = format!("`{}`: a program is known by its name alone, without folders", text.get_ref());
                return Err(self.bad(&text.span(), message));
            }
            let names = || program.0.iter().flat_map(|text| text.get_ref().split('|').map(move |name| (text, name)));
            if let Some((text, _)) = names().find(|(_, name)| name.is_empty()) {
                let message = format!("`{}` has a program without a name; write `npm|yarn`", text.get_ref());
                return Err(self.bad(&text.span(), message));
            }
            conditions.push(Condition::Program(names().map(|(_, name)| Glob::new(name)).collect()));
        }
        if !agent.0.is_empty() {
            conditions.push(Condition::Agent(globs(&agent.0)));
        }
        if !fed_by.0.is_empty() {
            conditions.push(Condition::FedBy(globs(&fed_by.0)));
        }
        if let (true, Some(first)) = (program.0.is_empty(), subcommand.0.iter().chain(&other_than.0).next()) {
            let message = format!("the rule `{id}` does not say of which program `{}` is", first.get_ref());
            return Err(self.bad(&first.span(), message));
        }
        if !subcommand.0.is_empty() {
            conditions.push(Condition::Subcommand(self.subcommands(&subcommand.0)?));
        }
        if !other_than.0.is_empty() {
            conditions.push(Condition::OtherThan(self.subcommands(&other_than.0)?));
        }
        if !args.is_empty() {
            conditions.push(Condition::Arguments(arguments(args)?));
        }
        if !without.is_empty() {
            conditions.push(Condition::Without(arguments(without)?));
        }
        if !unless_first.is_empty() {
            conditions.push(Condition::UnlessFirst(arguments(unless_first)?));
        }
        if !unless_hosts.is_empty() {
            for text in unless_hosts {
                // Whatever the port: commands name it or not.
                if read_host(text.get_ref()).is_none() {
                    self.host(text)?;
                }
            }
            let hosts = unless_hosts.iter().map(|text| text.get_ref().to_ascii_lowercase()).collect();
            conditions.push(Condition::UnlessHosts(hosts));
        }
        if !path.0.is_empty() {
            conditions.push(Condition::Path(path.0.iter().map(|text| self.path(text)).collect::<Result<_, _>>()?));
        }
        if !host.0.is_empty() {
            conditions.push(Condition::Host(host.0.iter().map(|text| self.host(text)).collect::<Result<_, _>>()?));
        }
        if !method.0.is_empty() || !url.0.is_empty() {
            conditions.push(Condition::Request(self.request(&method.0, &url.0)?));
        }
        if !name.0.is_empty() {
            conditions.push(Condition::Name(globs(&name.0)));
        }
        if !language.0.is_empty() {
            conditions.push(Condition::Language(self.languages(&language.0)?));
        }
        if let Some(most) = self.quantity("when.larger_than", larger_than, model::units::bytes)? {
            conditions.push(Condition::LargerThan(most));
        }
        for condition in &conditions {
            for action in actions {
                if !condition.can_hold(*action) {
                    let message =
                        format!("the rule `{id}` can never hold: `{}` is nothing of `{action}`", condition.key());
                    return Err(self.bad(span, message));
                }
            }
        }
        Ok(conditions)
    }
}
