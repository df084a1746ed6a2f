//! Which folders a tool-chain outside the system's needs, told from where its programs are.

use std::path::{Path, PathBuf};

/// Below a home: the start of the path to a program, and what is shown for it. Never a folder of credentials.
const KNOWN: &[(&str, &[&str])] = &[
    (".cargo", &[".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/config.toml", ".cargo/config", ".rustup"]),
    (".rustup", &[".rustup"]),
    (
        ".local",
        &[
            ".local/bin", ".local/lib", ".local/share/uv", ".local/share/pipx", ".local/pipx", ".local/share/mise",
            ".local/share/rtx", ".local/share/fnm", ".local/share/pnpm", ".local/share/virtualenv",
            ".local/share/pypoetry", ".local/share/coursier", ".local/share/swiftly", ".local/share/dotnet",
        ],
    ),
    ("go", &["go/bin", "go/pkg/mod"]),
    ("bin", &["bin"]),
    (".deno", &[".deno/bin"]),
    (".composer", &[".composer/vendor"]),
    (".config/yarn", &[".config/yarn/global"]),
    (".config/composer", &[".config/composer/vendor"]),
    (".gem", &[".gem/ruby"]),
];

/// Below a home: folders that are a tool-chain as a whole.
const WHOLE: &[&str] = &[
    ".pyenv", ".rbenv", ".nodenv", ".jenv", ".goenv", ".plenv", ".phpenv", ".tfenv", ".asdf", ".sdkman", ".bun",
    ".volta", ".nvm", ".fnm", ".n", ".ghcup", ".opam", ".juliaup", ".julia", ".elan", ".dotnet", ".foundry", ".wasmer",
    ".wasmtime", ".poetry", ".krew", ".swiftly", ".gvm", ".phpbrew", ".perlbrew", ".nix-profile", ".npm-global",
    ".yarn", ".rye", ".pixi", ".moon", ".proto", ".rvm", ".stack", ".cabal", "miniconda3", "anaconda3", "miniforge3",
    "mambaforge", "micromamba", ".conda", "miniconda", "anaconda", ".linuxbrew",
];

/// What to show for a folder of programs, links resolved. Existence is the caller's business.
pub fn folders_for(programs: &Path, homes: &[PathBuf]) -> Vec<PathBuf> {
    for home in homes {
        let Ok(below) = programs.strip_prefix(home) else {
            continue;
        };
        if let Some((_, shown)) = KNOWN.iter().find(|(start, _)| below.starts_with(start)) {
            return shown.iter().map(|folder| home.join(folder)).collect();
        }
        if let Some(whole) = WHOLE.iter().find(|whole| below.starts_with(whole)) {
            return vec![home.join(whole)];
        }
    }
    vec![prefix_of(programs, homes)]
}

/// `PREFIX/bin` is shown with all of PREFIX if that is an installation and nothing more.
fn prefix_of(programs: &Path, homes: &[PathBuf]) -> PathBuf {
    let is_bin = programs
        .file_name()
        .is_some_and(|name| name == "bin" || name == "sbin" || name == "shims" || name == "condabin");
    let prefix = match programs.parent() {
        Some(prefix) if is_bin && prefix.components().count() > 2 => prefix,
        _ => return programs.to_owned(),
    };
    let too_much = homes.iter().any(|home| home.starts_with(prefix));
    let installed = ["lib", "lib64", "libexec", "share", "versions"].iter().any(|part| prefix.join(part).is_dir());
    if installed && !too_much { prefix.to_owned() } else { programs.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_chain_is_shown_without_what_lies_beside_it() {
        let homes = [PathBuf::from("/home/alice")];
        let shown = |programs: &str| folders_for(Path::new(programs), &homes);
        assert_eq!(shown("/home/alice/.pyenv/shims"), [PathBuf::from("/home/alice/.pyenv")]);
        assert_eq!(shown("/home/alice/bin"), [PathBuf::from("/home/alice/bin")]);
        let cargo = shown("/home/alice/.cargo/bin");
        assert!(cargo.contains(&"/home/alice/.rustup".into()));
        assert!(!cargo.iter().any(|folder| Path::new("/home/alice/.cargo/credentials.toml").starts_with(folder)));
    }

    #[test]
    fn a_prefix_that_holds_a_home_is_never_shown() {
        let homes = [PathBuf::from("/data/people/alice")];
        assert_eq!(folders_for(Path::new("/data/people/bin"), &homes), [PathBuf::from("/data/people/bin")]);
    }

    #[test]
    fn no_known_tool_chain_holds_a_credential_store() {
        let home = PathBuf::from("/home/alice");
        let whole = WHOLE.iter().map(|folder| home.join(folder));
        let parts = KNOWN.iter().flat_map(|(_, shown)| shown.iter().map(|folder| home.join(folder)));
        for shown in whole.chain(parts) {
            for store in policy::STORES {
                assert!(!home.join(store).starts_with(&shown), "{} shows {store}", shown.display());
            }
        }
    }
}
