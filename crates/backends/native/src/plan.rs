//! Grant → steps. Pure: made in the parent, where allocation is safe; the child only follows them.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use guest::step::{Access as Reach, Landlock, Source, Way};
use guest::{Step, Trial};
use model::paths::{self, is_below, is_within};
use model::{Access, Command, Files, Ground, Kept, Limits, Network, Origin, Place, Powers, Stack, Wall};
use sys::filter;
use sys::identity::Mapping;
use sys::limits::Limit;
use sys::mounts::Attributes;
use sys::process::Namespaces;

use crate::calls;
use crate::carrier::{self, Carrier};
use crate::groups::{Ceiling, Placement};
use crate::host::{Host, Identity};
use crate::trust::Trust;

/// Which walls can be raised at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Namespaces, and all that rests on them.
    Full,
    /// No namespaces: Landlock, the call filter and per-process limits.
    Reduced,
}

/// Everything that a launch does, decided.
#[derive(Debug)]
pub struct Blueprint {
    pub ground: Groundwork,
    /// What the parent opens, being root, in the order in which binds number it.
    pub trees: Vec<Tree>,
    pub ceiling: Option<Ceiling>,
    /// Where the payload can make files of the host's grow.
    pub written: Vec<PathBuf>,
    /// Processors to run on, where nothing else limits them.
    pub processors: Option<u32>,
    /// After those of the groundwork.
    pub steps: Vec<Step>,
    /// What the child tries then, and must not be able to do.
    pub trials: Vec<(Wall, Trial)>,
}

/// What every sandbox with namespaces begins with on this host, whatever is granted: it can be begun before that is known.
#[derive(Debug, Default)]
pub struct Groundwork {
    pub namespaces: Namespaces,
    /// The parent writes these maps, being root.
    pub maps: Option<(Mapping, Mapping)>,
    pub steps: Vec<Step>,
}

/// A part of the host's files that only the parent has the rights to open.
#[derive(Debug)]
pub struct Tree {
    pub from: Way,
    pub attributes: Attributes,
    /// Owner on disk to be seen as the payload; `None` leaves owners as they are.
    pub owner: Option<(u32, u32)>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unplannable {
    #[error("the path `{}` has a zero byte in it", .0.display())]
    ZeroByte(PathBuf),
    #[error("there is no layer to keep changes to `{}` in", .0.display())]
    NoLayer(PathBuf),
    #[error("the gate's own `{}` would be hidden by a folder that is granted", .0.display())]
    Covered(PathBuf),
    #[error("it is to run in an image or as a module, which namespaces alone do not give")]
    NotOnTheHost,
    #[error("without user namespaces, nothing leads what goes out to the gate")]
    NoGate,
    #[error("changes to `{}` can't be kept apart without user namespaces", .0.display())]
    NoNamespaces(PathBuf),
}

impl Unplannable {
    pub fn fix(&self) -> &'static str {
        match self {
            Unplannable::ZeroByte(_) => "rename it",
            Unplannable::NoLayer(_) => "please report this",
            Unplannable::Covered(_) => "grant only what is needed of that folder",
            Unplannable::NotOnTheHost => "choose another backend with `--backend`",
            Unplannable::NoGate => "see `belljar doctor`; or run it without a network (`--no-net`)",
            Unplannable::NoNamespaces(_) => {
                "see `belljar doctor`; or let the command only read it (`--workspace-mode readonly`) or change it for good (`--workspace-mode direct`)"
            }
        }
    }
}

/// The name that a sandbox gives itself.
const HOSTNAME: &str = "belljar";
/// Covers for what is hidden; empty, and nothing in them can be told from nothing.
const EMPTY_FOLDER: &str = ".belljar/folder";
const EMPTY_FILE: &str = ".belljar/file";
const OWN_IDENTITY: &str = ".belljar/boot_id";
/// The host's boots are counted here; programs that ask get the same answer in every sandbox.
const BOOT_IDENTITY: &str = "proc/sys/kernel/random/boot_id";
const NO_IDENTITY: &str = "00000000-0000-4000-8000-000000000000\n";

/// The gate answers, whoever is asked; this saves programs from guessing.
const NAME_SERVER: &str = "nameserver 127.0.0.1\noptions edns0\n";
const NO_NAME_SERVER: &str = "# no network: no name server\n";

pub fn plan(
    powers: &Powers,
    stacks: &[Stack],
    trust: Trust,
    host: &Host,
    mode: Mode,
) -> Result<Blueprint, Unplannable> {
    if powers.files.ground != Ground::Host {
        return Err(Unplannable::NotOnTheHost);
    }
    match mode {
        Mode::Full => full(powers, stacks, trust, host, None, powers.command.terminal),
        Mode::Reduced => reduced(powers, stacks, host),
    }
}

