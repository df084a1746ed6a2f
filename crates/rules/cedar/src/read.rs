//! Text to rules. Whatever is not understood, never applies or could be misread is an error with its line.

use std::collections::HashMap;
use std::sync::LazyLock;

use cedar_policy::{
    Effect, Policy, PolicyId, PolicySet, PrincipalConstraint, Schema, ValidationMode, ValidationWarning, Validator,
};
use miette::Diagnostic;
use model::{BadRules, RuleText, Ruling};

use crate::outline::{Statement, is_hidden, outline};
use crate::rules::{Rule, Rules};
use crate::vocabulary::{SCHEMA_JSON, Vocabulary, host_name, is_plain_path};

/// Of all files together.
const MOST_BYTES: usize = 1 << 20;
const ANNOTATIONS: [&str; 3] = ["id", "ask", "why"];
/// How names begin that we give.
const OURS: &str = "cedar.";

/// What is looked at. Half of the time of a start goes to the schema and to holding rules against it, which has the same result for the
/// same text; everything else is always done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    All,
    /// Somebody has seen to that before.
    NotAgainstSchema,
}

pub(crate) fn read(files: &[RuleText<'_>], check: Check) -> Result<Rules, BadRules> {
    small_enough(files)?;
    let mut rules: Vec<Rule> = Vec::new();
    let mut names: HashMap<String, usize> = HashMap::new();
    let words = words()?;
    let validator = if check == Check::All { Some(validator()?) } else { None };
    for file in files {
        for (policy, statement) in policies(file)? {
            let rule = rule(policy, &statement, file, rules.len() + 1)?;
            if let Some(other) = names.insert(rule.name.clone(), rules.len()) {
                let message = format!("another rule is called `{}` already: {}", rule.name, rules[other].place());
                return Err(bad(file, statement.start, message, "give each rule its own `@id`"));
            }
            matchable(&rule, file, statement.start)?;
            if let Some(validator) = validator {
                valid(&rule, file, validator)?;
            }
            rules.push(rule);
        }
    }
    Ok(Rules::new(words, rules))
}

fn small_enough(files: &[RuleText<'_>]) -> Result<(), BadRules> {
    let mut all = 0;
    for file in files {
        all += file.text.len();
        if all > MOST_BYTES {
            let message = format!("with this file, the rules have more than {MOST_BYTES} bytes");
            return Err(bad(file, 0, message, "say it in fewer rules"));
        }
    }
    Ok(())
}

/// Made once: rules of several owners are read one after the other. Ours, so it is in order; where it is not, nothing
/// is read.
fn validator() -> Result<&'static Validator, BadRules> {
    static VALIDATOR: LazyLock<Result<Validator, String>> =
        LazyLock::new(|| Schema::from_json_str(SCHEMA_JSON).map(Validator::new).map_err(|error| error.to_string()));
    VALIDATOR.as_ref().map_err(|error| ours("schema.json", SCHEMA_JSON, error))
}

fn words() -> Result<&'static Vocabulary, BadRules> {
    static WORDS: LazyLock<Result<Vocabulary, String>> = LazyLock::new(Vocabulary::read);
    WORDS.as_ref().map_err(|error| ours("words", "", error))
}

fn ours(file: &str, text: &str, error: &str) -> BadRules {
    bad(&RuleText { file, text }, 0, error.to_owned(), "this is a mistake in belljar")
}

/// The policies of a file in their order, each with its place.
fn policies(file: &RuleText<'_>) -> Result<Vec<(Policy, Statement)>, BadRules> {
    let statements = outline(file.text).map_err(|unfit| bad(file, unfit.at, unfit.message, unfit.hint))?;
    let set: PolicySet = file.text.parse().map_err(|errors: cedar_policy::ParseErrors| {
        let first = errors.iter().min_by_key(|error| start_of(*error).unwrap_or(usize::MAX));
        let (message, hint) = first.map_or_else(|| (errors.to_string(), String::new()), |error| told(error));
        bad(file, first.and_then(|error| start_of(error)).unwrap_or(0), message, &hint)
    })?;
    // Cedar calls the first `policy0`, the next `policy1`, and so on.
    let mut found = Vec::with_capacity(statements.len());
    for (number, statement) in statements.into_iter().enumerate() {
        let id = PolicyId::new(format!("policy{number}"));
        if set.template(&id).is_some() {
            let hint = "write what `?principal` or `?resource` stands for";
            return Err(bad(file, statement.start, "a template is no rule".to_owned(), hint));
        }
        let missing = || bad(file, statement.start, "this is no policy".to_owned(), "end each policy with `;`");
        found.push((set.policy(&id).cloned().ok_or_else(missing)?, statement));
    }
    if found.len() != set.num_of_policies() + set.num_of_templates() {
        return Err(bad(file, 0, "not every policy has a place".to_owned(), "write one policy after the other"));
    }
    Ok(found)
}

