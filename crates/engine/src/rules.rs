//! The scanner's rules: ours, and those that the machine and the user have added.

use std::path::Path;
use std::sync::OnceLock;

use code::Rules;
use model::{RuleInfo, Trouble};

use crate::policies::{self, MANAGED};
use crate::user::User;

/// Beside a policy: every `*.toml` in it.
const FOLDER: &str = "scan";

/// Read once. Rules can only add findings, so a folder that a variable names may add some too.
pub fn load() -> Result<&'static Rules, Trouble> {
    static RULES: OnceLock<Rules> = OnceLock::new();
    if let Some(rules) = RULES.get() {
        return Ok(rules);
    }
    let user = User::of_the_process();
    let folders = policies::config_folders(&user);
    let mut texts = policies::rule_files(&Path::new(MANAGED).join(FOLDER), "toml").map_err(policies::trouble)?;
    for folder in &folders {
        texts.extend(policies::rule_files(&folder.join(FOLDER), "toml").map_err(policies::trouble)?);
    }
    if texts.is_empty() {
        return Ok(Rules::built_in());
    }
    let texts: Vec<(&str, &str)> = texts.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    let rules = Rules::with(&texts).map_err(|bad| Trouble {
        message: bad.to_string(),
        fix: "mend it: nothing runs with a rule that can't be understood".to_owned(),
    })?;
    Ok(RULES.get_or_init(|| rules))
}

pub fn info(rule: code::Listed<'_>) -> RuleInfo {
    let code::Listed { id, class, severity, languages, message } = rule;
    let languages = languages.iter().map(|language| language.name().to_owned()).collect();
    RuleInfo { id: id.to_owned(), class: class.to_owned(), severity, languages, message: message.to_owned() }
}
