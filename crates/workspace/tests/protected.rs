//! Which paths the host's own programs act on, under every name that leads there.

use belljar_workspace::protected::{Protection, is_around, is_named, protection, protection_of_new_folder};
use proptest::prelude::*;

const GROUPS: &[(&str, &[&str])] = &[
    ("git runs it", &[".git/hooks", ".git/hooks/pre-commit", ".git/modules/a/b/hooks/post-checkout"]),
    (
        "git obeys it",
        &[
            ".git", ".git/config", ".git/config.lock", ".git/config.worktree", ".git/info/attributes",
            ".git/objects/info/alternates", ".git/rebase-merge/git-rebase-todo", ".git/rebase-apply/x",
            ".git/sequencer/todo", ".git/worktrees/x/gitdir", ".git/commondir", ".gitmodules", ".gitattributes",
            ".gitconfig", ".config/git/config",
        ],
    ),
    ("another version control system obeys it", &[".hg/hgrc", ".hgrc", ".svn/x", ".bzr", ".jj/repo/config.toml"]),
    (
        "it runs at commit",
        &[
            ".husky/pre-commit", ".githooks/x", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.toml",
            "lefthook-local.yml", ".lefthook/pre-push/x.sh", ".overcommit.yml",
        ],
    ),
    (
        "CI runs it with your secrets",
        &[
            ".github/workflows/ci.yml", ".github/actions/setup/action.yml", ".github/deep/down/here/action.yml",
            ".github/dependabot.yml", ".gitlab-ci.yml", ".circleci/config.yml", ".travis.yml", "Jenkinsfile",
            "azure-pipelines.yml", "azure-pipelines-nightly.yml", ".azure-pipelines/x.yml", ".buildkite/pipeline.yml",
            "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker.yml", ".woodpecker/x.yml",
            ".forgejo/workflows/x.yml", ".gitea/workflows/x.yml", ".teamcity/settings.kts", "appveyor.yml",
            "cloudbuild.yaml", ".tekton/x.yaml", ".cirrus.yml", ".semaphore/semaphore.yml", ".builds/x.yml",
            "buildspec.yml", "renovate.json",
        ],
    ),
    (
        "an agent obeys it",
        &[
            ".claude/settings.json", "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md", ".codex/config.toml",
            ".mcp.json", ".cursor/rules/x.mdc", ".cursorrules", ".windsurfrules", ".clinerules", ".clinerules/x.md",
            ".github/copilot-instructions.md", ".github/instructions/x.md", ".gemini/settings.json", ".aider.conf.yml",
            ".continue/config.json", ".roo/x", ".kilocode/x", ".opencode/x", "opencode.json", ".amp/x", ".goose/x",
            ".devin/x", ".junie/guidelines.md", ".kiro/hooks/x", ".trae/x",
        ],
    ),
    ("belljar obeys it", &["belljar.toml", ".belljar/policy.toml"]),
    (
        "your editor obeys it",
        &[
            ".vscode/tasks.json", "x.code-workspace", ".idea/workspace.xml", ".fleet/run.json", ".zed/settings.json",
            ".vim/x.vim", ".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".dir-locals-2.el", ".emacs",
            "x.sublime-project", ".devcontainer/devcontainer.json", "devcontainer.json", ".gitpod.yml", ".project",
            ".yarn/sdks/typescript/bin/tsc",
        ],
    ),
    (
        "your shell runs it when you enter the folder",
        &[
            ".envrc", ".direnv/x", ".autoenv.zsh", ".mise.toml", "mise.toml", "mise.local.toml",
            ".config/mise/config.toml", ".rtx.toml", ".tool-versions", "flake.nix",
        ],
    ),
    (
        "your shell runs it",
        &[
            ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile",
            ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".config/fish/config.fish", ".inputrc",
        ],
    ),
    ("your shell offers it as what you typed", &[".bash_history", ".python_history"]),
    ("it runs when you log in", &[".config/autostart/x.desktop", ".xprofile"]),
    ("a program runs it when it starts here", &[".screenrc", ".tmux.conf", ".gdbinit", ".lldbinit", ".Rprofile"]),
    (
        "every Python program runs it at its start",
        &["sitecustomize.py", "usercustomize.py", ".venv/lib/python3.13/site-packages/x.pth"],
    ),
    (
        "a program that connects for you obeys it",
        &[".ssh/config", ".gnupg/gpg.conf", ".netrc", ".curlrc", ".wgetrc", ".docker/config.json", ".terraformrc"],
    ),
    (
        "a package manager obeys it",
        &[
            ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/plugins/x.cjs", ".yarn/releases/yarn.cjs", ".pnpmfile.cjs",
            ".pnpmfile.js", "pnpmfile.js", "bunfig.toml", ".pypirc", "pip.conf", ".gemrc", ".bundle/config",
            "nuget.config", "NuGet.Config", ".condarc",
        ],
    ),
    (
        "a build tool obeys it",
        &[
            ".cargo/config.toml", ".cargo/config", "rust-toolchain", "rust-toolchain.toml", ".mvn/extensions.xml",
            ".gradle/init.d/x.gradle", ".bazelrc",
        ],
    ),
    ("git takes the folder that holds it for a repository", &["HEAD", "fixtures/HEAD"]),
];

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    GROUPS.iter().flat_map(|(reason, paths)| paths.iter().map(|path| (*path, *reason)))
}

