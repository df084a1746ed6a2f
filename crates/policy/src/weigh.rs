//! Envelope → judgement: every rule of every voice is heard, and the strictest wins.
//!
//! A command line is heard command by command. These rules steer who is asked; the sandbox is the wall.

use model::{Action, Envelope, ForeignRules, Judgement, Reason, Resource, Ruling};
use shell::{Reading, Simple};

use crate::argument::Told;
use crate::carried;
use crate::compile::Owner;
use crate::grants::{grant_for, grant_for_printed, grant_for_rule};
use crate::paths::Whereabouts;
use crate::policy::{Policy, Voice};
use crate::printed;
use crate::rule::{Part, Rule, is_host_of};

impl Policy {
    pub fn weigh(&self, envelope: &Envelope) -> Judgement {
        if !envelope.is_sound() {
            return Judgement::of(Vec::new(), || Reason {
                rule: "envelope.sound".to_owned(),
                why: format!("`{}` can't be done to `{}`", envelope.action, envelope.resource),
                ..silence(envelope, String::new())
            });
        }
        if envelope.action == Action::Exec {
            return self.weigh_command(envelope);
        }
        Judgement::of(self.hear(&Part::of(envelope, None)), || silence(envelope, envelope.resource.to_string()))
    }

    /// The same for a path where something stands in the place of a folder: rules on what is below it are heard as well.
    pub fn weigh_around(&self, envelope: &Envelope) -> Judgement {
        Judgement::of(self.hear(&Part::around(envelope)), || silence(envelope, envelope.resource.to_string()))
    }

    fn weigh_command(&self, envelope: &Envelope) -> Judgement {
        // Where every voice says yes to whatever comes, nobody needs to know what it is.
        if !self.voices.iter().any(Voice::is_particular) {
            return Judgement::of(self.hear(&Part::of(envelope, None)), || {
                silence(envelope, envelope.resource.to_string())
            });
        }
        let Reading { commands, unclear, only_printed } = match &envelope.resource {
            Resource::Command(words) => shell::of_words(words),
            Resource::Shell(line) => shell::of_line(line),
            _ => Reading::default(),
        };
        // Asked before what commands carry is added: of that, nobody has said that they trust it.
        let printed_by = only_printed.then(|| printed::by(&commands)).flatten();
        let trusted = printed_by.as_ref().is_some_and(|(shell, _)| self.trusts_what_is_printed(envelope, shell));
        let (mut unclear, in_doubt) = if trusted { (Vec::new(), true) } else { (unclear, false) };
        let mut reasons = Vec::new();
        let mut place = Whereabouts::at(&envelope.context.directory);
        for command in &commands {
            let heard = self.hear(&Part::of(envelope, Some(command)).from(&place));
            // Silence about one command is not outweighed by a yes to another.
            if heard.is_empty() {
                reasons.push(silence(envelope, command.text.clone()));
            }
            reasons.extend(heard);
            reasons.extend(self.inline_code(envelope, command));
            let within = carried::by(command);
            reasons.extend(within.commands.iter().flat_map(|command| self.about_carried(envelope, command, &place)));
            unclear.extend(within.unclear);
            place.follow(command, &envelope.context.home);
        }
        if in_doubt || !unclear.is_empty() || commands.is_empty() {
            // Whatever it turns out to be, what holds for every command holds for it.
            reasons.extend(self.hear(&Part::of(envelope, None)));
        }
        let grant = match &printed_by {
            Some((shell, printing)) => grant_for_printed(shell.name().unwrap_or_default(), printing),
            None => "write the command out, without what is only known when it runs".to_owned(),
        };
        for sentence in unclear {
            reasons.push(Reason {
                ruling: Ruling::Ask,
                rule: "exec.unclear".to_owned(),
                place: String::new(),
                why: sentence,
                action: Action::Exec,
                about: envelope.resource.to_string(),
                grant: grant.clone(),
            });
        }
        // One yes is enough to tell; every no and every question is told.
        let judgement = Judgement::of(reasons, || silence(envelope, envelope.resource.to_string()));
        without_repetition(judgement)
    }

    /// Whether everybody whose rules could be about what is printed says that they trust it.
    fn trusts_what_is_printed(&self, envelope: &Envelope, shell: &Simple) -> bool {
        let part = Part::of(envelope, Some(shell));
        self.voices.iter().filter(|voice| voice.is_particular()).all(|voice| {
            voice.owner != Owner::Project && voice.sheet.rules.iter().any(|rule| printed::trusts(rule, &part))
        })
    }

