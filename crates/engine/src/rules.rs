//! What scanners look for besides what is ours: rules, formats of secrets and YARA rules of the machine's and the user's.
//!
//! They can only add findings, so a folder that a variable names may add some too.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use code::Rules;
use model::{RuleInfo, Trouble};
use secrets::Formats;

use crate::policies::{self, MANAGED};
use crate::user::User;

/// Folders beside a policy.
const SCAN: &str = "scan";
const SECRETS: &str = "secrets";

/// Every file with this ending in a folder of this name: first the machine's, then the user's.
pub fn texts(folder: &str, extension: &str) -> Result<Vec<(String, String)>, Trouble> {
    let mut texts = policies::rule_files(&Path::new(MANAGED).join(folder), extension).map_err(policies::trouble)?;
    for settings in policies::config_folders(&User::of_the_process()) {
        texts.extend(policies::rule_files(&settings.join(folder), extension).map_err(policies::trouble)?);
    }
    Ok(texts)
}

/// Formats of secrets, if there are more than ours: to read ours takes time that most runs do not need to spend.
pub fn own_formats() -> Result<Option<Formats>, Trouble> {
    let texts = texts(SECRETS, "toml")?;
    if texts.is_empty() {
        return Ok(None);
    }
    let texts: Vec<(&str, &str)> = texts.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    Formats::with(&texts).map(Some).map_err(|bad| Trouble {
        message: bad.to_string(),
        fix: "mend it: nothing runs with a format that can't be understood".to_owned(),
    })
}

/// Those that were read last, and what they were read from.
static READ: Mutex<Option<(Texts, &'static Rules)>> = Mutex::new(None);

type Texts = Vec<(String, String)>;

/// Rules for programs: the very same ones for as long as their files say the same, so that whoever knows some can see whether they
/// are still those.
pub fn load() -> Result<&'static Rules, Trouble> {
    if !code::prepare() {
        let message = "the scanner's patterns do not work here".to_owned();
        return Err(Trouble { message, fix: "please report this".to_owned() });
    }
    let texts = texts(SCAN, "toml")?;
    if texts.is_empty() {
        return Ok(Rules::built_in());
    }
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, rules)) = read.as_ref().filter(|(known, _)| *known == texts) {
        return Ok(rules);
    }
    let borrowed: Vec<(&str, &str)> = texts.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    let rules = Rules::with(&borrowed).map_err(|bad| Trouble {
        message: bad.to_string(),
        fix: "mend it: nothing runs with a rule that can't be understood".to_owned(),
    })?;
    // Never freed: once more for each change of the files.
    let rules: &'static Rules = Box::leak(Box::new(rules));
    *read = Some((texts, rules));
    Ok(rules)
}

pub fn info(rule: code::Listed<'_>) -> RuleInfo {
    let code::Listed { id, class, severity, languages, message } = rule;
    let languages = languages.iter().map(|language| language.name().to_owned()).collect();
    RuleInfo { id: id.to_owned(), class: class.to_owned(), severity, languages, message: message.to_owned() }
}
