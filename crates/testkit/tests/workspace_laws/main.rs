//! The laws of a workspace, for random projects and random deeds, through the real binary, as root and as a user.

mod merges;
mod random;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use belljar_testkit::project::{Project, Said, exec_words};
use belljar_testkit::tree::{self, Kind, Leaf, Name, Tree};
use belljar_testkit::twice::trials;
use belljar_testkit::{Who, deeds};
use libtest_mimic::Arguments;
use random::{deeds as some_deeds, grown, holds, seeds};

fn main() {
    let laws = [
        trials("what_is_applied_is_what_the_sandbox_saw", what_is_applied_is_what_the_sandbox_saw),
        trials("nothing_changes_before_apply_nor_by_discard", nothing_changes_before_apply_nor_by_discard),
        trials("a_rollback_leads_back_to_its_snapshot", a_rollback_leads_back_to_its_snapshot),
        trials("what_is_closed_to_its_owner_is_taken_all_the_same", what_is_closed_is_taken),
        trials("what_was_written_a_moment_before_a_run_is_no_conflict", written_a_moment_before),
        trials("every_snapshot_can_be_applied", every_snapshot_can_be_applied),
        trials("forks_do_not_see_each_other", forks_do_not_see_each_other),
        trials("git_makes_the_same_of_the_patch", git_makes_the_same_of_the_patch),
        trials("no_edit_on_the_host_is_lost", merges::no_edit_on_the_host_is_lost),
        trials("a_check_says_what_apply_does", merges::a_check_says_what_apply_does),
        trials("whoever_is_favored_gets_the_conflicts", merges::whoever_is_favored_gets_the_conflicts),
    ];
    libtest_mimic::run(&Arguments::from_args(), laws.into_iter().flatten().collect()).exit();
}

