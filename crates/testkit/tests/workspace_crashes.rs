//! belljar ended at any point, the disk full, and many belljars at once: what is on the host is always the old or the
//! new, and the next `apply` finishes or undoes.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::deeds;
use belljar_testkit::dice::Dice;
use belljar_testkit::project::{Project, Said};
use belljar_testkit::stops::{Ended, before_call};
use belljar_testkit::tree::{self, Tree};
use belljar_testkit::twice::trials;
use libtest_mimic::Arguments;

fn main() {
    let checks = [
        trials("an_apply_killed_before_any_of_its_calls_is_finished_or_undone", killed_before_each_call),
        trials("an_apply_killed_at_random_is_finished_or_undone", killed_at_random),
        trials("an_apply_whose_project_is_gone_stops_nobody", the_project_is_gone),
        trials("a_run_that_is_killed_leaves_its_changes", a_killed_run),
        trials("many_belljars_at_once_get_in_nobodys_way", many_at_once),
        trials("many_looks_at_one_sandbox_get_in_nobodys_way", many_looks),
        trials("collecting_takes_nothing_from_those_who_work", collecting_meanwhile),
    ];
    libtest_mimic::run(&Arguments::from_args(), checks.into_iter().flatten().collect()).exit();
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A project, and a sandbox over it that has changed `size` times everything in every way.
struct Changed {
    project: Project,
    old: Tree,
    new: Tree,
}

/// For `sh`: of each number, a file added, changed, deleted, closed, a folder for a file and a file for a folder, a
/// folder renamed, a link, and a folder that nobody may write to.
const CHANGES: &str = r#"
for n in $(seq "$1"); do
    cd "$n"
    echo added > added; echo more >> changed; rm deleted; chmod 600 closed
    rm file; mkdir file; echo inside > file/inside
    rm -r folder; echo file > folder
    mv renamed other 2>/dev/null || { cp -a renamed other; rm -r renamed; }
    ln -s changed link; ln -sf closed turned
    mkdir locked; echo locked > locked/inside; chmod 555 locked
    chmod 700 opened; rm -r again; mkdir again; echo new > again/new
    cd ..
done
"#;

fn changed(who: Who, size: usize) -> Result<Changed, String> {
    let project = Project::new(who).map_err(words)?;
    for number in 1..=size {
        let files = [
            "changed", "deleted", "closed", "file", "folder/one", "folder/two/three", "renamed/a", "opened/a",
            "again/old",
        ];
        for file in files {
            project.put(format!("{number}/{file}"), format!("{file} {number}\n")).map_err(words)?;
        }
        let link = project.work.join(format!("{number}/turned"));
        std::os::unix::fs::symlink("changed", &link).and_then(|()| project.give(&link)).map_err(words)?;
    }
    project.put("untouched", "untouched\n").map_err(words)?;
    project.let_it_age();
    let old = project.tree()?;
    let mut run: Vec<String> = ["run", "-q", "--", "/bin/sh", "-c"].map(str::to_owned).into();
    // The list is made after the script, in the same run.
    let list = deeds::command(&[], false).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    run.extend([format!("{CHANGES}\nexec {list}"), "sh".to_owned(), size.to_string()]);
    let new = tree::told(&project.done(run)?.out)?;
    let as_before = tree::difference(&old, &project.tree()?);
    match as_before {
        Some(difference) => Err(format!("a run changed the host:\n{difference}")),
        None => Ok(Changed { project, old, new }),
    }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl Changed {
    /// Whatever was cut off, each path is as it was or as it is to be.
    fn is_old_or_new(&self) -> Result<(), String> {
        let now = self.project.tree()?;
        let ours = |name: &[u8]| name.starts_with(b".belljar-");
        let names: BTreeSet<_> = self.old.keys().chain(self.new.keys()).chain(now.keys()).collect();
        for name in names.into_iter().filter(|name| !ours(&name.0)) {
            let (old, new, now) = (self.old.get(name), self.new.get(name), now.get(name));
            let open = |leaf: &tree::Leaf| tree::Leaf { mode: leaf.mode | 0o700, ..leaf.clone() };
            // Folders that are to be closed are closed last.
            if now != old && now != new && now != new.map(open).as_ref() {
                return Err(format!("{name:?} is {now:?}, and neither {old:?} nor {new:?}"));
            }
        }
        Ok(())
    }

    /// Applies without being disturbed, and looks at everything.
    fn comes_to_its_end(&self) -> Result<Said, String> {
        let said = self.project.belljar(["apply"]).map_err(words)?;
        // It was cut off when nothing was left to do.
        let done = said.code == Some(125) && said.error.contains("no sandbox");
        if said.code != Some(0) && !done {
            return Err(format!("the next apply: {said:?}"));
        }
        if let Some(difference) = tree::difference(&self.new, &self.project.tree()?) {
            return Err(format!("wanted, and on the host:\n{difference}\nafter {said:?}"));
        }
        let left = self.project.leavings()?;
        // Layers of a sandbox that is gone are collected.
        let left: Vec<&String> = left.iter().filter(|one| !one.starts_with("layer ")).collect();
        if left.is_empty() { Ok(said) } else { Err(format!("left: {left:?} after {said:?}")) }
    }

    fn is_collected(&self) -> Result<(), String> {
        self.project.done(["gc"])?;
        let left = self.project.leavings()?;
        if left.is_empty() { Ok(()) } else { Err(format!("left, and not collected: {left:?}")) }
    }
}

fn killed_before_each_call(who: Who) -> Result<(), String> {
    let (mut finished, mut undone) = (0, 0);
    for number in 0.. {
        let changed = changed(who, 1)?;
        match before_call(&mut changed.project.command(["apply"]), number).map_err(words)? {
            Ended::ByItself(said) if said.code == Some(0) => {
                println!("{number} calls; the next apply finished {finished} and undid {undone}");
                return if finished > 10 && undone > 10 { Ok(()) } else { Err("too few were cut off".to_owned()) };
            }
            Ended::ByItself(said) => return Err(format!("{said:?}")),
            Ended::Killed(call) => {
                let at = |why: String| format!("killed before call {number}, a {call}: {why}");
                changed.is_old_or_new().map_err(at)?;
                let said = changed.comes_to_its_end().map_err(at)?;
                changed.is_collected().map_err(at)?;
                let text = String::from_utf8_lossy(&said.out).into_owned();
                finished += u32::from(text.contains("finished now"));
                undone += u32::from(text.contains("it is undone"));
            }
        }
    }
    Ok(())
}

/// 500 in all: 250 for each user, by two who work side by side.
fn killed_at_random(who: Who) -> Result<(), String> {
    let first = changed(who, SIZE)?;
    let began = Instant::now();
    first.project.done(["apply"])?;
    let usual = began.elapsed();
    println!("within {usual:?} of work");
    std::thread::scope(|scope| {
        let workers =
            [0x5eed_0004, 0x5eed_0005].map(|seed| scope.spawn(move || kill_many(who, 125, usual, Dice(seed))));
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".to_owned())?)
    })
}

/// A good hundred changes.
const SIZE: usize = 8;

fn kill_many(who: Who, many: u32, usual: Duration, mut dice: Dice) -> Result<(), String> {
    const MOST_IN_A_ROW: u32 = 6;
    let mut kills = 0;
    while kills < many {
        let changed = changed(who, SIZE)?;
        for _ in 0..MOST_IN_A_ROW {
            let mut command = changed.project.command(["apply"]);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(words)?;
            let delay = Duration::from_nanos(dice.throw() % usual.as_nanos() as u64);
            std::thread::sleep(delay);
            child.kill().map_err(words)?;
            let ended = child.wait().map_err(words)?;
            changed.is_old_or_new().map_err(|why| format!("kill {kills}, after {delay:?}: {why}"))?;
            if ended.code().is_some() {
                break;
            }
            kills += 1;
        }
        changed.comes_to_its_end().map_err(|why| format!("kill {kills}: {why}"))?;
    }
    Ok(())
}

/// A journal of a project that nobody has any more.
fn the_project_is_gone(who: Who) -> Result<(), String> {
    // Somewhere in the midst of its renames.
    for number in [60, 100, 120] {
        let changed = changed(who, 1)?;
        let project = &changed.project;
        let Ended::Killed(_) = before_call(&mut project.command(["apply"]), number).map_err(words)? else {
            continue;
        };
        let away = project.work.with_file_name("away");
        std::fs::rename(&project.work, &away).map_err(words)?;
        std::fs::create_dir(&project.work).and_then(|()| project.give(&project.work)).map_err(words)?;
        project.put("file", "another project\n").map_err(words)?;
        project.let_it_age();
        project.done(["run", "-q", "--", "/bin/sh", "-c", "echo more >> file"])?;
        project.done(["diff"])?;
        project.done(["apply"])?;
        let found = std::fs::read_to_string(project.work.join("file")).map_err(words)?;
        if found != "another project\nmore\n" {
            return Err(found);
        }
    }
    Ok(())
}

fn a_killed_run(who: Who) -> Result<(), String> {
    let project = Project::new(who).map_err(words)?;
    project.put("file", "one\n").map_err(words)?;
    project.let_it_age();
    let script = "echo two >> file; echo new > new; echo ready; while :; do echo more >> grows; done";
    let mut child =
        project.command(["run", "-q", "--", "/bin/sh", "-c", script]).stdout(Stdio::piped()).spawn().map_err(words)?;
    let mut ready = String::new();
    std::io::BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut ready).map_err(words)?;
    let running = project.kept()?;
    if running[0]["running"] != true {
        return Err(format!("it runs, but: {running}"));
    }
    child.kill().map_err(words)?;
    child.wait().map_err(words)?;
    let list = project.kept()?;
    if list.as_array().map(Vec::len) != Some(1) {
        return Err(format!("not one sandbox: {list}"));
    }
    let difference = project.json(["diff", "--json"])?;
    let paths: BTreeSet<&str> =
        difference["changes"].as_array().into_iter().flatten().filter_map(|change| change["path"].as_str()).collect();
    if !paths.contains("file") || !paths.contains("new") {
        return Err(format!("its changes are not all there: {difference}"));
    }
    project.done(["apply"])?;
    let read = |name: &str| std::fs::read_to_string(project.work.join(name)).map_err(words);
    if read("file")? != "one\ntwo\n" || read("new")? != "new\n" {
        return Err("its changes were not taken".to_owned());
    }
    let left = project.leavings()?;
    if left.is_empty() { Ok(()) } else { Err(format!("left: {left:?}")) }
}

/// How each ended, if not well.
fn all_well(children: Vec<(String, std::process::Child)>) -> Result<(), String> {
    let mut failed = Vec::new();
    for (what, child) in children {
        let said = Said::of(child.wait_with_output().map_err(words)?);
        if said.code != Some(0) {
            failed.push(format!("{what}: {said:?}"));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

fn start(project: &Project, words_: &[&str]) -> Result<(String, std::process::Child), String> {
    let mut command: Command = project.command(words_);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(words)?;
    Ok((words_.join(" "), child))
}

/// From the first on, when there is no state yet.
fn many_at_once(who: Who) -> Result<(), String> {
    const MANY: usize = 20;
    let project = Project::new(who).map_err(words)?;
    project.put("file", "one\n").map_err(words)?;
    project.let_it_age();
    let mut children = Vec::new();
    for number in 0..MANY {
        let script = format!("echo {number} >> file; echo {number} > new-{number}");
        children.push(start(&project, &["run", "-q", "--", "/bin/sh", "-c", &script])?);
        children.push(start(&project, &["ps"])?);
    }
    all_well(children)?;
    let list = project.kept()?;
    let ids: Vec<&str> = list.as_array().into_iter().flatten().filter_map(|one| one["id"].as_str()).collect();
    if ids.len() != MANY {
        return Err(format!("{} of {MANY} are kept", ids.len()));
    }
    let mut children = Vec::new();
    for id in &ids {
        children.push(start(&project, &["diff", id])?);
        children.push(start(&project, &["snapshot", id])?);
        children.push(start(&project, &["ps"])?);
    }
    all_well(children)?;
    for id in &ids {
        let difference = project.json(["diff", "--json", id])?;
        if difference["changes"].as_array().map(Vec::len) != Some(2) {
            return Err(format!("{id}: {difference}"));
        }
    }
    Ok(())
}

/// No look makes a sandbox busy for others.
fn many_looks(who: Who) -> Result<(), String> {
    let project = Project::new(who).map_err(words)?;
    project.put("file", "one\n").map_err(words)?;
    project.let_it_age();
    let id = project.create()?;
    project.done(["exec", "-q", &id, "--", "/bin/sh", "-c", "echo two >> file"])?;
    for _ in 0..10 {
        let mut children = Vec::new();
        for _ in 0..6 {
            children.push(start(&project, &["ps", "--json"])?);
            children.push(start(&project, &["diff", &id])?);
        }
        children.push(start(&project, &["snapshot", &id])?);
        for (what, child) in children {
            let said = Said::of(child.wait_with_output().map_err(words)?);
            if said.code != Some(0) {
                return Err(format!("{what}: {said:?}"));
            }
        }
    }
    Ok(())
}

fn collecting_meanwhile(who: Who) -> Result<(), String> {
    let project = Project::new(who).map_err(words)?;
    project.put("file", "one\n").map_err(words)?;
    project.let_it_age();
    let id = project.create()?;
    for round in 0..8 {
        let name = format!("round-{round}");
        let script = format!("echo {round} > new-{round}");
        let mut children = vec![start(&project, &["create", "--name", &name])?];
        for _ in 0..3 {
            children.push(start(&project, &["gc"])?);
            children.push(start(&project, &["run", "-q", "--", "/bin/sh", "-c", &script])?);
        }
        children.push(start(&project, &["fork", &id])?);
        children.push(start(&project, &["gc"])?);
        all_well(children)?;
    }
    let list = project.kept()?;
    let sandboxes: Vec<&serde_json::Value> = list.as_array().into_iter().flatten().collect();
    // One, eight forks of it, eight made, 24 left by runs.
    if sandboxes.len() != 1 + 8 + 8 + 24 {
        return Err(format!("{} are left", sandboxes.len()));
    }
    for sandbox in sandboxes {
        if !sandbox["trouble"].is_null() {
            return Err(format!("{sandbox}"));
        }
        project.done(["diff", sandbox["id"].as_str().unwrap_or_default()])?;
    }
    Ok(())
}
