//! One story on every filesystem that people keep projects on, as root and as a user: with the state elsewhere, and with
//! both on it. Also where layers can't be kept, and copies must do. Mounts are in a namespace of this process's own, so
//! they are gone with it however it ends. What can't be had here is skipped, and the name of the test says why.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use belljar_testkit::project::Project;
use belljar_testkit::tree::{self, Tree};
use belljar_testkit::twice::{trial, why_not};
use belljar_testkit::{Who, deeds};
use libtest_mimic::Arguments;

/// How it is made in a file; nothing for one in memory.
const FILESYSTEMS: &[(&str, &[&str])] = &[
    ("ext4", &["mkfs.ext4", "-q", "-F"]),
    ("xfs", &["mkfs.xfs", "-q", "-f"]),
    ("btrfs", &["mkfs.btrfs", "-q", "-f"]),
    ("tmpfs", &[]),
];

fn main() {
    let arguments = Arguments::from_args();
    let alone = alone();
    let mut trials = Vec::new();
    for who in [Who::Root, Who::Ordinary] {
        let why_not = why_not(who).or_else(|| alone.clone());
        for (kind, make) in FILESYSTEMS {
            let why_not = why_not.clone().or_else(|| absent(kind, make));
            for both in [false, true] {
                let name = format!("{kind}_for_{}", if both { "project_and_state" } else { "the_project" });
                trials.push(trial(&name, who, why_not.clone(), move || on(kind, make, both, who)));
            }
        }
        let name = match who {
            Who::Root => "where_layers_can_not_be_kept_root_is_told_what_to_do",
            Who::Ordinary => "where_layers_can_not_be_kept_copies_do_the_same",
        };
        trials.push(trial(name, who, why_not.clone(), move || copies(who)));
        trials.push(trial("a_full_disk_changes_nothing", who, why_not.clone(), move || full("tmpfs", &[], who)));
        let (kind, make) = FILESYSTEMS[0];
        let why_not = why_not.or_else(|| absent(kind, make));
        trials.push(trial("a_full_ext4_changes_nothing", who, why_not, move || full(kind, make, who)));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// From here on, what is mounted is seen by us and our children alone. Why not, if that can't be.
fn alone() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root, to mount".to_owned());
    }
    // SAFETY: takes an integer; no thread of ours is running yet.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Some(format!("no namespace for mounts: {}", std::io::Error::last_os_error()));
    }
    run(Command::new("mount").args(["--make-rprivate", "/"])).err()
}

fn absent(kind: &str, make: &[&str]) -> Option<String> {
    // A module may have to be loaded first, which the first mount would do.
    run(Command::new("modprobe").arg("-q").arg(kind)).ok();
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !known.lines().any(|line| line.split_whitespace().last() == Some(kind)) {
        return Some(format!("the kernel has no {kind}"));
    }
    let program = make.first()?;
    let folders = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin"];
    let found = folders.iter().any(|folder| Path::new(folder).join(program).exists());
    (!found).then(|| format!("no {program} on this host"))
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn run(command: &mut Command) -> Result<(), String> {
    command.env("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin").stdin(Stdio::null());
    let said = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    match said.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&said.stderr).trim())),
    }
}

/// Something mounted; away with it afterwards.
struct Mounted {
    folder: PathBuf,
    place: PathBuf,
}

impl Mounted {
    fn new(kind: &str, make: &[&str], size: &str) -> Result<Mounted, String> {
        let mounted = Mounted::prepared()?;
        if make.is_empty() {
            let options = format!("size={size},mode=755");
            run(Command::new("mount").args(["-t", kind, "-o", &options, kind]).arg(&mounted.place))?;
            return Ok(mounted);
        }
        let image = mounted.folder.join("image");
        run(Command::new("truncate").args(["-s", size]).arg(&image))?;
        run(Command::new(make[0]).args(&make[1..]).arg(&image))?;
        // The loop device is let go of with the mount.
        run(Command::new("mount").args(["-t", kind, "-o", "loop"]).args([&image, &mounted.place]))?;
        Ok(mounted)
    }

