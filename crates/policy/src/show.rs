//! A policy in words: one line for each thing it says.

use model::{Action, Asked, Remark, Ruling, Said, SaidLine, Severity};

use crate::compile::{Owner, RESERVED, compile, unnamed};
use crate::pattern::{PathPattern, Roots};
use crate::policy::{Policy, Voice};
use crate::reader::{BadPolicy, Source, read};
use crate::rule::Rule;
use crate::sheet::FindingTerms;

impl Owner {
    pub fn name(self) -> &'static str {
        match self {
            Owner::Preset => "preset",
            Owner::Managed => "managed",
            Owner::User => "user",
            Owner::Project => "project",
        }
    }
}

impl Policy {
    pub fn said(&self) -> Vec<Said> {
        self.voices.iter().map(|voice| Said { owner: voice.owner.name(), lines: voice.lines() }).collect()
    }

    /// What a reader should know, though it is no error.
    pub fn remarks(&self) -> Vec<Remark> {
        let rules = self.voices.iter().flat_map(|voice| voice.idle_rules());
        rules
            .chain(self.notes.iter().map(|note| Remark {
                is_error: false,
                place: String::new(),
                message: note.clone(),
            }))
            .collect()
    }
}

/// What is wrong with one file, and what is odd about it.
pub fn lint(source: Source<'_>, home: &str, owner: Owner) -> Vec<Remark> {
    let error = |bad: BadPolicy| {
        vec![Remark { is_error: true, place: format!("{}:{}", bad.file, bad.line), message: bad.message }]
    };
    let folder = source.file.rsplit_once('/').map_or("/", |(folder, _)| folder);
    let roots = Roots { home, project: (owner == Owner::Project).then_some(folder) };
    let mut remarks: Vec<Remark> = Vec::new();
    let file = match read(source) {
        Ok(file) => file,
        Err(bad) => return error(bad),
    };
    for (number, rule) in file.rule.iter().enumerate() {
        if rule.get_ref().matches.is_empty() {
            let name = rule.get_ref().id.as_ref().map_or_else(|| unnamed(number), |id| id.get_ref().clone());
            remarks.push(Remark {
                is_error: false,
                place: source.place(&rule.span()),
                message: format!("`{name}` has no examples; with `matches` and `passes` it is checked each time"),
            });
        }
    }
    // The form by itself, so that every error of its own is found; then with what it extends.
    if let Err(bad) = compile(source, file, roots, owner) {
        return error(bad);
    }
    // A project's file is relative to its folder, and its presets are looked up where it is used.
    if owner != Owner::Project {
        match Policy::of_one_file(source, home) {
            Ok(policy) => {
                remarks.extend(policy.remarks().into_iter().filter(|remark| remark.place.starts_with(source.file)));
            }
            Err(bad) => return error(bad),
        }
    }
    remarks
}

