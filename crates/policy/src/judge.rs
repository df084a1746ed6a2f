//! Request + policy + facts → verdict. Nothing in a request widens what the policy gives.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use model::paths::is_within;
use model::{
    Accepted, Access, Asked, Command, Files, Grant, Limits, Network, Place, Powers, Refusal, Request, Verdict,
};

use crate::credentials;
use crate::facts::Facts;
use crate::reader::Policy;
use crate::system::{ENVIRONMENT, NEVER_WRITABLE, PRIVATE, TOOLCHAIN_VARIABLES};

pub fn judge(request: &Request, policy: &Policy, facts: &Facts) -> Verdict {
    match grant(request, policy, facts) {
        Ok(grant) => Verdict::Allowed(Box::new(grant)),
        Err(refusal) => Verdict::Refused(refusal),
    }
}

fn grant(request: &Request, policy: &Policy, facts: &Facts) -> Result<Grant, Refusal> {
    let named = facts.workspaces.iter().filter(|_| facts.workspaces_named);
    for place in facts.asked.iter().chain(named) {
        check_place(place, facts)?;
    }
    for place in facts.asked.iter().chain(&facts.workspaces) {
        check_state(place, facts)?;
    }
    let places = places(facts);
    check_directory(facts, &places)?;
    let accepted = accepted(request, policy);
    let hidden = hidden(facts, &places);
    let powers = Powers {
        command: Command {
            program: facts.program.path.clone(),
            arguments: request.command.clone(),
            directory: facts.start.clone(),
            terminal: request.terminal,
        },
        environment: environment(request, policy, facts, &places),
        files: Files {
            places,
            links: facts.links.clone(),
            hidden,
            home: facts.home.clone(),
            user_name: facts.user_name.clone(),
        },
        network: Network::Closed,
        limits: limits(&request.limits, policy, facts),
    };
    Ok(Grant::mint(powers, accepted))
}

fn check_place(place: &Place, facts: &Facts) -> Result<(), Refusal> {
    let path = place.path.display();
    let refuse = |rule: &str, message: String, hint: &str| {
        Err(Refusal::new(rule, message, hint))
    };
    if place.path == Path::new("/") {
        return refuse(
            "files.root",
            format!("the whole root can't be {}", words(place.access)),
            "name the folders that the command needs",
        );
    }
    if let Some(store) = credentials::around(&place.path, &facts.homes, &facts.linked_stores) {
        return refuse(
            "files.credentials",
            format!("`{path}` is in the credential store `{}`, which is never visible inside", store.display()),
            "keep secrets outside the sandbox; give the command what it needs in another way",
        );
    }
    if PRIVATE.iter().any(|private| is_within(&place.path, private)) {
        return refuse(
            "files.private",
            format!("`{path}` of the host is never shown; a sandbox has its own"),
            "leave it out",
        );
    }
    if place.access != Access::Read {
        let system = NEVER_WRITABLE.iter().chain(PRIVATE).map(Path::new);
        let mut system = system.chain(std::iter::once(Path::new("/opt")));
        if let Some(root) = system.find(|root| is_within(&place.path, root) || is_within(root, &place.path)) {
            let opt_project = root == Path::new("/opt") && place.path != root;
            if !opt_project {
                return refuse(
                    "files.system",
                    format!(
                        "`{path}` can't be writable: it holds, or is part of, the system folder `{}`",
                        root.display()
                    ),
                    "write to a folder of your own",
                );
            }
        }
    }
    if let Some(store) = credentials::below(&place.path, &facts.homes, &facts.linked_stores) {
        return refuse(
            "files.credentials",
            format!(
                "`{path}` holds the place of the credential store `{}`, which is never visible inside",
                store.display()
            ),
            "name the folders in it that the command needs",
        );
    }
    Ok(())
}

/// Whoever reads it sees what all sandboxes did; whoever writes to it decides what is taken onto real files.
fn check_state(place: &Place, facts: &Facts) -> Result<(), Refusal> {
    let meets = |state: &&PathBuf| is_within(&place.path, state) || is_within(state, &place.path);
    let Some(state) = facts.state.iter().find(meets) else { return Ok(()) };
    Err(Refusal::new(
        "files.state",
        format!(
            "`{}` holds, or is part of, the folder `{}` where belljar keeps its sandboxes",
            place.path.display(),
            state.display()
        ),
        "name a smaller folder, or keep the state elsewhere with XDG_STATE_HOME",
    ))
}

fn words(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Layered | Access::Write => "written",
    }
}

/// All places, outermost first, one for each path: the one that was asked for, or else the one with more rights.
fn places(facts: &Facts) -> Vec<Place> {
    let mut places: Vec<Place> = facts.asked.clone();
    let rest = facts.workspaces.iter().chain(&facts.toolchains).chain(&facts.system);
    for place in rest {
        if !places.iter().any(|known| known.path == place.path) {
            places.push(place.clone());
        }
    }
    places.sort_by(|left, right| left.path.cmp(&right.path));
    // A place inside another with the same rights adds nothing.
    let mut kept: Vec<Place> = Vec::new();
    for place in places {
        let around = kept.iter().rev().find(|outer| outer.folder && is_within(&place.path, &outer.path));
        if around.is_none_or(|outer| outer.access != place.access) {
            kept.push(place);
        }
    }
    kept
}

