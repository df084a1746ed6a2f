//! How well each wall is held: by what stands around gVisor, or by gVisor itself. Pure.

use model::{Enforcement, Held, Holding, Wall};

use crate::bundle::PLATFORM;
use crate::runsc::Missing;

/// `around`: how well the walls around it are held.
pub fn assess(around: Enforcement, runsc: Result<(), Missing>) -> Enforcement {
    Enforcement { walls: around.walls.into_iter().map(|holding| hold(holding, &runsc)).collect() }
}

fn hold(around: Holding, runsc: &Result<(), Missing>) -> Holding {
    let wall = around.wall;
    let by = |by: &str| Holding { wall, held: Held::Fully, by: by.to_owned(), fix: String::new() };
    match wall {
        Wall::SystemCalls => match runsc {
            Ok(()) => by(&format!("gVisor's own kernel ({PLATFORM}), itself behind a seccomp list")),
            Err(missing) => Holding {
                wall,
                held: Held::Not(missing.to_string()),
                by: String::new(),
                fix: missing.fix().to_owned(),
            },
        },
        // Not weaker, but not what it is called: said so rather than passed over.
        Wall::Landlock => Holding {
            wall,
            held: Held::Partly(
                "by gVisor's file server, which sees nothing but the granted files; Landlock would keep it from mounting"
                    .to_owned(),
            ),
            by: "gVisor's file server".to_owned(),
            fix: String::new(),
        },
        // Of the payload; those of gVisor are over nothing but what it makes itself.
        Wall::Privileges if around.held == Held::Fully => by("no capability inside gVisor, no new privileges"),
        Wall::ProcessCount if around.held == Held::Fully => by("RLIMIT_NPROC, held by gVisor; more around it"),
        Wall::OpenFiles => by("RLIMIT_NOFILE, held by gVisor"),
        Wall::User
        | Wall::Files
        | Wall::Processes
        | Wall::Network
        | Wall::Ipc
        | Wall::Hostname
        | Wall::ControlGroups
        | Wall::Privileges
        | Wall::Terminal
        | Wall::Inheritance
        | Wall::WallTime
        | Wall::Cpu
        | Wall::CpuTime
        | Wall::Memory
        | Wall::ProcessCount
        | Wall::Disk
        | Wall::CleanUp => around,
    }
}
