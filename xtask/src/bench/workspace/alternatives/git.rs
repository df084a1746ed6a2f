//! `git worktree add`, from a repository made of the tree once.

use std::path::Path;
use std::process::Command;

use super::{Way, command, first};
use crate::bench::workspace::trees::{Tree, cannot, kept};
use crate::place;

pub const NAME: &str = "git worktree add, remove";

pub fn way(tree: &Tree, copy: &Path) -> Result<Way, String> {
    if place::program("git").is_none() {
        return Err("there is no git in PATH".to_owned());
    }
    let repository = kept().join(format!("tree-{}.git", tree.files));
    if !repository.is_dir() {
        make(tree, &repository)?;
    }
    let git = |words: &[&str]| {
        let mut with = vec!["--git-dir", repository.to_str().unwrap_or_default()];
        with.extend(words);
        command("git", &with, &[copy])
    };
    let add = git(&["worktree", "add", "--force", "--detach", "--quiet"]);
    Ok(Way::new(NAME, add, git(&["worktree", "remove", "--force"]), "only what is committed"))
}

fn make(tree: &Tree, repository: &Path) -> Result<(), String> {
    println!("making {}, once", repository.display());
    let unfinished = repository.with_extension("unfinished");
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished).map_err(cannot("remove", &unfinished))?;
    }
    first(command("git", &["init", "--bare", "--quiet"], &[&unfinished]))?;
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.arg("--git-dir").arg(&unfinished).arg("--work-tree").arg(&tree.path);
        // Into one pack at once rather than a file for each.
        git.args(["-c", "core.bare=false", "-c", "core.bigFileThreshold=1"]);
        git.args(["-c", "user.name=bench", "-c", "user.email=bench@example.org"]).args(words);
        first(git)
    };
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message", "all"])?;
    std::fs::rename(&unfinished, repository).map_err(cannot("name", repository))
}
