//! Paths that programs of the host act on by themselves.

use std::fs;

use belljar_testkit::Who;

use crate::Attack;
use crate::bench::{Bench, Without, attack};

pub const ATTACKS: &[Attack] = &[
    ("protected/every_group_absent_before", every_group),
    ("protected/every_group_changed", every_group_changed),
    ("protected/twins_by_case_and_unicode", twins),
    ("protected/parent_renamed", parent_renamed),
    ("protected/git_removed_as_a_whole", git_removed),
    ("protected/git_replaced_as_a_whole", git_replaced),
    ("protected/git_as_a_file_or_a_link", git_file),
    ("protected/bare_repository", bare_repository),
    ("protected/submodules_and_worktrees", submodules),
    ("protected/script_behind_a_hook_link", hook_link),
    ("protected/folder_behind_a_hooks_link", hooks_link),
    ("protected/hooks_path_and_includes", settings_that_lead_on),
    ("protected/settings_too_long_to_read", endless_settings),
    ("protected/link_planted_earlier", planted_link),
    ("protected/taken_when_named", named),
];

/// One of each group.
const PATHS: &[&str] = &[
    ".git/hooks/pre-commit", ".git/config", ".git/info/attributes", ".gitmodules", ".gitattributes",
    ".husky/pre-commit", ".pre-commit-config.yaml", ".github/workflows/x.yml", ".gitlab-ci.yml",
    ".claude/settings.json", "CLAUDE.md", ".codex/config.toml", ".mcp.json", ".cursor/mcp.json", ".vscode/tasks.json",
    ".idea/workspace.xml", ".vimrc", ".devcontainer/devcontainer.json", ".envrc", ".mise.toml", ".bashrc", ".profile",
    ".zshrc", ".npmrc", ".yarnrc.yml", "pip.conf", ".cargo/config.toml", ".mvn/jvm.config", ".ssh/authorized_keys",
    ".gdbinit", "sitecustomize.py", ".config/autostart/x.desktop", ".hg/hgrc", "deep/down/.vscode/tasks.json",
    "deep/.git/hooks/post-checkout",
];

fn planting(paths: &[&str]) -> String {
    let plant = |path: &&str| format!("mkdir -p \"$(dirname '{path}')\"; echo planted > '{path}'");
    paths.iter().map(plant).collect::<Vec<_>>().join("\n")
}

fn planted(bench: &Bench, paths: &[&str]) -> Vec<String> {
    paths.iter().filter(|path| bench.read(path).contains("planted")).map(|path| (*path).to_owned()).collect()
}

fn none_is_planted(who: Who, prepare: &str, paths: &[&str]) {
    let script = planting(paths);
    attack(who, Without::Layers, prepare, &script, |bench| !planted(bench, paths).is_empty());
    let control = Bench::new(who);
    control.host(prepare);
    control.guest(&["--workspace-mode", "direct"], &script);
    assert_eq!(planted(&control, paths).len(), paths.len(), "some controls prove nothing");
}

fn every_group(who: Who) {
    none_is_planted(who, "true", PATHS);
}

fn every_group_changed(who: Who) {
    let make = |path: &&str| format!("mkdir -p \"$(dirname '{path}')\"; echo before > '{path}'");
    none_is_planted(who, &PATHS.iter().map(make).collect::<Vec<_>>().join("\n"), PATHS);
}

fn twins(who: Who) {
    none_is_planted(
        who,
        "git init -q .",
        &[
            ".GIT/hooks/pre-commit", ".Git/config", ".g\u{131}t/config", ".g\u{200c}it/config", ".git./config",
            "GIT~1/config", ".VSCode/tasks.json", ".vscode /tasks.json", ".ENVRC", ".\u{ff45}nvrc",
            ".Claude/settings.json", "claude.MD", ".GitHub/Workflows/x.yml", ".git::$INDEX_ALLOCATION/config",
            ".mcp.JSON", ".\u{17f}sh/config",
        ],
    );
}

