//! Control groups of version 2, on a kernel that was given no others: belljar in a guest, as root, as a user whose group
//! is delegated, and as one whose is not. The guest's script, beside this file, does the checks; here they are judged.
//! Where there is nothing to make a guest of, the tests are skipped, and their names say why.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use belljar_testkit::contestant::belljar;
use belljar_testkit::guest::{self, MACHINE, part};
use libtest_mimic::{Arguments, Failed, Trial};

const SCRIPT: &str = include_str!("control_groups_v2.sh");

/// What the script is told, and the name of the test.
const WHO: &[(&str, &str)] = &[
    ("root", "as_root"),
    ("delegated", "as_a_user_with_a_delegated_group"),
    ("undelegated", "as_a_user_without_a_delegated_group"),
];

/// Many times what it takes: it must be enough where others take the processor, too.
const PATIENCE: Duration = Duration::from_secs(400);

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = vec![Trial::test("only_a_guest_that_came_to_its_end_proves_anything", the_judge_is_strict)];
    let why_not = why_not();
    trials.extend(WHO.iter().map(|(who, name)| match &why_not {
        Some(why) => Trial::test(format!("{name} (skipped: {why})"), || Ok(())).with_ignored_flag(true),
        None => Trial::test(*name, || check(who)),
    }));
    libtest_mimic::run(&arguments, trials).exit();
}

fn why_not() -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if cfg!(not(target_arch = "x86_64")) {
        return Some("the guest is made for x86_64".to_owned());
    }
    if !std::env::split_paths(&path).any(|folder| folder.join(MACHINE).exists()) {
        return Some(format!("no {MACHINE} on this host"));
    }
    guest::missing().map(|name| format!("no {name} for a guest: cargo xtask needs gets it"))
}

fn check(who: &str) -> Result<(), Failed> {
    let start = pack().and_then(|archive| Start::put(who, &archive));
    let start = start.map_err(|error| format!("cannot pack the guest's files: {error}"))?;
    let said = run(&start, who).map_err(|error| format!("cannot run {MACHINE}: {error}"))?;
    for line in judge(&said)? {
        println!("{line}");
    }
    Ok(())
}

/// The checks that held, if all did and none is missing.
fn judge(said: &str) -> Result<Vec<&str>, String> {
    let lines = || said.lines().map(str::trim);
    let failed: Vec<&str> = lines().filter(|line| line.starts_with("FAIL ")).collect();
    let held: Vec<&str> = lines().filter(|line| line.starts_with("ok ")).collect();
    let count = lines().find_map(|line| line.strip_prefix("end ")?.parse::<usize>().ok());
    match count {
        _ if !failed.is_empty() => Err(failed.join("\n")),
        Some(count) if count == held.len() && count > 0 => Ok(held),
        Some(count) => Err(format!("{count} checks were made, {} were heard of:\n{said}", held.len())),
        None => Err(format!("the guest did not come to its end; it said:\n{said}")),
    }
}

fn the_judge_is_strict() -> Result<(), Failed> {
    let not_enough = ["", "ok one\n", "end 0\n", "ok one\nend 2\n", "ok one\nend\n", "ok one\nFAIL two: why\nend 2\n"];
    match not_enough.iter().find(|said| judge(said).is_ok()) {
        Some(said) => Err(format!("this should prove nothing: {said:?}").into()),
        None => Ok(judge("[    0.1] noise\r\nok one\r\nok two\r\nend 2\r\n").map(drop)?),
    }
}

/// All that the guest says on its serial line until it turns itself off, or is turned off for taking too long.
fn run(start: &Start, who: &str) -> io::Result<String> {
    let mut machine = Command::new(MACHINE);
    // Not `microvm`, though it starts sooner: it has nothing to tell the processor's clock by.
    machine.args(["-M", "q35", "-accel", "tcg", "-m", "512", "-nodefaults", "-no-user-config", "-no-reboot"]);
    machine.args(["-display", "none", "-serial", "stdio", "-kernel"]).arg(part("vmlinuz"));
    machine.arg("-initrd").arg(&start.file);
    // The kernel says nothing but its last words, or it would speak in between.
    machine.arg("-append").arg(format!("console=ttyS0 loglevel=1 panic=-1 -- {who}"));
    let mut machine = machine.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let (to, from) = mpsc::channel();
    let mut serial = machine.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    std::thread::spawn(move || {
        let mut said = Vec::new();
        let read = serial.read_to_end(&mut said).map(|_| String::from_utf8_lossy(&said).into_owned());
        if to.send(read).is_err() {
            // Nobody waits any more.
        }
    });
    let said = match from.recv_timeout(PATIENCE) {
        Ok(said) => said,
        Err(_) => {
            println!("turned off after {} seconds", PATIENCE.as_secs());
            machine.kill()?;
            from.recv().map_err(io::Error::other)?
        }
    };
    machine.wait()?;
    said
}

/// The files that the guest starts with, as a file; removed afterwards.
struct Start {
    file: PathBuf,
}

impl Start {
    fn put(who: &str, archive: &[u8]) -> io::Result<Start> {
        let name = format!("guest-{who}-{}", std::process::id());
        let start = Start { file: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name) };
        fs::write(&start.file, archive)?;
        Ok(start)
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.file) {
            eprintln!("left behind: {}: {error}", self.file.display());
        }
    }
}

/// As the kernel unpacks it: `cpio` in its "new" format.
fn pack() -> io::Result<Vec<u8>> {
    const FOLDER: u32 = 0o040_755;
    const PROGRAM: u32 = 0o100_755;
    let mut archive = Vec::new();
    add(&mut archive, "bin", FOLDER, &[]);
    add(&mut archive, "bin/busybox", PROGRAM, &fs::read(part("busybox"))?);
    add(&mut archive, "bin/belljar", PROGRAM, &fs::read(belljar())?);
    add(&mut archive, "brd.ko", PROGRAM, &fs::read(part("brd.ko"))?);
    add(&mut archive, "init", PROGRAM, SCRIPT.as_bytes());
    add(&mut archive, "TRAILER!!!", 0, &[]);
    Ok(archive)
}

fn add(archive: &mut Vec<u8>, name: &str, mode: u32, contents: &[u8]) {
    let (size, length) = (contents.len(), name.len() + 1);
    archive.extend_from_slice(b"070701");
    // inode, mode, user, group, links, time, size, device and its own number (two each), length of the name, checksum
    for field in [0, mode as usize, 0, 0, 1, 0, size, 0, 0, 0, 0, length, 0] {
        archive.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    archive.resize(archive.len().next_multiple_of(4), 0);
    archive.extend_from_slice(contents);
    archive.resize(archive.len().next_multiple_of(4), 0);
}
