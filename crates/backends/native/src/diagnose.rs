//! What this host can hold, tried out for real: each feature comes from doing it in a child that then ends.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use guest::Step;
use guest::step::{Source, Way};
use guest::wire::{self, Report};
use model::{BackendReport, Feature, Files, Held, Limits, Network, Powers};
use sys::filter::{Action, Rule, Rules};
use sys::identity::Mapping;
use sys::process::{self, Alone, Forked, Namespaces};

use crate::assess;
use crate::groups::Placement;
use crate::host::{Host, Identity};
use crate::plan::Mode;

pub fn diagnose(host: &Host) -> BackendReport {
    let namespaces_found = namespaces();
    let mode = if namespaces_found.is_ok() { Mode::Full } else { Mode::Reduced };
    let mut features = vec![user_namespaces(&namespaces_found)];
    // Without the first, the others fail for its reason, and their own fixes would mend nothing.
    let tried = |what: &str, namespaces: Namespaces, steps: Vec<Step>, fix: &str| match &namespaces_found {
        Ok(()) => tried(what, namespaces, steps, fix),
        Err(_) => feature(what, Err("not tried: it needs user namespaces".to_owned()), "mend user namespaces first"),
    };
    features.extend([
        tried(
            "fresh /proc",
            Namespaces { mount: true, pid: true, ..USER },
            proc_steps(),
            "start the container with an unmasked /proc (docker: `--security-opt systempaths=unconfined`)",
        ),
        tried(
            "network namespace",
            USER,
            vec![map_self(), Step::BeginNetwork, Step::JoinNetwork],
            assess::USER_NAMESPACES,
        ),
        tried(
            "a way out by name (nf_tables)",
            USER,
            vec![map_self(), Step::BeginNetwork, Step::JoinNetwork, Step::OpenDoors { loopback: Vec::new() }],
            assess::PACKET_FILTER,
        ),
        tried(
            "overlayfs in a user namespace",
            Namespaces { mount: true, ..USER },
            overlay_steps(),
            "use Linux 5.11 or newer",
        ),
        landlock(host.landlock),
        seccomp(),
        groups(&host.groups),
        identity(host),
    ]);
    let enforcement = assess::assess(&nothing_in_particular(), host, mode);
    let usable = !enforcement.walls.iter().any(|holding| matches!(holding.held, Held::Not(_)));
    BackendReport { backend: "native".to_owned(), usable, features, enforcement }
}

/// Whether a sandbox's namespaces and a filesystem in them can be had.
pub fn namespaces() -> Result<(), String> {
    let all = Namespaces { mount: true, pid: true, ipc: true, hostname: true, cgroup: true, ..USER };
    rehearse(all, &[map_self(), Step::BeginNetwork, Step::KeepMountsPrivate, new_root(), Step::JoinNetwork])
}

const USER: Namespaces = Namespaces { user: true, ..Namespaces::NONE };

fn map_self() -> Step {
    let outside = |number| Mapping { inside: 0, outside: number };
    Step::MapSelf {
        user: outside(rustix::process::geteuid().as_raw()),
        group: outside(rustix::process::getegid().as_raw()),
    }
}

fn new_root() -> Step {
    Step::NewRoot { size: c"1048576".into(), inodes: c"64".into() }
}

fn proc_steps() -> Vec<Step> {
    let folder = Step::Directory { path: c"proc".into(), mode: 0o755 };
    vec![map_self(), Step::KeepMountsPrivate, new_root(), folder, Step::Proc { path: c"proc".into(), writable: false }]
}

fn overlay_steps() -> Vec<Step> {
    let mut steps = vec![map_self(), Step::KeepMountsPrivate, new_root()];
    for path in [c"lower", c"layer", c"layer/upper", c"layer/work", c"merged"] {
        steps.push(Step::Directory { path: path.into(), mode: 0o755 });
    }
    // Of the new root: walked from the current folder.
    let layer = |path: &CStr| Source::Path(Way::Plain(path.into()));
    let target = Way::Plain(c"merged".into());
    steps.push(Step::Overlay { lower: vec![layer(c"lower")], layer: layer(c"layer"), target });
    steps
}

/// Does the steps in a child that then ends; says which one failed and why.
fn rehearse(namespaces: Namespaces, steps: &[Step]) -> Result<(), String> {
    let error = |error: io::Error| error.to_string();
    let alone = Alone::prove().map_err(error)?;
    let (ours, theirs) = wire::pair().map_err(error)?;
    let pid = match process::fork_into(alone, namespaces, None) {
        Ok(Forked::Child) => {
            drop(ours);
            guest::first::rehearse(steps, theirs, alone)
        }
        Ok(Forked::Parent { pid, .. }) => pid,
        Err(error) => return Err(format!("making the namespaces: {error}")),
    };
    drop(theirs);
    let heard = wire::receive(ours.as_fd());
    process::wait(pid, false).map_err(error)?;
    match heard.map_err(error)? {
        Some((Report::Ended { .. }, _)) => Ok(()),
        Some((Report::Failed { step, errno }, _)) => {
            let step = steps.get(step as usize).map_or_else(String::new, Step::to_string);
            Err(format!(
                "`{}`: {}",
                step.split_whitespace().collect::<Vec<_>>().join(" "),
                io::Error::from_raw_os_error(errno)
            ))
        }
        other => Err(format!("the child ended early: {other:?}")),
    }
}

