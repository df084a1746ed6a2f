//! Grant → what the engine is told. Pure: the same grant, layers and facts give the same configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::paths::is_within;
use model::{
    AUTHORITIES, Access, Command, Files, Ground, JAVA_AUTHORITIES, Kept, Limits, Origin, Place, Powers, Stack, Step,
};

use crate::configuration::{
    AllCapabilities, Configuration, HostConfiguration, Mount, Network, NoCheck, NoLog, Private, Security, Ulimit, User,
    Volume, VolumeOptions, Yes,
};
use crate::facts::Facts;
use crate::trouble::{Result, Unusable};
use crate::work;

/// All that is done for one sandbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Blueprint {
    pub volumes: Vec<Volume>,
    pub container: Configuration,
    /// It talks to the gate: another container is made first, whose network it shares.
    pub gated: bool,
    /// Copies that are given to whoever the payload is.
    pub handed_over: Vec<PathBuf>,
}

/// What programs may find out of the machine through these is nothing that they need.
const MASKED: &[&str] = &[
    "/proc/acpi", "/proc/asound", "/proc/cmdline", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/keys",
    "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/sys/kernel/random/boot_id", "/proc/timer_list",
    "/proc/timer_stats", "/sys/block", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices/pci0000:00",
    "/sys/devices/platform", "/sys/devices/virtual", "/sys/firmware", "/sys/fs", "/sys/hypervisor", "/sys/kernel",
    "/sys/module", "/sys/power",
];
const READ_ONLY: &[&str] = &["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// What a container has of its own there, nothing of the host's takes the place of.
const ITS_OWN: &[&str] = &["/proc", "/sys", "/dev"];

pub const HOSTNAME: &str = "belljar";
/// Where programs look for authorities without being told, in most images.
const BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";

pub fn plan(powers: &Powers, stacks: &[Stack], facts: &Facts) -> Result<Blueprint> {
    let Powers { command, files, environment, network, limits } = powers;
    let runtime = runtime(&files.ground, facts)?;
    let user = user(files, stacks, facts)?;
    let gated = matches!(network, model::Network::Gated(_));
    let (mounts, volumes, handed_over) = mounts(files, stacks, facts, user)?;
    let mut masked: Vec<String> = MASKED.iter().map(|path| (*path).to_owned()).collect();
    for (path, _) in &files.hidden {
        masked.push(text(path)?);
    }
    let Command { program, arguments, directory, terminal } = command;
    let words = |words: &[std::ffi::OsString]| words.iter().map(|word| word_text(word)).collect::<Result<Vec<_>>>();
    let variable = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
        Ok(format!("{}={}", word_text(name)?, word_text(value)?))
    };
    let container = Configuration {
        image: facts.image.id.clone(),
        user,
        working_dir: text(directory)?,
        entrypoint: vec![text(program)?],
        cmd: words(arguments.get(1..).unwrap_or_default())?,
        env: environment.iter().map(variable).collect::<Result<_>>()?,
        labels: facts.labels.clone(),
        hostname: (!gated).then_some(HOSTNAME),
        tty: *terminal,
        open_stdin: true,
        stdin_once: true,
        attach_stdin: true,
        attach_stdout: Yes,
        attach_stderr: Yes,
        healthcheck: NoCheck,
        host_config: HostConfiguration {
            network_mode: if gated { Network::Of(network_name(&facts.id)) } else { Network::None },
            readonly_rootfs: Yes,
            cap_drop: AllCapabilities,
            security_opt: match &facts.profile {
                Some(file) => Security::InFile(text(file)?),
                None => Security::Told,
            },
            tmpfs: in_memory(files, limits, facts, user, &mounts)?,
            mounts,
            shm_size: limits.disk.min(limits.memory),
            memory: limits.memory,
            memory_swap: limits.memory,
            // One more for the first process, which is not the payload's.
            pids_limit: limits.processes.saturating_add(1),
            nano_cpus: limits.millicpus.map(|thousandths| u64::from(thousandths) * 1_000_000),
            ulimits: ulimits(limits, facts.user_processes),
            init: Yes,
            ipc_mode: Private,
            cgroupns_mode: Private,
            masked_paths: masked,
            readonly_paths: READ_ONLY.iter().map(|path| (*path).to_owned()).collect(),
            log_config: NoLog,
            runtime,
        },
    };
    Ok(Blueprint { volumes, container, gated, handed_over })
}

/// The container whose network a gated sandbox shares.
pub fn network_name(id: &str) -> String {
    format!("belljar-net-{id}")
}

