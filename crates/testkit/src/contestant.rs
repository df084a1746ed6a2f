//! Who is attacked: nobody (the control), belljar, and its peers where they are installed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// As whom a trial runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Root,
    Ordinary,
}

/// The ordinary user of the tests; made by `cargo xtask test`.
pub const TEST_USER: &str = "belljar-test";

impl Who {
    pub fn name(self) -> &'static str {
        match self {
            Who::Root => "root",
            Who::Ordinary => "user",
        }
    }

    pub fn user_id(self) -> u32 {
        match self {
            Who::Root => 0,
            Who::Ordinary => test_user_id().unwrap_or(65534),
        }
    }
}

fn test_user_id() -> Option<u32> {
    let records = std::fs::read_to_string("/etc/passwd").ok()?;
    records
        .lines()
        .find_map(|record| record.strip_prefix(TEST_USER)?.strip_prefix(':')?.split(':').nth(1)?.parse().ok())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestant {
    /// No sandbox at all: the control.
    Bare,
    Belljar,
    /// A command in a sandbox that was opened before.
    Live,
    /// A command in a sandbox that stood before it was asked for.
    Warm,
    /// The same with a kernel of its own.
    Gvisor,
    /// The same with a container engine, where `BELLJAR_ENGINE` says where it is and has an image for attackers.
    Container,
    Bubblewrap,
    Srt,
    Codex,
}

impl Contestant {
    pub const PEERS: &[Contestant] = &[Contestant::Bubblewrap, Contestant::Srt, Contestant::Codex];

    pub fn name(self) -> &'static str {
        match self {
            Contestant::Bare => "no sandbox",
            Contestant::Belljar => "belljar",
            Contestant::Live => "belljar open",
            Contestant::Warm => "belljar serve",
            Contestant::Gvisor => "belljar gvisor",
            Contestant::Container => "belljar container",
            Contestant::Bubblewrap => "bubblewrap",
            Contestant::Srt => "srt",
            Contestant::Codex => "codex",
        }
    }

    /// What it calls its own version, or `None` if it is not installed.
    pub fn version(self) -> Option<String> {
        let program = match self {
            Contestant::Bare => return Some(String::new()),
            Contestant::Belljar | Contestant::Live | Contestant::Warm => belljar(),
            Contestant::Gvisor => return runsc_version(),
            Contestant::Container => {
                std::env::var_os(crate::engine::VARIABLE)?;
                belljar()
            }
            Contestant::Bubblewrap => "bwrap".into(),
            Contestant::Srt => peer("srt"),
            Contestant::Codex => peer("codex"),
        };
        let output = Command::new(program).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then(|| text.split_whitespace().last().unwrap_or_default().to_owned())
    }

    /// The command that runs `program` with `workspace` writable and nothing else granted.
    pub fn command(self, workspace: &Path, flags: &[&str], result: &Path, program: &[OsString]) -> Command {
        let mut command = match self {
            Contestant::Bare => {
                let mut command = Command::new(&program[0]);
                command.args(&program[1..]);
                command.current_dir(workspace);
                return command;
            }
            Contestant::Belljar | Contestant::Gvisor => {
                let mut command = Command::new(belljar());
                command.arg("run");
                if self == Contestant::Gvisor {
                    command.args(["--backend", "gvisor"]);
                }
                command.args(["-q", "--write"]).arg(workspace).arg("--result-file").arg(result);
                command.args(flags).arg("--");
                command
            }
            Contestant::Live => {
                let mut command = Command::new("/bin/bash");
                command.args(["-c", include_str!("live.sh"), "bash"]).arg(belljar()).arg(workspace).arg(result);
                command.args(flags).arg("--");
                command
            }
            Contestant::Warm => {
                let mut command = Command::new("/usr/bin/python3");
                command.args(["-c", include_str!("warm.py")]).arg(belljar()).arg(workspace).arg(result);
                command.args(flags).arg("--");
                command
            }
            Contestant::Container => {
                let host = std::env::var_os(crate::engine::VARIABLE).unwrap_or_default();
                let mut setting = OsString::from("DOCKER_HOST=");
                setting.push(host);
                // What runs it clears the environment.
                let mut command = Command::new("/usr/bin/env");
                command.arg(setting).arg(belljar()).args(["run", "-q", "--image", crate::engine::ATTACKERS, "--write"]);
                command.arg(workspace).arg("--result-file").arg(result).args(flags).arg("--");
                command
            }
            // As its own documentation and its users do it: the whole root read-only, one folder writable.
            Contestant::Bubblewrap => {
                let mut command = Command::new("bwrap");
                command.args([
                    "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
                ]);
                command
                    .args(["--tmpfs", "/tmp", "--bind"])
                    .arg(workspace)
                    .arg(workspace)
                    .arg("--chdir")
                    .arg(workspace)
                    .arg("--");
                command
            }
            Contestant::Srt => {
                let mut command = Command::new(peer("srt"));
                command.arg("--settings").arg(workspace.with_file_name("srt.json")).arg("--");
                command
            }
            Contestant::Codex => {
                let mut command = Command::new(peer("codex"));
                command.args(["sandbox", "--permission-profile", ":workspace", "--"]);
                command
            }
        };
        command.args(program).current_dir(workspace);
        command
    }
}

/// Of gVisor, as its backend finds it; `None` where it can't be used.
pub fn runsc_version() -> Option<String> {
    let output = Command::new(belljar()).args(["doctor", "--json"]).output().ok()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let backends = report["backends"].as_array().or_else(|| report.as_array())?;
    let gvisor = backends.iter().find(|backend| backend["backend"] == "gvisor")?;
    let runsc = gvisor["features"].as_array()?.iter().find(|feature| feature["what"] == "runsc")?;
    if gvisor["usable"] != true || runsc["works"] != true {
        return None;
    }
    runsc["detail"].as_str()?.split(',').next().map(str::to_owned)
}

/// The binary under test: `BELLJAR`, or the release build.
pub fn belljar() -> PathBuf {
    std::env::var_os("BELLJAR").map_or_else(|| built("belljar"), PathBuf::from)
}

/// A binary of this workspace, beside the running one.
pub fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let mut folder = own.parent().unwrap_or(Path::new("."));
    if folder.ends_with("deps") {
        folder = folder.parent().unwrap_or(folder);
    }
    folder.join(name)
}

/// Where `cargo xtask needs` puts peers, and what else tests need that is not of the system.
pub fn peers_folder() -> PathBuf {
    std::env::var_os("BELLJAR_PEERS").map_or_else(|| PathBuf::from("/opt/belljar-peers"), PathBuf::from)
}

/// A peer from npm.
pub fn peer(name: &str) -> PathBuf {
    peers_folder().join("node_modules/.bin").join(name)
}
