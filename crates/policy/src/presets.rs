//! Policies that come with belljar, to begin with: the files in `presets`. Their rules are in `ready`, the rest is here (see
//! `build.rs`).

use crate::compile::{Owner, compile};
use crate::file::Text;
use crate::pattern::Roots;
use crate::reader::{BadPolicy, Source, read};
use crate::ready::ready;
use crate::sheet::Sheet;

/// By name. Levels first, then languages, agents, registries.
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
    ("pypi", include_str!(concat!(env!("OUT_DIR"), "/pypi.toml"))),
    ("npm", include_str!(concat!(env!("OUT_DIR"), "/npm.toml"))),
    ("crates", include_str!(concat!(env!("OUT_DIR"), "/crates.toml"))),
    ("goproxy", include_str!(concat!(env!("OUT_DIR"), "/goproxy.toml"))),
    ("maven", include_str!(concat!(env!("OUT_DIR"), "/maven.toml"))),
    ("rubygems", include_str!(concat!(env!("OUT_DIR"), "/rubygems.toml"))),
    ("debian", include_str!(concat!(env!("OUT_DIR"), "/debian.toml"))),
    ("git-hosts", include_str!(concat!(env!("OUT_DIR"), "/git-hosts.toml"))),
];

/// Presets that are places to download from, for `--allow-net @NAME`.
pub const REGISTRIES: &[&str] = &["pypi", "npm", "crates", "goproxy", "maven", "rubygems", "debian", "git-hosts"];

/// What the preset of this name says by itself, and which others it extends.
pub fn sheet(name: &str, roots: Roots<'_>) -> Option<Result<(Sheet, Vec<Text>), BadPolicy>> {
    let (_, text) = ALL.iter().find(|(known, _)| *known == name)?;
    Some(understood(name, text, roots))
}

fn understood(name: &str, text: &str, roots: Roots<'_>) -> Result<(Sheet, Vec<Text>), BadPolicy> {
    let place = format!("preset:{name}");
    let source = Source { file: &place, text };
    let mut file = read(source)?;
    let extends = std::mem::take(&mut file.extends);
    if let Some(id) = file.disable.first() {
        return Err(source.bad(&id.span(), "a preset that comes with belljar disables nothing"));
    }
    // Their examples are tried by tests; everybody else's each time.
    let mut sheet = compile(source, file, roots, Owner::Preset)?;
    for rule in ready(name) {
        sheet.rules.push(rule.rule(roots)?);
    }
    Ok((sheet, extends))
}

pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}