fn rule(policy: Policy, statement: &Statement, file: &RuleText<'_>, number: usize) -> Result<Rule, BadRules> {
    let (mut id, mut asks, mut why) = (None, None, None);
    for (name, value) in policy.annotations() {
        let at = statement.annotations.iter().find(|(known, _)| known == name).map_or(statement.start, |(_, at)| *at);
        // To ask Cedar for one by its name takes far longer.
        match name {
            "id" => id = Some(value),
            "ask" => asks = Some(value),
            "why" => why = Some(value),
            _ => return Err(bad(file, at, format!("`@{name}` means nothing here"), &nearest(name))),
        }
        if value.is_empty() && name != "ask" {
            let hint = format!("write `@{name}(\"…\")`");
            return Err(bad(file, at, format!("`@{name}` says nothing"), &hint));
        }
        if value.chars().any(is_hidden) {
            let hint = "write it in one line, in letters that can be seen";
            return Err(bad(file, at, format!("`@{name}` has a letter that can't be seen"), hint));
        }
        if name == "id" && !is_name(value) {
            let hint = format!("letters, digits, `.`, `-` and `_`, and no `{OURS}` at the start");
            return Err(bad(file, at, "this is no name for a rule".to_owned(), &hint));
        }
    }
    let name = id.map_or_else(|| format!("{OURS}{number}"), str::to_owned);
    let ruling = match (asks, policy.effect()) {
        (Some(_), _) => Ruling::Ask,
        (None, Effect::Permit) => Ruling::Allow,
        (None, Effect::Forbid) => Ruling::Deny,
    };
    let why = asks.filter(|why| !why.is_empty()).or(why);
    let why = why.map_or_else(|| plain_reason(&name, ruling), str::to_owned);
    // Its scope has the word once.
    let of_anyone = statement.principals == 1 && policy.principal_constraint() == PrincipalConstraint::Any;
    let policy = policy.new_id(PolicyId::new(&name));
    Ok(Rule { name, file: file.file.to_owned(), line: statement.line, ruling, why, of_anyone, policy })
}

fn plain_reason(name: &str, ruling: Ruling) -> String {
    match ruling {
        Ruling::Allow => format!("`{name}` permits it"),
        Ruling::Ask => format!("`{name}` wants a person to agree"),
        Ruling::Deny => format!("`{name}` forbids it"),
    }
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
        && !text.starts_with(OURS)
}

fn nearest(name: &str) -> String {
    match ANNOTATIONS.into_iter().min_by_key(|known| distance(name, known)) {
        Some(known) if distance(name, known) <= 2 => format!("did you mean `@{known}`?"),
        _ => "known are `@id`, `@ask` and `@why`".to_owned(),
    }
}

/// How many letters must be added, removed or changed.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (up, letter) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], up + 1);
        for (left, same) in other.chars().map(|other| other == letter).enumerate() {
            let least = (corner + usize::from(!same)).min(row[left] + 1).min(row[left + 1] + 1);
            corner = std::mem::replace(&mut row[left + 1], least);
        }
    }
    row[row.len() - 1]
}

/// A host or path that is written in another way than we ask in would never match.
fn matchable(rule: &Rule, file: &RuleText<'_>, at: usize) -> Result<(), BadRules> {
    for named in rule.policy.entity_literals() {
        let id = named.id().unescaped();
        let (fits, hint) = match named.type_name().basename() {
            "Host" | "Domain" => {
                (host_name(id).as_deref() == Some(id), "names of hosts are in lower case, in ASCII, without a last dot")
            }
            "Path" => {
                (is_plain_path(id), "paths are absolute, without `.`, `..`, doubled slashes or a slash at the end")
            }
            _ => (true, ""),
        };
        if !fits {
            return Err(bad(file, at, format!("`{named}` never matches anything"), hint));
        }
    }
    Ok(())
}

/// Strictly, and without a warning: a policy that never applies is a hole that looks like a wall. One at a time, since
/// the validator takes long over many mistakes, and the first is enough.
fn valid(rule: &Rule, file: &RuleText<'_>, validator: &Validator) -> Result<(), BadRules> {
    let complaint = |at: Option<usize>, message: String, hint: String| BadRules {
        file: rule.file.clone(),
        line: at.map_or(rule.line, |at| line_of(file.text, at)),
        message,
        hint,
    };
    let set = PolicySet::from_policies([rule.policy.clone()])
        .map_err(|error| complaint(None, error.to_string(), String::new()))?;
    let result = validator.validate(&set, ValidationMode::Strict);
    let errors = result.validation_errors().map(|error| (0, error as &dyn Diagnostic));
    // That a policy can't apply says least: it often follows from something else.
    let warnings = result.validation_warnings().map(|warning| {
        (if matches!(warning, ValidationWarning::ImpossiblePolicy(_)) { 2 } else { 1 }, warning as &dyn Diagnostic)
    });
    // The validator has no order of its own.
    let first = errors.chain(warnings).min_by_key(|(rank, problem)| (*rank, start_of(*problem), problem.to_string()));
    first.map_or(Ok(()), |(_, problem)| {
        let (message, hint) = told(problem);
        Err(complaint(start_of(problem), message, hint))
    })
}

/// One line of text, and another of advice: what Cedar has of it, or what it expected instead.
fn told(problem: &dyn Diagnostic) -> (String, String) {
    let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = || problem.labels()?.find_map(|label| label.label().map(str::to_owned));
    let hint = problem.help().map(|help| help.to_string()).or_else(expected);
    (one_line(problem.to_string()), one_line(hint.unwrap_or_default()))
}

fn start_of(problem: &dyn Diagnostic) -> Option<usize> {
    problem.labels()?.map(|label| label.offset()).min()
}

fn bad(file: &RuleText<'_>, at: usize, message: String, hint: &str) -> BadRules {
    BadRules { file: file.file.to_owned(), line: line_of(file.text, at), message, hint: hint.to_owned() }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
