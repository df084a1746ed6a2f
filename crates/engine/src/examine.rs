//! What is in a file that would leave: its kind, secrets, malware, and what an archive holds. Looked at by a child that
//! can only compute, one for each file: whoever took over the reader of one can't speak of the next.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

use malware::archive::Limits;
use malware::yara::{Bounds, RuleText, Rules};
use malware::{Report, report};
use model::{Examined, Examiner, Finding, Severity, Spot, Trouble};
use secrets::{Formats, Redactor};
use sys::confined::{self, Confinement};

use crate::told::Telling;
use crate::{release, rules};

/// Beside a policy: every `*.yar` in it.
const FOLDER: &str = "yara";
/// The reader holds the file, and what it unpacks of it.
const MEMORY: u64 = 1 << 30;
const TIME: Duration = Duration::from_secs(60);
/// Findings of secrets of one file: more do not make it worse.
const MOST_SECRETS: usize = 50;

pub struct Scanners;

impl Examiner for Scanners {
    fn examine(&self, name: &str, contents: &File, size: u64) -> Result<Examined, Trouble> {
        let rules = yara_rules()?;
        let formats = rules::own_formats()?.unwrap_or_else(Formats::built_in);
        let confinement =
            Confinement { memory: MEMORY.saturating_add(size.saturating_mul(2)), time: TIME, answer: report::LONGEST };
        let answer = confined::run_on(contents.as_fd(), &confinement, |mut file| {
            let mut bytes = Vec::new();
            match file.read_to_end(&mut bytes) {
                Ok(_) => looked_at(&bytes, name, rules, &formats).to_bytes(),
                // No answer is none that says that all is well.
                Err(_) => Vec::new(),
            }
        });
        let cannot = |why: String| Trouble { message: why, fix: "look at it inside the sandbox".to_owned() };
        let answer = answer.map_err(|ended| cannot(ended.to_string()))?;
        let report = Report::from_bytes(&answer).map_err(|error| cannot(error.to_string()))?;
        let mut findings = report.findings;
        Telling::of_the_process().findings(&mut findings);
        Ok(Examined { kind: report.kind.mime().to_owned(), findings })
    }
}

fn looked_at(bytes: &[u8], name: &str, rules: &Rules, formats: &Formats) -> Report {
    let mut report = malware::examine(bytes, name, rules, &Limits::default(), &Bounds::default());
    report.findings.extend(secrets::find_in(name, bytes, formats).into_iter().take(MOST_SECRETS));
    report.findings.extend(known_values(bytes, name));
    report
}

/// Values of the caller's that are secrets by their names, in any of their forms.
fn known_values(bytes: &[u8], name: &str) -> Vec<Finding> {
    let environment: Vec<_> = std::env::vars_os().collect();
    let mut redactor = Redactor::new(&release::known(&environment), None);
    let mut out = Vec::new();
    for chunk in bytes.chunks(1 << 20) {
        out.clear();
        redactor.push(chunk, &mut out);
    }
    let finding = |variable: String| Finding {
        rule: "secret.known-value".to_owned(),
        class: "secret".to_owned(),
        severity: Severity::Critical,
        cwe: Some(798),
        message: format!("the value of `{variable}` is in it"),
        fix: "leave the value out".to_owned(),
        at: Spot { name: name.to_owned(), ..Spot::default() },
        excerpt: String::new(),
    };
    redactor.finish(&mut out).counts.into_keys().map(finding).collect()
}

/// Ours, and those that the machine and the user have added. They can only add findings.
fn yara_rules() -> Result<&'static Rules, Trouble> {
    static RULES: OnceLock<Rules> = OnceLock::new();
    // Whoever reads can't ask the system any more.
    code::prepare();
    if let Some(rules) = RULES.get() {
        return Ok(rules);
    }
    let texts = rules::texts(FOLDER, "yar")?;
    if texts.is_empty() {
        return Ok(Rules::ours());
    }
    let texts: Vec<RuleText> = texts.into_iter().map(|(file, text)| RuleText { file, text }).collect();
    let rules = Rules::with(&texts).map_err(|bad| Trouble {
        message: bad.to_string(),
        fix: "mend it: nothing is released with a rule that can't be understood".to_owned(),
    })?;
    Ok(RULES.get_or_init(|| rules))
}