fn reason(path: impl AsRef<[u8]>) -> Option<&'static str> {
    protection(path.as_ref()).map(|found| found.reason)
}

fn root(path: &str) -> String {
    String::from_utf8(protection(path.as_bytes()).expect("protected").root).expect("text")
}

#[test]
fn every_group_is_protected_for_its_reason() {
    for (path, expected) in all() {
        assert_eq!(reason(path), Some(expected), "{path}");
    }
}

#[test]
fn depth_makes_no_difference() {
    for (path, expected) in all() {
        for above in ["packages/web", "a/b/c/d/e/f/g", "vendor/lib.git", "src/head"] {
            let path = format!("{above}/{path}");
            assert_eq!(reason(&path), Some(expected), "{path}");
            assert!(root(&path).starts_with(above), "{path}");
        }
    }
}

#[test]
fn what_git_only_reads_is_not_protected() {
    for path in [
        ".git/HEAD", ".git/index", ".git/index.lock", ".git/ORIG_HEAD", ".git/FETCH_HEAD", ".git/MERGE_MSG",
        ".git/BISECT_LOG", ".git/COMMIT_EDITMSG", ".git/packed-refs", ".git/shallow", ".git/description", ".git/refs",
        ".git/refs/heads/config", ".git/refs/heads/CLAUDE.md", ".git/logs/HEAD", ".git/objects/ab/cdef",
        ".git/objects/pack/pack-1.pack", ".git/info/exclude", ".git/worktrees/x/HEAD", ".git/worktrees/x/logs/HEAD",
        ".git/modules/libs/x/HEAD", ".git/modules/libs/x/refs/heads/main",
    ] {
        assert_eq!(reason(path), None, "{path}");
        assert_eq!(protection_of_new_folder(path.as_bytes()), None, "{path}");
    }
}

#[test]
fn near_misses_are_ordinary() {
    for path in [
        "", ".", "src/main.rs", "Makefile", "package.json", "build.rs", "Cargo.toml", "conftest.py", ".env",
        ".env.local", ".nvmrc", ".python-version", ".editorconfig", ".gitignore", ".gitkeep",
        ".github/ISSUE_TEMPLATE/x", ".github/CODEOWNERS", "my.git/config", "git/config", "src/hooks/useThing.ts",
        "hooks/pre-commit", "docs/.vscode-notes.md", "workflows/ci.yml", "github/workflows/ci.yml",
        "src/.github.md/workflows", "action.yml", "claude.mdx", "x.pth", ".yarn/cache/x.zip", ".gradle/8.5/x.bin",
        ".config/nextest.toml", ".jj/repo/store/x", "cargo/config.toml", "code-workspace", "header",
        "src/head/index.ts", "tools/bazelisk", "mise/tasks.md", "a~1", "backup~1.txt",
    ] {
        assert_eq!(reason(path), None, "{path}");
        assert_eq!(protection_of_new_folder(path.as_bytes()), None, "{path}");
    }
    assert_eq!(reason(b".git\xff/config"), None);
    assert_eq!(reason(b"\xff\xfe/x"), None);
}