fn parent_renamed(who: Who) {
    attack(
        who,
        Without::Layers,
        "git init -q .; mkdir .github; echo a > .github/README; echo before > kept",
        "mv .git .g; mkdir -p .git/hooks; echo planted > .git/hooks/pre-commit; echo planted > .git/config
         mv .github old; mkdir -p new/workflows; echo planted > new/workflows/x.yml; mv new .github",
        |bench| {
            let paths = [".git/hooks/pre-commit", ".git/config", ".github/workflows/x.yml"];
            !planted(bench, &paths).is_empty()
        },
    );
}

const REPOSITORY: &str = "git init -q .; echo a > a; git add a; git -c user.name=a -c user.email=a@a commit -qm one";

fn is_broken(bench: &Bench) -> bool {
    let mut command = bench.command("git");
    command.args(["fsck", "--strict"]);
    let fsck = bench.run(command).code != 0;
    let mut command = bench.command("git");
    command.args(["log", "--oneline"]);
    fsck || bench.run(command).code != 0
}

fn git_removed(who: Who) {
    attack(who, Without::Layers, REPOSITORY, "rm -rf .git", is_broken);
    // Whoever names it has it.
    let bench = Bench::new(who);
    bench.host(REPOSITORY);
    bench.guest(&[], "rm -rf .git");
    bench.apply(&["last", ".git"]);
    assert!(!bench.project(".git").exists(), "it was named");
}

fn git_replaced(who: Who) {
    attack(who, Without::Layers, REPOSITORY, "mv .git .g; mkdir .git; mkdir .git/objects", is_broken);
    attack(who, Without::Layers, REPOSITORY, "rm -rf .git; git init -q .", is_broken);
}

fn git_file(who: Who) {
    let leads_away = |bench: &Bench| {
        let stat = fs::symlink_metadata(bench.project("sub/.git"));
        stat.is_ok_and(|stat| stat.is_file() || stat.is_symlink())
    };
    attack(who, Without::Layers, "mkdir sub", "echo 'gitdir: ../evil' > sub/.git", leads_away);
    attack(who, Without::Layers, "mkdir sub", "ln -s ../evil sub/.git", leads_away);
    attack(who, Without::Layers, REPOSITORY, "mv .git evil; echo 'gitdir: evil' > .git", |bench| {
        fs::symlink_metadata(bench.project(".git")).is_ok_and(|stat| stat.is_file())
    });
}

fn bare_repository(who: Who) {
    let runs = |bench: &Bench| {
        let mut command = bench.command("git");
        command.args(["-C", "sub/data", "status"]);
        bench.run(command);
        bench.outside("ran").exists()
    };
    let script = |bench: &str| {
        format!(
            "git init -q --bare sub/data; git --git-dir sub/data config core.bare false
             git --git-dir sub/data config core.worktree .; git --git-dir sub/data config core.fsmonitor 'touch {bench}; false'"
        )
    };
    // The canary's path is known only to the bench: tried by hand rather than by `attack`.
    for gate in [false, true] {
        let bench = Bench::new(who);
        let script = script(&bench.outside("ran").display().to_string());
        if gate {
            bench.guest(&[], &script);
            bench.apply(&[]);
            assert!(!runs(&bench), "git ran what a bare repository says");
            assert!(!bench.project("sub/data/HEAD").exists(), "it is a repository to git");
        } else {
            bench.guest(&["--workspace-mode", "direct"], &script);
            assert!(bench.project("sub/data/HEAD").exists() && runs(&bench), "the control proves nothing");
        }
    }
    attack(
        who,
        Without::Layers,
        "git init -q --bare data",
        "echo planted >> data/config; echo planted > data/hooks/update",
        |bench| !planted(bench, &["data/config", "data/hooks/update"]).is_empty(),
    );
}

fn submodules(who: Who) {
    let prepare = "git init -q .; mkdir -p .git/modules/a/b/hooks .git/worktrees/w";
    none_is_planted(
        who,
        prepare,
        &[
            ".git/modules/a/b/hooks/post-checkout", ".git/modules/a/b/config", ".git/modules/x/config",
            ".git/modules/vendor/logs/hooks/post-checkout", ".git/worktrees/w/gitdir", ".git/worktrees/w/commondir",
            ".git/worktrees/w/config.worktree", ".git/commondir", ".git/objects/info/alternates",
            ".git/objects/x/.git/hooks/y",
        ],
    );
}

