//! Engines of the ordinary user's own: Podman or Docker without root, with data and sockets of their own, gone afterwards. The tests'
//! root only makes the surroundings: mounts and a network of their own.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::contestant::{TEST_USER, Who};

const PATIENCE: Duration = Duration::from_secs(60);
const PROGRAMS: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// Where Debian has it, and where others do.
const DOCKERD: [&str; 2] = ["/usr/share/docker.io/contrib/dockerd-rootless.sh", "/usr/bin/dockerd-rootless.sh"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Podman,
    Docker,
}

pub struct Rootless {
    kind: Kind,
    folder: PathBuf,
    process: Child,
}

/// Why there can be none here.
pub fn missing(kind: Kind) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("the tests' root makes mounts for it".to_owned());
    }
    not_installed(kind).or_else(|| no_numbers().then(|| format!("{TEST_USER} has no range of numbers in /etc/subuid")))
}

/// Which of its programs is not installed.
pub fn not_installed(kind: Kind) -> Option<String> {
    let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/libexec/podman"];
    let there = |name: &str| folders.iter().any(|folder| Path::new(folder).join(name).exists());
    let (programs, packages): (&[&str], &str) = match kind {
        Kind::Podman => {
            (&["podman", "crun", "conmon", "catatonit", "newuidmap", "busybox"], "podman, crun, catatonit, uidmap")
        }
        Kind::Docker => (
            &["dockerd", "rootlesskit", "slirp4netns", "newuidmap", "busybox", "ip"],
            "docker.io, rootlesskit, slirp4netns, uidmap",
        ),
    };
    let script = kind == Kind::Podman || DOCKERD.iter().any(|path| Path::new(path).exists());
    let missing = programs.iter().find(|name| !there(name)).copied();
    let missing = missing.or_else(|| (!script).then_some("dockerd-rootless.sh"))?;
    Some(format!("`{missing}` is not installed (Debian: {packages}, busybox-static)"))
}

/// Whether numbers for the users of its containers are still to be given to the ordinary user.
pub fn no_numbers() -> bool {
    let has = |file: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines().any(|line| line.strip_prefix(TEST_USER).is_some_and(|rest| rest.starts_with(':')))
    };
    !(has("/etc/subuid") && has("/etc/subgid"))
}

