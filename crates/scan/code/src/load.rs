//! Rules that a user wrote: read, checked, and tried on their own examples before they are used.

use std::borrow::Cow;

use model::Severity;

use crate::file::{File, LABELS, LANGUAGES, SEVERITIES, WrittenRule, bits, widened};
use crate::rule::{Kind, List, Rule, When};
use crate::rules::{Rules, compiled};
use crate::{Language, Scanner, Source};

/// Rules of a user, all files together.
const MOST: usize = 10_000;

/// Why a file of rules is not used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}:{line}: {what}; hint: {hint}")]
pub struct Wrong {
    pub file: String,
    pub line: usize,
    pub what: String,
    pub hint: String,
}

impl Rules {
    /// The built-in rules and those of `files`, each a name and its text. One that is wrong is refused with all others.
    pub fn with(files: &[(&str, &str)]) -> Result<Rules, Wrong> {
        let mut own = Vec::new();
        let mut examples = Vec::new();
        for (name, text) in files {
            let file: File = toml::from_str(text).map_err(|error| misread(name, text, &error))?;
            if !file.origin.is_empty() || !file.runs.is_empty() {
                return Err(Wrong {
                    file: (*name).to_owned(),
                    line: 1,
                    what: "`origin` and `runs` are for the built-in rules".to_owned(),
                    hint: "write `[[rule]]` only".to_owned(),
                });
            }
            for rule in file.rule {
                let line = line_of(text, rule.span().start);
                let wrong = |what: String, hint: String| Wrong { file: (*name).to_owned(), line, what, hint };
                let written = rule.into_inner();
                if own.len() >= MOST {
                    return Err(wrong(format!("there are more than {MOST} rules"), "use fewer".to_owned()));
                }
                let made = made(&file.class, &written).map_err(|(what, hint)| wrong(what, hint))?;
                if Rules::built_in().list().any(|known| known.id == made.id)
                    || own.iter().any(|known: &Rule| known.id == made.id)
                {
                    return Err(wrong(
                        format!("there is a rule `{}` already", made.id),
                        "give it another `id`".to_owned(),
                    ));
                }
                examples.push((*name, line, made.id.to_string(), made.languages, written.matches, written.passes));
                own.push(made);
            }
        }
        let rules = Rules::of(own);
        for (file, line, id, languages, matches, passes) in examples {
            if let Err(what) = tried(&rules, &id, languages, &matches, &passes) {
                let hint = "change the rule or the example, so that they agree".to_owned();
                return Err(Wrong { file: file.to_owned(), line, what, hint });
            }
        }
        Ok(rules)
    }
}

/// Do the examples of a rule agree with it, in each of its languages?
pub(crate) fn tried(
    rules: &Rules,
    id: &str,
    languages: u16,
    matches: &[String],
    passes: &[String],
) -> Result<(), String> {
    if matches.is_empty() || passes.is_empty() {
        return Err(format!("`{id}` has no examples under `matches` or under `passes`"));
    }
    let scanner = Scanner::new(rules);
    // A rule for all languages is tried as plain text.
    let tried_in: Vec<Language> = match languages & Language::Text.bit() != 0 {
        true => vec![Language::Text],
        false => Language::ALL.into_iter().filter(|language| languages & language.bit() != 0).collect(),
    };
    for language in tried_in {
        for (examples, wanted) in [(matches, true), (passes, false)] {
            for example in examples {
                let source = Source { name: "example", language: Some(language), bytes: example.as_bytes() };
                let found = scanner.scan(&source).findings.iter().any(|finding| finding.rule == id);
                if found != wanted {
                    let does = if wanted { "does not match" } else { "matches" };
                    return Err(format!("`{id}` {does} its example for {}: {example:?}", language.name()));
                }
            }
        }
    }
    Ok(())
}

