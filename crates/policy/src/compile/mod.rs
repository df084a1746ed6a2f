//! The form of a file → what it means. Most sections are short ways to write rules.

mod monitor;
mod network;
mod rule;

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use model::{Action, Asked, Ruling, Strength, Wall};
use toml::Spanned;

use crate::file::{self, File, Text};
use crate::pattern::{Glob, PathPattern, Roots};
use crate::reader::{BadPolicy, Source, nearest};
use crate::rule::{Condition, Conditions, Rule};
use crate::sheet::{AgentTerms, ApprovalTerms, FindingTerms, Rate, Sheet};

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Comes with belljar.
    Preset,
    Managed,
    User,
    Project,
}

/// Languages that code can be in.
pub const LANGUAGES: &[&str] = &[
    "awk", "elixir", "fish", "go", "java", "julia", "lua", "node", "perl", "php", "python", "r", "ruby", "rust",
    "shell", "typescript",
];

pub fn compile(source: Source<'_>, file: File, roots: Roots<'_>, owner: Owner) -> Result<Sheet, BadPolicy> {
    let newlines = source.text.match_indices('\n').map(|(at, _)| at).collect();
    let compiler = Compiler { source, newlines, roots, owner };
    // No `..`: a section that nobody reads would be a hole.
    let File {
        version: _,
        extends: _,
        disable: _,
        defaults,
        files,
        environment,
        limits,
        network,
        secrets,
        code,
        isolation,
        agent,
        approvals,
        monitor,
        findings,
        release,
        commit,
        rule,
    } = file;
    let mut sheet = Sheet::default();
    compiler.defaults(defaults, &mut sheet);
    compiler.files(&files, &mut sheet)?;
    compiler.environment(&environment, &mut sheet)?;
    sheet.settings.limits = compiler.limits(limits)?;
    compiler.network(&network, &mut sheet)?;
    for (name, secret) in &secrets {
        compiler.secret(name, secret, &mut sheet)?;
    }
    compiler.code(&code, &mut sheet)?;
    compiler.isolation(&isolation, &mut sheet)?;
    for terms in &agent {
        compiler.agent(terms, &mut sheet)?;
    }
    sheet.settings.approvals = compiler.approvals(&approvals)?;
    sheet.settings.monitor = compiler.monitor(&monitor)?;
    sheet.settings.findings = compiler.findings(findings)?;
    compiler.release(&release, &mut sheet)?;
    compiler.commit(&commit, &mut sheet)?;
    let mut ids = BTreeSet::new();
    for (number, rule) in rule.into_iter().enumerate() {
        let rule = compiler.rule(number, rule)?;
        if !ids.insert(rule.id.clone()) {
            let message = format!("there are two rules called `{}`; give each a name of its own", rule.id);
            let line = rule.place.rsplit_once(':').and_then(|(_, line)| line.parse().ok()).unwrap_or(1);
            return Err(BadPolicy { file: source.file.to_owned(), line, message });
        }
        sheet.rules.push(rule);
    }
    Ok(sheet)
}

pub use network::is_secret;
pub use rule::{RESERVED, unnamed};

/// What one `when` means: its actions, and all that must hold.
pub fn conditions_of(
    source: Source<'_>,
    when: &file::When,
    id: &str,
    roots: Roots<'_>,
    owner: Owner,
) -> Result<(Vec<Action>, Vec<Condition>), BadPolicy> {
    let compiler = Compiler { source, newlines: Vec::new(), roots, owner };
    let actions = compiler.actions_of(when, id, &(0..0))?;
    let conditions = compiler.conditions(when, id, &actions, &(0..0))?;
    Ok((actions, conditions))
}

struct Compiler<'a> {
    source: Source<'a>,
    /// Where lines end. Every rule remembers its place: to count lines anew for each takes longer than all the rest.
    newlines: Vec<usize>,
    roots: Roots<'a>,
    owner: Owner,
}

