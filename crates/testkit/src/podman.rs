//! Podman of the tests' own, as a service at a socket: with data of its own, gone afterwards. Of root, in a network and mounts of its
//! own.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

pub struct Podman {
    folder: PathBuf,
    process: Child,
}

/// Why there can be none here.
pub fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("an engine of the tests' own needs root".to_owned());
    }
    let folders = ["/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/libexec/podman"];
    let there = |name: &str| folders.iter().any(|folder| Path::new(folder).join(name).exists());
    let missing = ["podman", "crun", "conmon", "catatonit", "busybox"].into_iter().find(|name| !there(name))?;
    Some(format!("`{missing}` is not installed (Debian: podman, crun, catatonit, busybox-static)"))
}

impl Podman {
    /// Starts it and waits until it answers. Ordinary users of the tests may use it.
    pub fn start() -> Result<Podman, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Short: a socket's path has no more than a hundred letters.
        let folder = PathBuf::from(format!("/var/tmp/belljar-podman-{}-{number}", std::process::id()));
        let text = |error: io::Error| format!("cannot start podman: {error}");
        fs::create_dir_all(&folder).map_err(text)?;
        let log = fs::File::create(folder.join("log")).map_err(text)?;
        let shown = folder.display();
        // The empty unified mount would be taken for a whole one.
        let script = format!(
            "umount /sys/fs/cgroup/unified 2>/dev/null; ip link set lo up 2>/dev/null; \
             exec podman {} system service --time 0 unix://{shown}/podman.sock",
            places(&folder).join(" ")
        );
        let process = Command::new("unshare")
            .args(["--net", "--mount", "--", "sh", "-c", &script])
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env_remove("CONTAINER_HOST")
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(text)?)
            .stderr(log)
            .spawn()
            .map_err(text)?;
        let mut podman = Podman { folder, process };
        podman.wait_until_it_answers()?;
        fs::set_permissions(podman.socket(), fs::Permissions::from_mode(0o666)).map_err(text)?;
        Ok(podman)
    }

    fn wait_until_it_answers(&mut self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while std::os::unix::net::UnixStream::connect(self.socket()).is_err() {
            if let Ok(Some(status)) = self.process.try_wait() {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(format!("podman ended ({status}): {log}"));
            }
            if Instant::now() > until {
                return Err("podman does not answer".to_owned());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("podman.sock")
    }

    /// What `CONTAINER_HOST` is set to.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Its own client, beside the service.
    pub fn podman<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> io::Result<Output> {
        Command::new("podman")
            .args(places(&self.folder))
            .args(words)
            .env_remove("CONTAINER_HOST")
            .stdin(Stdio::null())
            .output()
    }

    /// Containers and volumes of belljar's that are there, after a while: removals go on after whoever asked for them is gone.
    pub fn leavings_in_the_end(&self) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let mut left = Vec::new();
            for words in [
                ["ps", "--all", "--quiet", "--filter", "label=belljar.sandbox"],
                ["volume", "ls", "--quiet", "--filter", "label=belljar.sandbox"],
            ] {
                let said = self.podman(words).map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
                left.extend(said.unwrap_or_default().lines().map(str::to_owned));
            }
            if left.is_empty() || Instant::now() > until {
                return left;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn places(folder: &Path) -> Vec<String> {
    let at = |flag: &str, name: &str| [flag.to_owned(), folder.join(name).display().to_string()];
    let mut words = [at("--root", "root"), at("--runroot", "run"), at("--tmpdir", "tmp")].concat();
    words.extend(["--cgroup-manager", "cgroupfs", "--runtime", "crun"].map(str::to_owned));
    words
}

impl Drop for Podman {
    fn drop(&mut self) {
        drop(self.podman(["rm", "--all", "--force", "--time", "0"]));
        drop(self.process.kill());
        drop(self.process.wait());
        let until = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir_all(&self.folder).is_err() && self.folder.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
        }
        if self.folder.exists() {
            eprintln!("left behind: {}", self.folder.display());
        }
    }
}