fn runtime(ground: &Ground, facts: &Facts) -> Result<Option<String>> {
    let Ground::Image { runtime: Some(asked), .. } = ground else { return Ok(None) };
    match facts.engine.runtimes.contains(asked) {
        true => Ok(Some(asked.clone())),
        false => Err(Unusable::NoRuntime { asked: asked.clone(), known: facts.engine.runtimes.clone() }),
    }
}

/// The caller, or for root somebody else: whom the files belong to, or nobody.
fn user(files: &Files, stacks: &[Stack], facts: &Facts) -> Result<User> {
    let (user, group) = facts.caller;
    if facts.engine.rootless {
        // Its root is its owner, so what is written is its owner's: never the host's root's, nor somebody else's than the caller's.
        return match facts.engine.owner == user && user != 0 {
            true => Ok(User::CallerInNamespace),
            false => Err(Unusable::Anothers { socket: facts.engine.socket.clone(), owner: facts.engine.owner }),
        };
    }
    if user != 0 {
        return Ok(User::number(user, group));
    }
    let writable: Vec<&Place> = files.places.iter().filter(|place| place.access != Access::Read).collect();
    let owner = writable.first().map(|place| place.owner).filter(|owner| owner.0 != 0);
    if let Some(owner) = owner.filter(|owner| writable.iter().all(|place| place.owner.0 == owner.0)) {
        return Ok(User::number(owner.0, owner.1));
    }
    // A stranger can't write to them, and a write that fails for a reason that nobody sees is worse than none.
    for place in writable {
        let copied = stacks.iter().any(|stack| stack.place == place.path && matches!(stack.kept, Kept::Copy { .. }));
        match place.access {
            Access::Layered if !copied => {
                let why = "it is root's, and nothing in a container runs as root";
                return Err(Unusable::Layers { place: place.path.clone(), why });
            }
            Access::Write => {
                return Err(Unusable::Path {
                    path: place.path.clone(),
                    why: "it is root's, and nothing in a container runs as root",
                    fix: "leave `--write` and `--workspace-mode direct` out: changes are then kept apart; run belljar \
                          as the owner of the files; or choose `--backend native`",
                });
            }
            Access::Layered | Access::Read => {}
        }
    }
    Ok(User::number(facts.stranger, facts.stranger))
}

type Mounts = (Vec<Mount>, Vec<Volume>, Vec<PathBuf>);

/// What was granted, and nothing else: of the host's system, an image has its own.
fn mounts(files: &Files, stacks: &[Stack], facts: &Facts, user: User) -> Result<Mounts> {
    let (mut mounts, mut volumes, mut handed_over) = (Vec::new(), Vec::new(), Vec::new());
    for place in files.places.iter().filter(|place| matches!(place.origin, Origin::Workspace | Origin::Asked)) {
        check(place, facts)?;
        let target = text(&place.path)?;
        let stack = stacks.iter().find(|stack| stack.place == place.path);
        match (place.access, stack) {
            (Access::Read, _) => mounts.push(Mount::bind(target.clone(), target, true)),
            (Access::Write, _) => mounts.push(Mount::bind(target.clone(), target, false)),
            (Access::Layered, None) => {
                return Err(Unusable::Path {
                    path: place.path.clone(),
                    why: "there is no layer for its changes",
                    fix: "please report this",
                });
            }
            (Access::Layered, Some(Stack { kept: Kept::Copy { tree }, .. })) => {
                mounts.push(Mount::bind(text(tree)?, target, false));
                if facts.caller.0 == 0 && user.numbers().0 != place.owner.0 {
                    handed_over.push(tree.clone());
                }
            }
            (Access::Layered, Some(Stack { kept: Kept::Overlay { earlier, layer }, .. })) => {
                let name = format!("belljar-{}-{}", facts.id, volumes.len());
                volumes.push(Volume {
                    name: name.clone(),
                    driver: "local",
                    driver_opts: VolumeOptions {
                        kind: "overlay",
                        device: "overlay",
                        o: overlay(&place.path, earlier, layer, &work_folder(layer, facts, volumes.len()))?,
                    },
                    labels: facts.labels.clone(),
                });
                mounts.push(Mount::volume(name, target));
            }
        }
    }
    mounts.extend(pins(files)?);
    // Of the gate's, where requests are read on their way: files of ours, in a folder of ours.
    for (inside, at) in [(AUTHORITIES, AUTHORITIES), (JAVA_AUTHORITIES, JAVA_AUTHORITIES), (AUTHORITIES, BUNDLE)] {
        if let Some(folder) = &facts.trust {
            let file = folder.join(Path::new(inside).file_name().unwrap_or_default());
            mounts.push(Mount::bind(text(&file)?, at.to_owned(), true));
        }
    }
    Ok((mounts, volumes, handed_over))
}