/// As an error, where two should be the same.
fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    one: &BTreeMap<Name, T>,
    other: &BTreeMap<Name, T>,
) -> Result<(), String> {
    tree::difference(one, other).map_or(Ok(()), |difference| Err(format!("{what}:\n{difference}")))
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn what_is_applied_is_what_the_sandbox_saw(who: Who) -> Result<(), String> {
    holds(40, (seeds(), some_deeds(20)), |(seeds, deeds)| {
        let project = grown(who, &seeds).map_err(words)?;
        let before = project.tree()?;
        let saw = project.run(&deeds)?;
        if saw == before {
            return Ok(());
        }
        let applied = project.done(["apply"])?;
        same("the sandbox saw, and the host has", &saw, &project.tree()?)
            .map_err(|why| format!("{why}\n{applied:?}"))?;
        let owners = tree::exact(&project.work).map_err(words)?;
        let owner = owners.get(&Name(Vec::new())).map_or(0, |one| one.owner.0);
        let not_theirs = |(_, one): &(&Name, &tree::Exact)| one.owner.0 != owner;
        if let Some((name, one)) = owners.iter().find(not_theirs) {
            return Err(format!("{name:?} belongs to {:?}", one.owner));
        }
        let left = project.leavings()?;
        if left.is_empty() { Ok(()) } else { Err(format!("left: {left:?}")) }
    })
}

fn nothing_changes_before_apply_nor_by_discard(who: Who) -> Result<(), String> {
    holds(20, (seeds(), some_deeds(20)), |(seeds, deeds)| {
        let project = grown(who, &seeds).map_err(words)?;
        let exact = || tree::exact(&project.work).map_err(words);
        let before = exact()?;
        let saw = project.run(&deeds)?;
        same("after a run", &before, &exact()?)?;
        if saw != project.tree()? {
            for look in [["diff", "--stat"].as_slice(), &["diff", "-p"], &["apply", "--check"], &["ps"]] {
                project.belljar(look).map_err(words)?;
                same(look[0], &before, &exact()?)?;
            }
            project.done(["discard"])?;
        }
        same("after a discard", &before, &exact()?)?;
        let left = project.leavings()?;
        if left.is_empty() { Ok(()) } else { Err(format!("left: {left:?}")) }
    })
}

fn a_rollback_leads_back_to_its_snapshot(who: Who) -> Result<(), String> {
    holds(16, (seeds(), some_deeds(15), some_deeds(15)), |(seeds, first, then)| {
        let project = grown(who, &seeds).map_err(words)?;
        let before = tree::exact(&project.work).map_err(words)?;
        let id = project.create()?;
        let saw = project.exec(&id, &first)?;
        project.done(["snapshot", &id])?;
        project.exec(&id, &then)?;
        project.done(["rollback", &id])?;
        same("at the snapshot, and after the rollback", &saw, &project.exec(&id, &[])?)?;
        same("on the host", &before, &tree::exact(&project.work).map_err(words)?)?;
        project.done(["rm", &id])?;
        let left = project.leavings()?;
        if left.is_empty() { Ok(()) } else { Err(format!("left: {left:?}")) }
    })
}

/// Files that not even their owner may read, and folders that it may not write to, on the host and from the sandbox.
fn what_is_closed_is_taken(who: Who) -> Result<(), String> {
    let project = Project::new(who).map_err(words)?;
    for name in ["closed", "kept", "gone/file", "opened", "walled/file"] {
        project.put(name, format!("{name}\n")).map_err(words)?;
    }
    let mode = |name: &str, mode| set_mode(&project, name, mode);
    mode("closed", 0)?;
    mode("kept", 0)?;
    mode("opened", 0o200)?;
    project.let_it_age();
    let exact = || rustix::fs::lstat(project.work.join("opened")).map(|stat| (stat.st_ctime, stat.st_ctime_nsec));
    let before = exact().map_err(words)?;
    let script = "chmod 644 opened; echo more >> opened; rm -r gone; rm -f closed; \
                  mkdir -p new/inner; echo new > new/inner/file; ln -s file new/inner/link; chmod 000 new/inner/file; \
                  chmod 500 new/inner; chmod 500 new; mkdir mod; echo mod > mod/file; chmod 444 mod/file; chmod 555 mod";
    project.done(["run", "-q", "--", "/bin/sh", "-c", script])?;
    project.done(["diff"])?;
    project.done(["diff", "-p"])?;
    if exact().map_err(words)? != before {
        return Err("a look at it changed a file of the host".to_owned());
    }
    let said = project.done(["apply"])?;
    let modes = ["new", "mod", "kept", "opened"].map(|name| {
        std::fs::metadata(project.work.join(name)).map(|seen| seen.permissions().mode() & 0o777).map_err(words)
    });
    if modes != [Ok(0o500), Ok(0o555), Ok(0), Ok(0o644)] {
        return Err(format!("modes {modes:?} after {said:?}"));
    }
    mode("kept", 0o600)?;
    mode("new/inner/file", 0o600)?;
    let found = project.tree()?;
    let names: Vec<String> = found.keys().map(|name| format!("{name:?}")).collect();
    let expected = [
        "kept", "mod", "mod/file", "new", "new/inner", "new/inner/file", "new/inner/link", "opened", "walled",
        "walled/file",
    ];
    if names == expected { Ok(()) } else { Err(format!("{names:?} after {said:?}")) }
}

fn set_mode(project: &Project, name: &str, mode: u32) -> Result<(), String> {
    std::fs::set_permissions(project.work.join(name), std::fs::Permissions::from_mode(mode)).map_err(words)
}

/// As far as the kernel can tell: newer ones give finer times to files.
fn written_a_moment_before(who: Who) -> Result<(), String> {
    let project = Project::new(who).map_err(words)?;
    let mut conflicts = 0;
    const TIMES: u32 = 20;
    for number in 0..TIMES {
        project.put("file", format!("{number}\n")).map_err(words)?;
        project.done(["run", "-q", "--", "/bin/sh", "-c", "echo more >> file"])?;
        if project.belljar(["apply"]).map_err(words)?.code != Some(0) {
            conflicts += 1;
            project.done(["discard"])?;
        }
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let is_fine = (numbers.next(), numbers.next()) >= (Some(6), Some(13));
    println!("{conflicts} of {TIMES} on {release}");
    if is_fine && conflicts > 0 { Err(format!("{conflicts} conflicts with nobody")) } else { Ok(()) }
}

/// Also one that was left by a rollback to an earlier one.
fn every_snapshot_can_be_applied(who: Who) -> Result<(), String> {
    holds(10, (seeds(), some_deeds(12), some_deeds(12)), |(seeds, first, then)| {
        let project = grown(who, &seeds).map_err(words)?;
        let id = project.create()?;
        project.exec(&id, &first)?;
        project.done(["snapshot", &id, "--name", "one"])?;
        let saw = project.exec(&id, &then)?;
        project.done(["snapshot", &id, "--name", "two"])?;
        project.done(["rollback", &id, "one"])?;
        project.done(["rollback", &id, "two"])?;
        let applied = project.done(["apply", &id])?;
        same("at the snapshot, and applied", &saw, &project.tree()?).map_err(|why| format!("{why}\n{applied:?}"))
    })
}

fn forks_do_not_see_each_other(who: Who) -> Result<(), String> {
    let deeds = (some_deeds(8), some_deeds(8), proptest::option::weighted(0.7, some_deeds(8)));
    holds(12, (seeds(), deeds), |(seeds, (first, one, other))| {
        let other = other.unwrap_or_else(|| one.clone());
        let project = grown(who, &seeds).map_err(words)?;
        let parent = project.create()?;
        let began = project.exec(&parent, &first)?;
        let forks = project.json(["fork", "--json", &parent, "-n", "2"])?;
        let fork = |number: usize| forks[number]["id"].as_str().map(str::to_owned).ok_or("no id of a fork");
        let (left, right) = (fork(0)?, fork(1)?);
        let start = |which: &str, deeds: &[deeds::Deed]| {
            let mut command = project.command(exec_words(which, deeds, false));
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(words)
        };
        let running = [start(&left, &one)?, start(&right, &other)?];
        let [left_saw, right_saw] = running.map(|child| {
            let said = Said::of(child.wait_with_output().map_err(words)?);
            tree::told(&said.out).map_err(|why| format!("{why}\n{}", said.error))
        });
        let (left_saw, right_saw) = (left_saw?, right_saw?);
        same("one fork, then and now", &left_saw, &project.exec(&left, &[])?)?;
        same("the other, then and now", &right_saw, &project.exec(&right, &[])?)?;
        same("the parent, before and after", &began, &project.exec(&parent, &[])?)?;
        let difference = project.json(["diff", "--json", &left, &right])?;
        let differ = difference["changes"].as_array().is_some_and(|changes| !changes.is_empty());
        if differ == (left_saw == right_saw) {
            return Err(format!(
                "`diff` of two forks says {difference}, but: {:?}",
                tree::difference(&left_saw, &right_saw)
            ));
        }
        Ok(())
    })
}

fn git_makes_the_same_of_the_patch(who: Who) -> Result<(), String> {
    holds(25, (seeds(), some_deeds(15)), |(seeds, deeds)| {
        let project = grown(who, &seeds).map_err(words)?;
        let saw = project.run(&deeds)?;
        if saw == project.tree()? {
            return Ok(());
        }
        let patch = project.done(["diff", "-p"])?.out;
        let copy = Project::new(who).map_err(words)?;
        std::fs::remove_dir(&copy.work).map_err(words)?;
        let copied = Command::new("cp").arg("-a").args([&project.work, &copy.work]).status().map_err(words)?;
        // git keeps no empty folders, and does not know what to do with them.
        let pruned =
            Command::new("find").arg(&copy.work).args(["-mindepth", "1", "-type", "d", "-empty", "-delete"]).status();
        if !copied.success() || !pruned.map_err(words)?.success() {
            return Err("cannot copy the project".to_owned());
        }
        if !patch.is_empty() {
            git_apply(&copy, &patch)?;
        }
        same("the sandbox saw, and git made", &as_git_knows(&saw), &as_git_knows(&copy.tree()?))
            .map_err(|why| format!("{why}\nby\n{}", patch.escape_ascii()))
    })
}

fn git_apply(project: &Project, patch: &[u8]) -> Result<(), String> {
    let mut git = Command::new("git");
    git.args(["apply", "--whitespace=nowarn", "-"]).current_dir(&project.work);
    git.env("GIT_CEILING_DIRECTORIES", "/").env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let mut child = git.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(words)?;
    if let Some(mut to) = child.stdin.take() {
        to.write_all(patch).map_err(words)?;
    }
    let said = Said::of(child.wait_with_output().map_err(words)?);
    match said.code {
        Some(0) => Ok(()),
        _ => Err(format!("git says {}\nto\n{}", said.error, patch.escape_ascii())),
    }
}

/// Files and links; of what may be done with them, whether they are run.
fn as_git_knows(tree: &Tree) -> Tree {
    let known = tree.iter().filter(|(_, leaf)| leaf.kind != Kind::Folder);
    known.map(|(name, leaf)| (name.clone(), Leaf { mode: leaf.mode & 0o100, ..leaf.clone() })).collect()
}