impl Compiler<'_> {
    fn place(&self, span: &Range<usize>) -> String {
        format!("{}:{}", self.source.file, self.newlines.partition_point(|at| *at < span.start) + 1)
    }

    fn bad(&self, span: &Range<usize>, message: impl Into<String>) -> BadPolicy {
        self.source.bad(span, message)
    }

    fn defaults(&self, defaults: file::Defaults, sheet: &mut Sheet) {
        let file::Defaults { exec, code, read, write, environment, gap, connect, secret_use, release, commit } =
            defaults;
        let all = [
            (Action::Exec, exec),
            (Action::Code, code),
            (Action::Read, read),
            (Action::Write, write),
            (Action::Environment, environment),
            (Action::Gap, gap),
            (Action::Connect, connect),
            (Action::SecretUse, secret_use),
            (Action::Release, release),
            (Action::Commit, commit),
        ];
        for (action, answer) in all {
            if let Some(file::Answer(answer)) = answer {
                sheet.defaults.insert(action, (*answer.get_ref(), self.place(&answer.span())));
            }
        }
    }

    fn files(&self, files: &file::Files, sheet: &mut Sheet) -> Result<(), BadPolicy> {
        let file::Files { workspaces, read, write, hide, protect } = files;
        if let Some(first) = workspaces.first() {
            let patterns = workspaces.iter().map(|text| self.anywhere(text)).collect::<Result<_, _>>()?;
            sheet.settings.workspaces = Some((patterns, self.place(&first.span())));
        }
        for text in read {
            let path = self.literal(text)?;
            self.section(
                sheet,
                "files.read",
                text,
                &[Action::Read],
                Condition::Path(vec![path.clone()]),
                Ruling::Allow,
            );
            sheet.settings.read.push(path);
        }
        for text in write {
            let path = self.literal(text)?;
            let both = [Action::Read, Action::Write];
            self.section(sheet, "files.write", text, &both, Condition::Path(vec![path.clone()]), Ruling::Allow);
            sheet.settings.write.push(path);
        }
        for text in hide {
            let path = self.literal(text)?;
            let both = [Action::Read, Action::Write];
            self.section(sheet, "files.hide", text, &both, Condition::Path(vec![path.clone()]), Ruling::Deny);
            sheet.settings.hide.push(path);
        }
        for text in protect {
            sheet.settings.protect.push(self.path(text)?);
        }
        Ok(())
    }

    fn path(&self, text: &Text) -> Result<PathPattern, BadPolicy> {
        PathPattern::read(text.get_ref(), self.roots).map_err(|message| self.bad(&text.span(), message))
    }

    /// Not relative to a workspace: it says where those are.
    fn anywhere(&self, text: &Text) -> Result<PathPattern, BadPolicy> {
        let relative = !text.get_ref().starts_with(['/', '~']);
        if relative && self.roots.project.is_none() {
            let message = format!("`{}` is relative; begin with `/` or `~/`", text.get_ref());
            return Err(self.bad(&text.span(), message));
        }
        self.path(text)
    }

    /// What is mounted or covered is looked up by its name: no tree is searched before every start.
    fn literal(&self, text: &Text) -> Result<PathPattern, BadPolicy> {
        let path = self.path(text)?;
        match path.literal() {
            Some(_) => Ok(path),
            None => Err(self.bad(
                &text.span(),
                format!("`{}` has a wild letter; name the folder or the file itself", text.get_ref()),
            )),
        }
    }

    fn environment(&self, environment: &file::Environment, sheet: &mut Sheet) -> Result<(), BadPolicy> {
        let file::Environment { pass, set } = environment;
        for text in pass {
            let known = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '*' | '?');
            if text.get_ref().is_empty() || !text.get_ref().chars().all(known) {
                let message = format!("`{}` is no name for a variable", text.get_ref().escape_debug());
                return Err(self.bad(&text.span(), message));
            }
            let glob = Glob::new(text.get_ref());
            let name = Condition::Name(vec![glob.clone()]);
            self.section(sheet, "environment.pass", text, &[Action::Environment], name, Ruling::Allow);
            sheet.settings.pass.push(glob);
        }
        for (key, value) in set {
            let name = key.get_ref();
            let known = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            if name.is_empty() || !name.chars().all(known) || name.starts_with(|letter: char| letter.is_ascii_digit()) {
                let message = format!("environment.set: `{}` is no name for a variable", name.escape_debug());
                return Err(self.bad(&key.span(), message));
            }
            if value.contains('\0') {
                return Err(self.bad(&key.span(), format!("environment.set.{name} has a zero byte in it")));
            }
            sheet.settings.set.insert(name.clone(), value.clone());
        }
        Ok(())
    }

    fn limits(&self, limits: file::Limits) -> Result<Asked, BadPolicy> {
        let file::Limits { timeout, cpus, cpu_time, memory, pids, disk, files, output } = limits;
        let count = |key: &str, number: Option<Spanned<u64>>| {
            let Some(number) = number else { return Ok(None) };
            model::units::count(&number.get_ref().to_string())
                .map(Some)
                .map_err(|error| self.bad(&number.span(), format!("limits.{key}: {error}")))
        };
        Ok(Asked {
            wall_time: self.quantity("limits.timeout", &timeout, model::units::duration)?,
            millicpus: self.quantity("limits.cpus", &cpus, model::units::processors)?,
            cpu_time: self.quantity("limits.cpu_time", &cpu_time, model::units::duration)?,
            memory: self.quantity("limits.memory", &memory, model::units::bytes)?,
            processes: count("pids", pids)?,
            disk: self.quantity("limits.disk", &disk, model::units::bytes)?,
            open_files: count("files", files)?,
            output: self.quantity("limits.output", &output, model::units::bytes)?,
        })
    }

    fn quantity<T, E: std::fmt::Display>(
        &self,
        key: &str,
        text: &Option<Text>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, BadPolicy> {
        let Some(text) = text else { return Ok(None) };
        read(text.get_ref()).map(Some).map_err(|error| self.bad(&text.span(), format!("{key}: {error}")))
    }

    fn code(&self, code: &file::Code, sheet: &mut Sheet) -> Result<(), BadPolicy> {
        let file::Code { languages, largest } = code;
        if let Some(first) = languages.first() {
            // No rule yet: what is laid over this adds languages, and only the sum says what is missing.
            sheet.settings.languages = Some((self.languages(languages)?, self.place(&first.span())));
        }
        if let Some(text) = largest
            && let Some(most) = self.quantity("code.largest", largest, model::units::bytes)?
        {
            self.section(sheet, "code.largest", text, &[Action::Code], Condition::LargerThan(most), Ruling::Deny);
        }
        Ok(())
    }

    fn languages(&self, languages: &[Text]) -> Result<Vec<String>, BadPolicy> {
        let known = |text: &Text| match LANGUAGES.contains(&text.get_ref().as_str()) {
            true => Ok(text.get_ref().clone()),
            false => Err(self.unknown(text, "language", LANGUAGES)),
        };
        languages.iter().map(known).collect()
    }

    fn unknown(&self, text: &Text, kind: &str, known: &[&str]) -> BadPolicy {
        let wrong = text.get_ref();
        let meant = match nearest(wrong, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("there are: {}", known.join(", ")),
        };
        self.bad(&text.span(), format!("`{}` is no {kind}; {meant}", wrong.escape_debug()))
    }

    fn isolation(&self, isolation: &file::Isolation, sheet: &mut Sheet) -> Result<(), BadPolicy> {
        let file::Isolation { minimum, pull, accept_gaps } = isolation;
        sheet.settings.pull = match pull.as_ref().map(|text| (text, text.get_ref().as_str())) {
            None => None,
            Some((_, "deny")) => Some(Ruling::Deny),
            Some((text, "allow" | "ask")) if self.owner == Owner::Project => {
                let message = "whether images are pulled is not for a project's file; say so in your own policy";
                return Err(self.bad(&text.span(), message));
            }
            Some((_, "allow")) => Some(Ruling::Allow),
            Some((_, "ask")) => Some(Ruling::Ask),
            Some((text, _)) => return Err(self.unknown(text, "answer", &["allow", "ask", "deny"])),
        };
        sheet.settings.minimum = minimum.as_ref().map(|text| self.strength(text)).transpose()?;
        for text in accept_gaps {
            let names: Vec<&str> = Wall::ALL.iter().map(|wall| wall.name()).collect();
            let wall: Wall = text.get_ref().parse().map_err(|_| self.unknown(text, "wall", &names))?;
            let name = Condition::Name(vec![Glob::new(wall.name())]);
            self.section(sheet, "isolation.accept_gaps", text, &[Action::Gap], name, Ruling::Allow);
            sheet.settings.accepted_missing.insert(wall);
        }
        Ok(())
    }

    fn agent(&self, terms: &file::Agent, sheet: &mut Sheet) -> Result<(), BadPolicy> {
        let file::Agent { name, actions, languages, rate, concurrent } = terms;
        if self.owner == Owner::Project {
            let message = "who may do what is not for a project's file; put `[[agent]]` in your own policy";
            return Err(self.bad(&name.span(), message));
        }
        let glob = Glob::new(name.get_ref());
        let agent = Condition::Agent(vec![glob.clone()]);
        if !actions.is_empty() {
            let allowed = self.actions(actions)?;
            let rest: Vec<Action> = Action::ALL.into_iter().filter(|action| !allowed.contains(action)).collect();
            self.section(sheet, "agent.actions", name, &rest, agent.clone(), Ruling::Deny);
        }
        if !languages.is_empty() {
            let only = Condition::LanguageIsNot(self.languages(languages)?);
            self.section(sheet, "agent.languages", name, &[Action::Code], only, Ruling::Deny);
            if let Some(rule) = sheet.rules.last_mut() {
                rule.conditions.add(agent);
            }
        }
        let concurrent = match concurrent {
            Some(number) if *number.get_ref() == 0 => {
                let message = "`concurrent = 0` lets nothing run; use `actions` to take rights away";
                return Err(self.bad(&number.span(), message));
            }
            number => number.as_ref().map(|number| *number.get_ref()),
        };
        sheet.settings.agents.push(AgentTerms {
            name: glob,
            written: name.get_ref().clone(),
            place: self.place(&name.span()),
            rate: self.quantity("agent.rate", rate, read_rate)?,
            concurrent,
        });
        Ok(())
    }

    fn actions(&self, actions: &[Text]) -> Result<Vec<Action>, BadPolicy> {
        let names: Vec<&str> = Action::ALL.iter().map(|action| action.name()).collect();
        let find = |text: &Text| {
            let found = Action::ALL.into_iter().find(|action| action.name() == text.get_ref());
            found.ok_or_else(|| self.unknown(text, "action", &names))
        };
        actions.iter().map(find).collect()
    }

    fn approvals(&self, approvals: &file::Approvals) -> Result<ApprovalTerms, BadPolicy> {
        let file::Approvals { timeout, approvers, always } = approvals;
        let said = timeout.is_some() || !approvers.is_empty() || always.is_some();
        if said && self.owner == Owner::Project {
            let texts = timeout.iter().chain(approvers).map(Text::span);
            let span = texts.chain(always.iter().map(Spanned::span)).min_by_key(|span| span.start).unwrap_or(0..0);
            let message = "who is asked is not for a project's file; put `[approvals]` in your own policy";
            return Err(self.bad(&span, message));
        }
        Ok(ApprovalTerms {
            timeout: self.quantity("approvals.timeout", timeout, model::units::duration)?,
            approvers: approvers.iter().map(|text| text.get_ref().clone()).collect(),
            always: always.as_ref().map(|always| *always.get_ref()),
        })
    }

    fn findings(&self, findings: file::Findings) -> Result<FindingTerms, BadPolicy> {
        let file::Findings { critical, high, medium, low, isolation, ignore } = findings;
        let rulings = [low, medium, high, critical].map(|answer| answer.map(|answer| *answer.0.get_ref()));
        let file::FindingsIsolation { critical, high, medium, low } = isolation;
        let mut demanded = [None; 4];
        for (demanded, text) in demanded.iter_mut().zip([low, medium, high, critical]) {
            *demanded = text.as_ref().map(|text| self.strength(text)).transpose()?;
        }
        let ignore = ignore.iter().map(|text| Glob::new(text.get_ref())).collect();
        Ok(FindingTerms { rulings, isolation: demanded, ignore })
    }

    fn strength(&self, text: &Text) -> Result<Strength, BadPolicy> {
        let names: Vec<&str> = Strength::ALL.iter().map(|strength| strength.name()).collect();
        let found = Strength::ALL.into_iter().find(|strength| strength.name() == text.get_ref());
        found.ok_or_else(|| self.unknown(text, "kind of isolation", &names))
    }

    fn release(&self, release: &file::Release, sheet: &mut Sheet) -> Result<(), BadPolicy> {
        let file::Release { redact, largest } = release;
        if let Some(redact) = redact {
            if self.owner == Owner::Project && !redact.get_ref() {
                let message = "whether secrets are taken out is not for a project's file; say so in your own policy";
                return Err(self.bad(&redact.span(), message));
            }
            sheet.settings.redact = Some(*redact.get_ref());
        }
        if let Some(text) = largest
            && let Some(most) = self.quantity("release.largest", largest, model::units::bytes)?
        {
            let larger = Condition::LargerThan(most);
            self.section(sheet, "release.largest", text, &[Action::Release], larger, Ruling::Deny);
        }
        Ok(())
    }

    fn commit(&self, commit: &file::Commit, sheet: &mut Sheet) -> Result<(), BadPolicy> {
        let file::Commit { ask, deny } = commit;
        for (id, list, then) in [("commit.ask", ask, Ruling::Ask), ("commit.deny", deny, Ruling::Deny)] {
            for text in list {
                let path = Condition::Path(vec![self.path(text)?]);
                self.section(sheet, id, text, &[Action::Commit], path, then);
            }
        }
        Ok(())
    }

    /// A rule that a line of a section stands for.
    fn section(&self, sheet: &mut Sheet, id: &str, text: &Text, actions: &[Action], when: Condition, then: Ruling) {
        let said = text.get_ref();
        let why = match then {
            Ruling::Allow => format!("`{said}` is listed under `{id}`"),
            Ruling::Ask => format!("`{said}` is listed under `{id}`, so a person decides"),
            Ruling::Deny if id == "agent.languages" => format!("the language is not listed under `{id}` of `{said}`"),
            Ruling::Deny if id == "agent.actions" => format!("`{said}` may only do what is listed under `{id}`"),
            Ruling::Deny if id.ends_with(".largest") => format!("it is larger than `{id}` = {said}"),
            Ruling::Deny => format!("`{said}` is listed under `{id}`"),
        };
        sheet.rules.push(Rule {
            id: id.to_owned().into(),
            place: self.place(&text.span()).into(),
            actions: actions.to_vec().into(),
            conditions: Conditions::Known(vec![when]),
            then,
            why: why.into(),
            own: false,
        });
    }
}

/// `60/m`: so many in a second, minute, hour or day.
fn read_rate(text: &str) -> Result<Rate, String> {
    let bad = || format!("`{text}` is no rate; write a number and a time: `10/s`, `60/m`, `500/h`, `2000/d`");
    let (count, period) = text.split_once('/').ok_or_else(bad)?;
    let seconds = match period.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(bad()),
    };
    match count.trim().parse::<u64>() {
        Ok(count @ 1..=1_000_000) => Ok(Rate { count, period: Duration::from_secs(seconds) }),
        _ => Err(bad()),
    }
}