/// For a sandbox that stays: whoever comes may have a terminal of their own, though nobody has one yet.
pub fn to_stay(powers: &Powers, stacks: &[Stack], trust: Trust, host: &Host) -> Result<Blueprint, Unplannable> {
    match powers.files.ground {
        Ground::Host => full(powers, stacks, trust, host, None, true),
        _ => Err(Unplannable::NotOnTheHost),
    }
}

/// The same namespaces and files, and in the payload's place a program that carries it. What is granted is below
/// `carrier::GUEST`; what the carrier needs for itself is beside it, where the payload can't see it.
pub fn carried(
    powers: &Powers,
    stacks: &[Stack],
    trust: Trust,
    host: &Host,
    carrier: &Carrier,
) -> Result<Blueprint, Unplannable> {
    match powers.files.ground {
        Ground::Host => full(powers, stacks, trust, host, Some(carrier), powers.command.terminal),
        _ => Err(Unplannable::NotOnTheHost),
    }
}

pub fn groundwork(host: &Host) -> Groundwork {
    let mut steps = Vec::new();
    let (maps, _) = identities(host.identity);
    match maps {
        Some(_) => steps.extend([Step::AwaitParent, Step::Become { user: 0, group: 0 }]),
        None => {
            if let Identity::Ordinary { user, group } = host.identity {
                let to = |outside| Mapping { inside: 0, outside };
                steps.push(Step::MapSelf { user: to(user), group: to(group) });
            }
        }
    }
    steps.push(Step::DieWithParent);
    // As early as possible: it takes longer than all that is done before it is joined.
    steps.push(Step::BeginNetwork);
    if let Placement::Unified { .. } = host.groups {
        steps.push(Step::HideControlGroups);
    }
    steps.push(Step::KeepMountsPrivate);
    let namespaces = Namespaces {
        user: true,
        mount: true,
        pid: true,
        // Made by the child or its assistant.
        network: false,
        ipc: true,
        hostname: true,
        // Later, from within its groups, where there are any.
        cgroup: matches!(host.groups, Placement::Nowhere { .. }),
    };
    Groundwork { namespaces, maps, steps }
}

fn full(
    powers: &Powers,
    stacks: &[Stack],
    trust: Trust,
    host: &Host,
    carrier: Option<&Carrier>,
    terminal: bool,
) -> Result<Blueprint, Unplannable> {
    let Powers { command, files, environment: _, network, limits } = powers;
    let ceiling = ceiling(limits, &host.groups);
    let (_, inner) = identities(host.identity);
    let mut steps = Vec::new();
    steps.push(Step::NewRoot { size: number(limits.disk), inodes: number(limits.inodes) });
    let gated = matches!(network, Network::Gated(_));
    let inside = Inside { terminal, gated, trust, inner, carrier };
    let trees = root(&mut steps, files, stacks, inside, host)?;
    steps.extend([Step::SealRoot, Step::ChangeRoot, Step::Hostname(text(HOSTNAME))]);
    if let Placement::Older { .. } = host.groups {
        // Late: they take the parent some time to make, and nothing of the payload's has run yet.
        steps.extend([Step::Receive, Step::JoinGroups, Step::HideControlGroups]);
    }
    if command.terminal {
        steps.push(Step::OwnTerminal);
    }
    // As late as possible, while we are still somebody to the namespace that owns it.
    steps.push(Step::JoinNetwork);
    if let Network::Gated(gated) = network {
        // While we may still change it.
        steps.push(Step::OpenDoors { loopback: gated.loopback.clone() });
    }
    // A carrier is root there, of nothing: what it mounts and makes is its own, and all that was made so far is not.
    let (user, group) = if carrier.is_some() { (0, 0) } else { inner };
    steps.extend([
        Step::EnterUser { user: Mapping { inside: user, outside: 0 }, group: Mapping { inside: group, outside: 0 } },
        Step::NewSession,
        Step::NewKeyring,
    ]);
    if carrier.is_none() {
        steps.push(Step::DropCapabilities { bounding: true });
    }
    steps.push(Step::ForbidNewPrivileges);
    match carrier {
        None => lower_limits(&mut steps, limits),
        Some(_) => carrier::lower_limits(&mut steps, limits),
    }
    // Landlock would keep a carrier from mounting anything, also its own.
    if host.landlock > 0 && carrier.is_none() {
        steps.push(Step::Restrict(Landlock { abi: host.landlock, rules: landlock_rules(files)?, refuse_tcp: false }));
    }
    let processors = by_affinity(limits, host);
    let options =
        calls::Options { no_sockets: false, fixed_affinity: processors.is_some(), carrier: carrier.is_some() };
    if let Some(after) = stacks.iter().map(|stack| stack.begun).max().filter(|begun| *begun > 0) {
        steps.push(Step::AwaitTick { after });
    }
    // Before the filter, which keeps the payload from doing the same.
    steps.push(Step::ForbidInspection);
    steps.push(Step::Filter(filter::compile(&calls::rules(options))));

    let mut trials = vec![
        (Wall::Files, Trial::MakeFolder),
        (Wall::Processes, Trial::SeeParent),
        (Wall::Network, if gated { Trial::ReachPastGate } else { Trial::ReachOut }),
        (Wall::Privileges, Trial::HoldPower),
        (Wall::Terminal, Trial::OpenTerminal),
        (Wall::OpenFiles, Trial::OpenMore { than: limits.open_files }),
        // Last: the parent, who must answer it, is on its way meanwhile.
        (Wall::SystemCalls, Trial::ForbiddenCall),
    ];
    if carrier.is_some() {
        // The payload's and not the carrier's: they are tried behind it.
        trials.retain(|(wall, _)| !matches!(wall, Wall::Privileges | Wall::OpenFiles));
    }
    let written = written(files, stacks);
    Ok(Blueprint { ground: groundwork(host), trees, ceiling, written, processors, steps, trials })
}

