//! One thing to do on the way into a sandbox, as data: made in the parent, printed by `explain`, followed by
//! the child.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};
use sys::filter::Program;
use sys::identity::Mapping;
use sys::limits::Limit;
use sys::mounts::{self, Attributes};

/// Paths of targets are relative to the new root; paths of sources are the host's, absolute and free of links.
#[derive(Debug, Serialize, Deserialize)]
pub enum Step {
    /// Enter control groups of the older kind, through their `tasks` files, which were received.
    JoinGroups,
    /// Wait until the parent has written our maps.
    AwaitParent,
    /// Write our own user and group maps.
    MapSelf {
        user: Mapping,
        group: Mapping,
    },
    /// Switch to an identity that the parent has mapped, in no other group.
    Become {
        user: u32,
        group: u32,
    },
    DieWithParent,
    /// A control-group namespace, once we are in our groups: from inside, they are the root.
    HideControlGroups,
    KeepMountsPrivate,
    /// An empty filesystem in memory that becomes the root; its size bounds all private writable places.
    NewRoot {
        size: CString,
        inodes: CString,
    },
    /// Take what the parent has opened meanwhile.
    Receive,
    Directory {
        path: CString,
        mode: u32,
    },
    File {
        path: CString,
        mode: u32,
        contents: Vec<u8>,
    },
    /// Give files of the new root to whoever stands outside, who writes them while we go on.
    HandOut {
        files: Vec<CString>,
    },
    /// Wait until they are whole.
    AwaitHanded,
    Link {
        path: CString,
        target: CString,
    },
    Bind {
        source: Source,
        target: Way,
        attributes: Attributes,
    },
    /// A part of the new root itself that stays writable when the root is sealed.
    Scratch {
        path: Way,
    },
    /// A folder in which changes to what is below, the topmost first, are kept apart in `layer`.
    Overlay {
        lower: Vec<Source>,
        /// Has `upper` and `work` in it.
        layer: Source,
        target: Way,
    },
    /// Something nobody may see: `cover` (of the new root) is put over it.
    Hide {
        path: Way,
        cover: CString,
    },
    /// A file instead of which another (of the new root) shall be seen.
    Replace {
        path: Way,
        by: CString,
    },
    Proc {
        path: CString,
        /// For a carrier, which maps users of processes it starts.
        writable: bool,
    },
    Terminals {
        path: CString,
    },
    SealRoot,
    ChangeRoot,
    Hostname(CString),
    /// Have a network namespace made meanwhile, with a loopback of its own.
    BeginNetwork,
    JoinNetwork,
    /// Lead whatever wants out of the network to sockets, which the parent gets with the word that all walls are up.
    OpenDoors {
        /// Ports of the own loopback that lead out as well.
        loopback: Vec<u16>,
    },
    /// A user namespace below the one that owns the mounts, in which nobody can change them.
    EnterUser {
        user: Mapping,
        group: Mapping,
    },
    /// Keep our namespaces, and what Landlock will be told, open for the parent: somebody is to come in later who was made
    /// elsewhere.
    Offer,
    NewSession,
    NewKeyring,
    AdoptOrphans,
    DropCapabilities {
        bounding: bool,
    },
    ForbidNewPrivileges,
    Lower(Limit, u64),
    /// Open a terminal of the sandbox's own and hand its other end to the parent.
    OwnTerminal,
    Restrict(Landlock),
    /// Wait until files that are changed get a later time than this, in nanoseconds since 1970.
    AwaitTick {
        after: i64,
    },
    Filter(Program),
    ForbidInspection,
}

/// A path, and how it is walked.
#[derive(Debug, Serialize, Deserialize)]
pub enum Way {
    /// Over names that only we, or the system's owner, could have made: as it is, which takes half the calls.
    Plain(CString),
    /// Over names that somebody may change at this very moment: no link is followed anywhere.
    Careful(CString),
}

impl Way {
    pub fn path(&self) -> &CString {
        match self {
            Way::Plain(path) | Way::Careful(path) => path,
        }
    }

    /// A detached copy of the mounts at and below a path of the host's.
    pub fn copy(&self) -> io::Result<OwnedFd> {
        match self {
            Way::Plain(path) => mounts::copy_plain_tree(path),
            Way::Careful(path) => mounts::copy_tree(path),
        }
    }
}

/// Where a bind comes from.
#[derive(Debug, Serialize, Deserialize)]
pub enum Source {
    /// The child copies the tree itself.
    Path(Way),
    /// The parent opens it, with rights that the child does not have: one of the trees received, by its number.
    Received { path: CString, tree: usize },
}