#[test]
fn bytes_that_are_no_text_hide_nothing() {
    let found = protection(b"\xff/.GIT/hooks/\xfe").expect("protected");
    assert_eq!(found, Protection { root: b"\xff/.GIT/hooks".to_vec(), reason: "git runs it" });
}

#[test]
fn twins_are_protected() {
    for path in [
        ".GIT/config", ".Git/Hooks/pre-commit", ".g\u{200c}it/config", "\u{feff}.git/config", ".git\u{206a}/hooks/x",
        ".G\u{131}T/config", ".g\u{130}t/config", ".ｇｉｔ/config", ".git./config", ".git /config",
        ".git::$INDEX_ALLOCATION/config", "git~1/config", "GIT~1/hooks/x", ".git/hooks./x",
        ".git/HOOKS::$INDEX_ALLOCATION/x", ".GitHub/Workflows/x", ".github./workflows /x", "GITHUB~1/WORKFL~1/x.yml",
        ".ſſh/config", ".ßh/config", ".VSCODE/tasks.json", ".vs\u{200d}code/tasks.json", "claude.MD",
        "agents.md::$DATA", "GITMOD~1", "CLAUDE~1/settings.json", ".clau\u{ad}de/settings.json",
    ] {
        assert!(reason(path).is_some(), "{path:?}");
    }
}

#[test]
fn the_root_is_the_first_thing_that_matched() {
    for (path, expected) in [
        (".git/hooks/a/b", ".git/hooks"),
        (".git/config", ".git/config"),
        (".git/modules/a/b", ".git/modules/a/b"),
        (".git/modules/a/hooks/x", ".git/modules/a/hooks"),
        ("a/.github/workflows/x.yml", "a/.github/workflows"),
        ("a/.github/b/c/action.yml", "a/.github/b/c/action.yml"),
        (".vscode/.git/HEAD", ".vscode"),
        ("a/.claude/x/.vscode/y", "a/.claude"),
        (".VSCODE /x", ".VSCODE "),
        ("./a//.vscode/x", "./a//.vscode"),
        (".git/objects/x/.git/hooks/y", ".git/objects/x/.git/hooks"),
        ("site-packages/x.pth", "site-packages/x.pth"),
    ] {
        assert_eq!(root(path), expected, "{path}");
    }
}

#[test]
fn what_lies_around_a_protected_thing_is_known() {
    for path in [
        ".git", ".git/objects", ".git/objects/info", ".git/info", ".git/modules", ".git/modules/a", ".git/worktrees/a",
        ".github", ".GITHUB", "a/b/.github", ".forgejo", ".gitea", ".config", ".yarn", ".jj", ".jj/repo", ".gradle",
        // Protected, and so around themselves.
        ".git/hooks", ".vscode", ".vscode/tasks.json",
    ] {
        assert!(is_around(path.as_bytes()).is_some(), "{path}");
    }
    for path in ["", "src", "a/b", ".git/refs", ".git/HEAD", ".github/ISSUE_TEMPLATE", "github", ".yarn/cache"] {
        assert_eq!(is_around(path.as_bytes()), None, "{path}");
    }
    assert_eq!(reason(".github"), None, "the folder alone runs nothing");
}

#[test]
fn a_new_folder_of_git_is_judged_by_what_is_put_into_it() {
    for path in [".git", "a/.git", ".git/info", ".git/modules", ".git/modules/a", ".git/worktrees", "src/head"] {
        assert_eq!(protection_of_new_folder(path.as_bytes()), None, "{path}");
        assert!(reason(path).is_some(), "as a file or a link, {path} decides what git obeys");
    }
    for path in [".git/hooks", ".git/rebase-merge", ".git/new", ".vscode", ".github/workflows"] {
        assert_eq!(protection_of_new_folder(path.as_bytes()), protection(path.as_bytes()), "{path}");
    }
}

