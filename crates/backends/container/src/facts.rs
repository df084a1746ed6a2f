//! What is known of the engine, the image and the caller before anything is planned: plain data.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use model::Handed;
use serde::{Deserialize, Serialize};
use sys::descriptors;

use crate::api::{Api, Image, Info};
use crate::trouble::{Result, Unusable};

/// A plan is a pure function of these, a grant and its layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    pub engine: Engine,
    pub image: ImageFacts,
    /// Who asks.
    pub caller: (u32, u32),
    /// A number that is nobody's, for root's sandboxes.
    pub stranger: u32,
    /// Names this run among all others.
    pub id: String,
    pub labels: BTreeMap<String, String>,
    /// Belljar's own, where a container must keep a network open.
    pub waiting_image: String,
    /// A folder with files that say whom to trust.
    pub trust: Option<PathBuf>,
    /// A file with the list of system calls, for an engine that takes it no other way.
    pub profile: Option<PathBuf>,
    /// Processes that a user of this host may have; for an engine that would ask for more than the kernel lets it.
    pub user_processes: Option<u64>,
    /// Where folders are that the kernel works in for an engine that is root.
    pub work: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    pub socket: PathBuf,
    pub shown: String,
    pub podman: bool,
    /// It has a user namespace of its own, whose root is its owner.
    pub rootless: bool,
    /// Whose it is.
    pub owner: u32,
    pub seccomp: bool,
    pub memory: bool,
    pub swap: bool,
    pub processes: bool,
    pub processors: bool,
    pub runtimes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageFacts {
    /// As it was asked for.
    pub name: String,
    /// Digest of its configuration, which names all of its layers.
    pub id: String,
    /// Places that it declares to be writable.
    pub volumes: Vec<String>,
    /// Where its programs are, as it says itself.
    pub search_path: String,
}

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Engine {
    /// `controllers`: what Podman has of control groups, where it told.
    pub fn new(api: &Api, info: &Info, controllers: Option<&[String]>) -> Engine {
        let has = |name: &str| info.security_options.iter().any(|option| option.contains(&format!("name={name}")));
        let rootless = info.rootless || has("rootless");
        // An older one that does not tell: one that is root has what the host has, and one that is not may have nothing.
        let gives = |name: &str| match controllers {
            Some(given) => given.iter().any(|given| given == name),
            None => !(api.podman && rootless),
        };
        // Podman names every runtime that it has ever heard of.
        let installed = |told: &serde_json::Value| match told["path"].as_str() {
            Some(path) if api.podman => Path::new(path).exists(),
            _ => true,
        };
        Engine {
            socket: api.socket().to_owned(),
            shown: format!("{} at {}", api.shown, api.socket().display()),
            podman: api.podman,
            rootless,
            owner: api.owner,
            seccomp: has("seccomp"),
            memory: info.memory_limit && gives("memory"),
            swap: info.swap_limit && gives("memory"),
            processes: info.pids_limit && gives("pids"),
            processors: info.cpu_cfs_quota && gives("cpu"),
            runtimes: info.runtimes.iter().filter(|(_, told)| installed(told)).map(|(name, _)| name.clone()).collect(),
        }
    }
}

impl ImageFacts {
    pub fn new(name: &str, image: &Image) -> ImageFacts {
        let config = image.config.clone().unwrap_or_default();
        let path = config.env.iter().flatten().find_map(|line| line.strip_prefix("PATH=").map(str::to_owned));
        ImageFacts {
            name: name.to_owned(),
            id: image.id.clone(),
            volumes: config.volumes.into_iter().flatten().map(|(path, _)| path).collect(),
            search_path: path.unwrap_or_else(|| DEFAULT_PATH.to_owned()),
        }
    }
}

/// Podman raises this limit to the highest that there is, unless it is told one; an engine that is root only in part may not.
pub fn user_processes(engine: &Engine) -> Option<u64> {
    /// Podman's service may have no more itself. Far above what the control group of a container lets it have.
    const OF_PODMAN: u64 = 32_768;
    let own = || rustix::process::getrlimit(rustix::process::Resource::Nproc).maximum;
    engine.podman.then(|| own().map_or(OF_PODMAN, |own| own.min(OF_PODMAN)))
}

/// User numbers from here on belong to nobody: above those of containers, below what programs take for negative.
pub const NOBODY_ELSE: u32 = 0x7000_0000;

/// Where files are kept that a container sees read-only: whom to trust, where requests are read on their way.
pub fn trust_folder(id: &str) -> PathBuf {
    let of_the_user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
    of_the_user.unwrap_or_else(std::env::temp_dir).join(format!("belljar-trust-{id}"))
}

pub fn write_trust(folder: &Path, handed: Handed) -> Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let Handed { paths, wire } = handed;
    let write = || -> std::io::Result<()> {
        std::fs::DirBuilder::new().mode(0o700).create(folder)?;
        let file = |path: &PathBuf| folder.join(path.file_name().unwrap_or_default());
        if let Some(wire) = wire {
            let opened = paths.iter().map(|path| File::create_new(file(path))).collect::<std::io::Result<Vec<_>>>()?;
            let opened: Vec<BorrowedFd<'_>> = opened.iter().map(File::as_fd).collect();
            descriptors::send(wire.as_fd(), b"write", &opened)?;
            let mut word = [0; 4];
            match descriptors::receive(wire.as_fd(), &mut word)? {
                (4, _) if word == [0; 4] => {}
                (4, _) => return Err(std::io::Error::from_raw_os_error(i32::from_le_bytes(word))),
                // Half a file is none: whoever was to write it has gone.
                _ => return Err(std::io::ErrorKind::BrokenPipe.into()),
            }
        }
        for file in paths.iter().map(file) {
            // Whoever the payload is reads it through the mount; nobody gets at it here.
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644))?;
        }
        Ok(())
    };
    write().map_err(|source| Unusable::Failed { what: format!("write `{}`", folder.display()), source })
}
