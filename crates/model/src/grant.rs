//! The narrow waist: all above it decides whether, all below it enforces exactly this.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Held, Network, Wall};

/// Proof that a policy allowed exactly these powers. Only `policy` mints one.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    powers: Powers,
    accepted: Accepted,
}

/// What a backend puts between a sandbox and the host's kernel. The order is the meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// The host's own kernel, with its walls.
    #[default]
    Namespaces,
    /// A kernel of its own in user space.
    UserKernel,
    /// A virtual machine.
    Machine,
}

impl Strength {
    pub const ALL: [Strength; 3] = [Strength::Namespaces, Strength::UserKernel, Strength::Machine];

    pub fn name(self) -> &'static str {
        match self {
            Strength::Namespaces => "namespaces",
            Strength::UserKernel => "user-kernel",
            Strength::Machine => "machine",
        }
    }
}

/// Where the programs of a sandbox come from, and all that they need besides what was granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ground {
    /// The host's own system and tool-chains: `Origin::System` and `Origin::Toolchain`.
    #[default]
    Host,
    /// An image that an engine keeps; none named is our own small one. `runtime`: of the engine's, to run it with.
    /// `pull`: one that is not there may be fetched from where its name says. Before there is a grant: it would have to be.
    Image { name: Option<String>, runtime: Option<String>, pull: bool },
    /// Nothing. The program is a WebAssembly module, or one that we have for a language.
    Module { interpreter: Option<String> },
}

/// The same without names: what a backend can stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroundKind {
    Host,
    Image,
    Module,
}

impl Ground {
    pub fn kind(&self) -> GroundKind {
        match self {
            Ground::Host => GroundKind::Host,
            Ground::Image { .. } => GroundKind::Image,
            Ground::Module { .. } => GroundKind::Module,
        }
    }
}

/// Walls that may be weaker than they should be, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The weakest kind of backend that will do.
    pub minimum: Strength,
    /// May be held partly. The policy says so for limits that hosts often can only measure.
    pub partly: Vec<Wall>,
    /// May be missing altogether. Only somebody who asks for it by name gets that.
    pub missing: Vec<Wall>,
}

impl Accepted {
    pub fn accepts(&self, wall: Wall, held: &Held) -> bool {
        match held {
            Held::Fully => true,
            Held::Partly(_) => self.partly.contains(&wall) || self.missing.contains(&wall),
            Held::Not(_) => self.missing.contains(&wall),
        }
    }
}

impl Grant {
    /// For `policy` alone; `cargo xtask test` looks for callers elsewhere.
    pub fn mint(powers: Powers, accepted: Accepted) -> Grant {
        Grant { powers, accepted }
    }

    pub fn powers(&self) -> &Powers {
        &self.powers
    }

    pub fn accepted(&self) -> &Accepted {
        &self.accepted
    }

    /// The same powers for a program of ours that stands between the payload and the walls, such as an engine for
    /// modules or a kernel of its own. It is started in the payload's place, with variables of its own, and sees besides
    /// what it needs of the host, read-only. For backends alone.
    pub fn carried(&self, command: Command, environment: Vec<(OsString, OsString)>, seen: Vec<Place>) -> Grant {
        let mut powers = Powers { command, environment, ..self.powers.clone() };
        let new = seen.into_iter().map(|place| Place { access: Access::Read, ..place });
        powers.files.places.extend(new);
        powers.files.ground = Ground::Host;
        powers.files.places.sort_by(|left, right| left.path.cmp(&right.path));
        Grant { powers, accepted: self.accepted.clone() }
    }

    /// For a program of ours that needs none of these powers, such as one that only computes: it sees what it needs of
    /// the host, read-only, and has the same limits, or lower ones. For backends alone.
    pub fn alone(&self, command: Command, seen: Vec<Place>, longest: Duration, output: u64) -> Grant {
        let Powers { command: _, files, environment: _, network: _, limits } = &self.powers;
        let mut places: Vec<Place> = seen.into_iter().map(|place| Place { access: Access::Read, ..place }).collect();
        places.sort_by(|left, right| left.path.cmp(&right.path));
        let wall_time = Some(limits.wall_time.map_or(longest, |time| time.min(longest)));
        let powers = Powers {
            command,
            files: Files { ground: Ground::Host, places, links: Vec::new(), hidden: Vec::new(), ..files.clone() },
            environment: Vec::new(),
            network: Network::Closed,
            limits: Limits { wall_time, output: Some(output), ..limits.clone() },
        };
        Grant { powers, accepted: self.accepted.clone() }
    }

    /// Whether this wall may be missing altogether.
    pub fn may_miss(&self, wall: Wall) -> bool {
        self.accepted.missing.contains(&wall)
    }
}

/// Everything a sandbox may do. Take it apart without `..`: a new power then stops the build until each
/// backend has an answer to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Powers {
    pub command: Command,
    pub files: Files,
    pub environment: Vec<(OsString, OsString)>,
    pub network: Network,
    pub limits: Limits,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Where the program is, as seen from inside; in an image, and for a language, only its name.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub directory: PathBuf,
    /// A terminal of its own rather than the caller's input and output.
    pub terminal: bool,
}

/// The closed list of what can be seen. Paths are absolute, free of links, and the same inside and outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    pub ground: Ground,
    pub places: Vec<Place>,
    /// Links of the host's root that are made again, such as `/bin` to `usr/bin`.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Inside a place, and still not to be seen: a folder or a file.
    pub hidden: Vec<(PathBuf, bool)>,
    /// An empty, writable, private home at the path that programs expect.
    pub home: PathBuf,
    pub user_name: String,
}

/// A part of the host's files.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub path: PathBuf,
    pub access: Access,
    pub folder: bool,
    pub origin: Origin,
    /// Who owns it on the host: new files in it shall belong to them too.
    pub owner: (u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    Read,
    /// Writing changes a layer of the sandbox's own, and the host's files stay as they are.
    Layered,
    Write,
}

/// Why a place is in the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    System,
    Toolchain,
    Workspace,
    Asked,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    pub wall_time: Option<Duration>,
    /// Thousandths of a processor.
    pub millicpus: Option<u32>,
    pub cpu_time: Option<Duration>,
    /// Of all processes together, with what they keep in files in memory.
    pub memory: u64,
    pub processes: u64,
    /// Bytes in each writable place.
    pub disk: u64,
    pub inodes: u64,
    pub open_files: u64,
    /// Bytes of any one file, those passed in as input and output included.
    pub largest_file: u64,
    /// Bytes of standard output and of standard error that are passed on; the rest is dropped.
    pub output: Option<u64>,
}
