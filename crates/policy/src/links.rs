//! Paths in rules that lead over links on this host. Rules are heard on both places: where it is written, and where that is.
//!
//! Nothing here looks at a disk: whoever loads a policy asks for [`Policy::beginnings`], looks them up, and tells.

use std::collections::BTreeMap;

use model::Ruling;

use crate::pattern::PathPattern;
use crate::policy::Policy;

impl Policy {
    /// Where paths of its rules begin, as far as they are written out: each once.
    pub fn beginnings(&self, workspaces: &[String]) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for voice in &self.voices {
            for rule in &voice.sheet.rules {
                found.extend(rule.conditions.paths().flat_map(|pattern| pattern.beginnings(workspaces)));
            }
            let settings = &voice.sheet.settings;
            let listed = settings.workspaces.iter().flat_map(|(patterns, _)| patterns);
            found.extend(settings.protect.iter().chain(listed).flat_map(|pattern| pattern.beginnings(workspaces)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// `links`: beginnings that are elsewhere, and where that is.
    pub fn told_of(&mut self, links: &BTreeMap<String, String>, workspaces: &[String]) {
        if links.is_empty() {
            return;
        }
        for voice in &mut self.voices {
            for rule in &mut voice.sheet.rules {
                let allows = rule.then == Ruling::Allow;
                rule.conditions.paths_mut().for_each(|pattern| learn(pattern, links, workspaces, allows));
            }
            let settings = &mut voice.sheet.settings;
            settings.protect.iter_mut().for_each(|pattern| learn(pattern, links, workspaces, false));
            let listed = settings.workspaces.iter_mut().flat_map(|(patterns, _)| patterns);
            listed.for_each(|pattern| learn(pattern, links, workspaces, true));
        }
    }
}

/// A link in a workspace is the guest's: it must not choose what is allowed.
fn learn(pattern: &mut PathPattern, links: &BTreeMap<String, String>, workspaces: &[String], allows: bool) {
    let is_within = |path: &str, folder: &String| {
        path.strip_prefix(folder.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for beginning in pattern.beginnings(workspaces) {
        let planted = allows && workspaces.iter().any(|folder| is_within(&beginning, folder));
        if let Some(real) = links.get(&beginning).filter(|_| !planted) {
            pattern.leads_to(real);
        }
    }
}