    /// What all voices say about one part.
    pub(crate) fn hear(&self, part: &Part<'_>) -> Vec<Reason> {
        self.voices.iter().flat_map(|voice| voice.says(part)).collect()
    }

    /// A yes to `npx` is a yes to what it starts, unless a rule speaks of that: where it begins is a guess at times, and to ask
    /// about what no rule names would be to ask twice.
    fn about_carried(&self, envelope: &Envelope, command: &Simple, place: &Whereabouts) -> Vec<Reason> {
        let mut reasons = self.hear(&Part::of(envelope, Some(command)).from(place));
        reasons.retain(|reason| reason.ruling != Ruling::Allow && !reason.rule.starts_with("defaults."));
        reasons.extend(self.inline_code(envelope, command));
        reasons
    }

    /// Code in the words of a command is code: languages and sizes count.
    fn inline_code(&self, envelope: &Envelope, command: &Simple) -> Vec<Reason> {
        let Some(code) = &command.code else { return Vec::new() };
        let envelope = Envelope {
            action: Action::Code,
            resource: Resource::Code { language: Some(code.language.to_owned()), bytes: code.text.len() as u64 },
            ..envelope.clone()
        };
        let reasons = self.hear(&Part::of(&envelope, None));
        // Whether commands may hold code at all is for rules on commands: a default for code is about code alone.
        reasons.into_iter().filter(|reason| reason.rule != "defaults.code").collect()
    }
}

impl Voice {
    /// Has an opinion on some commands that it does not have on all.
    fn is_particular(&self) -> bool {
        let about = |rule: &Rule| rule.actions.contains(&Action::Exec) || rule.actions.contains(&Action::Code);
        !self.foreign.is_empty()
            || self.sheet.settings.languages.is_some()
            || self.sheet.rules.iter().any(|rule| about(rule) && rule.then != Ruling::Allow)
            || (self.default_for(Action::Exec).is_some_and(|ruling| ruling != Ruling::Allow)
                && self.sheet.rules.iter().any(about))
    }

    fn default_for(&self, action: Action) -> Option<Ruling> {
        self.sheet.defaults.get(&action).map(|(ruling, _)| *ruling)
    }

    /// Its rules; where none surely speaks, its default; else nothing.
    fn says(&self, part: &Part<'_>) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let mut unsure = 0;
        for rule in &self.sheet.rules {
            let told = rule.matches(part);
            reasons.extend(reason(rule, told, part));
            unsure += usize::from(told == Told::Maybe && rule.then != Ruling::Allow);
        }
        reasons.extend(self.languages(part));
        reasons.extend(self.secret_hosts(part));
        reasons.extend(self.foreign_rules(part));
        // A rule that may not be about it takes no default away: one more rule that denies would make a no a question.
        if reasons.len() == unsure
            && let Some((ruling, place)) = self.sheet.defaults.get(&part.envelope.action)
        {
            let action = part.envelope.action;
            let about = about(part);
            let why = match ruling {
                Ruling::Allow => format!("`{action}` is allowed where no rule says otherwise"),
                Ruling::Ask => format!("a person decides on `{action}` where no rule does"),
                Ruling::Deny => format!("`{action}` is denied where no rule allows it"),
            };
            reasons.push(Reason {
                ruling: *ruling,
                rule: format!("defaults.{action}"),
                place: place.clone(),
                why,
                action,
                grant: grant_for(part.envelope, &about),
                about,
            });
        }
        reasons
    }

    /// "Only these", summed up over all that the owner's files list.
    fn languages(&self, part: &Part<'_>) -> Option<Reason> {
        let (listed, place) = self.sheet.settings.languages.as_ref()?;
        let Resource::Code { language, .. } = &part.envelope.resource else { return None };
        if language.as_ref().is_some_and(|language| listed.contains(language)) {
            return None;
        }
        let said = language.as_deref().unwrap_or("a language that can't be told");
        Some(Reason {
            ruling: Ruling::Deny,
            rule: "code.languages".to_owned(),
            place: place.clone(),
            why: format!("{said} is not among the languages that may be interpreted: {}", listed.join(", ")),
            action: Action::Code,
            about: part.envelope.resource.to_string(),
            grant: format!("[code] languages = [\"{}\"]", language.as_deref().unwrap_or("…")),
        })
    }

