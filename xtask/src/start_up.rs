//! `cargo xtask start-up`: which functions a start runs, for the linker to put side by side. See docs/decisions/0005.
//!
//! Found by stepping: every instruction that belljar and its helpers take until the payload is executed, and after it has ended.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::ptrace::{self, Event, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use testkit::contestant::TEST_USER;

use crate::{place, release, steps};

const HEAD: &str = "\
/* The functions that `belljar run -- true` runs, in the order it first does, put before all others: a start then touches
   a fraction of the pages. Made by `cargo xtask start-up`; names stand without their hashes, and libraries without their
   versions, so that another compiler's fit too. One that is gone matches nothing, and a new one is only not among them. See
   docs/decisions/0005. */
SECTIONS
{
  .text.start_up :
  {
";
const TAIL: &str = "  }
}
INSERT BEFORE .text;
";

/// Where a function lies, what its section is called, and in which library it is.
struct Function {
    end: u64,
    section: String,
    library: String,
}

pub fn write() -> Result<(), String> {
    if !place::are_we_root() {
        return Err("only root may step through what other users start".to_owned());
    }
    let folder = place::targets().join("start-up");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let map = folder.join("belljar.map");
    let binary = release::with_symbols(&map)?;
    let functions = functions(&fs::read_to_string(&map).map_err(|error| format!("{}: {error}", map.display()))?);
    println!("{} functions in {}", functions.len(), binary.display());
    let mut seen: HashSet<u64> = HashSet::new();
    let mut order: Vec<u64> = Vec::new();
    for user in [None, Some(TEST_USER)] {
        for flags in [&["--workspace-mode", "readonly"][..], &[]] {
            println!("stepping through a start as {}, {flags:?}", user.unwrap_or("root"));
            let project = project(user)?;
            step_through(&binary, user, &project, flags, |address| {
                let known = functions.range((Bound::Unbounded, Bound::Included(address))).next_back();
                let Some((begin, _)) = known.filter(|(_, function)| address < function.end) else { return };
                if seen.insert(*begin) {
                    order.push(*begin);
                }
            })?;
            println!("{} functions so far", order.len());
        }
    }
    let mut lines: Vec<String> = Vec::new();
    let mut known: HashSet<String> = HashSet::new();
    for Function { section, library, .. } in order.iter().filter_map(|begin| functions.get(begin)) {
        let line = format!("    {library}({})\n", without_hash(section));
        if known.insert(line.clone()) {
            lines.push(line);
        }
    }
    let script = place::tree().join("crates/belljar/start_up.ld");
    fs::write(&script, format!("{HEAD}{}{TAIL}", lines.concat())).map_err(|error| error.to_string())?;
    println!("{} lines in {}", lines.len(), script.display());
    Ok(())
}

/// An empty folder of theirs.
fn project(user: Option<&str>) -> Result<PathBuf, String> {
    let project = Path::new("/var/tmp").join(format!("belljar-start-up-{}", user.unwrap_or("root")));
    fs::create_dir_all(&project).map_err(|error| format!("{}: {error}", project.display()))?;
    if let Some(user) = user {
        steps::run(Command::new("chown").arg(user).arg(&project))?;
    }
    Ok(project)
}

/// From the linker's map: each function has a section of its own.
fn functions(map: &str) -> BTreeMap<u64, Function> {
    let mut functions = BTreeMap::new();
    let mut name = "";
    for line in map.lines() {
        let mut words = line.split_whitespace();
        let mut first = words.next().unwrap_or_default();
        if line.starts_with(" .text") {
            name = first;
            first = words.next().unwrap_or_default();
        } else if !line.starts_with("  ") {
            name = "";
        }
        let number = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        let (Some(begin), Some(size), Some(file)) = (number(first), words.next().and_then(number), words.next()) else {
            continue;
        };
        // Assembler without sections of its own has nothing to be called by.
        if !name.is_empty() && name != ".text" && size > 0 {
            let function = Function { end: begin + size, section: name.to_owned(), library: library(file) };
            functions.insert(begin, function);
        }
        name = "";
    }
    functions
}

/// As the linker's script names it: `*libstd-*.rlib:` for what is in one, without its version's hash.
fn library(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or_default();
    match name.split_once('(') {
        Some((archive, _)) => match (archive.strip_suffix(".rlib"), archive.rsplit_once('-')) {
            (Some(_), Some((library, _))) => format!("*{library}-*.rlib:"),
            _ => format!("*{archive}:"),
        },
        None => "*".to_owned(),
    }
}

/// `_ZN…17h0123456789abcdefE` and `…Cs0123456789a_…` are called differently by each compiler.
fn without_hash(section: &str) -> String {
    let plain = match section.len().checked_sub(20).and_then(|at| section.split_at_checked(at)) {
        Some((before, hash)) if section.contains("._ZN") && hash.starts_with("17h") => format!("{before}17h*"),
        _ => section.to_owned(),
    };
    if !plain.contains("._R") {
        return plain;
    }
    let mut parts = plain.split("Cs");
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        name += "Cs";
        match part.split_once('_') {
            Some((hash, rest)) if !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                name += "*_";
                name += rest;
            }
            _ => name += part,
        }
    }
    name
}