fn check_directory(facts: &Facts, places: &[Place]) -> Result<(), Refusal> {
    let start = &facts.start;
    let private = [Path::new("/tmp"), facts.home.as_path()];
    let visible =
        places.iter().any(|place| place.folder && (is_within(start, &place.path) || is_within(&place.path, start)))
            || private.iter().any(|private| start == private || is_within(private, start))
            || start == Path::new("/");
    if visible {
        return Ok(());
    }
    Err(Refusal::new(
        "files.directory",
        format!("the working directory `{}` is outside the grant", start.display()),
        &format!("start from it, or grant it with `--read {}`", start.display()),
    ))
}

/// What is hidden by wish, and loose secrets in places that are not the workspace.
fn hidden(facts: &Facts, places: &[Place]) -> Vec<(PathBuf, bool)> {
    let mut hidden: Vec<(PathBuf, bool)> = facts.hide.iter().chain(&facts.loose_secrets).cloned().collect();
    hidden.retain(|(path, _)| places.iter().any(|place| is_within(path, &place.path)));
    hidden.sort();
    hidden.dedup();
    hidden
}

fn accepted(request: &Request, policy: &Policy) -> Accepted {
    let missing = policy.accepted_missing.iter().chain(&request.accept_gaps).copied().collect();
    Accepted { partly: policy.accepted_partly.clone(), missing }
}

fn environment(request: &Request, policy: &Policy, facts: &Facts, places: &[Place]) -> Vec<(OsString, OsString)> {
    let visible = |path: &Path| places.iter().any(|place| is_within(path, &place.path));
    let mut result: Vec<(OsString, OsString)> = Vec::new();
    for (name, value) in &facts.environment {
        let plain = ENVIRONMENT.iter().any(|known| name == known)
            || name.as_encoded_bytes().starts_with(b"LC_")
            || policy.pass_environment.iter().any(|known| name == known.as_str());
        let toolchain = TOOLCHAIN_VARIABLES.iter().any(|known| name == known)
            && (!Path::new(value).is_absolute() || visible(Path::new(value)));
        if plain || toolchain {
            result.push((name.clone(), value.clone()));
        }
    }
    let mut set = |name: &str, value: &OsStr| {
        result.retain(|(known, _)| known != name);
        result.push((name.into(), value.into()));
    };
    set("PATH", &search_path(facts, places));
    set("HOME", facts.home.as_os_str());
    set("USER", OsStr::new(&facts.user_name));
    set("LOGNAME", OsStr::new(&facts.user_name));
    set("PWD", facts.start.as_os_str());
    set("BELLJAR", OsStr::new("1"));
    for (name, value) in &request.environment {
        let inherited = || facts.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        result.retain(|(known, _)| known != name);
        if let Some(value) = value.clone().or_else(inherited) {
            result.push((name.clone(), value));
        }
    }
    result.sort();
    result
}

/// The caller's search path without what can't be seen, and never without the system's.
fn search_path(facts: &Facts, places: &[Place]) -> OsString {
    let links = &facts.links;
    let visible = |path: &Path| {
        places.iter().any(|place| is_within(path, &place.path)) || links.iter().any(|(link, _)| is_within(path, link))
    };
    let path =
        facts.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone()).unwrap_or_default();
    let mut entries: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|entry| entry.is_absolute() && visible(entry)).collect();
    for standard in ["/usr/local/bin", "/usr/bin", "/bin"] {
        if !entries.iter().any(|entry| entry == Path::new(standard)) {
            entries.push(standard.into());
        }
    }
    std::env::join_paths(entries).unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into())
}

fn limits(asked: &Asked, policy: &Policy, facts: &Facts) -> Limits {
    let Asked { wall_time, millicpus, cpu_time, memory, processes, disk, open_files, output } = asked;
    // A policy's limit is a ceiling; a request may only ask for less.
    fn lower<T: Ord + Copy>(asked: Option<T>, policy: Option<T>) -> Option<T> {
        match (asked, policy) {
            (Some(asked), Some(policy)) => Some(asked.min(policy)),
            (asked, policy) => asked.or(policy),
        }
    }
    let memory = lower(*memory, policy.limits.memory).unwrap_or(facts.memory / 4 * 3);
    let disk = lower(*disk, policy.limits.disk).unwrap_or(DEFAULT_DISK.min(memory));
    Limits {
        wall_time: lower(*wall_time, policy.limits.wall_time),
        millicpus: lower(*millicpus, policy.limits.millicpus),
        cpu_time: lower(*cpu_time, policy.limits.cpu_time),
        memory,
        processes: lower(*processes, policy.limits.processes).unwrap_or(DEFAULT_PROCESSES),
        disk,
        inodes: (disk / BYTES_PER_INODE).max(FEWEST_INODES),
        open_files: lower(*open_files, policy.limits.open_files).unwrap_or(DEFAULT_OPEN_FILES),
        largest_file: disk.saturating_add(facts.inherited_size),
        output: lower(*output, policy.limits.output),
    }
}

const DEFAULT_DISK: u64 = 8 << 30;
const DEFAULT_PROCESSES: u64 = 4096;
const DEFAULT_OPEN_FILES: u64 = 16_384;
const BYTES_PER_INODE: u64 = 8192;
const FEWEST_INODES: u64 = 1024;
