//! What an engine is told of a container. A closed type: what would break isolation (privileged, added capabilities,
//! devices, namespaces of the host's, options of security that are not ours) has no field here, so nobody can ask for it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Serialize, Serializer};

use crate::profile;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Configuration {
    /// By its digest: a name could come to mean another between looking and starting.
    pub image: String,
    pub user: User,
    pub working_dir: String,
    pub entrypoint: Vec<String>,
    pub cmd: Vec<String>,
    pub env: Vec<String>,
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<&'static str>,
    pub tty: bool,
    pub open_stdin: bool,
    /// Whoever attached last gone, its input ends.
    pub stdin_once: bool,
    pub attach_stdin: bool,
    pub attach_stdout: Yes,
    pub attach_stderr: Yes,
    /// Whatever the image says: nothing of it runs besides the payload.
    pub healthcheck: NoCheck,
    pub host_config: HostConfiguration,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct HostConfiguration {
    pub network_mode: Network,
    pub readonly_rootfs: Yes,
    pub cap_drop: AllCapabilities,
    pub security_opt: Security,
    pub mounts: Vec<Mount>,
    pub tmpfs: BTreeMap<String, String>,
    pub shm_size: u64,
    pub memory: u64,
    /// Memory and swap together: as much as memory alone, so no swap.
    pub memory_swap: u64,
    pub pids_limit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nano_cpus: Option<u64>,
    pub ulimits: Vec<Ulimit>,
    pub init: Yes,
    pub ipc_mode: Private,
    pub cgroupns_mode: Private,
    pub masked_paths: Vec<String>,
    pub readonly_paths: Vec<String>,
    /// Its output goes to us and nowhere else.
    pub log_config: NoLog,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
}

/// Which number the payload runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Never the host's root.
    Number { user: std::num::NonZeroU32, group: std::num::NonZeroU32 },
    /// The first of an engine's own user namespace, who is the caller outside of it and has no capability inside.
    CallerInNamespace,
}

impl User {
    /// Numbers that are nobody's instead of root's.
    pub fn number(user: u32, group: u32) -> User {
        let or_nobody = |number: u32| std::num::NonZeroU32::new(number).unwrap_or(NOBODY);
        User::Number { user: or_nobody(user), group: or_nobody(group) }
    }

    pub fn numbers(self) -> (u32, u32) {
        match self {
            User::Number { user, group } => (user.get(), group.get()),
            User::CallerInNamespace => (0, 0),
        }
    }
}

const NOBODY: std::num::NonZeroU32 = match std::num::NonZeroU32::new(65534) {
    Some(number) => number,
    None => std::num::NonZeroU32::MAX,
};

impl Serialize for User {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (user, group) = self.numbers();
        serializer.collect_str(&format_args!("{user}:{group}"))
    }
}

/// None, or that of another container of ours which has none either but a way to the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    None,
    Of(String),
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Network::None => serializer.serialize_str("none"),
            Network::Of(container) => serializer.collect_str(&format_args!("container:{container}")),
        }
    }
}

/// Always true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Yes;

impl Serialize for Yes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(true)
    }
}

/// A namespace of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Private;

impl Serialize for Private {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("private")
    }
}

/// All of them are dropped, and none can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllCapabilities;

impl Serialize for AllCapabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(["ALL"])
    }
}

/// No new privileges, and our own list of system calls; what the engine adds (AppArmor, SELinux) stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    Told,
    /// The list is in a file of belljar's: Podman takes nothing else.
    InFile(String),
}

impl Serialize for Security {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let profile = match self {
            Security::Told => serde_json::to_string(&profile::profile()).map_err(serde::ser::Error::custom)?,
            Security::InFile(path) => path.clone(),
        };
        serializer.collect_seq(["no-new-privileges:true".to_owned(), format!("seccomp={profile}")])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCheck;

impl Serialize for NoCheck {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("Test", ["NONE"])])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLog;

impl Serialize for NoLog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("Type", "none")])
    }
}

/// Something of the host's that was granted, or a volume of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase", rename_all_fields = "PascalCase", tag = "Type")]
pub enum Mount {
    #[serde(rename = "bind")]
    Bind { source: String, target: String, read_only: bool, bind_options: OnlyItself },
    #[serde(rename = "volume")]
    Volume { source: String, target: String, volume_options: Uncopied },
}

impl Mount {
    pub fn bind(source: String, target: String, read_only: bool) -> Mount {
        Mount::Bind { source, target, read_only, bind_options: OnlyItself }
    }

    pub fn volume(source: String, target: String) -> Mount {
        Mount::Volume { source, target, volume_options: Uncopied }
    }

    pub fn target(&self) -> &Path {
        match self {
            Mount::Bind { target, .. } | Mount::Volume { target, .. } => Path::new(target),
        }
    }
}

/// Without what is mounted below it, which would keep its own rights; and mounts go neither in nor out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnlyItself;

impl Serialize for OnlyItself {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("Propagation", "rprivate")?;
        map.serialize_entry("NonRecursive", &true)?;
        map.end()
    }
}

/// What the image has there is not copied into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncopied;

impl Serialize for Uncopied {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("NoCopy", true)])
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Ulimit {
    pub name: &'static str,
    pub soft: u64,
    pub hard: u64,
}

/// A layer over a granted place, mounted by the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Volume {
    pub name: String,
    pub driver: &'static str,
    pub driver_opts: VolumeOptions,
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeOptions {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub device: &'static str,
    pub o: String,
}
