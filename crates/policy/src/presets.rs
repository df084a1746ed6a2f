//! Policies that come with belljar, to begin with.

/// By name. Levels first, then languages, then agents.
const ALL: &[(&str, &str)] = &[
    ("locked", include_str!("../presets/locked.toml")),
    ("balanced", include_str!("../presets/balanced.toml")),
    ("open", include_str!("../presets/open.toml")),
    ("python", include_str!("../presets/python.toml")),
    ("node", include_str!("../presets/node.toml")),
    ("rust", include_str!("../presets/rust.toml")),
    ("go", include_str!("../presets/go.toml")),
    ("java", include_str!("../presets/java.toml")),
    ("ruby", include_str!("../presets/ruby.toml")),
    ("shell", include_str!("../presets/shell.toml")),
    ("claude-code", include_str!("../presets/claude-code.toml")),
    ("codex", include_str!("../presets/codex.toml")),
    ("generic", include_str!("../presets/generic.toml")),
];

pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}
