//! What is measured: each way to run a command, and how fast we want to be compared with it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::contestant::{TEST_USER, belljar, peer, peers_folder};
use testkit::{Contestant, Who};

use super::field::Field;
use crate::place;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    Bare,
    /// Over files that may only be read, as the others are measured.
    Belljar,
    /// As it comes: what is changed in the current folder is kept apart.
    BelljarLayered,
    Bubblewrap,
    Zerobox,
    Codex,
    /// Without the node program that npm's package starts it with.
    CodexAlone,
    Srt,
}

impl Runner {
    pub const ALL: &[Runner] = &[
        Runner::Bare,
        Runner::Belljar,
        Runner::BelljarLayered,
        Runner::Bubblewrap,
        Runner::Zerobox,
        Runner::Codex,
        Runner::CodexAlone,
        Runner::Srt,
    ];

    /// Takes a tenth of a second and more: fewer samples.
    pub fn is_slow(self) -> bool {
        matches!(self, Runner::Zerobox | Runner::Codex | Runner::CodexAlone | Runner::Srt)
    }

    /// With its version; `None` if it is not installed.
    pub fn title(self) -> Option<String> {
        let of = |contestant: Contestant| contestant.version();
        match self {
            Runner::Bare => Some("no sandbox".to_owned()),
            Runner::Belljar => Some("belljar".to_owned()),
            Runner::BelljarLayered => Some("belljar, changes kept apart".to_owned()),
            Runner::Bubblewrap => of(Contestant::Bubblewrap).map(|version| format!("bwrap {version}")),
            Runner::Codex => of(Contestant::Codex).map(|version| format!("codex sandbox {version}")),
            Runner::CodexAlone => place::runs(&codex_alone()).then(|| "the same without its node launcher".to_owned()),
            Runner::Srt => of(Contestant::Srt).map(|version| format!("srt {version}")),
            Runner::Zerobox => place::said(Command::new(zerobox()).arg("--version")),
        }
    }

    /// Runs `program`; nothing but that, as little as each can.
    pub fn command(self, field: &Field, program: &[&str]) -> Command {
        let mut command = match self {
            Runner::Bare => {
                let mut command = Command::new(program[0]);
                command.args(&program[1..]);
                return command;
            }
            Runner::Belljar => with(belljar(), &["run", "-q", "--workspace-mode", "readonly", "--"]),
            Runner::BelljarLayered => with(belljar(), &["run", "-q", "--"]),
            Runner::Bubblewrap => with(
                "bwrap".into(),
                &["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--die-with-parent"],
            ),
            Runner::Zerobox => with(zerobox(), &["--"]),
            Runner::Codex => with(peer("codex"), &["sandbox", "--"]),
            Runner::CodexAlone => with(codex_alone(), &["sandbox", "--"]),
            Runner::Srt => {
                let mut command = with(peer("srt"), &["--settings"]);
                command.arg(field.srt_settings()).arg("--");
                command
            }
        };
        command.args(program);
        command
    }
}

/// As one user, silent, with a small environment: nothing of the bench's own gets in.
pub fn quiet<'a>(command: &'a mut Command, field: &Field, who: Who, folder: &Path) -> &'a mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir(folder);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", field.home(who));
    if who == Who::Ordinary {
        command.uid(who.user_id()).gid(who.user_id()).env("USER", TEST_USER);
    }
    command
}

/// From before the fork to after the wait.
pub fn time(command: &mut Command) -> Result<Duration, String> {
    let started = Instant::now();
    let status = command.status();
    let took = started.elapsed();
    match status {
        Ok(status) if status.success() => Ok(took),
        Ok(status) => Err(format!("`{}` failed with {status}", crate::steps::words(command))),
        Err(error) => Err(format!("cannot run `{}`: {error}", crate::steps::words(command))),
    }
}

fn with(program: PathBuf, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

fn zerobox() -> PathBuf {
    peers_folder().join("zerobox/bin/zerobox")
}

fn codex_alone() -> PathBuf {
    let kind = if cfg!(target_arch = "aarch64") { ("arm64", "aarch64") } else { ("x64", "x86_64") };
    let package = format!("node_modules/@openai/codex-linux-{}/vendor/{}-unknown-linux-musl", kind.0, kind.1);
    peers_folder().join(package).join("bin/codex")
}