fn reduced(powers: &Powers, stacks: &[Stack], host: &Host) -> Result<Blueprint, Unplannable> {
    let Powers { command, files, environment: _, network, limits } = powers;
    match network {
        Network::Closed => {}
        // Nothing would lead there, and to have no network is not what was granted.
        Network::Gated(_) => return Err(Unplannable::NoGate),
    }
    let ceiling = ceiling(limits, &host.groups);
    let mut steps = Vec::new();
    if let Placement::Older { .. } = host.groups {
        steps.extend([Step::Receive, Step::JoinGroups]);
    }
    steps.push(Step::DieWithParent);
    if command.terminal {
        steps.push(Step::OwnTerminal);
    }
    steps.extend([
        Step::AdoptOrphans,
        Step::NewSession,
        Step::NewKeyring,
        Step::DropCapabilities { bounding: false },
        Step::ForbidNewPrivileges,
    ]);
    lower_limits(&mut steps, limits);
    let mut rules = Vec::new();
    for place in &files.places {
        let reach = match place.access {
            Access::Read => Reach::Read,
            Access::Write => Reach::Write,
            // Nothing shows it in another place than its own.
            Access::Layered => return Err(Unplannable::NoNamespaces(place.path.clone())),
        };
        rules.push((path(&place.path)?, reach));
    }
    for device in &host.devices {
        rules.push((path(device)?, Reach::Devices));
    }
    rules.push((text("/proc"), Reach::Read));
    let landlock = Landlock { abi: host.landlock, rules, refuse_tcp: true };
    steps.push(Step::Restrict(landlock));
    let processors = by_affinity(limits, host);
    let options = calls::Options { no_sockets: true, fixed_affinity: processors.is_some(), carrier: false };
    // Before the filter, which keeps the payload from doing the same.
    steps.push(Step::ForbidInspection);
    steps.push(Step::Filter(filter::compile(&calls::rules(options))));
    let mut trials = vec![
        (Wall::SystemCalls, Trial::ForbiddenCall),
        (Wall::Network, Trial::ReachOut),
        (Wall::Privileges, Trial::HoldPower),
        (Wall::Terminal, Trial::OpenTerminal),
        (Wall::OpenFiles, Trial::OpenMore { than: limits.open_files }),
    ];
    // The root is the host's own here, and may be granted.
    if !files.places.iter().any(|place| place.path == Path::new("/")) {
        trials.push((Wall::Files, Trial::MakeFolder));
    }
    let (ground, written) = (Groundwork::default(), written(files, stacks));
    Ok(Blueprint { ground, trees: Vec::new(), ceiling, written, processors, steps, trials })
}

fn written(files: &Files, stacks: &[Stack]) -> Vec<PathBuf> {
    let direct = files.places.iter().filter(|place| place.access == Access::Write).map(|place| place.path.clone());
    let layered = stacks.iter().map(|stack| match &stack.kept {
        Kept::Overlay { layer, .. } => layer.join("upper"),
        Kept::Copy { tree } => tree.clone(),
    });
    direct.chain(layered).collect()
}