/// What Landlock is told. Everything that it knows of at `abi` and that is not allowed here is refused.
#[derive(Debug, Serialize, Deserialize)]
pub struct Landlock {
    pub abi: i32,
    pub rules: Vec<(CString, Access)>,
    /// Refuse TCP as well; for hosts without a network namespace.
    pub refuse_tcp: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    Read,
    Write,
    /// Read, write and control the device nodes below.
    Devices,
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::JoinGroups => write!(out, "join     the control groups"),
            Step::AwaitParent => write!(out, "await    the parent's maps"),
            Step::Receive => write!(out, "receive  what the parent has opened"),
            Step::MapSelf { user, group } => write!(
                out,
                "map      user {} to {} and group {} to {} of the host",
                user.inside, user.outside, group.inside, group.outside
            ),
            Step::Become { user, group } => {
                write!(out, "become   user {user}, group {group}, no other group")
            }
            Step::DieWithParent => write!(out, "die      with the parent"),
            Step::HideControlGroups => write!(out, "unshare  cgroup"),
            Step::KeepMountsPrivate => write!(out, "private  all mounts"),
            Step::NewRoot { size, inodes } => {
                write!(out, "root     in memory, {} bytes, {} inodes", size.to_string_lossy(), inodes.to_string_lossy())
            }
            Step::Directory { path, mode } => write!(out, "folder   {} {mode:o}", inside(path)),
            Step::File { path, mode, contents } => {
                write!(out, "file     {} {mode:o}, {} bytes", inside(path), contents.len())
            }
            Step::HandOut { files } => {
                let files: Vec<String> = files.iter().map(inside).collect();
                write!(out, "hand out {} to the gate, which writes them", files.join(", "))
            }
            Step::AwaitHanded => write!(out, "await    what the gate writes"),
            Step::Link { path, target } => write!(out, "link     {} -> {}", inside(path), target.to_string_lossy()),
            Step::Bind { source, target, attributes } => {
                let rights = if attributes.read_only { "read-only" } else { "read-write" };
                let device = if attributes.devices { " device" } else { "" };
                let (from, owners) = match source {
                    Source::Path(way) => (way.path(), ""),
                    Source::Received { path, .. } => (path, ", opened by the parent"),
                };
                let from = from.to_string_lossy();
                match inside(target.path()) == from {
                    true => write!(out, "bind     {from} {rights}{device}{owners}"),
                    false => write!(out, "bind     {from} at {} {rights}{device}{owners}", inside(target.path())),
                }
            }
            Step::Scratch { path } => write!(out, "scratch  {}", inside(path.path())),
            Step::Overlay { lower, layer, target } => {
                let path = |layer: &Source| match layer {
                    Source::Path(way) => way.path().to_string_lossy().into_owned(),
                    Source::Received { path, .. } => format!("{} (opened by the parent)", path.to_string_lossy()),
                };
                let lower: Vec<String> = lower.iter().map(path).collect();
                write!(out, "overlay  {}: {} over {}", inside(target.path()), path(layer), lower.join(" over "))
            }
            Step::Hide { path, .. } => write!(out, "hide     {}", inside(path.path())),
            Step::Replace { path, by } => write!(out, "replace  {} by {}", inside(path.path()), inside(by)),
            Step::Proc { path, writable } => {
                let rights = if *writable { "read-write" } else { "read-only" };
                write!(out, "proc     {} {rights}, own processes", inside(path))
            }
            Step::Terminals { path } => write!(out, "pts      {}", inside(path)),
            Step::SealRoot => write!(out, "seal     the root read-only"),
            Step::ChangeRoot => write!(out, "pivot    to the new root, detach the old one"),
            Step::Hostname(name) => write!(out, "hostname {}", name.to_string_lossy()),
            Step::BeginNetwork => write!(out, "network  begin a namespace with a loopback and nothing else"),
            Step::JoinNetwork => write!(out, "network  join it"),
            Step::OpenDoors { loopback } => {
                write!(out, "network  lead all TCP and questions for names to a gate outside, refuse the rest")?;
                let ports: Vec<String> = loopback.iter().map(u16::to_string).collect();
                if ports.is_empty() { Ok(()) } else { write!(out, "; own ports {} too", ports.join(", ")) }
            }
            Step::EnterUser { user, .. } => {
                write!(out, "unshare  user again, as user {}", user.inside)
            }
            Step::Offer => write!(out, "offer    the namespaces to the parent, for who comes in later"),
            Step::NewSession => write!(out, "session  new, without the caller's terminal"),
            Step::NewKeyring => write!(out, "keyring  new, empty"),
            Step::AdoptOrphans => write!(out, "adopt    orphans"),
            Step::DropCapabilities { bounding: true } => {
                write!(out, "drop     all capabilities from all sets")
            }
            Step::DropCapabilities { bounding: false } => {
                write!(out, "drop     all capabilities held")
            }
            Step::ForbidNewPrivileges => write!(out, "forbid   new privileges"),
            Step::Lower(limit, value) => write!(out, "limit    {limit:?} {value}"),
            Step::OwnTerminal => write!(out, "terminal of its own"),
            Step::Restrict(landlock) => {
                write!(out, "landlock abi {}", landlock.abi)?;
                for (path, access) in &landlock.rules {
                    write!(out, ", {} {}", path.to_string_lossy(), format!("{access:?}").to_lowercase())?;
                }
                if landlock.refuse_tcp { write!(out, ", no tcp") } else { Ok(()) }
            }
            Step::AwaitTick { .. } => write!(out, "await    the next tick of the clock of files"),
            Step::Filter(program) => write!(out, "seccomp  {} instructions", program.length()),
            Step::ForbidInspection => write!(out, "forbid   inspection of the first process"),
        }
    }
}

/// A target as it will be seen from inside.
fn inside(path: &CString) -> String {
    format!("/{}", path.to_string_lossy())
}
