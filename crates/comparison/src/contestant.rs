//! Ways to run a command: a backend of ours, nothing at all, or somebody else's sandbox where it is installed.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use model::{BenchmarkWish, Candidate, GroundKind};

use crate::Field;

pub const BARE: &str = "no sandbox";

pub struct Contestant {
    pub name: String,
    pub peer: bool,
    pub ground: GroundKind,
    pub unusable: Option<String>,
    /// What comes before the command.
    before: Vec<OsString>,
}

impl Contestant {
    pub fn of(candidate: &Candidate, wish: &BenchmarkWish) -> Contestant {
        let mut before: Vec<OsString> = ["run", "-q", "--backend", &candidate.name].map(OsString::from).into();
        if let (GroundKind::Image, Some(image)) = (candidate.ground, &wish.image) {
            before.extend(["--image".into(), image.into()]);
        }
        before.push("--".into());
        Contestant {
            name: candidate.name.clone(),
            peer: false,
            ground: candidate.ground,
            unusable: candidate.unusable.clone(),
            before,
        }
    }

    /// Ready to be started: in a workspace and with state that are nobody else's.
    pub fn command(&self, field: &Field, words: &[OsString]) -> std::io::Result<Command> {
        let mut all = self.before.iter().chain(words);
        let mut command = match self.peer {
            true => Command::new(all.next().cloned().unwrap_or_default()),
            false => Command::new(&field.belljar),
        };
        command.args(all).current_dir(field.workspace()?);
        command.env("XDG_STATE_HOME", field.folder.join("state")).env("XDG_CACHE_HOME", field.folder.join("cache"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    }
}

/// Those that can be had without asking for anything: nothing at all, and sandboxes in the search path.
/// `image`: for containers; belljar's own, if none was named.
pub fn peers(language: bool, image: Option<&str>) -> Vec<Contestant> {
    let peer = |name: &str, before: &[&str]| Contestant {
        name: name.to_owned(),
        peer: true,
        ground: GroundKind::Host,
        unusable: None,
        before: before.iter().map(OsString::from).collect(),
    };
    let mut found = vec![peer(BARE, &[])];
    if installed("bwrap") {
        let words = [
            "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
            "--tmpfs", "/tmp", "--bind", ".", "/mnt", "--chdir", "/mnt", "--",
        ];
        found.push(peer("bwrap", &words));
    }
    if installed("runsc") && !language {
        found.push(peer("runsc do", &["runsc", "--rootless", "--network=none", "--ignore-cgroups", "do"]));
    }
    let image = image.map(str::to_owned).or_else(own_image).filter(|_| !language);
    if let Some(image) = image {
        let words = ["docker", "run", "--rm", "--init", "--interactive", "--network", "none", &image];
        found.push(Contestant { ground: GroundKind::Image, ..peer("docker run", &words) });
    }
    found
}

/// Belljar's own image, where Docker has it: who looked whether containers can be used has made it.
fn own_image() -> Option<String> {
    let mut command = Command::new("docker");
    command.args(["images", "--format", "{{.Repository}}:{{.Tag}}", "belljar/busybox"]);
    let said = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    said.lines().next().filter(|name| !name.is_empty()).map(str::to_owned)
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}
