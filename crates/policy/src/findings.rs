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
        let Finding { rule, severity, message, at, .. } = finding;
        Some(Reason {
            ruling,
            rule: format!("findings.{}", severity.name()),
            place: self.owner.name().to_owned(),
            why: format!("{message} ({rule})"),
            action: Action::Code,
            about: format!("{}:{}:{}", at.name, at.line, at.column),
            grant: format!("do without it; or, if it is no danger: [findings] ignore = [\"{rule}\"]"),
        })
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

fn place(severity: Severity) -> usize {
    severity as usize
}