    /// Where a secret may go, summed up over all that the owner's files list.
    fn secret_hosts(&self, part: &Part<'_>) -> Option<Reason> {
        let Resource::Secret { name, host } = &part.envelope.resource else { return None };
        let listed = &self.sheet.settings.secrets.get(name)?.hosts;
        let (_, place) = listed.first()?;
        if listed.iter().any(|(pattern, _)| is_host_of(pattern, host)) {
            return None;
        }
        let hosts: Vec<String> = listed.iter().map(|(pattern, _)| pattern.to_string()).collect();
        Some(Reason {
            ruling: Ruling::Deny,
            rule: format!("secrets.{name}"),
            place: place.clone(),
            why: format!("`{name}` may only go to {}", hosts.join(", ")),
            action: Action::SecretUse,
            about: part.envelope.resource.to_string(),
            grant: grant_for(part.envelope, ""),
        })
    }

    fn foreign_rules(&self, part: &Part<'_>) -> Vec<Reason> {
        if self.foreign.is_empty() {
            return Vec::new();
        }
        // Those that speak of requests are heard on each of them.
        let heard = |rules: &dyn ForeignRules| !(part.stands_for_requests() && rules.reads_requests());
        let one;
        let envelope = match part.command {
            None => part.envelope,
            Some(command) => {
                let words = std::iter::once(&command.program).chain(&command.arguments);
                let words = words.map(|word| word.text().to_owned()).collect();
                one = Envelope { resource: Resource::Command(words), ..part.envelope.clone() };
                &one
            }
        };
        let mut reasons: Vec<Reason> =
            self.foreign.iter().filter(|rules| heard(rules.as_ref())).flat_map(|rules| rules.judge(envelope)).collect();
        // They see words as they are written: what a word comes out as may be what one of them forbids.
        let unknown = part.command.and_then(|command| command.arguments.iter().find(|word| word.known().is_none()));
        if let Some(word) = unknown
            && self.foreign.iter().any(|rules| rules.speaks_of(Action::Exec))
        {
            reasons.push(Reason {
                ruling: Ruling::Ask,
                rule: "exec.unclear".to_owned(),
                place: String::new(),
                why: format!("`{}` is only known when it runs, and rules speak of commands", word.text()),
                action: Action::Exec,
                about: about(part),
                grant: "write the command out, without what is only known when it runs".to_owned(),
            });
        }
        reasons
    }
}

pub fn reason(rule: &Rule, told: Told, part: &Part<'_>) -> Option<Reason> {
    let (ruling, why) = match (told, rule.then) {
        (Told::No, _) | (Told::Maybe, Ruling::Allow) => return None,
        // To the connection it has nothing against.
        (Told::Yes, Ruling::Ask) if part.stands_for_requests() && rule.reads() => {
            (Ruling::Allow, "each request is judged by itself".to_owned())
        }
        (Told::Yes, then) => (then, rule.why.clone().into_owned()),
        // Nobody can tell before it runs, so somebody must.
        (Told::Maybe, Ruling::Ask | Ruling::Deny) => {
            (Ruling::Ask, format!("it may be this, which is only known when it runs: {}", rule.why))
        }
    };
    Some(Reason {
        ruling,
        rule: rule.id.clone().into_owned(),
        place: rule.place.clone().into_owned(),
        why,
        action: part.envelope.action,
        about: about(part),
        grant: grant_for_rule(rule),
    })
}

fn about(part: &Part<'_>) -> String {
    part.command.map_or_else(|| part.envelope.resource.to_string(), |command| command.text.clone())
}

fn silence(envelope: &Envelope, about: String) -> Reason {
    Reason {
        ruling: Ruling::Deny,
        rule: "silence".to_owned(),
        place: String::new(),
        why: format!("no rule and no default speaks of `{}`, and silence denies", envelope.action),
        action: envelope.action,
        grant: grant_for(envelope, &about),
        about,
    }
}

fn without_repetition(mut judgement: Judgement) -> Judgement {
    let mut kept: Vec<Reason> = Vec::new();
    for reason in judgement.reasons.drain(..) {
        let is_news = match reason.ruling {
            // What is allowed needs one reason, and none beside a no.
            Ruling::Allow => kept.is_empty(),
            _ => !kept.contains(&reason),
        };
        if is_news {
            kept.push(reason);
        }
    }
    judgement.reasons = kept;
    judgement
}