/// The maps that the parent writes, if it must, and who the payload is inside.
fn identities(identity: Identity) -> (Option<(Mapping, Mapping)>, (u32, u32)) {
    const ORDINARY: u32 = 1000;
    match identity {
        Identity::Ordinary { user, group } => {
            let never_zero = |number| if number == 0 { ORDINARY } else { number };
            (None, (never_zero(user), never_zero(group)))
        }
        Identity::Root { payload } => {
            let mapping = Mapping { inside: 0, outside: payload };
            (Some((mapping, mapping)), (ORDINARY, ORDINARY))
        }
        // Refused by `assess`; planned as if it were mapped to nobody so that `explain` can show it.
        Identity::PowerlessRoot => (None, (ORDINARY, ORDINARY)),
    }
}

/// Who the payload is inside.
pub fn payload_is(host: &Host) -> (u32, u32) {
    identities(host.identity).1
}

fn ceiling(limits: &Limits, placement: &Placement) -> Option<Ceiling> {
    let Limits {
        wall_time: _,
        millicpus,
        cpu_time,
        memory,
        processes: _,
        disk: _,
        inodes: _,
        open_files: _,
        largest_file: _,
        output: _,
    } = limits;
    let millicpus = match placement {
        Placement::Nowhere { .. } => return None,
        Placement::Unified { cpu: true, .. } | Placement::Older { cpu: Some(_), .. } => *millicpus,
        Placement::Unified { cpu: false, .. } | Placement::Older { cpu: None, .. } => None,
    };
    Some(Ceiling { memory: *memory, millicpus, count_cpu_time: cpu_time.is_some() })
}

/// Where no group limits the processors, fewer of them to run on does, in whole numbers.
fn by_affinity(limits: &Limits, host: &Host) -> Option<u32> {
    let millicpus = limits.millicpus?;
    let held = ceiling(limits, &host.groups).is_some_and(|ceiling| ceiling.millicpus.is_some());
    let wanted = millicpus.div_ceil(1000);
    (!held && wanted < host.processors).then_some(wanted)
}

/// What a root depends on besides files.
struct Inside<'a> {
    terminal: bool,
    /// Names can be asked for.
    gated: bool,
    trust: Trust,
    /// Who the payload is.
    inner: (u32, u32),
    carrier: Option<&'a Carrier>,
}

impl Inside<'_> {
    /// Where the payload's root is, from the new root on.
    fn base(&self) -> &'static str {
        if self.carrier.is_some() { carrier::GUEST } else { "/" }
    }
}