impl Voice {
    fn lines(&self) -> Vec<SaidLine> {
        let mut lines: Vec<SaidLine> = Vec::new();
        let mut say = |text: String, place: &str| lines.push(SaidLine { text, place: place.to_owned() });
        for (action, (ruling, place)) in &self.sheet.defaults {
            say(format!("{} {action} where no rule speaks", ruling.name()), place);
        }
        for rule in &self.sheet.rules {
            say(rule.line(), &rule.place);
        }
        let settings = &self.sheet.settings;
        let paths = |patterns: &[PathPattern]| {
            patterns.iter().map(|pattern| pattern.written.clone()).collect::<Vec<_>>().join(", ")
        };
        let lists = [
            ("give to read", &settings.read),
            ("give to write", &settings.write),
            ("hide", &settings.hide),
            ("protect", &settings.protect),
        ];
        for (name, list) in lists {
            if !list.is_empty() {
                say(format!("{name}: {}", paths(list)), "");
            }
        }
        if let Some((patterns, place)) = &settings.workspaces {
            say(format!("work only in: {}", paths(patterns)), place);
        }
        if let Some((languages, place)) = &settings.languages {
            say(format!("interpret only: {}", languages.join(", ")), place);
        }
        for (name, value) in &settings.set {
            say(format!("set {name}={value}"), "");
        }
        for text in limits(&settings.limits) {
            say(format!("at most {text}"), "");
        }
        if let Some(minimum) = settings.minimum {
            say(format!("isolate at least by {}", minimum.name()), "");
        }
        if let Some(pull) = settings.pull {
            let how = match pull {
                Ruling::Allow => "",
                Ruling::Ask => "ask before you ",
                Ruling::Deny => "never ",
            };
            say(format!("{how}pull images that are not there"), "");
        }
        for terms in &settings.agents {
            if let Some(rate) = terms.rate {
                say(
                    format!("{} asks at most {} times in {} s", terms.written, rate.count, rate.period.as_secs()),
                    &terms.place,
                );
            }
            if let Some(most) = terms.concurrent {
                say(format!("{} has at most {most} at once", terms.written), &terms.place);
            }
        }
        let approvals = &settings.approvals;
        if let Some(timeout) = approvals.timeout {
            say(format!("a question waits {} s", timeout.as_secs()), "");
        }
        if !approvals.approvers.is_empty() {
            say(format!("questions are answered by {}", approvals.approvers.join(", ")), "");
        }
        if let Some(always) = approvals.always {
            say(format!("answers {} hold for good", if always { "may" } else { "may not" }), "");
        }
        for line in settings.monitor.lines() {
            say(line, "");
        }
        let FindingTerms { rulings, isolation, ignore } = &settings.findings;
        for (severity, (ruling, isolation)) in Severity::ALL.iter().zip(rulings.iter().zip(isolation)).rev() {
            if let Some(ruling) = ruling {
                say(format!("{} {} findings", ruling.name(), severity.name()), "");
            }
            if let Some(isolation) = isolation {
                say(format!("isolate {} findings at least by {}", severity.name(), isolation.name()), "");
            }
        }
        for rule in ignore {
            say(format!("only tell of findings `{}`", rule.written()), "");
        }
        if let Some(redact) = settings.redact {
            say(format!("{} secrets out of output", if redact { "take" } else { "do not take" }), "");
        }
        if !settings.immutable.is_empty() {
            let written: Vec<&str> = settings.immutable.iter().map(|one| one.written.as_str()).collect();
            say(format!("keep downloads of {}", written.join(", ")), "");
        }
        match settings.cache {
            Some(0) => say("keep no downloads".to_owned(), ""),
            Some(most) => say(format!("keep at most {most} bytes of downloads"), ""),
            None => {}
        }
        for (name, terms) in &settings.secrets {
            let hosts: Vec<String> = terms.hosts.iter().map(|(pattern, _)| pattern.to_string()).collect();
            if let Some((_, place)) = terms.hosts.first() {
                say(format!("send the secret {name} only to {}", hosts.join(", ")), place);
            }
            let said =
                [("from", &terms.source), ("as the variable", &terms.variable), ("with the beginning", &terms.prefix)];
            if let Some(ttl) = terms.ttl {
                say(format!("fetch the secret {name} again after {} s", ttl.as_secs_f64()), "");
            }
            for (word, value) in said {
                if let Some(value) = value {
                    say(format!("take the secret {name} {word} `{value}`"), "");
                }
            }
        }
        for rules in &self.foreign {
            say(format!("{} rules in another language", rules.count()), "");
        }
        lines
    }

    /// Rules that change nothing: they allow what is allowed anyway.
    fn idle_rules(&self) -> Vec<Remark> {
        let allowed = |rule: &&Rule| {
            let by_default =
                |action| self.sheet.defaults.get(action).is_some_and(|(ruling, _)| *ruling == Ruling::Allow);
            // A default opens no host that nobody named.
            let opens = rule.actions.contains(&Action::Connect);
            rule.then == Ruling::Allow && rule.is_written() && !opens && rule.actions.iter().all(by_default)
        };
        let idle = self.sheet.rules.iter().filter(allowed);
        idle.map(|rule| Remark {
            is_error: false,
            place: rule.place.clone().into_owned(),
            message: format!(
                "`{}` changes nothing: what it allows is allowed by default, and a rule that asks or denies is stronger",
                rule.id
            ),
        })
        .collect()
    }
}

impl Rule {
    /// Of a `[[rule]]`, and not of a section.
    fn is_written(&self) -> bool {
        !RESERVED.iter().any(|reserved| self.id.starts_with(reserved))
    }

    fn line(&self) -> String {
        let actions: Vec<&str> = self.actions.iter().map(|action| action.name()).collect();
        format!("{} {} by `{}`: {}", self.then.name(), actions.join(", "), self.id, self.why)
    }
}

fn limits(limits: &Asked) -> Vec<String> {
    let Asked { wall_time, millicpus, cpu_time, memory, processes, disk, open_files, output } = limits;
    let texts = [
        wall_time.map(|time| format!("{} s", time.as_secs_f64())),
        millicpus.map(|number| format!("{} processors", f64::from(number) / 1000.0)),
        cpu_time.map(|time| format!("{} s of processor time", time.as_secs_f64())),
        memory.map(|bytes| format!("{bytes} bytes of memory")),
        processes.map(|number| format!("{number} processes")),
        disk.map(|bytes| format!("{bytes} bytes written")),
        open_files.map(|number| format!("{number} open files")),
        output.map(|bytes| format!("{bytes} bytes of output")),
    ];
    texts.into_iter().flatten().collect()
}