fn hook_link(who: Who) {
    attack(
        who,
        Without::Layers,
        "git init -q .; mkdir -p scripts .git/hooks; echo ok > scripts/pre.sh; ln -s ../../scripts/pre.sh .git/hooks/pre-commit
         echo ok > abs.sh; ln -s \"$PWD/abs.sh\" .git/hooks/pre-push",
        "echo planted > scripts/pre.sh; echo planted > abs.sh",
        |bench| !planted(bench, &[".git/hooks/pre-commit", ".git/hooks/pre-push"]).is_empty(),
    );
}

fn hooks_link(who: Who) {
    attack(
        who,
        Without::Layers,
        "git init -q .; mkdir team ci; rm -rf .git/hooks; ln -s ../team .git/hooks; mkdir .github; ln -s ../ci .github/workflows
         mkdir conf; ln -s conf .claude",
        "echo planted > team/pre-commit; echo planted > ci/x.yml; echo planted > conf/settings.json",
        |bench| {
            !planted(bench, &[".git/hooks/pre-commit", ".github/workflows/x.yml", ".claude/settings.json"]).is_empty()
        },
    );
}

fn settings_that_lead_on(who: Who) {
    attack(
        who,
        Without::Layers,
        "git init -q .; mkdir tools dev; git config core.hooksPath tools; git config include.path ../dev/settings
         echo '[core] hooksPath = other' >> .git/config; mkdir other",
        "echo planted > tools/pre-commit; echo '# planted' > dev/settings; echo planted > other/pre-push",
        |bench| !planted(bench, &["tools/pre-commit", "dev/settings", "other/pre-push"]).is_empty(),
    );
}

/// Where the settings can't be read through, nobody knows what git runs: then nothing is taken.
fn endless_settings(who: Who) {
    let prepare = "git init -q .; mkdir tools
        yes '# nothing to see here' | head -c 20000000 >> .git/config; printf '\n[core]\nhooksPath = tools\n' >> .git/config
        test \"$(git config core.hooksPath)\" = tools";
    let script = "echo planted > tools/pre-commit";
    for gate in [false, true] {
        let bench = Bench::new(who);
        bench.host(prepare);
        bench.guest(if gate { &[] } else { &["--workspace-mode", "direct"] }, script);
        if gate {
            let said = bench.belljar(&["apply"]);
            assert!(said.code == 125 && said.err.contains(".git/config"), "{said:?}");
        }
        assert_eq!(planted(&bench, &["tools/pre-commit"]).is_empty(), gate);
    }
}

/// A link that is taken first, as something harmless, to write over later.
fn planted_link(who: Who) {
    for gate in [false, true] {
        let bench = Bench::new(who);
        bench.host("git init -q .; mkdir -p .git/hooks");
        let mode: &[&str] = if gate { &[] } else { &["--workspace-mode", "direct"] };
        for script in ["ln -s .git/hooks data", "echo planted > data/pre-commit"] {
            bench.guest(mode, script);
            if gate {
                bench.apply(&[]);
                bench.belljar(&["discard"]);
            }
        }
        assert_eq!(!planted(&bench, &[".git/hooks/pre-commit"]).is_empty(), !gate);
    }
}

fn named(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&[], "mkdir .vscode; echo planted > .vscode/tasks.json; echo planted > .envrc");
    let said = bench.apply(&["last", "."]);
    assert!(said.out.contains(".envrc"), "{said:?}");
    assert!(planted(&bench, &[".envrc", ".vscode/tasks.json"]).is_empty(), "a folder around it names nothing");
    bench.apply(&["last", ".vscode"]);
    assert_eq!(planted(&bench, &[".envrc", ".vscode/tasks.json"]), [".vscode/tasks.json"]);
}