/// Folders around what is hidden or only to be read, within what is written to directly: as mounts of their own they can't be
/// renamed, else the host would have it under another name afterwards.
fn pins(files: &Files) -> Result<Vec<Mount>> {
    let granted = |place: &&Place| matches!(place.origin, Origin::Workspace | Origin::Asked);
    let written = files.places.iter().filter(granted).filter(|place| place.access == Access::Write && place.folder);
    let read = files.places.iter().filter(granted).filter(|place| place.access == Access::Read);
    let guarded: Vec<&Path> =
        files.hidden.iter().map(|(path, _)| path.as_path()).chain(read.map(|place| place.path.as_path())).collect();
    let mut folders = BTreeSet::new();
    for place in written {
        for path in guarded.iter().filter(|path| is_within(path, &place.path)) {
            let around = path.ancestors().skip(1).take_while(|folder| *folder != place.path);
            folders.extend(around.filter(|folder| is_within(folder, &place.path)));
        }
    }
    folders.retain(|folder| !files.places.iter().any(|place| place.path == *folder));
    folders.into_iter().map(|folder| Ok(Mount::bind(text(folder)?, text(folder)?, false))).collect()
}

fn check(place: &Place, facts: &Facts) -> Result<()> {
    let path = &place.path;
    let refused = |why, fix| Err(Unusable::Path { path: path.clone(), why, fix });
    if path == Path::new("/") || ITS_OWN.iter().any(|own| is_within(path, own) || is_within(Path::new(own), path)) {
        return refused("a container has its own there", "name a folder of yours");
    }
    // Whoever talks to the engine is root.
    let socket = &facts.engine.socket;
    if is_within(socket, path) {
        return refused("the engine's own socket is in it", "name a folder without it");
    }
    Ok(())
}

/// The same layers as everywhere: what is written here is read by `diff` and `apply`.
fn overlay(place: &Path, earlier: &[PathBuf], layer: &Path, work: &Path) -> Result<String> {
    let below: Vec<String> =
        earlier.iter().map(PathBuf::as_path).chain([place]).map(overlay_path).collect::<Result<_>>()?;
    let (upper, work) = (overlay_path(&layer.join("upper"))?, overlay_path(work)?);
    Ok(format!("lowerdir={},upperdir={upper},workdir={work},userxattr", below.join(":")))
}

fn work_folder(layer: &Path, facts: &Facts, number: usize) -> PathBuf {
    match &facts.work {
        Some(base) => work::of_run(base, &facts.id).join(number.to_string()),
        None => layer.join("work"),
    }
}

/// Separators in names would be taken for the ends of them, by the engine or by the kernel.
fn overlay_path(path: &Path) -> Result<String> {
    let text = text(path)?;
    match text.contains([',', ':', '\\', '"', '\n']) {
        false => Ok(text),
        true => Err(Unusable::Layers { place: path.to_owned(), why: "its name has a separator in it" }),
    }
}

/// Filesystems in memory: all that can be written to besides what was granted.
fn in_memory(
    files: &Files,
    limits: &Limits,
    facts: &Facts,
    user: User,
    mounts: &[Mount],
) -> Result<BTreeMap<String, String>> {
    let (number, group) = user.numbers();
    // Podman knows no number of files; `assess` says so.
    let files_in_it = if facts.engine.podman { String::new() } else { format!(",nr_inodes={}", limits.inodes) };
    let common = format!("rw,exec,nosuid,nodev,size={}{files_in_it}", limits.disk);
    let mut all = BTreeMap::new();
    let mut add = |path: &str, rights: String| {
        if !mounts.iter().any(|mount| mount.target() == Path::new(path)) {
            all.insert(path.to_owned(), format!("{common},{rights}"));
        }
    };
    add("/tmp", "mode=1777".to_owned());
    add("/var/tmp", "mode=1777".to_owned());
    // Nor whose they are: nobody else is in there, so it may be everybody's.
    let own = |mode: &str| match facts.engine.podman {
        true => "mode=1777".to_owned(),
        false => format!("mode={mode},uid={number},gid={group}"),
    };
    add(&text(&files.home)?, own("0700"));
    // Else the engine would make volumes for them, of any size, which outlive the container.
    for volume in &facts.image.volumes {
        add(volume, own("0755"));
    }
    Ok(all)
}

