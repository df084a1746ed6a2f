//! How well each wall is held for a grant on this host. Pure; the launch then raises each wall or fails.

use model::{Access, Enforcement, Held, Holding, Network, Powers, Wall};

use crate::groups::Placement;
use crate::host::{Host, Identity};
use crate::plan::Mode;

pub fn assess(powers: &Powers, host: &Host, mode: Mode) -> Enforcement {
    Enforcement { walls: Wall::ALL.iter().map(|wall| hold(*wall, powers, host, mode)).collect() }
}

fn hold(wall: Wall, powers: &Powers, host: &Host, mode: Mode) -> Holding {
    let Powers { command: _, files, environment: _, network, limits } = powers;
    let fully = |by: &str| (Held::Fully, by.to_owned(), String::new());
    let partly = |why: String, by: &str, fix: &str| (Held::Partly(why), by.to_owned(), fix.to_owned());
    let not = |why: &str, fix: &str| (Held::Not(why.to_owned()), String::new(), fix.to_owned());
    let full = mode == Mode::Full;
    let no_namespace = || not("this host gives no user namespaces", USER_NAMESPACES);
    let grouped = match &host.groups {
        Placement::Unified { .. } => Ok("control group"),
        Placement::Older { .. } => Ok("control group (v1)"),
        Placement::Nowhere { why } => Err(why.as_str()),
    };
    let (held, by, fix) = match wall {
        Wall::User => match (host.identity, full) {
            (Identity::PowerlessRoot, _) => not(
                "root without CAP_SYS_ADMIN and CAP_SETUID can't become somebody else",
                "run belljar as an ordinary user, or give it both capabilities",
            ),
            (_, false) => no_namespace(),
            (Identity::Ordinary { .. }, true) => fully("user namespaces, the caller's own user"),
            (Identity::Root { .. }, true) => fully("user namespaces, a user of its own, owners mapped by mount"),
        },
        Wall::Files if full => fully("mount namespace, a root of its own, read-only"),
        Wall::Files if host.landlock > 0 => partly(
            "Landlock alone: names and metadata of all files can be seen".to_owned(),
            "Landlock",
            USER_NAMESPACES,
        ),
        Wall::Files => not("neither namespaces nor Landlock", USER_NAMESPACES),
        Wall::Processes if full => fully("pid namespace, which ends with its first process"),
        Wall::Processes if host.landlock >= 6 => not("other processes can be seen", USER_NAMESPACES),
        Wall::Processes => not("other processes can be seen, and those of the same user signalled", USER_NAMESPACES),
        Wall::Network => match (network, full) {
            (Network::Closed, true) => fully("network namespace with a loopback of its own"),
            (Network::Closed, false) => fully("seccomp: no sockets at all"),
            (Network::Gated(_), true) => fully("network namespace; all TCP and names go to a gate outside"),
            (Network::Gated(_), false) => {
                not("without a network namespace, nothing leads what goes out to the gate", USER_NAMESPACES)
            }
        },
        Wall::Ipc if full => fully("ipc namespace"),
        Wall::Hostname if full => fully("uts namespace"),
        Wall::ControlGroups if full => fully("cgroup namespace"),
        Wall::Ipc | Wall::Hostname | Wall::ControlGroups => no_namespace(),
        Wall::Privileges => fully("no capability in any set, no new privileges"),
        Wall::SystemCalls => fully("seccomp list, refusals answered and recorded"),
        Wall::Landlock => match host.landlock {
            0 => {
                not("this kernel has no Landlock", "use Linux 5.13 or newer with `landlock` in the `lsm=` boot option")
            }
            abi @ 1..6 => partly(
                format!("ABI {abi}: {}", missing_before(abi)),
                "Landlock",
                "use Linux 6.12 or newer for all of it",
            ),
            abi => (Held::Fully, format!("Landlock ABI {abi}"), String::new()),
        },
        Wall::Terminal => fully("a session of its own, seccomp"),
        Wall::Inheritance => fully("descriptors closed, environment from a list, new keyring"),
        Wall::WallTime => fully("the supervisor's monotonic clock"),
        Wall::Cpu => match (limits.millicpus, &host.groups) {
            (None, _) => fully("no limit asked for"),
            (_, Placement::Unified { cpu: true, .. } | Placement::Older { cpu: Some(_), .. }) => {
                fully(grouped.unwrap_or_default())
            }
            (Some(millicpus), _) if millicpus % 1000 == 0 => fully("affinity, which can't be changed"),
            (Some(millicpus), _) => partly(
                format!("held to {} whole processors by affinity", millicpus.div_ceil(1000)),
                "affinity",
                DELEGATE,
            ),
        },
        Wall::CpuTime => match (limits.cpu_time, grouped) {
            (None, _) => fully("no limit asked for"),
            (_, Ok(by)) => fully(by),
            (_, Err(why)) => partly(format!("measured by the supervisor: {why}"), "measuring", DELEGATE),
        },
        Wall::Memory => match grouped {
            Ok(by) => fully(by),
            Err(why) => partly(format!("measured by the supervisor: {why}"), "measuring", DELEGATE),
        },
        Wall::ProcessCount if full => fully("RLIMIT_NPROC, counted in its own user namespace"),
        Wall::ProcessCount => {
            partly("counted with all processes of the user".to_owned(), "RLIMIT_NPROC", USER_NAMESPACES)
        }
        Wall::OpenFiles => fully("RLIMIT_NOFILE"),
        Wall::Disk => {
            let writable = files.places.iter().filter(|place| place.access != Access::Read).count();
            match writable {
                0 if full => fully("a filesystem in memory of that size"),
                0 => fully("nothing is writable"),
                count => partly(
                    format!("{count} writable place(s) of the host: each file is limited, their sum is measured"),
                    "RLIMIT_FSIZE, measuring",
                    "",
                ),
            }
        }
        Wall::CleanUp if full => fully("pid namespace; the keeper where there are control groups"),
        Wall::CleanUp => partly(
            "if the supervisor is killed, processes that left its session live on".to_owned(),
            "subreaper",
            USER_NAMESPACES,
        ),
    };
    Holding { wall, held, by, fix }
}

fn missing_before(abi: i32) -> &'static str {
    match abi {
        1 => "no moves between folders, no truncation, no device control, no scoping of signals and abstract sockets",
        2 => "no truncation, no device control, no scoping of signals and abstract sockets",
        3 | 4 => "no device control, no scoping of signals and abstract sockets",
        _ => "no scoping of signals and abstract sockets",
    }
}

pub const USER_NAMESPACES: &str = "allow user namespaces (`belljar doctor` says what stops them here)";
pub const PACKET_FILTER: &str =
    "load what sends connections on: `modprobe -a nf_tables nft_chain_nat nft_redir`; in a container, on its host";
const DELEGATE: &str = "run as root, or in a delegated group: `systemd-run --user --scope -p Delegate=yes belljar …`";
