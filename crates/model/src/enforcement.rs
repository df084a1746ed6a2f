//! What holds, wall by wall: reported, never assumed.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::Accepted;

macro_rules! walls {
    ($($(#[doc = $doc:literal])+ $wall:ident = $name:literal,)+) => {
        /// One thing between a sandboxed program and the rest of the machine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Wall { $($(#[doc = $doc])+ $wall,)+ }

        impl Wall {
            pub const ALL: &[Wall] = &[$(Wall::$wall,)+];

            /// What people and programs call it, also in `--accept-gap`.
            pub fn name(self) -> &'static str {
                match self { $(Wall::$wall => $name,)+ }
            }

            /// What it keeps from happening.
            pub fn about(self) -> &'static str {
                match self { $(Wall::$wall => concat!($($doc,)+).trim_ascii(),)+ }
            }
        }
    };
}

walls! {
    /// Runs as a user without rights outside its own namespace; never as the host's root.
    User = "user",
    /// Sees only granted files, in a root of its own.
    Files = "files",
    /// Neither sees nor signals other processes; all of its own end with it.
    Processes = "processes",
    /// Reaches no network and no socket of the host.
    Network = "network",
    /// Shares no memory, semaphores or queues with others.
    Ipc = "ipc",
    /// Neither sees nor sets the host's name.
    Hostname = "hostname",
    /// Does not see where in the host's control groups it is.
    ControlGroups = "control-groups",
    /// Holds no capability and can't gain any.
    Privileges = "privileges",
    /// Makes only system calls from a closed list.
    SystemCalls = "system-calls",
    /// Holds its file rights a second time, by path.
    Landlock = "landlock",
    /// Can't write into the caller's terminal input.
    Terminal = "terminal",
    /// Inherits no descriptor, variable or key that was not granted.
    Inheritance = "inheritance",
    /// Ends at its time limit.
    WallTime = "wall-time",
    /// Uses no more processors than granted.
    Cpu = "cpu",
    /// Uses no more processor time than granted.
    CpuTime = "cpu-time",
    /// Uses no more memory than granted, all processes together.
    Memory = "memory",
    /// Starts no more processes than granted.
    ProcessCount = "process-count",
    /// Opens no more files than granted.
    OpenFiles = "open-files",
    /// Writes no more than granted.
    Disk = "disk",
    /// Leaves no process, mount, group or file behind.
    CleanUp = "clean-up",
}

impl fmt::Display for Wall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl Serialize for Wall {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWall(pub String);

impl fmt::Display for UnknownWall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Wall::ALL.iter().map(|wall| wall.name()).collect();
        write!(out, "there is no wall called `{}`; the walls are {}", self.0.escape_debug(), names.join(", "))
    }
}

impl std::error::Error for UnknownWall {}

impl FromStr for Wall {
    type Err = UnknownWall;

    fn from_str(name: &str) -> Result<Wall, UnknownWall> {
        Wall::ALL.iter().copied().find(|wall| wall.name() == name).ok_or_else(|| UnknownWall(name.to_owned()))
    }
}

/// How well a wall is held on this host. The order is the meaning: the first is the best.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "held", content = "why", rename_all = "lowercase")]
pub enum Held {
    Fully,
    Partly(String),
    Not(String),
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holding {
    pub wall: Wall,
    #[serde(flatten)]
    pub held: Held,
    /// What holds it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// What the owner of the host can do about a gap.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

/// The whole report, one line a wall.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Enforcement {
    pub walls: Vec<Holding>,
}

impl Enforcement {
    /// Lines that are weaker than `accepted` allows.
    pub fn gaps<'a>(&'a self, accepted: &'a Accepted) -> impl Iterator<Item = &'a Holding> {
        self.walls.iter().filter(|holding| !accepted.accepts(holding.wall, &holding.held))
    }

    /// Walls that nothing is known of: a report must speak of each.
    pub fn unreported(&self) -> impl Iterator<Item = Wall> {
        Wall::ALL.iter().copied().filter(|wall| !self.walls.iter().any(|holding| holding.wall == *wall))
    }
}