impl Rootless {
    /// Starts it and waits until it answers.
    pub fn start(kind: Kind) -> Result<Rootless, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Short: a socket's path has no more than a hundred letters.
        let folder = PathBuf::from(format!("/var/tmp/belljar-own-{}-{number}", std::process::id()));
        let process = begin(kind, &folder).map_err(|error| format!("cannot start {kind:?}: {error}"))?;
        let mut engine = Rootless { kind, folder, process };
        engine.wait_until_it_answers()?;
        Ok(engine)
    }

    fn wait_until_it_answers(&mut self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while std::os::unix::net::UnixStream::connect(self.socket()).is_err() {
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(format!("{:?} ended ({status}): {}", self.kind, log()));
            }
            if Instant::now() > until {
                return Err(format!("{:?} does not answer: {}", self.kind, log()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// What `XDG_RUNTIME_DIR` is set to.
    pub fn runtime(&self) -> PathBuf {
        self.folder.join("run")
    }

    pub fn socket(&self) -> PathBuf {
        socket(self.kind, &self.folder)
    }

    /// What `DOCKER_HOST` or `CONTAINER_HOST` is set to.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Containers and volumes of belljar's that are there.
    pub fn leavings(&self) -> Result<Vec<String>, String> {
        let list = |words: [&str; 5]| {
            let mut client = match self.kind {
                Kind::Podman => {
                    let mut client = as_the_user("podman", &self.folder);
                    client.args(places(&self.folder));
                    client
                }
                Kind::Docker => {
                    let mut client = as_the_user("docker", &self.folder);
                    client.args(["--host", &self.host()]);
                    client
                }
            };
            let said = client.args(words).output().map_err(|error| error.to_string())?;
            match said.status.success() {
                true => Ok(String::from_utf8_lossy(&said.stdout).lines().map(str::to_owned).collect::<Vec<_>>()),
                false => Err(String::from_utf8_lossy(&said.stderr).into_owned()),
            }
        };
        let mut left = list(["ps", "--all", "--quiet", "--filter", "label=belljar.sandbox"])?;
        left.extend(list(["volume", "ls", "--quiet", "--filter", "label=belljar.sandbox"])?);
        Ok(left)
    }

    /// The same after a while: removals go on after whoever asked for them is gone.
    pub fn leavings_in_the_end(&self) -> Result<Vec<String>, String> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let left = self.leavings()?;
            if left.is_empty() || Instant::now() > until {
                return Ok(left);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn socket(kind: Kind, folder: &Path) -> PathBuf {
    folder.join("run").join(match kind {
        Kind::Podman => "podman/podman.sock",
        Kind::Docker => "docker.sock",
    })
}

fn begin(kind: Kind, folder: &Path) -> io::Result<Child> {
    let user = Who::Ordinary.user_id();
    for path in [folder.to_owned(), folder.join("run"), folder.join("run/podman"), folder.join("home")] {
        fs::create_dir_all(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        chown(&path, Some(user), Some(user))?;
    }
    let log = fs::File::create(folder.join("log"))?;
    let shown = folder.display();
    let engine = match kind {
        Kind::Podman => {
            let places = places(folder).join(" ");
            format!("podman {places} system service --time 0 unix://{}", socket(kind, folder).display())
        }
        Kind::Docker => {
            let script = DOCKERD.iter().find(|path| Path::new(path).exists()).unwrap_or(&DOCKERD[0]);
            format!(
                "sh {script} --data-root {shown}/data --exec-root {shown}/run/exec --pidfile {shown}/run/pid \
                 --host unix://{} --storage-driver overlay2 --bridge none --iptables=false --ip6tables=false",
                socket(kind, folder).display()
            )
        }
    };
    // The empty unified mount would be taken for a whole one; and on most hosts everybody may use the device for networks.
    let script = format!(
        "umount /sys/fs/cgroup/unified 2>/dev/null; ip link set lo up 2>/dev/null; \
         mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200; \
         exec setpriv --reuid {user} --regid {user} --clear-groups {engine}"
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--", "sh", "-c", &script]);
    surroundings(&mut command, folder);
    command.stdout(log.try_clone()?).stderr(log).spawn()
}

fn places(folder: &Path) -> Vec<String> {
    let at = |flag: &str, name: &str| [flag.to_owned(), folder.join(name).display().to_string()];
    let mut words = [at("--root", "data"), at("--runroot", "run/own"), at("--tmpdir", "run/tmp")].concat();
    words.extend(
        ["--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--runtime", "crun"].map(str::to_owned),
    );
    words
}

fn as_the_user(program: &str, folder: &Path) -> Command {
    let user = Who::Ordinary.user_id();
    let mut command = Command::new(program);
    command.uid(user).gid(user);
    surroundings(&mut command, folder);
    command
}

fn surroundings(command: &mut Command, folder: &Path) {
    command.current_dir("/").env_clear().env("PATH", PROGRAMS).env("USER", TEST_USER);
    command.env("HOME", folder.join("home")).env("XDG_RUNTIME_DIR", folder.join("run")).stdin(Stdio::null());
}

impl Rootless {
    /// All that it started, which is known by our folder: in its words or in its variables.
    fn of_ours(&self) -> Vec<i32> {
        let folder = self.folder.to_string_lossy().into_owned().into_bytes();
        let names_it = |file: PathBuf| {
            fs::read(file).is_ok_and(|bytes| bytes.windows(folder.len()).any(|part| part == folder.as_slice()))
        };
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = all.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<i32>().ok()?, entry.path())));
        let ours = all.filter(|(_, path)| names_it(path.join("cmdline")) || names_it(path.join("environ")));
        let own = std::process::id().cast_signed();
        ours.map(|(pid, _)| pid).filter(|pid| *pid != own).collect()
    }
}

impl Drop for Rootless {
    fn drop(&mut self) {
        let signal = |pid: i32, signal: i32| {
            // SAFETY: takes integers. A process that our engine started and that names its folder.
            unsafe { libc::kill(pid, signal) };
        };
        signal(self.process.id().cast_signed(), libc::SIGTERM);
        let until = Instant::now() + Duration::from_secs(10);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        while !self.of_ours().is_empty() && Instant::now() < until {
            self.of_ours().into_iter().for_each(|pid| signal(pid, libc::SIGKILL));
            std::thread::sleep(Duration::from_millis(50));
        }
        match self.process.wait() {
            Ok(_) | Err(_) => {}
        }
        while fs::remove_dir_all(&self.folder).is_err() && self.folder.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
        }
        if self.folder.exists() {
            eprintln!("left behind: {}", self.folder.display());
        }
    }
}
