//! Names under `[findings] ignore` that no finding has: a slip of the pen there is a guard that nobody called off.

use code::Rules;
use model::Remark;
use secrets::Formats;

/// Found by other means than rules of their own.
const NOTES: &[&str] = &["install.script", "install.runs", "install.own-backend", "obfuscation.hidden-code"];
/// Kinds of findings of which all names count: those of archives, of YARA rules, of the scan itself.
const FAMILIES: &[&str] = &["archive", "kind", "malware", "scan", "secret", "unparsable", "unreadable", "yara"];

/// What is odd about the names that a policy's text ignores.
pub fn remarks(file: &str, text: &str, rules: &Rules, formats: &Formats) -> Vec<Remark> {
    let Ok(table) = text.parse::<toml::Table>() else { return Vec::new() };
    let ignored = table.get("findings").and_then(|findings| findings.get("ignore")).and_then(|list| list.as_array());
    let names = ignored.into_iter().flatten().filter_map(|name| name.as_str());
    let remark = |name: &str| {
        let line = text.lines().position(|line| line.contains(name)).map_or(1, |line| line + 1);
        let message =
            format!("`{name}` under `ignore` is no rule and no class of findings; see `belljar scan --rules`");
        Remark { is_error: false, place: format!("{file}:{line}"), message }
    };
    names.filter(|name| !is_known(name, rules, formats)).map(remark).collect()
}

fn is_known(name: &str, rules: &Rules, formats: &Formats) -> bool {
    let family = name.split('.').next().unwrap_or(name);
    if FAMILIES.contains(&family) || NOTES.contains(&name) || family.contains(['*', '?']) {
        return true;
    }
    // Of a pattern, what stands before its first sign must be the beginning of a name.
    let (start, is_pattern) = match name.find(['*', '?', '[', '{']) {
        Some(at) => (&name[..at], true),
        None => (name, false),
    };
    let fits = |known: &str| if is_pattern { known.starts_with(start) } else { known == start };
    rules.list().any(|rule| fits(rule.id) || fits(rule.class)) || formats.iter().any(|format| fits(&format.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ignore: &str) -> Vec<Remark> {
        let text = format!("version = 1\n[findings]\nhigh = \"ask\"\nignore = [\"{ignore}\"]\n");
        remarks("p.toml", &text, Rules::built_in(), &Formats::built_in())
    }

    #[test]
    fn a_name_that_no_finding_has_is_remarked_with_its_line() {
        for unknown in ["exfiltration.pyton-secret", "exfil", "exfill.*", "proces"] {
            let remarks = of(unknown);
            assert_eq!(remarks.len(), 1, "{unknown}");
            assert_eq!((remarks[0].place.as_str(), remarks[0].is_error), ("p.toml:4", false));
        }
    }

    #[test]
    fn names_patterns_and_classes_of_findings_are_known() {
        for known in
            ["exfiltration.python-secret", "exfiltration.*", "process", "*", "install.runs", "archive.bomb", "secret"]
        {
            assert_eq!(of(known), [], "{known}");
        }
    }
}