    fn overlay() -> Result<Mounted, String> {
        let mounted = Mounted::prepared()?;
        for folder in ["lower", "upper", "work"] {
            fs::create_dir(mounted.folder.join(folder)).map_err(words)?;
        }
        let at = |name: &str| mounted.folder.join(name).display().to_string();
        let options = format!("lowerdir={},upperdir={},workdir={}", at("lower"), at("upper"), at("work"));
        run(Command::new("mount").args(["-t", "overlay", "-o", &options, "overlay"]).arg(&mounted.place))?;
        Ok(mounted)
    }

    fn prepared() -> Result<Mounted, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = PathBuf::from(format!("/var/tmp/belljar-mounts-{}-{number}", std::process::id()));
        let place = folder.join("place");
        fs::create_dir_all(&place).map_err(words)?;
        Ok(Mounted { folder, place })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Not mounted at all, if that is what went wrong.
        let gone = run(Command::new("umount").arg(&self.place));
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("left behind: {}: {error} ({gone:?})", self.folder.display());
        }
    }
}

fn on(kind: &'static str, make: &'static [&'static str], both: bool, who: Who) -> Result<(), String> {
    let mounted = Mounted::new(kind, make, "400M")?;
    let state = if both { mounted.place.clone() } else { PathBuf::from("/var/tmp") };
    let project = Project::within(&mounted.place, &state, who).map_err(words)?;
    let said = story(&project)?;
    if said.is_empty() { Ok(()) } else { Err(format!("belljar warns, where nothing is wrong: {said}")) }
}

fn copies(who: Who) -> Result<(), String> {
    let mounted = Mounted::overlay()?;
    let project = Project::within(Path::new("/var/tmp"), &mounted.place, who).map_err(words)?;
    if who == Who::Root {
        // A gap: root's sandboxes map owners, and the kernel maps none on an overlay.
        let said = project.belljar(["run", "--", "/bin/true"]).map_err(words)?;
        let told = said.error.contains("copied as a whole") && said.error.contains("use ext4, xfs, btrfs or tmpfs");
        return if said.code == Some(125) && told { Ok(()) } else { Err(format!("{said:?}")) };
    }
    let said = story(&project)?;
    if said.contains("copied as a whole") { Ok(()) } else { Err(format!("nobody is warned of the cost: {said:?}")) }
}

const CHANGES: &str = "
    echo new > added; echo more >> changed; rm deleted; chmod 755 closed; ln -s changed link; ln -sf closed turned
    mv folder moved 2>/dev/null || { cp -a folder moved; rm -r folder; }
    rm -r again; mkdir again; echo again > again/file
    rm file; mkdir file; echo inside > file/inside
    rm -r tree; echo file > tree
    chmod 700 opened; mkdir empty; ln changed hard; touch untouched";
const MORE: &str = "echo later >> changed; rm -r moved; mkdir -p deep/er; echo x > deep/er/x; rm -f added";

/// Every command once, compared with what the sandbox sees; returns what belljar said besides.
fn story(project: &Project) -> Result<String, String> {
    let files = [
        "changed", "deleted", "closed", "file", "folder/a", "folder/sub/b", "again/old", "tree/a/b/c", "opened/a",
        "untouched",
    ];
    for name in files {
        project.put(name, format!("{name}\n")).map_err(words)?;
    }
    let link = project.work.join("turned");
    std::os::unix::fs::symlink("changed", &link).and_then(|()| project.give(&link)).map_err(words)?;
    project.let_it_age();
    let before = tree::exact(&project.work).map_err(words)?;
    let original = project.tree()?;
    let untouched = || match tree::difference(&before, &tree::exact(&project.work).map_err(words)?) {
        Some(difference) => Err(format!("the host changed:\n{difference}")),
        None => Ok(()),
    };
    let same = |what: &str, one: &Tree, other: &Tree| match tree::difference(one, other) {
        Some(difference) => Err(format!("{what}:\n{difference}")),
        None => Ok(()),
    };
    let made = project.done(["create", "--name", "made"])?;
    let sees = |which: &str, script: &str| {
        if !script.is_empty() {
            project.done(["exec", "-q", which, "--", "/bin/sh", "-ec", script])?;
        }
        project.exec(which, &[])
    };
    same("at first", &original, &sees("made", "")?)?;
    let changed = sees("made", CHANGES)?;
    project.done(["snapshot", "made"])?;
    let more = sees("made", MORE)?;
    project.done(["rollback", "made"])?;
    same("after a rollback", &changed, &sees("made", "")?)?;
    project.done(["fork", "made", "-n", "2"])?;
    same("in a fork", &changed, &sees("made-1", "")?)?;
    same("in a fork, later", &more, &sees("made-1", MORE)?)?;
    same("in the other fork", &changed, &sees("made-2", "")?)?;
    same("in the parent", &changed, &sees("made", "")?)?;
    project.done(["diff", "made-1", "made-2"])?;
    project.done(["discard", "made-2"])?;
    same("after a discard", &original, &sees("made-2", "")?)?;
    untouched()?;
    let check = project.done(["apply", "--check", "made-1"])?;
    untouched()?;
    project.done(["apply", "made-1"])?;
    same("the sandbox saw, and applied", &more, &project.tree()?).map_err(|why| format!("{why}\n{check:?}"))?;
    // Another that changes the same, in its own way, on top of that.
    project.let_it_age();
    let run = ["run", "-q", "--"].map(str::to_owned).into_iter().chain(deeds::command(&[], false));
    let later = project.done(run)?;
    same("in a new run", &more, &tree::told(&later.out)?)?;
    project.done(["rm", "made", "made-1", "made-2"])?;
    project.done(["gc"])?;
    let left = project.leavings()?;
    if left.is_empty() { Ok(made.error) } else { Err(format!("left: {left:?}")) }
}

/// What can't be written for want of room changes nothing; with room it is.
fn full(kind: &'static str, make: &'static [&'static str], who: Who) -> Result<(), String> {
    let mounted = Mounted::new(kind, make, "24M")?;
    let project = Project::within(&mounted.place, Path::new("/var/tmp"), who).map_err(words)?;
    for number in 0..20 {
        project.put(format!("file-{number}"), format!("{number}\n")).map_err(words)?;
    }
    let filler = mounted.place.join("filler");
    fs::write(&filler, vec![1u8; 10 << 20]).map_err(words)?;
    project.let_it_age();
    let before = tree::exact(&project.work).map_err(words)?;
    let script =
        "for n in $(seq 0 19); do head -c 800000 /dev/urandom > file-$n; done; rm file-3; mkdir new; echo x > new/x";
    project.done(["run", "-q", "--", "/bin/sh", "-ec", script])?;
    for _ in 0..2 {
        let said = project.belljar(["apply"]).map_err(words)?;
        if said.code != Some(125) || !said.error.contains("No space left") || !said.error.contains("make room") {
            return Err(format!("the disk is full, but: {said:?}"));
        }
        let mut after = tree::exact(&project.work).map_err(words)?;
        // A folder was made in it, and removed again.
        if let (Some(now), Some(then)) = (after.get_mut(&tree::Name(Vec::new())), before.get(&tree::Name(Vec::new()))) {
            (now.modified, now.changed) = (then.modified, then.changed);
        }
        if let Some(difference) = tree::difference(&before, &after) {
            return Err(format!("a full disk changed the host:\n{difference}"));
        }
    }
    fs::remove_file(&filler).map_err(words)?;
    let wanted = project.exec("last", &[])?;
    project.done(["apply"])?;
    match tree::difference(&wanted, &project.tree()?) {
        Some(difference) => Err(format!("with room:\n{difference}")),
        None => Ok(()),
    }
}
