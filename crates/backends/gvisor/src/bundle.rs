//! Grant → what runsc is told: its words and its OCI configuration. Pure.
//!
//! Nothing in it is the payload's: command, variables and limits are the usher's orders, because they may be any bytes and
//! this is text.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::Path;

use guest::usher;
use model::{Access, Network, Powers};
use native::carrier::{BUNDLE, GUEST, STATE};
use serde_json::{Value, json};

/// How it gets hold of the payload's calls. `kvm` needs a machine's help, and `ptrace` is several times slower.
pub const PLATFORM: &str = "systrap";

/// Numbers of the descriptors that it passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub report: RawFd,
    pub orders: RawFd,
    pub go: RawFd,
}

impl Numbers {
    /// For those who only want to see.
    pub const FORESEEN: Numbers = Numbers { report: usher::REPORT, orders: usher::ORDERS, go: usher::GO };
}

pub fn arguments(powers: &Powers, numbers: Numbers) -> Vec<OsString> {
    let network = match powers.network {
        // Not even the code for sockets of the host: a loopback of its own.
        Network::Closed => "none",
        // Sockets of the network around it, where everything leads to the gate.
        Network::Gated(_) => "host",
    };
    let pass = |ours: RawFd, theirs: RawFd| format!("--pass-fd={ours}:{theirs}");
    [
        "runsc".to_owned(),
        format!("--root={STATE}"),
        format!("--platform={PLATFORM}"),
        format!("--network={network}"),
        // Ours hold it and all that it starts.
        "--ignore-cgroups".to_owned(),
        // What is written goes to our layers, not to one of its own.
        "--overlay2=none".to_owned(),
        // Its file server does everything with files, and is where our mounts are. A kernel that opened them by itself would
        // be elsewhere, where none of them keeps anything in its place: a folder with a hidden file in it could be moved.
        "--directfs=false".to_owned(),
        // There is one user here, and nobody else to become.
        "--rootless".to_owned(),
        "--file-access=exclusive".to_owned(),
        "--file-access-mounts=shared".to_owned(),
        "--host-uds=none".to_owned(),
        "--host-fifo=none".to_owned(),
        "--net-raw=false".to_owned(),
        "run".to_owned(),
        format!("--bundle={BUNDLE}"),
        pass(numbers.report, usher::REPORT),
        pass(numbers.orders, usher::ORDERS),
        pass(numbers.go, usher::GO),
        "guest".to_owned(),
    ]
    .map(OsString::from)
    .to_vec()
}

pub fn config(powers: &Powers) -> Vec<u8> {
    let mut mounts = vec![
        json!({ "destination": "/proc", "type": "proc", "source": "proc" }),
        json!({ "destination": "/dev", "type": "tmpfs", "source": "tmpfs" }),
        json!({ "destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"] }),
    ];
    // Ours, whose size is limited with all others'; it would have some of its own.
    mounts.extend(["/dev/shm", "/tmp"].iter().filter_map(|path| shared(Path::new(path))));
    // Others may change these at any time, so nothing of them may be remembered. A name that is no text can't be said
    // here: that one is part of the root, as all others are.
    let written = powers.files.places.iter().filter(|place| place.access == Access::Write);
    let written = written.filter(|place| !["/dev/shm", "/tmp"].iter().any(|path| place.path == Path::new(path)));
    mounts.extend(written.filter_map(|place| shared(&place.path)));
    let mut namespaces = vec!["pid", "mount", "ipc", "uts"];
    if powers.network == Network::Closed {
        namespaces.push("network");
    }
    let namespaces: Vec<Value> = namespaces.iter().map(|kind| json!({ "type": kind })).collect();
    let none: [&str; 0] = [];
    let own = ["CAP_KILL", "CAP_SETGID", "CAP_SETUID"];
    let config = json!({
        "ociVersion": "1.0.2",
        "hostname": "belljar",
        // Read-only where it is so already; what it would add is one more for writable places as well.
        "root": { "path": GUEST, "readonly": false },
        "process": {
            "terminal": powers.command.terminal,
            "user": { "uid": 0, "gid": 0 },
            "args": [usher::NAME],
            "env": none,
            "cwd": "/",
            "noNewPrivileges": true,
            // The usher's, who becomes somebody whom the payload can't signal; the payload has none.
            "capabilities": {
                "bounding": own, "effective": own, "permitted": own, "inheritable": none, "ambient": none,
            },
        },
        "mounts": mounts,
        "linux": { "namespaces": namespaces },
    });
    let mut text = format!("{config:#}").into_bytes();
    text.push(b'\n');
    text
}

/// With everything that is mounted below: read-only parts, and covers over what is hidden.
fn shared(path: &Path) -> Option<Value> {
    let path = path.to_str()?;
    Some(json!({ "destination": path, "type": "bind", "source": format!("{GUEST}{path}"), "options": ["rbind", "rw"] }))
}