/// Tells every place that an instruction is taken from.
fn step_through(
    binary: &Path,
    user: Option<&str>,
    project: &Path,
    flags: &[&str],
    mut at: impl FnMut(u64),
) -> Result<(), String> {
    let mut command = match user {
        None => Command::new("sh"),
        Some(user) => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", user, "--regid", user, "--clear-groups", "sh"]).env("HOME", project);
            command
        }
    };
    // Waits for us before it becomes belljar.
    command.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]).arg(binary).args(["run", "-q"]).args(flags);
    let mut child =
        command.args(["--", "/bin/true"]).current_dir(project).spawn().map_err(|error| error.to_string())?;
    let cannot = |what: &'static str| move |error: nix::Error| format!("cannot {what}: {error}");
    let first = Pid::from_raw(child.id().cast_signed());
    waitpid(first, Some(WaitPidFlag::WUNTRACED)).map_err(cannot("wait for it to stop"))?;
    let options = Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(first, options).map_err(cannot("trace it"))?;
    kill(first, Signal::SIGCONT).map_err(cannot("let it go on"))?;
    // Who is belljar, and not something else.
    let mut ours: HashMap<Pid, bool> = HashMap::from([(first, false)]);
    loop {
        let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
            Err(nix::Error::ECHILD) => break,
            status => status.map_err(cannot("wait"))?,
        };
        let (pid, signal) = match status {
            WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) => {
                ours.remove(&pid);
                if pid == first {
                    break;
                }
                continue;
            }
            WaitStatus::PtraceEvent(pid, _, event) => {
                if event == Event::PTRACE_EVENT_EXEC as i32 {
                    let runs = fs::read_link(format!("/proc/{pid}/exe"));
                    ours.insert(pid, runs.is_ok_and(|runs| runs == binary));
                } else if [Event::PTRACE_EVENT_FORK, Event::PTRACE_EVENT_VFORK, Event::PTRACE_EVENT_CLONE]
                    .iter()
                    .any(|fork| event == *fork as i32)
                {
                    let made = ptrace::getevent(pid).map_err(cannot("ask whom it started"))?;
                    let is_ours = ours.get(&pid).copied().unwrap_or(false);
                    ours.insert(Pid::from_raw(made as i32), is_ours);
                }
                (pid, None)
            }
            WaitStatus::Stopped(pid, Signal::SIGTRAP) => {
                if ours.get(&pid).copied().unwrap_or(false)
                    && let Ok(registers) = ptrace::getregs(pid)
                {
                    at(registers.rip);
                }
                (pid, None)
            }
            WaitStatus::Stopped(pid, signal) => (pid, Some(signal)),
            _ => continue,
        };
        let steps = ours.get(&pid).copied().unwrap_or(true);
        let gone_on = if steps { ptrace::step(pid, signal) } else { ptrace::cont(pid, signal) };
        match gone_on {
            Ok(()) | Err(nix::Error::ESRCH) => {}
            Err(error) => return Err(cannot("step")(error)),
        }
    }
    match child.try_wait() {
        // Whoever waited first knows how it ended; nobody else does.
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_changes_with_the_compiler() {
        assert_eq!(without_hash(".text._ZN4code6wanted4find17h0123456789abcdefE"), ".text._ZN4code6wanted4find17h*");
        assert_eq!(without_hash(".text._RNvNtCsaz6eC2DG7lh_3std3env7vars_os"), ".text._RNvNtCs*_3std3env7vars_os");
        assert_eq!(without_hash(".text.memcmp"), ".text.memcmp");
        assert_eq!(
            library("/a/libbelljar_policy-01ab.rlib(belljar_policy-01ab.x.rcgu.o)"),
            "*libbelljar_policy-*.rlib:"
        );
        assert_eq!(library("/a/self-contained/libc.a(open.lo)"), "*libc.a:");
        assert_eq!(library("/a/deps/belljar-01ab.belljar.1.rcgu.o"), "*");
    }

    #[test]
    fn functions_are_read_from_a_map_in_both_its_forms() {
        let map = " .text.short    0x0000000000401010       0x1f /a/libc.a(x.lo)\n \
                   .text._ZN1a17h0123456789abcdefE\n                0x0000000000402000       0x10 /a/b.o\n \
                   .text          0x0000000000403000       0x10 /a/b.o\n";
        let read: Vec<(u64, u64)> = functions(map).iter().map(|(begin, function)| (*begin, function.end)).collect();
        assert_eq!(read, [(0x40_1010, 0x40_102f), (0x40_2000, 0x40_2010)]);
    }
}
