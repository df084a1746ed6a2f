//! What a policy makes of findings. They raise a verdict, and what isolation is demanded; they never lower anything.

use model::{Action, Finding, Reason, Ruling, Severity, Strength};

use crate::pattern::Care;
use crate::policy::{Policy, Voice};

impl Policy {
    /// What all voices say about what was found.
    pub fn weigh_findings(&self, findings: &[Finding]) -> Vec<Reason> {
        let said = |finding| self.voices.iter().filter_map(move |voice| voice.says_to(finding));
        findings.iter().flat_map(said).collect()
    }

    /// The same for a file that would leave. Where nobody says what is to be done about grave findings, it stays.
    pub fn weigh_release(&self, findings: &[Finding]) -> Vec<Reason> {
        let is_spoken_of = |finding: &Finding| self.voices.iter().any(|voice| voice.speaks_of(finding));
        let built_in = |finding: &&Finding| finding.severity >= Severity::High && !is_spoken_of(finding);
        let stays = findings.iter().filter(built_in).map(|finding| reason(finding, Ruling::Deny, "built in"));
        let mut reasons = self.weigh_findings(findings);
        reasons.extend(stays);
        reasons.into_iter().map(|reason| Reason { action: Action::Release, ..reason }).collect()
    }

    /// The weakest isolation in which code with these findings may run.
    pub fn isolation_for(&self, findings: &[Finding]) -> Strength {
        let demanded = findings.iter().flat_map(|finding| self.voices.iter().map(move |voice| (voice, finding)));
        demanded.filter_map(|(voice, finding)| voice.demands(finding)).max().unwrap_or_default()
    }

    /// Whether secrets are taken out of what a sandbox says: unless everybody who speaks of it says no.
    pub fn redacts(&self) -> bool {
        let mut said = self.voices.iter().filter_map(|voice| voice.sheet.settings.redact).peekable();
        said.peek().is_none() || said.any(|redact| redact)
    }
}

impl Voice {
    fn says_to(&self, finding: &Finding) -> Option<Reason> {
        let ruling = self.sheet.settings.findings.rulings[place(finding.severity)]?;
        if ruling == Ruling::Allow || self.ignores(finding) {
            return None;
        }
        Some(reason(finding, ruling, self.owner.name()))
    }

    fn speaks_of(&self, finding: &Finding) -> bool {
        self.sheet.settings.findings.rulings[place(finding.severity)].is_some() || self.ignores(finding)
    }

    fn demands(&self, finding: &Finding) -> Option<Strength> {
        let demanded = self.sheet.settings.findings.isolation[place(finding.severity)]?;
        (!self.ignores(finding)).then_some(demanded)
    }

    fn ignores(&self, finding: &Finding) -> bool {
        let Finding { rule, class, .. } = finding;
        let ignore = &self.sheet.settings.findings.ignore;
        ignore.iter().any(|glob| glob.matches(rule, Care::Exact) || glob.matches(class, Care::Exact))
    }
}

fn reason(finding: &Finding, ruling: Ruling, place: &str) -> Reason {
    let Finding { rule, severity, message, at, .. } = finding;
    // It is shown between marks of its own.
    let about = at.shown().replace('`', "");
    Reason {
        ruling,
        rule: format!("findings.{}", severity.name()),
        place: place.to_owned(),
        why: format!("{message} ({rule})"),
        action: Action::Code,
        about,
        grant: format!("do without it; or, if it is no danger: [findings] ignore = [\"{rule}\"]"),
    }
}

fn place(severity: Severity) -> usize {
    severity as usize
}

#[cfg(test)]
mod tests {
    use model::Spot;

    use super::*;
    use crate::reader::Source;

    fn policy(text: &str) -> Policy {
        let text = format!("version = 1\n{text}");
        Policy::of_one_file(Source { file: "/p/policy.toml", text: &text }, "/home/ann").expect("a policy")
    }

    fn finding(rule: &str, severity: Severity) -> Finding {
        Finding {
            rule: rule.to_owned(),
            class: "process".to_owned(),
            severity,
            cwe: None,
            message: "it starts a shell".to_owned(),
            fix: String::new(),
            at: Spot { name: "x.py".to_owned(), line: 3, column: 1, ..Spot::default() },
            excerpt: String::new(),
        }
    }

    #[test]
    fn findings_raise_by_how_grave_they_are_and_never_allow() {
        let policy = policy("[findings]\ncritical = \"deny\"\nhigh = \"ask\"\nmedium = \"allow\"\n");
        let said = |severity| policy.weigh_findings(&[finding("a", severity)]).first().map(|reason| reason.ruling);
        assert_eq!(said(Severity::Critical), Some(Ruling::Deny));
        assert_eq!(said(Severity::High), Some(Ruling::Ask));
        // A yes would be heard beside others, and is none that anybody gave.
        assert_eq!(said(Severity::Medium), None);
        assert_eq!(said(Severity::Low), None);
    }

    #[test]
    fn what_is_ignored_by_rule_or_class_is_only_told() {
        for ignore in ["python.process.*", "process", "*"] {
            let policy = policy(&format!("[findings]\nhigh = \"deny\"\nignore = [\"{ignore}\"]\n"));
            assert_eq!(policy.weigh_findings(&[finding("python.process.system", Severity::High)]), [], "{ignore}");
        }
        let policy = policy("[findings]\nhigh = \"deny\"\nignore = [\"python.network.*\"]\n");
        assert_eq!(policy.weigh_findings(&[finding("python.process.system", Severity::High)]).len(), 1);
    }

    #[test]
    fn findings_demand_isolation() {
        let policy = policy("[findings.isolation]\nhigh = \"user-kernel\"\ncritical = \"machine\"\n");
        let demanded = |severity| policy.isolation_for(&[finding("a", Severity::Low), finding("b", severity)]);
        assert_eq!(demanded(Severity::Low), Strength::Namespaces);
        assert_eq!(demanded(Severity::High), Strength::UserKernel);
        assert_eq!(demanded(Severity::Critical), Strength::Machine);
    }

    #[test]
    fn a_file_with_grave_findings_stays_unless_somebody_says_otherwise() {
        let grave = [finding("malware.test", Severity::High)];
        let rulings =
            |policy: &Policy| policy.weigh_release(&grave).iter().map(|reason| reason.ruling).collect::<Vec<_>>();
        assert_eq!(rulings(&Policy::built_in()), [Ruling::Deny]);
        assert_eq!(rulings(&policy("")), [Ruling::Deny]);
        assert_eq!(rulings(&policy("[findings]\nhigh = \"allow\"\n")), []);
        assert_eq!(rulings(&policy("[findings]\nhigh = \"ask\"\n")), [Ruling::Ask]);
        assert_eq!(rulings(&policy("[findings]\nignore = [\"malware.*\"]\n")), []);
        assert_eq!(Policy::built_in().weigh_release(&[finding("a", Severity::Medium)]), []);
    }

    #[test]
    fn secrets_are_taken_out_unless_an_owner_says_no() {
        assert!(policy("").redacts());
        assert!(policy("[release]\nredact = true\n").redacts());
        assert!(!policy("[release]\nredact = false\n").redacts());
        assert!(Policy::built_in().redacts());
    }
}