/// The root, in two parts. First all that is ours, while nothing of the host's is mounted: so that no folder or
/// file is ever made in one of the host's. Then the mounts, each over something that exists.
fn root(
    steps: &mut Vec<Step>,
    files: &Files,
    stacks: &[Stack],
    inside: Inside<'_>,
    host: &Host,
) -> Result<Vec<Tree>, Unplannable> {
    let base = inside.base();
    let Inside { terminal, gated, trust: Trust { files: trusted, replaced, well_known }, inner, carrier } = inside;
    let Files { ground: _, places, links, hidden, home, user_name } = files;
    let relative = |inside: &Path| relative(base, inside);
    let mut skeleton = Skeleton { base, ..Skeleton::default() };
    let covered = |path: &Path| places.iter().any(|place| place.folder && is_below(path, &place.path));
    let exists = |path: &Path| places.iter().any(|place| is_within(path, &place.path));

    for (link, target) in links {
        skeleton.link(link, target)?;
    }
    let scratch = scratch(files);
    for (path, mode) in &scratch {
        skeleton.folder(path, *mode)?;
    }
    // Another kernel has these of its own.
    let folders: &[&str] = if carrier.is_some() { &["/proc", "/sys", "/dev"] } else { &["/proc", "/dev/pts"] };
    for folder in folders {
        skeleton.folder(Path::new(folder), 0o755)?;
    }
    // Without a terminal, opening `/dev/tty` fails one way or the other.
    let wanted = |device: &&PathBuf| match device.to_str() {
        Some("/dev/random") => false,
        Some("/dev/tty") => terminal,
        _ => true,
    };
    let mut own = Skeleton { base: "/", ..Skeleton::default() };
    let devices = if carrier.is_some() { &mut own } else { &mut skeleton };
    for device in host.devices.iter().filter(wanted) {
        devices.file(device, 0o666, Vec::new())?;
    }
    for (file, contents) in own_files(inner, home, user_name, gated) {
        if !exists(Path::new(file)) {
            skeleton.file(Path::new(file), 0o644, contents.into_bytes())?;
        }
    }
    for file in &trusted {
        // It would be hidden, and something of the host's be trusted in its place.
        if exists(file) {
            return Err(Unplannable::Covered(file.clone()));
        }
        skeleton.file(file, 0o444, Vec::new())?;
    }
    for place in places.iter().filter(|place| !covered(&place.path)) {
        if place.folder {
            skeleton.folder(&place.path, 0o755)?;
        } else {
            skeleton.file(&place.path, 0o644, Vec::new())?;
        }
    }
    // After the places: where something lies below the name of one of our links, there is a folder instead. A path
    // that led over a link would lead out of the new root, which is not the root yet.
    for (link, target) in [
        ("/dev/ptmx", "pts/ptmx"),
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
        // The same device for years.
        ("/dev/random", "urandom"),
        ("/var/tmp", "/tmp"),
    ] {
        let of_the_guest = carrier.is_some() && link.starts_with("/dev/");
        if !exists(Path::new(link)) && !of_the_guest {
            skeleton.link(Path::new(link), Path::new(target))?;
        }
    }
    for (name, file) in &well_known {
        // Not where the host's files are, nor over a link to them: those are replaced, if there are any.
        let led = links.iter().any(|(link, _)| is_within(name, link));
        let around = places.iter().any(|place| is_below(&place.path, name));
        if !exists(name) && !led && !around {
            skeleton.link(name, Path::new(file))?;
        }
    }
    let covers = if carrier.is_some() { &mut own } else { &mut skeleton };
    covers.file(&Path::new("/").join(EMPTY_FILE), 0o444, Vec::new())?;
    covers.file(&Path::new("/").join(OWN_IDENTITY), 0o444, NO_IDENTITY.as_bytes().to_vec())?;
    if hidden.iter().any(|(_, folder)| *folder) {
        covers.folder(&Path::new("/").join(EMPTY_FOLDER), 0o555)?;
    }
    if let Some(carrier) = carrier {
        own.folder(Path::new(carrier::GUEST), 0o755)?;
        carrier.skeleton(&mut own)?;
        skeleton.file(Path::new(guest::usher::NAME), 0o555, Vec::new())?;
    }
    steps.append(&mut own.steps);
    steps.append(&mut skeleton.steps);
    if !trusted.is_empty() {
        steps.push(Step::HandOut { files: trusted.iter().map(|file| relative(file)).collect::<Result<_, _>>()? });
    }

    // Outer mounts before inner ones, or the outer would hide the inner.
    enum Mount<'a> {
        Scratch,
        Place(&'a Place),
        /// A folder between a writable place and something in it that is not: as a mount of its own it can't be moved
        /// away, and the protected name with it.
        Pin,
        Hide(bool),
        Replace(&'static str),
    }
    let pins = pins(places, hidden);
    let mut mounts: Vec<(&Path, Mount<'_>)> = scratch.iter().map(|(path, _)| (*path, Mount::Scratch)).collect();
    mounts.extend(places.iter().map(|place| (place.path.as_path(), Mount::Place(place))));
    mounts.extend(hidden.iter().map(|(path, folder)| (path.as_path(), Mount::Hide(*folder))));
    mounts.extend(pins.iter().map(|path| (path.as_path(), Mount::Pin)));
    // After the place of the same path, if a file was granted by itself: the order of equals stays.
    let replaced = replaced.iter().filter(|(path, _)| {
        let seen = places.iter().rev().find(|place| is_within(path, &place.path));
        let hidden = hidden.iter().any(|(hidden, _)| is_within(path, hidden));
        // In a layer it may be gone.
        seen.is_some_and(|place| place.access == Access::Read) && !hidden
    });
    mounts.extend(replaced.map(|(path, by)| (path.as_path(), Mount::Replace(by))));
    mounts.sort_by_key(|(path, _)| path.as_os_str());

    let mut trees = Vec::new();
    let mut mounted = Vec::new();
    for (target, mount) in mounts {
        match mount {
            Mount::Scratch => mounted.push(Step::Scratch { path: Way::Plain(relative(target)?) }),
            Mount::Pin => mounted.push(Step::Scratch { path: Way::Careful(relative(target)?) }),
            Mount::Hide(folder) => {
                let cover = text(if folder { EMPTY_FOLDER } else { EMPTY_FILE });
                mounted.push(Step::Hide { path: Way::Careful(relative(target)?), cover });
            }
            Mount::Replace(by) => {
                let by = relative(Path::new(by))?;
                mounted.push(Step::Replace { path: Way::Careful(relative(target)?), by });
            }
            Mount::Place(place) => {
                let owner = match place.origin {
                    // What only root may read of the system stays so.
                    Origin::System => None,
                    Origin::Toolchain | Origin::Workspace | Origin::Asked => Some(place.owner),
                };
                let way = |careful| if careful { Way::Careful } else { Way::Plain };
                let from = way(place.origin != Origin::System)(path(&place.path)?);
                // Within another place, its path leads over files that are not ours.
                let target = way(covered(&place.path))(relative(&place.path)?);
                let attributes = match place.access {
                    Access::Read => Attributes::READ_ONLY,
                    Access::Write => Attributes::READ_WRITE,
                    Access::Layered => {
                        let stack = stacks.iter().find(|stack| stack.place == place.path);
                        let stack = stack.ok_or_else(|| Unplannable::NoLayer(place.path.clone()))?;
                        mounted.push(layered(stack, (from, target), owner, host, &mut trees)?);
                        continue;
                    }
                };
                bind(&mut mounted, &mut trees, host, (from, target), attributes, owner);
            }
        }
    }
    for device in host.devices.iter().filter(wanted) {
        let ways = (Way::Plain(path(device)?), Way::Plain(self::relative("/", device)?));
        bind(&mut mounted, &mut trees, host, ways, Attributes::DEVICE, None);
    }
    mounted.push(Step::Terminals { path: text("dev/pts") });
    mounted.push(Step::Proc { path: text("proc"), writable: carrier.is_some() });
    if let Some(carrier) = carrier {
        let ways = (Way::Careful(path(&carrier.program)?), Way::Plain(self::relative("/", carrier::PROGRAM.as_ref())?));
        bind(&mut mounted, &mut trees, host, ways, Attributes::READ_ONLY, None);
        // Our own program, to be run behind it.
        let ways = (Way::Careful(path(&carrier.usher)?), Way::Plain(relative(Path::new(guest::usher::NAME))?));
        bind(&mut mounted, &mut trees, host, ways, Attributes::READ_ONLY, None);
        mounted.push(Step::Scratch { path: Way::Plain(self::relative("/", carrier::STATE.as_ref())?) });
    }
    // What /proc tells everybody about this machine and its people, and nobody inside needs.
    for (secret, cover) in [
        ("proc/cmdline", EMPTY_FILE),
        ("proc/keys", EMPTY_FILE),
        ("proc/key-users", EMPTY_FILE),
        (BOOT_IDENTITY, OWN_IDENTITY),
    ] {
        if carrier.is_some() {
            // It looks at its own processes there and shows none of it; a cover would keep it from passing it on.
            break;
        }
        mounted.push(Step::Hide { path: Way::Plain(text(secret)), cover: text(cover) });
    }
    if !trees.is_empty() {
        steps.push(Step::Receive);
    }
    steps.append(&mut mounted);
    // Last: whoever writes them has had the time of all that is mounted.
    if !trusted.is_empty() {
        steps.push(Step::AwaitHanded);
    }
    Ok(trees)
}

/// A layered place: what is laid over what.
fn layered(
    stack: &Stack,
    (from, target): (Way, Way),
    owner: Option<(u32, u32)>,
    host: &Host,
    trees: &mut Vec<Tree>,
) -> Result<Step, Unplannable> {
    let mut part = |from, attributes| source(host, trees, from, attributes, owner);
    match &stack.kept {
        Kept::Copy { tree } => {
            let attributes = Attributes::READ_WRITE;
            Ok(Step::Bind { source: part(Way::Careful(path(tree)?), attributes), target, attributes })
        }
        Kept::Overlay { earlier, layer } => {
            let mut lower = Vec::with_capacity(earlier.len() + 1);
            for earlier in earlier {
                lower.push(part(Way::Careful(path(earlier)?), Attributes::READ_ONLY));
            }
            lower.push(part(from, Attributes::READ_ONLY));
            Ok(Step::Overlay { lower, layer: part(Way::Careful(path(layer)?), Attributes::READ_WRITE), target })
        }
    }
}

/// Private folders that can be written to, with their modes.
fn scratch(files: &Files) -> Vec<(&Path, u32)> {
    let Files { places, home, .. } = files;
    let exists = |path: &Path| places.iter().any(|place| is_within(path, &place.path));
    let temporary = Path::new("/var/tmp");
    let is_around = |path: &Path| places.iter().any(|place| is_below(&place.path, path)) || is_below(home, path);
    [(Path::new("/tmp"), 0o1777), (Path::new("/dev/shm"), 0o1777), (home.as_path(), 0o700), (temporary, 0o1777)]
        .into_iter()
        // That one is a link to the first, unless something else is below it.
        .filter(|(path, _)| !exists(path) && (*path != temporary || is_around(path)))
        .collect()
}

/// Every folder between a writable place and a read-only or hidden part of it.
fn pins(places: &[Place], hidden: &[(PathBuf, bool)]) -> BTreeSet<PathBuf> {
    let mut pins = BTreeSet::new();
    if places.iter().all(|place| place.access == Access::Read) {
        return pins;
    }
    let read_only = places.iter().filter(|place| place.access == Access::Read).map(|place| &place.path);
    for part in read_only.chain(hidden.iter().map(|(path, _)| path)) {
        let around = places.iter().rev().find(|place| is_below(part, &place.path));
        let Some(around) = around.filter(|place| place.access != Access::Read) else { continue };
        let between = part.ancestors().skip(1).take_while(|folder| *folder != around.path);
        pins.extend(between.map(Path::to_owned));
    }
    pins
}

fn bind(
    steps: &mut Vec<Step>,
    trees: &mut Vec<Tree>,
    host: &Host,
    (from, target): (Way, Way),
    attributes: Attributes,
    owner: Option<(u32, u32)>,
) {
    let source = source(host, trees, from, attributes, owner);
    steps.push(Step::Bind { source, target, attributes });
}

fn source(host: &Host, trees: &mut Vec<Tree>, from: Way, attributes: Attributes, owner: Option<(u32, u32)>) -> Source {
    match host.identity {
        Identity::Ordinary { .. } | Identity::PowerlessRoot => Source::Path(from),
        Identity::Root { .. } => {
            let path = from.path().clone();
            trees.push(Tree { from, attributes, owner });
            Source::Received { path, tree: trees.len() - 1 }
        }
    }
}

/// Files of /etc that say who and where one is; the host's would say too much.
fn own_files((user, group): (u32, u32), home: &Path, user_name: &str, gated: bool) -> [(&'static str, String); 6] {
    let home = home.display();
    [
        (
            "/etc/passwd",
            format!(
                "root:x:0:0:root:/root:/usr/sbin/nologin\n\
                 {user_name}:x:{user}:{group}::{home}:/bin/sh\n\
                 nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            ),
        ),
        ("/etc/group", format!("root:x:0:\n{user_name}:x:{group}:\nnogroup:x:65534:\n")),
        ("/etc/hostname", format!("{HOSTNAME}\n")),
        ("/etc/hosts", format!("127.0.0.1 localhost {HOSTNAME}\n::1 localhost ip6-localhost ip6-loopback\n")),
        (
            "/etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n".to_owned(),
        ),
        ("/etc/resolv.conf", if gated { NAME_SERVER } else { NO_NAME_SERVER }.to_owned()),
    ]
}

fn lower_limits(steps: &mut Vec<Step>, limits: &Limits) {
    let Limits {
        wall_time: _,
        millicpus: _,
        cpu_time,
        memory: _,
        processes,
        disk: _,
        inodes: _,
        open_files,
        largest_file,
        output: _,
    } = limits;
    steps.extend([
        // One byte: less than any core file, and the one value at which the kernel starts no helper either.
        Step::Lower(Limit::Core, 1),
        Step::Lower(Limit::Processes, *processes),
        Step::Lower(Limit::OpenFiles, *open_files),
        Step::Lower(Limit::FileSize, *largest_file),
        Step::Lower(Limit::Nice, 0),
        Step::Lower(Limit::RealtimePriority, 0),
        Step::Lower(Limit::LockedMemory, 8 << 20),
        Step::Lower(Limit::MessageQueues, 819_200),
    ]);
    if let Some(time) = cpu_time {
        // For one process; the whole tree is the supervisor's business.
        steps.push(Step::Lower(Limit::CpuSeconds, time.as_secs().saturating_add(1)));
    }
}

fn landlock_rules(files: &Files) -> Result<Vec<(CString, Reach)>, Unplannable> {
    // All that can be seen may be read: the mounts decide what that is. Anything reached from elsewhere may not.
    let mut rules = vec![(text("/"), Reach::Read), (text("/dev"), Reach::Devices)];
    for (scratch, _) in scratch(files) {
        rules.push((path(scratch)?, Reach::Write));
    }
    for place in files.places.iter().filter(|place| place.access != Access::Read) {
        rules.push((path(&place.path)?, Reach::Write));
    }
    Ok(rules)
}

/// Folders, files and links of a root, each made once and after its parent.
#[derive(Default)]
pub struct Skeleton {
    /// Where that root is.
    base: &'static str,
    made: BTreeSet<OsString>,
    steps: Vec<Step>,
}

impl Skeleton {
    pub fn folder(&mut self, at: &Path, mode: u32) -> Result<(), Unplannable> {
        self.parents(at)?;
        if self.made.insert(at.as_os_str().to_owned()) {
            self.steps.push(Step::Directory { path: relative(self.base, at)?, mode });
        }
        Ok(())
    }

    pub fn file(&mut self, at: &Path, mode: u32, contents: Vec<u8>) -> Result<(), Unplannable> {
        self.parents(at)?;
        if self.made.insert(at.as_os_str().to_owned()) {
            self.steps.push(Step::File { path: relative(self.base, at)?, mode, contents });
        }
        Ok(())
    }

    pub fn link(&mut self, at: &Path, target: &Path) -> Result<(), Unplannable> {
        self.parents(at)?;
        if self.made.insert(at.as_os_str().to_owned()) {
            self.steps.push(Step::Link { path: relative(self.base, at)?, target: path(target)? });
        }
        Ok(())
    }

    fn parents(&mut self, at: &Path) -> Result<(), Unplannable> {
        match paths::parent(at) {
            Some(parent) if parent.as_os_str() != "/" => self.folder(parent, 0o755),
            _ => Ok(()),
        }
    }
}

/// From the new root on. `base`: the root in which it is that path.
fn relative(base: &str, inside: &Path) -> Result<CString, Unplannable> {
    let bytes = inside.as_os_str().as_bytes();
    let below = Path::new(base).join(OsStr::from_bytes(bytes.strip_prefix(b"/").unwrap_or(bytes)));
    let bytes = below.as_os_str().as_bytes();
    path(Path::new(OsStr::from_bytes(bytes.strip_prefix(b"/").unwrap_or(bytes))))
}

fn path(path: &Path) -> Result<CString, Unplannable> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Unplannable::ZeroByte(path.to_owned()))
}

/// Of our own words, which have no zero byte in them.
fn text(words: &str) -> CString {
    CString::new(words.replace('\0', "")).unwrap_or_default()
}

fn number(value: u64) -> CString {
    text(&value.to_string())
}

/// What the payload is told it may use, for `explain`.
/// `starts`: what is started in the end, the payload or what carries it.
pub fn describe(blueprint: &Blueprint, command: &Command, starts: &'static str) -> Vec<model::Step> {
    let by = |by: &'static str, does: String| model::Step { by, does };
    let Namespaces { user, mount, pid, network, ipc, hostname, cgroup } = blueprint.ground.namespaces;
    let names = [
        (user, "user"),
        (mount, "mount"),
        (pid, "pid"),
        (network, "network"),
        (ipc, "ipc"),
        (hostname, "hostname"),
        (cgroup, "cgroup"),
    ];
    let names: Vec<&str> = names.iter().filter(|(wanted, _)| *wanted).map(|(_, name)| *name).collect();
    let mut steps = Vec::new();
    if let Some(Ceiling { memory, millicpus, .. }) = blueprint.ceiling {
        let cpus =
            millicpus.map_or(String::new(), |millicpus| format!(", {} processors", f64::from(millicpus) / 1000.0));
        steps.push(by("parent", format!("group    memory {memory}{cpus}")));
    }
    if let Some(processors) = blueprint.processors {
        steps.push(by("parent", format!("affinity to {processors} processors")));
    }
    let namespaces =
        if names.is_empty() { "fork".to_owned() } else { format!("fork     into new {}", names.join(" ")) };
    steps.push(by("parent", namespaces));
    if let Some((user, _)) = blueprint.ground.maps {
        steps.push(by(
            "parent",
            format!("map      user {} to {} of the host, group likewise", user.inside, user.outside),
        ));
    }
    steps.extend(blueprint.ground.steps.iter().chain(&blueprint.steps).map(|step| by("child", step.to_string())));
    steps.extend(blueprint.trials.iter().map(|(wall, trial)| by("child", format!("try      {trial}: {wall}"))));
    steps.push(by("child", format!("fork     the {starts}; then only reap and pass signals on")));
    let arguments: Vec<_> = command.arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    steps.push(by(starts, format!("chdir    {}", command.directory.display())));
    steps.push(by(starts, format!("exec     {} with {arguments:?}", command.program.display())));
    steps
}