fn made(class: &str, written: &WrittenRule) -> Result<Rule, (String, String)> {
    let id = format!("{class}.{}", written.id);
    let languages = bits(&written.languages, LANGUAGES).map_err(|name| unknown(&id, "language", name, LANGUAGES))?;
    let severity = match SEVERITIES.iter().position(|known| *known == written.severity) {
        Some(place) => Severity::ALL[place],
        None => return Err(unknown(&id, "severity", &written.severity, SEVERITIES)),
    };
    let when = &written.when;
    let from = bits(&when.from, LABELS).map_err(|name| unknown(&id, "label", name, LABELS))?;
    let one = |text: &String| if text.is_empty() { Vec::new() } else { vec![text.clone()] };
    let mut kinds: Vec<(Kind, Vec<String>)> = vec![
        (Kind::Call, when.call.clone()),
        (Kind::Import, when.import.clone()),
        (Kind::Read, when.read.clone()),
        (Kind::String, one(&when.string)),
        (Kind::Text, one(&when.text)),
        (Kind::Program, when.program.clone()),
    ];
    kinds.retain(|(_, names)| !names.is_empty());
    let (kind, names) = match (kinds.pop(), kinds.pop()) {
        (Some(kind), None) => kind,
        _ => {
            let hint = "`when` asks for one of call, import, read, string, text, program".to_owned();
            return Err((format!("`{id}` does not say what it looks for, or more than one thing"), hint));
        }
    };
    if matches!(kind, Kind::String | Kind::Text) && when.hints.is_empty() {
        let hint = "add `hints = [\"word\"]`: lower-case words of which one always occurs".to_owned();
        return Err((format!("`{id}` looks at all text without a hint"), hint));
    }
    for pattern in [&when.matches, &when.unless, &when.value, &when.writes, &when.string, &when.text] {
        compiled(pattern)
            .map_err(|error| (format!("`{id}` has a pattern that is none: {error}"), "mend the pattern".to_owned()))?;
    }
    let list = |names: &[String]| -> List { names.iter().map(|name| Cow::Owned(name.clone())).collect() };
    let own = |text: &String| Cow::Owned(text.clone());
    Ok(Rule {
        class: Cow::Owned(class.to_owned()),
        severity,
        cwe: written.cwe,
        languages: widened(languages),
        message: own(&written.message),
        fix: own(&written.fix),
        when: When {
            kind,
            names: list(&names),
            hints: list(&when.hints),
            argument: when.argument,
            matches: own(&when.matches),
            unless: own(&when.unless),
            constant: when.constant,
            keyword: own(&when.keyword),
            value: own(&when.value),
            from,
            fed: when.fed,
            writes: own(&when.writes),
        },
        id: Cow::Owned(id),
    })
}

fn unknown(id: &str, what: &str, name: &str, known: &[&str]) -> (String, String) {
    (format!("`{id}`: there is no {what} `{name}`"), nearest(name, known))
}

fn nearest(name: &str, known: &[&str]) -> String {
    let best = known
        .iter()
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .max_by(|one, other| one.0.total_cmp(&other.0));
    match best {
        Some((likeness, known)) if likeness > 0.8 => format!("did you mean `{known}`?"),
        _ => format!("one of: {}", known.join(", ")),
    }
}

fn misread(name: &str, text: &str, error: &toml::de::Error) -> Wrong {
    let line = error.span().map_or(1, |span| line_of(text, span.start));
    let message = error.message();
    // serde names the key and those it knows between backquotes.
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let hint = match quoted.as_slice() {
        [key, known @ ..] if message.starts_with("unknown field") => nearest(key, known),
        _ => "see docs/scan.md for what a rule is made of".to_owned(),
    };
    Wrong { file: name.to_owned(), line, what: message.to_owned(), hint }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = r#"
class = "mine"
[[rule]]
id = "no-foo"
severity = "high"
languages = ["python"]
message = "foo is not ours"
fix = "use bar"
when = { call = ["foo.run"] }
matches = ["import foo\nfoo.run()", "from foo import run as r\nr()"]
passes = ["import bar\nbar.run()"]
"#;

    #[test]
    fn every_built_in_rule_agrees_with_its_examples() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
        let mut wrong = Vec::new();
        let mut count = 0;
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a file");
            let file: File = toml::from_str(&text).expect("rules");
            for rule in file.rule {
                let rule = rule.into_inner();
                let made = made(&file.class, &rule).expect("a rule");
                count += 1;
                if let Err(what) = tried(Rules::built_in(), &made.id, made.languages, &rule.matches, &rule.passes) {
                    wrong.push(what);
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(count, Rules::built_in().count());
    }

    #[test]
    fn a_users_rule_is_used_like_ours() {
        let rules = Rules::with(&[("mine.toml", RULE)]).expect("it is right");
        let source = Source { name: "x.py", language: None, bytes: b"import foo as f\nf.run(1)" };
        let found = Scanner::new(&rules).scan(&source).findings;
        assert!(found.iter().any(|finding| finding.rule == "mine.no-foo" && finding.at.line == 2), "{found:?}");
    }

    #[test]
    fn a_wrong_rule_is_refused_with_its_place_and_a_hint() {
        for (from, to, line, what, hint) in [
            ("severity", "severty", 4, "unknown field", "did you mean `severity`?"),
            ("\"high\"", "\"hihg\"", 3, "no severity", "did you mean `high`?"),
            ("\"python\"", "\"pyton\"", 3, "no language", "did you mean `python`?"),
            ("import bar\\nbar", "import foo\\nfoo", 3, "matches its example", "agree"),
            ("foo.run()\", \"from", "fo.run()\", \"from", 3, "does not match", "agree"),
            ("when = { call = [\"foo.run\"] }", "when = {}", 3, "what it looks for", "one of call"),
            ("when = { call = [\"foo.run\"] }", "when = { text = \"(\", hints = [\"a\"] }", 3, "pattern", "mend"),
        ] {
            let text = RULE.replacen(from, to, 1);
            assert_ne!(text, RULE);
            let wrong = Rules::with(&[("mine.toml", &text)]).err().expect("it is wrong");
            assert!(wrong.what.contains(what) && wrong.hint.contains(hint), "{wrong:?}");
            assert!(wrong.line >= line.min(3), "{wrong:?}");
        }
    }
}
