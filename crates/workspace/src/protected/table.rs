//! The names that host programs act on by themselves, each with what would happen.
//!
//! Asked of every name: does a program of the host execute or obey it without the user having chosen to run the
//! project's own code? What a build, a test or a linter reads is that code: sources, `Makefile`, `package.json`,
//! `build.rs`, `conftest.py`, `eslint.config.js`, a deployment's `vercel.json`. Left out too is what only carries
//! values: `.env` and its family, `.nvmrc`, `.python-version`, `.editorconfig`. They change what the project does, but
//! run nothing by being there, and asking about each of them would teach people to say yes.
//!
//! A pattern is one or more names, matched at any depth, in lower case. A `*` stands for any part of a name; `a/**/b`
//! is `b` anywhere below `a`. What lies below a match is protected with it. The inside of `.git` has its own rules, in
//! [`super::git`].

use std::collections::HashMap;
use std::sync::LazyLock;

/// Names with one fate.
pub(super) struct Group {
    pub reason: &'static str,
    pub patterns: &'static [&'static str],
}

#[rustfmt::skip]
pub(super) const GROUPS: &[Group] = &[
    Group { reason: "git obeys it", patterns: &[
        // Attributes choose filters and drivers, which are commands.
        ".gitattributes", ".gitmodules", ".gitconfig", ".git-credentials", ".lfsconfig", ".config/git",
    ] },
    Group { reason: "another version control system obeys it", patterns: &[
        ".hg", ".hgrc", ".svn", ".bzr", ".sl", ".pijul", ".fossil-settings", "_darcs", ".arcconfig",
        ".jj/config.toml", ".jj/workspace-config.toml", ".jj/repo/config.toml",
    ] },
    Group { reason: "it runs at commit", patterns: &[
        ".husky", ".huskyrc", ".huskyrc.*", "husky.config.*", ".githooks", ".git-hooks",
        ".pre-commit-config.yaml", ".pre-commit-config.yml", ".pre-commit-hooks.yaml", "prek.toml",
        ".lefthook", ".lefthook-local",
        "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", "lefthook.jsonc",
        ".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook.json", ".lefthook.jsonc",
        "lefthook-local.*", ".lefthook-local.*",
        ".overcommit.yml", ".overcommit",
        ".lintstagedrc", ".lintstagedrc.*", "lint-staged.config.*",
        ".commitlintrc", ".commitlintrc.*", "commitlint.config.*",
        ".simple-git-hooks.*", "simple-git-hooks.*", "captainhook.json", "grumphp.yml", "hk.pkl",
    ] },
    Group { reason: "CI runs it with your secrets", patterns: &[
        ".github/workflows", ".github/actions", ".github/**/action.yml", ".github/**/action.yaml",
        ".github/dependabot.yml", ".github/dependabot.yaml", ".github/settings.yml",
        ".github/renovate.json", ".github/renovate.json5",
        ".gitlab-ci.yml", ".gitlab-ci.yaml", ".gitlab-ci", ".gitlab/ci", ".gitlab/agents",
        ".gitlab/renovate.json", ".gitlab/renovate.json5",
        ".forgejo/workflows", ".forgejo/actions", ".gitea/workflows", ".gitea/actions",
        ".circleci", ".travis.yml", "jenkinsfile", "jenkinsfile.*", ".jenkins",
        "azure-pipelines*.yml", "azure-pipelines*.yaml", ".azure-pipelines", ".azuredevops", ".vsts-ci.yml",
        ".buildkite", "bitbucket-pipelines.yml", ".drone.yml", ".drone.*", ".woodpecker*", ".teamcity",
        "appveyor.yml", ".appveyor.yml", "cloudbuild.yaml", "cloudbuild.yml", "cloudbuild.json", ".tekton",
        ".cirrus.yml", ".cirrus.yaml", ".cirrus.star", ".semaphore", ".builds", ".build.yml",
        "buildspec.yml", "buildspec.yaml", "codefresh.yml", ".codefresh", "wercker.yml", ".harness",
        "renovate.json", "renovate.json5", ".renovaterc", ".renovaterc.*", ".mergify.yml", ".mergify",
        ".readthedocs.yml", ".readthedocs.yaml",
    ] },
    Group { reason: "an agent obeys it", patterns: &[
        ".claude", ".claude.json", ".claude-plugin", "claude.md", "claude.local.md",
        "agents.md", "agents.override.md", "agents.local.md", "agent.md", ".agents", ".agent",
        "gemini.md", ".gemini", "qwen.md", ".qwen", ".codex", ".mcp.json", "mcp.json", ".mcp",
        ".github/copilot-instructions.md", ".github/instructions", ".github/prompts", ".github/chatmodes",
        ".github/agents", ".github/skills", ".github/hooks", ".github/copilot", ".copilot",
        ".cursor", ".cursorrules", ".windsurf", ".windsurfrules", ".cline", ".clinerules*",
        ".roo", ".roorules*", ".roomodes", ".kilocode", ".kilocoderules*", ".kilocodemodes",
        ".aider*", ".continue", ".continuerules", ".opencode", ".opencode.json", "opencode.json", "opencode.jsonc",
        ".amp", ".goose", ".goosehints", ".devin", ".junie", ".kiro", ".trae", ".augment", ".augment-guidelines",
        ".amazonq", ".factory", ".crush", ".crush.json", "crush.json", "crush.md", ".openhands",
        ".openhands_instructions", ".rules", ".ruler", ".serena", ".firebender", ".antigravity", ".jules",
        ".sourcegraph", ".cody", ".tabnine", ".warp", "warp.md", ".idx", ".replit", "replit.nix", "replit.md",
        ".config/opencode", ".config/goose", ".config/crush", ".config/amp",
    ] },
    Group { reason: "belljar obeys it", patterns: &[".belljar", "belljar.toml", ".config/belljar"] },
    Group { reason: "your editor obeys it", patterns: &[
        ".vscode", "*.code-workspace", ".vs", ".idea", ".run", ".fleet", ".zed", ".nova", ".lapce", ".theia", ".atom",
        ".vim", ".vimrc", "_vimrc", ".gvimrc", "_gvimrc", ".ideavimrc", ".exrc", ".lvimrc", ".nvim", ".nvimrc",
        ".nvim.lua", ".lazy.lua", ".neoconf.json", ".vimspector.json", ".ycm_extra_conf.py", ".clangd",
        ".dir-locals.el", ".dir-locals-2.el", ".emacs", ".emacs.d", ".helix", ".kateproject",
        ".sublime-project", "*.sublime-project", "*.sublime-workspace",
        ".devcontainer", ".devcontainer.json", "devcontainer.json", ".gitpod", ".gitpod.*", ".ona",
        ".project", ".classpath", ".factorypath", ".cproject", ".settings", ".externaltoolbuilders",
        ".config/nvim", ".config/helix", ".config/zed", ".config/emacs", ".config/code",
        // Editors load these instead of the tools they wrap.
        ".yarn/sdks",
    ] },
    Group { reason: "your shell runs it when you enter the folder", patterns: &[
        ".envrc", ".envrc.*", ".direnv", ".direnvrc", ".config/direnv", ".autoenv*", ".rvmrc",
        ".mise.toml", "mise.toml", ".mise.*.toml", "mise.*.toml", ".miserc.toml", ".mise", "mise/config*.toml",
        ".config/mise", ".config/mise.toml", ".config/mise.*.toml",
        ".rtx.toml", ".rtx.*.toml", ".rtx", ".tool-versions",
        // An `.envrc` that was allowed once takes these up again whenever they change.
        "flake.nix", "shell.nix", "devenv.nix", "devenv.yaml", "devenv.local.nix", "devbox.json",
    ] },
    Group { reason: "your shell runs it", patterns: &[
        ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc",
        ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc",
        ".cshrc", ".tcshrc", ".login", ".logout", ".config/fish", ".config/nushell", ".config/starship.toml",
        ".local/bin",
    ] },
    Group { reason: "your shell offers it as what you typed", patterns: &[
        ".bash_history", ".zsh_history", ".python_history", ".node_repl_history",
    ] },
    Group { reason: "it runs when you log in", patterns: &[
        ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".pam_environment",
        ".config/autostart", ".config/systemd", ".config/environment.d",
    ] },
    Group { reason: "a program runs it when it starts here", patterns: &[
        ".screenrc", ".tmux.conf", ".config/tmux", ".gdbinit", ".gdbearlyinit", ".config/gdb", ".lldbinit",
        ".valgrindrc", ".pdbrc", ".ipython", ".jupyter", ".rprofile", ".renviron", ".irbrc", ".pryrc", ".iex.exs",
        ".ghci", ".ocamlinit", ".utoprc", ".octaverc", ".erlang", ".swiplrc", ".sqliterc", ".psqlrc",
        ".latexmkrc", "latexmkrc",
    ] },
    Group { reason: "every Python program runs it at its start", patterns: &[
        "sitecustomize.py", "usercustomize.py", "site-packages/*.pth", "dist-packages/*.pth",
    ] },
    Group { reason: "a program that connects for you obeys it", patterns: &[
        ".ssh", ".gnupg", ".netrc", "_netrc", ".curlrc", "_curlrc", ".wgetrc", ".docker", ".dockercfg",
        // Both can name a command that is to fetch the credentials.
        ".kube", ".aws", ".azure", ".config/gcloud", ".config/gh", ".terraformrc", "terraform.rc", ".tofurc",
        "ansible.cfg", ".ansible.cfg", ".pgpass", ".my.cnf",
    ] },
    Group { reason: "a package manager obeys it", patterns: &[
        ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarnrc.yaml", ".yarn/plugins", ".yarn/releases",
        ".pnpmfile.cjs", ".pnpmfile.mjs", ".pnpmfile.js", "pnpmfile.js", "pnpmfile.cjs", "bunfig.toml", ".bunfig.toml",
        ".pypirc", "pip.conf", "pip.ini", ".pip", ".config/pip", ".pydistutils.cfg", "uv.toml", ".config/uv",
        ".condarc", ".mambarc", ".gemrc", ".bundle", ".composer", "nuget.config", ".nuget",
    ] },
    Group { reason: "a build tool obeys it", patterns: &[
        // Runners, wrappers, linkers and aliases are commands.
        ".cargo", "rust-toolchain", "rust-toolchain.toml",
        ".mvn", ".m2", ".sbtopts", ".jvmopts", ".mill-jvm-opts",
        // The rest of `.gradle` is a cache, which every build writes.
        ".gradle/init.gradle", ".gradle/init.gradle.kts", ".gradle/init.d", ".gradle/gradle.properties",
        ".bazelrc", ".bazeliskrc", "tools/bazel", ".buckconfig", ".buckconfig.local", ".pants.rc",
    ] },
];