fn tried(what: &str, namespaces: Namespaces, steps: Vec<Step>, fix: &str) -> Feature {
    feature(what, rehearse(namespaces, &steps).map(|()| "works".to_owned()), fix)
}

fn feature(what: &str, result: Result<String, String>, fix: &str) -> Feature {
    let works = result.is_ok();
    let detail = result.unwrap_or_else(|why| why);
    Feature { what: what.to_owned(), works, detail, fix: if works { String::new() } else { fix.to_owned() } }
}

/// Says not only that they are refused, but by whom.
fn user_namespaces(tried: &Result<(), String>) -> Feature {
    let setting = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let fix = if setting("/proc/sys/user/max_user_namespaces").as_deref() == Some("0") {
        "sysctl -w user.max_user_namespaces=10000"
    } else if setting("/proc/sys/kernel/unprivileged_userns_clone").as_deref() == Some("0") {
        "sysctl -w kernel.unprivileged_userns_clone=1"
    } else if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").as_deref() == Some("1") {
        "AppArmor restricts user namespaces to programs with a profile: install one that allows `userns` for the belljar binary, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    } else {
        "a container's seccomp profile or an LSM forbids them: allow `clone` and `unshare` with CLONE_NEWUSER (docker: `--security-opt seccomp=unconfined`), or see the gaps below"
    };
    feature("user namespaces with mounts", tried.clone().map(|()| "work".to_owned()), fix)
}

fn landlock(abi: i32) -> Feature {
    let result = if abi > 0 { Ok(format!("ABI {abi}")) } else { Err("none".to_owned()) };
    feature("Landlock", result, "use Linux 5.13 or newer with `landlock` in the `lsm=` boot option")
}

fn seccomp() -> Feature {
    // A filter that allows everything: only whether it can be installed matters.
    let mut rules = Rules::default();
    (0..1024).for_each(|number| rules.set(number, Rule::Always(Action::Allow)));
    let steps = [Step::ForbidNewPrivileges, Step::Filter(sys::filter::compile(&rules))];
    let result = match sys::seccomp::can_notify() {
        true => rehearse(Namespaces::NONE, &steps).map(|()| "filter and user notification work".to_owned()),
        false => Err("no user notification".to_owned()),
    };
    feature(
        "seccomp",
        result,
        "use Linux 5.0 or newer with CONFIG_SECCOMP_FILTER; no other tracer may hold the listener",
    )
}

fn groups(placement: &Placement) -> Feature {
    let result = match placement {
        Placement::Unified { parent, cpu } => {
            let cpu = if *cpu { "memory and cpu" } else { "memory" };
            Ok(format!("v2, {cpu}, below {}", parent.display()))
        }
        Placement::Older { memory, .. } => Ok(format!("v1, below {}", memory.display())),
        Placement::Nowhere { why } => Err(format!("{why}; memory is measured instead")),
    };
    let fix = "run as root, or in a delegated group: `systemd-run --user --scope -p Delegate=yes belljar …`";
    feature("control groups", result, fix)
}

fn identity(host: &Host) -> Feature {
    let result = match host.identity {
        Identity::Ordinary { user, .. } => Ok(format!("payload runs as user {user}, the caller")),
        Identity::Root { payload } => Ok(format!("root: payload runs as user {payload}, owners mapped by mount")),
        Identity::PowerlessRoot => Err("root, but without the capabilities to become somebody else".to_owned()),
    };
    feature("payload's user", result, "run belljar as an ordinary user, or give it CAP_SYS_ADMIN and CAP_SETUID")
}

/// Powers to assess when nobody has asked for anything yet.
fn nothing_in_particular() -> Powers {
    Powers {
        command: model::Command {
            program: "/bin/true".into(),
            arguments: Vec::new(),
            directory: "/".into(),
            terminal: false,
        },
        files: Files {
            ground: model::Ground::Host,
            places: Vec::new(),
            links: Vec::new(),
            hidden: Vec::new(),
            home: "/home".into(),
            user_name: String::new(),
        },
        environment: Vec::new(),
        network: Network::Closed,
        limits: Limits {
            wall_time: Some(Duration::from_secs(1)),
            millicpus: Some(1500),
            cpu_time: Some(Duration::from_secs(1)),
            memory: 1 << 30,
            processes: 64,
            disk: 1 << 30,
            inodes: 1 << 16,
            open_files: 1024,
            largest_file: 1 << 30,
            output: None,
        },
    }
}
