//! How well each wall is held for a grant by this engine. Pure.

use model::{Access, Enforcement, Held, Holding, Network, Powers, Wall};

use crate::facts::Engine;

/// Of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Can {
    /// Enter the network of a container, to open doors to the gate there.
    pub enter_networks: bool,
}

/// `image`: as it was asked for, with its digest.
pub fn assess(powers: &Powers, engine: &Engine, image: &str, can: Can) -> Enforcement {
    Enforcement { walls: Wall::ALL.iter().map(|wall| hold(*wall, powers, engine, image, can)).collect() }
}

fn hold(wall: Wall, powers: &Powers, engine: &Engine, image: &str, can: Can) -> Holding {
    let Powers { command: _, files, environment: _, network, limits } = powers;
    let fully = |by: &str| (Held::Fully, by.to_owned(), String::new());
    let partly = |why: &str, by: &str, fix: &str| (Held::Partly(why.to_owned()), by.to_owned(), fix.to_owned());
    let not = |why: &str, fix: &str| (Held::Not(why.to_owned()), String::new(), fix.to_owned());
    let limited = |can: bool, by: &str| match can {
        true => fully(by),
        false => not("the engine has no control group for it", CONTROL_GROUPS),
    };
    let (held, by, fix) = match wall {
        Wall::User if engine.rootless => fully("the engine's own user namespace, no capability"),
        Wall::User => fully("a user who is not root, no capability, no new privileges"),
        Wall::Files => {
            (Held::Fully, format!("image {image}, read-only; only granted places are mounted"), String::new())
        }
        Wall::Processes => fully("pid namespace, which ends with its first process"),
        Wall::Network => match (network, can.enter_networks) {
            (Network::Closed, _) => fully("network namespace with a loopback of its own"),
            (Network::Gated(_), true) => fully("network namespace; all TCP and names go to a gate outside"),
            (Network::Gated(_), false) => not(
                "only root can open a way to the gate in the network of another's container",
                "run belljar as root, use a rootless engine of your own, choose `--backend native`, or run without a network: `--no-net`",
            ),
        },
        Wall::Ipc => fully("ipc namespace"),
        Wall::Hostname => fully("uts namespace"),
        Wall::ControlGroups => fully("cgroup namespace"),
        Wall::Privileges => fully("all capabilities dropped, no new privileges"),
        Wall::SystemCalls if engine.seccomp => fully("belljar's seccomp list, by the engine"),
        Wall::SystemCalls => not("the engine was built without seccomp", "use an engine with seccomp"),
        Wall::Landlock => partly(
            "engines apply no Landlock: mounts alone hold file rights, with AppArmor or SELinux where the engine has it",
            "read-only mounts",
            "choose `--backend native` where that matters",
        ),
        Wall::Terminal => fully("a terminal of the engine's own, seccomp"),
        Wall::Inheritance => fully("nothing of belljar's is in the engine's container; environment from a list"),
        Wall::WallTime => fully("the supervisor's monotonic clock"),
        Wall::Cpu if limits.millicpus.is_none() => fully("no limit asked for"),
        Wall::Cpu => limited(engine.processors, "control group, by the engine"),
        Wall::CpuTime if limits.cpu_time.is_none() => fully("no limit asked for"),
        Wall::CpuTime => partly("measured every second", "RLIMIT_CPU for each process, the engine's statistics", ""),
        Wall::Memory if engine.memory && !engine.swap => {
            partly("the engine can't limit swap", "control group, by the engine", "boot with `swapaccount=1`")
        }
        Wall::Memory => limited(engine.memory, "control group, by the engine; swap included"),
        Wall::ProcessCount => limited(engine.processes, "control group, by the engine"),
        Wall::OpenFiles => fully("RLIMIT_NOFILE"),
        Wall::Disk => match files.places.iter().filter(|place| place.access != Access::Read).count() {
            0 if engine.podman => partly(
                "Podman limits the size of filesystems in memory, and not how many files are in them",
                "filesystems in memory of that size",
                "",
            ),
            0 => fully("filesystems in memory of that size"),
            count => (
                Held::Partly(format!("{count} writable place(s) of the host: each file is limited, not their sum")),
                "RLIMIT_FSIZE; filesystems in memory of that size".to_owned(),
                String::new(),
            ),
        },
        Wall::CleanUp => {
            fully("the engine removes it; if belljar is killed its keeper has it removed, or the next belljar")
        }
    };
    Holding { wall, held, by, fix }
}

pub const CONTROL_GROUPS: &str =
    "give the engine control groups: cgroup v2 with delegation (rootless), or a rootful engine; see `docker info`";