/// Patterns by what their first name is, so that a path of ordinary names costs a look-up a name.
pub(super) struct Index {
    /// First name → the names that must follow it.
    pub exact: HashMap<&'static [u8], Vec<Pattern>>,
    /// Patterns whose first name has a `*`.
    pub starred: Vec<(Glob, &'static str)>,
    /// Name → the folder that it must lie below.
    pub below: HashMap<&'static [u8], (&'static [u8], &'static str)>,
}

pub(super) struct Pattern {
    /// The names after the first.
    pub rest: Vec<Glob>,
    pub reason: &'static str,
}

/// A name, or two ends of one.
pub(super) enum Glob {
    Exact(&'static [u8]),
    Ends(&'static [u8], &'static [u8]),
}

impl Glob {
    fn of(name: &'static str) -> Glob {
        match name.split_once('*') {
            None => Glob::Exact(name.as_bytes()),
            Some((front, back)) => Glob::Ends(front.as_bytes(), back.as_bytes()),
        }
    }

    pub(super) fn matches(&self, name: &[u8]) -> bool {
        match self {
            Glob::Exact(exact) => name == *exact,
            Glob::Ends(front, back) => {
                name.len() >= front.len() + back.len() && name.starts_with(front) && name.ends_with(back)
            }
        }
    }
}

pub(super) static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index { exact: HashMap::new(), starred: Vec::new(), below: HashMap::new() };
    for Group { reason, patterns } in GROUPS {
        for pattern in *patterns {
            if let Some((above, name)) = pattern.split_once("/**/") {
                index.below.insert(name.as_bytes(), (above.as_bytes(), reason));
                continue;
            }
            let (first, rest) = pattern.split_once('/').map_or((*pattern, None), |(first, rest)| (first, Some(rest)));
            let rest = rest.map_or(Vec::new(), |rest| rest.split('/').map(Glob::of).collect());
            match Glob::of(first) {
                Glob::Exact(name) => index.exact.entry(name).or_default().push(Pattern { rest, reason }),
                glob => index.starred.push((glob, reason)),
            }
        }
    }
    index
});

