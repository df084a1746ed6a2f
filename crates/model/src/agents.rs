//! How to tell that an agent started a program: by variables that agents set for what they start.
//!
//! A claim, not a proof: whoever starts a program chooses its variables. So it only ever narrows what may be done.

use std::ffi::OsString;

/// Variables, and who sets them. Only those that agents set for their children; settings that people keep in their own
/// shells (`CODEX_HOME`, `AIDER_MODEL`) say nothing about who is typing. An empty name: the value is the name.
pub const MARKERS: &[(&str, &str)] = &[
    ("AI_AGENT", ""),
    ("AGENT", ""),
    ("CLAUDECODE", "claude-code"),
    ("CLAUDE_CODE", "claude-code"),
    ("CLAUDE_CODE_ENTRYPOINT", "claude-code"),
    ("CODEX_SANDBOX", "codex"),
    ("CODEX_SANDBOX_NETWORK_DISABLED", "codex"),
    ("CODEX_THREAD_ID", "codex"),
    ("CODEX_CI", "codex"),
    ("GEMINI_CLI", "gemini-cli"),
    ("QWEN_CODE", "qwen-code"),
    ("CURSOR_AGENT", "cursor"),
    ("OPENCODE", "opencode"),
    ("OPENCODE_CLIENT", "opencode"),
    ("CLINE_ACTIVE", "cline"),
    ("ROO_ACTIVE", "roo-code"),
    ("GOOSE_TERMINAL", "goose"),
    ("CRUSH", "crush"),
    ("AUGMENT_AGENT", "augment"),
    ("ANTIGRAVITY_AGENT", "antigravity"),
    ("PI_CODING_AGENT", "pi"),
    ("TRAE_AI_SHELL_ID", "trae"),
];

/// Inside a sandbox of ours this is set, whoever started it.
pub const INSIDE: &str = "BELLJAR";

/// A name longer than this is cut: it goes into policies, questions and records.
const LONGEST: usize = 64;

/// Which agent started us, by its name; nothing where no marker says so. A marker without a value counts too.
pub fn detected(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Option<String> {
    let environment: Vec<(OsString, OsString)> = environment.into_iter().collect();
    MARKERS.iter().find_map(|(marker, agent)| {
        let (_, value) = environment.iter().find(|(name, _)| name == marker)?;
        Some(if agent.is_empty() { plain(&value.to_string_lossy()) } else { (*agent).to_owned() })
    })
}

/// Whether a process with these variables is inside a sandbox of ours.
pub fn is_inside(environment: impl IntoIterator<Item = (OsString, OsString)>) -> bool {
    environment.into_iter().any(|(name, _)| name == INSIDE)
}

/// Who it is that is no person, as far as these variables tell: such a process answers no question and trusts no policy.
pub fn no_person(environment: &[(OsString, OsString)]) -> Option<String> {
    if is_inside(environment.iter().cloned()) {
        return Some("a process inside a sandbox".to_owned());
    }
    detected(environment.iter().cloned()).map(|agent| format!("the agent {agent}"))
}

/// A name as policies can speak of it: what is no letter, digit or one of `-_.@` becomes `-`.
fn plain(claimed: &str) -> String {
    let known = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    let name: String =
        claimed.trim().chars().take(LONGEST).map(|letter| if known(letter) { letter } else { '-' }).collect();
    if name.is_empty() { "unknown".to_owned() } else { name.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn an_agent_is_known_by_its_marker() {
        assert_eq!(detected(variables(&[("HOME", "/root"), ("CLAUDECODE", "1")])).as_deref(), Some("claude-code"));
        assert_eq!(detected(variables(&[("AI_AGENT", "Devin@1")])).as_deref(), Some("devin@1"));
        assert_eq!(detected(variables(&[("GEMINI_CLI", "")])).as_deref(), Some("gemini-cli"));
    }

    #[test]
    fn settings_of_people_are_no_marker() {
        assert_eq!(detected(variables(&[("CODEX_HOME", "/x"), ("AIDER_MODEL", "y"), ("TERM", "xterm")])), None);
    }

    #[test]
    fn a_claimed_name_is_plain_and_short() {
        let hostile = format!("a\n\u{202e}b {}", "x".repeat(1000));
        let name = detected(variables(&[("AI_AGENT", &hostile)])).expect("it is set");
        assert!(name.starts_with("a--b-x") && name.len() == LONGEST, "{name}");
        assert_eq!(detected(variables(&[("AI_AGENT", " ")])).as_deref(), Some("unknown"));
    }

    #[test]
    fn inside_a_sandbox_is_inside() {
        assert!(is_inside(variables(&[("BELLJAR", "1")])));
        assert!(!is_inside(variables(&[("BELLJAR_PEERS", "1")])));
    }
}
