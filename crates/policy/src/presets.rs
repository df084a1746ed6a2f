//! Policies that come with belljar, to begin with: the files in `presets`, without their examples (see `build.rs`).

/// By name. Levels first, then languages, then agents.
const ALL: &[(&str, &str)] = &[
    ("locked", include_str!(concat!(env!("OUT_DIR"), "/locked.toml"))),
    ("balanced", include_str!(concat!(env!("OUT_DIR"), "/balanced.toml"))),
    ("open", include_str!(concat!(env!("OUT_DIR"), "/open.toml"))),
    ("python", include_str!(concat!(env!("OUT_DIR"), "/python.toml"))),
    ("node", include_str!(concat!(env!("OUT_DIR"), "/node.toml"))),
    ("rust", include_str!(concat!(env!("OUT_DIR"), "/rust.toml"))),
    ("go", include_str!(concat!(env!("OUT_DIR"), "/go.toml"))),
    ("java", include_str!(concat!(env!("OUT_DIR"), "/java.toml"))),
    ("ruby", include_str!(concat!(env!("OUT_DIR"), "/ruby.toml"))),
    ("shell", include_str!(concat!(env!("OUT_DIR"), "/shell.toml"))),
    ("claude-code", include_str!(concat!(env!("OUT_DIR"), "/claude-code.toml"))),
    ("codex", include_str!(concat!(env!("OUT_DIR"), "/codex.toml"))),
    ("generic", include_str!(concat!(env!("OUT_DIR"), "/generic.toml"))),
];

pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}