fn ulimits(limits: &Limits, user_processes: Option<u64>) -> Vec<Ulimit> {
    let Limits {
        wall_time: _,
        millicpus: _,
        cpu_time,
        memory: _,
        // Counted for each user of the host, not for each container: the engine's own limit holds it.
        processes: _,
        disk: _,
        inodes: _,
        open_files,
        largest_file,
        output: _,
    } = limits;
    let one = |name, value| Ulimit { name, soft: value, hard: value };
    let mut all = vec![
        one("core", 0),
        one("fsize", (*largest_file).min(i64::MAX as u64)),
        one("memlock", 8 << 20),
        one("msgqueue", 819_200),
        one("nice", 0),
        one("nofile", *open_files),
        one("rtprio", 0),
    ];
    all.extend(user_processes.map(|most| one("nproc", most)));
    // For one process; all together are measured.
    all.extend(cpu_time.map(|time| one("cpu", time.as_secs().saturating_add(1))));
    all
}

fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| Unusable::Path {
        path: path.to_owned(),
        why: "its name is not text (UTF-8), and engines take only that",
        fix: "rename it, or choose `--backend native`",
    })
}

fn word_text(word: &OsStr) -> Result<String> {
    text(Path::new(word))
}

/// For people: one line a decision.
pub fn describe(blueprint: &Blueprint, facts: &Facts) -> Vec<Step> {
    let step = |does: String| Step { by: "engine", does };
    let Blueprint { volumes, container, gated, handed_over } = blueprint;
    let host = &container.host_config;
    let (user, group) = container.user.numbers();
    let mut steps = vec![
        Step { by: "parent", does: format!("ask {}", facts.engine.shown) },
        step(format!("image   {} {}", facts.image.name, facts.image.id)),
    ];
    steps.extend(
        handed_over
            .iter()
            .map(|tree| Step { by: "parent", does: format!("give    {} to {user}:{group}", tree.display()) }),
    );
    for volume in volumes {
        steps.push(step(format!("volume  {}: {} {}", volume.name, volume.driver_opts.kind, volume.driver_opts.o)));
    }
    if *gated {
        steps.push(step("network of a container of its own, which has none".to_owned()));
        steps.push(Step { by: "parent", does: "enter that network and open doors to the gate".to_owned() });
    } else {
        steps.push(step("network none".to_owned()));
    }
    steps.push(step(format!("user    {user}:{group}")));
    steps.push(step("root    read-only".to_owned()));
    for mount in &host.mounts {
        steps.push(step(match mount {
            Mount::Bind { source, target, read_only, .. } => {
                format!("bind    {source} at {target} {}", if *read_only { "read-only" } else { "read-write" })
            }
            Mount::Volume { source, target, .. } => format!("mount   volume {source} at {target}"),
        }));
    }
    steps.extend(host.tmpfs.iter().map(|(path, options)| step(format!("tmpfs   {path} {options}"))));
    steps.push(step(format!("tmpfs   /dev/shm size={}", host.shm_size)));
    steps.push(step(format!("mask    {}", host.masked_paths.join(" "))));
    steps.push(step(format!("protect {}", host.readonly_paths.join(" "))));
    steps.push(step("drop    all capabilities".to_owned()));
    steps.push(step("forbid  new privileges".to_owned()));
    steps.push(step("filter  system calls by belljar's closed list".to_owned()));
    let processors =
        host.nano_cpus.map_or_else(String::new, |nano| format!(", {} thousandths of a processor", nano / 1_000_000));
    steps.push(step(format!("limit   memory and swap {}, processes {}{processors}", host.memory, host.pids_limit)));
    let limits: Vec<String> = host.ulimits.iter().map(|one| format!("{}={}", one.name, one.hard)).collect();
    steps.push(step(format!("limit   {}", limits.join(" "))));
    steps.extend(host.runtime.iter().map(|runtime| step(format!("runtime {runtime}"))));
    steps.push(Step { by: "parent", does: "attach, and keep somebody who removes it if belljar is killed".to_owned() });
    steps.push(step(
        format!("start   {} {}", container.entrypoint.join(" "), container.cmd.join(" ")).trim_end().to_owned(),
    ));
    steps.push(Step { by: "parent", does: "remove the container and its volumes".to_owned() });
    steps
}