#[test]
fn only_who_names_the_protected_thing_has_named_it() {
    let path = b"a/.git/hooks/sub/pre-commit";
    let found = protection(path).expect("protected");
    for (named, expected) in [
        ("a/.git/hooks", true),
        ("a/.git/hooks/", true),
        ("a/.git/hooks/sub", true),
        ("a/.git/hooks/sub/pre-commit", true),
        ("", false),
        ("/", false),
        (".", false),
        ("a", false),
        ("a/.git", false),
        ("a/.git/hook", false),
        ("a/.git/hooks/su", false),
        ("a/.git/hooks/other", false),
        ("a/.git/hooks/sub/pre-commit/x", false),
        ("a/.git/config", false),
        ("a/.GIT/hooks", false),
    ] {
        assert_eq!(is_named(path, &found, &[named.into()]), expected, "{named:?}");
        assert_eq!(is_named(path, &found, &[b"elsewhere".to_vec(), named.into()]), expected, "{named:?}");
    }
    assert!(!is_named(path, &found, &[]), "silence names nothing");
}

#[test]
fn a_hundred_thousand_paths_are_judged_in_no_time() {
    let started = std::time::Instant::now();
    for number in 0..100_000 {
        let path = format!("packages/package-{}/src/components/part-{number}/index.test.tsx", number % 100);
        assert_eq!(reason(&path), None);
    }
    // Paths as long as can be, of the names that take longest.
    for name in ["a~1/", ".config/", "P\u{200c}x/", ".git/refs/", ".git/modules/", "action.yml/"] {
        let mut path = name.repeat(4096 / name.len());
        path.push('x');
        for _ in 0..20 {
            is_around(path.as_bytes());
        }
    }
    // Without optimisation, on a busy machine.
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

proptest! {
    #[test]
    fn any_change_of_case_of_a_protected_path_is_protected(
        place in 0..all().count(),
        upper in prop::collection::vec(any::<bool>(), 64),
    ) {
        let (path, expected) = all().nth(place).expect("a path");
        let change = |(letter, upper): (char, &bool)| {
            if *upper { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
        };
        let twin: String = path.chars().zip(upper.iter().cycle()).map(change).collect();
        prop_assert_eq!(reason(&twin), Some(expected), "{}", twin);
    }

    #[test]
    fn an_invisible_letter_anywhere_hides_no_name(
        place in 0..all().count(),
        at in any::<prop::sample::Index>(),
        letter in prop::sample::select(vec!['\u{200b}', '\u{200c}', '\u{200f}', '\u{202a}', '\u{206f}', '\u{feff}']),
    ) {
        let (path, expected) = all().nth(place).expect("a path");
        let mut twin = path.to_owned();
        twin.insert(at.index(path.len() + 1), letter);
        prop_assert_eq!(reason(&twin), Some(expected), "{:?}", twin);
    }

    #[test]
    fn a_root_is_the_path_or_above_it_and_naming_it_is_naming(
        above in "([a-z]{1,4}/){0,3}",
        place in 0..all().count(),
        below in "(/[a-z]{1,4}){0,2}",
    ) {
        let (path, _) = all().nth(place).expect("a path");
        let path = format!("{above}{path}{below}").into_bytes();
        if let Some(found) = protection(&path) {
            let rest = path.strip_prefix(found.root.as_slice()).expect("a beginning of the path");
            prop_assert!(rest.is_empty() || rest[0] == b'/');
            prop_assert!(is_named(&path, &found, std::slice::from_ref(&found.root)));
            prop_assert!(is_named(&path, &found, std::slice::from_ref(&path)));
            if let Some(slash) = found.root.iter().rposition(|byte| *byte == b'/') {
                prop_assert!(!is_named(&path, &found, &[found.root[..slash].to_vec()]));
            }
            prop_assert_eq!(is_around(&path), Some(found.reason));
        }
    }

    #[test]
    fn any_bytes_have_an_answer(path in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(found) = protection(&path) {
            prop_assert!(path.starts_with(&found.root));
        }
        is_around(&path);
        protection_of_new_folder(&path);
    }
}