/// Every whole name in a pattern, for those who know it by its short name only.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    // The table's `git` below `.config` has the same short name: the more dangerous reading first.
    std::iter::once(".git")
        .chain(GROUPS.iter().flat_map(|group| group.patterns).flat_map(|pattern| pattern.split('/')))
        .filter(|name| !name.contains('*'))
}

#[cfg(test)]
mod tests {
    use super::super::names::plain;
    use super::*;

    #[test]
    fn every_pattern_is_written_as_names_are_compared() {
        for pattern in GROUPS.iter().flat_map(|group| group.patterns) {
            for name in pattern.split('/') {
                assert_eq!(plain(name.as_bytes()), name.as_bytes(), "in `{pattern}`");
            }
        }
    }

    #[test]
    fn a_star_in_a_first_name_stands_alone() {
        for pattern in GROUPS.iter().flat_map(|group| group.patterns) {
            let first = pattern.split('/').next().expect("a first name");
            assert!(!first.contains('*') || first == *pattern, "`{pattern}` would lose its rest");
        }
    }

    #[test]
    fn no_pattern_is_there_twice() {
        let mut seen = std::collections::HashSet::new();
        for pattern in GROUPS.iter().flat_map(|group| group.patterns) {
            assert!(seen.insert(pattern), "`{pattern}` is there twice");
        }
    }
}
