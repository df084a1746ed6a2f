//! A container engine of the tests' own: dockerd in a network and mounts of its own, with data of its own, gone afterwards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::contestant::TEST_USER;

/// It takes two seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Names the engine that attacks are tried with.
pub const VARIABLE: &str = "BELLJAR_ENGINE";
/// An image with what attackers need.
pub const ATTACKERS: &str = "belljar/attackers";

pub struct Engine {
    folder: PathBuf,
    process: Child,
}

/// Why there can be none here.
pub fn missing() -> Option<String> {
    match rustix::process::geteuid().is_root() {
        true => installed(),
        false => Some("an engine of the tests' own needs root".to_owned()),
    }
}

/// Which of its programs is not installed.
pub fn installed() -> Option<String> {
    let folders = ["/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let there = |name: &str| folders.iter().any(|folder| Path::new(folder).join(name).exists());
    let missing =
        ["dockerd", "containerd", "runc", "docker", "busybox", "unshare"].into_iter().find(|name| !there(name))?;
    Some(format!("`{missing}` is not installed (Debian: docker.io, busybox-static)"))
}

impl Engine {
    /// Starts one and waits until it answers. Ordinary users of the tests may use it.
    pub fn start() -> Result<Engine, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Short: a socket's path has no more than a hundred letters.
        let folder = PathBuf::from(format!("/var/tmp/belljar-engine-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let process = begin(&folder).map_err(|error| format!("cannot start dockerd: {error}"))?;
        let mut engine = Engine { folder, process };
        engine.wait_until_it_answers()?;
        Ok(engine)
    }

    fn wait_until_it_answers(&mut self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(format!("dockerd ended ({status}): {}", self.log()));
            }
            if self.docker(["version", "--format", "{{.Server.Version}}"]).is_ok_and(|said| said.status.success()) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("dockerd does not answer: {}", self.log()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn log(&self) -> String {
        let text = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("docker.sock")
    }

    /// What `DOCKER_HOST` is set to.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// The engine's own client.
    pub fn docker<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> io::Result<Output> {
        Command::new("docker").arg("--host").arg(self.host()).args(words).stdin(Stdio::null()).output()
    }

    /// Containers and volumes of belljar's that are there.
    pub fn leavings(&self) -> Vec<String> {
        let list = |words: [&str; 5]| {
            let said = self.docker(words).map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
            said.unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let mut left = list(["ps", "--all", "--quiet", "--filter", "label=belljar.sandbox"]);
        left.extend(list(["volume", "ls", "--quiet", "--filter", "label=belljar.sandbox"]));
        left
    }

    /// The same after a while: removals go on after whoever asked for them is gone.
    pub fn leavings_in_the_end(&self) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let left = self.leavings();
            if left.is_empty() || Instant::now() > until {
                return left;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Makes the image that attackers run in: the host's busybox, and the libraries that the attacker's program needs.
    pub fn make_attackers(&self, attacker: &Path) -> Result<(), String> {
        let root = self.folder.join("attackers");
        let make = || -> io::Result<()> {
            for folder in ["bin", "usr/bin", "etc", "tmp", "srv", "root", "home", "var/tmp", "run"] {
                fs::create_dir_all(root.join(folder))?;
            }
            fs::copy("/bin/busybox", root.join("bin/busybox"))?;
            let applets = Command::new("/bin/busybox").arg("--list").output()?;
            for applet in String::from_utf8_lossy(&applets.stdout).lines().filter(|name| *name != "busybox") {
                std::os::unix::fs::symlink("busybox", root.join("bin").join(applet))?;
            }
            std::os::unix::fs::symlink("/bin/env", root.join("usr/bin/env"))?;
            fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n")?;
            let libraries = Command::new("ldd").arg(attacker).output()?;
            for word in
                String::from_utf8_lossy(&libraries.stdout).split_whitespace().filter(|word| word.starts_with('/'))
            {
                let to = root.join(word.trim_start_matches('/'));
                fs::create_dir_all(to.parent().unwrap_or(&root))?;
                fs::copy(word, to)?;
            }
            Ok(())
        };
        make().map_err(|error| format!("cannot make a root for attackers: {error}"))?;
        let mut command = Command::new(crate::contestant::belljar());
        command.args(["image", "import"]).arg(&root).args(["--name", ATTACKERS]).env("DOCKER_HOST", self.host());
        let said = command.output().map_err(|error| error.to_string())?;
        match said.status.success() {
            true => Ok(()),
            false => Err(format!("cannot import it: {}", String::from_utf8_lossy(&said.stderr))),
        }
    }

    /// Ends the engine without a word, and leaves what it ran.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }

    /// A new one over the same data.
    pub fn start_again(&mut self) -> Result<(), String> {
        // Its other half, which has outlived it, holds what the new one needs.
        for pid in self.of_ours() {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if words.starts_with(b"containerd\0") {
                // SAFETY: takes integers; started by our engine, with our folder in its words.
                unsafe { libc::kill(pid as i32, libc::SIGKILL) };
            }
        }
        // One that is not waited for yet would be taken for one that lives.
        let number = self.folder.join("exec/containerd/containerd.pid");
        if number.exists() {
            fs::remove_file(number).map_err(|error| error.to_string())?;
        }
        self.process = begin(&self.folder).map_err(|error| format!("cannot start dockerd: {error}"))?;
        self.wait_until_it_answers()
    }
}

fn begin(folder: &Path) -> io::Result<Child> {
    let log = fs::File::create(folder.join("log"))?;
    // Its sentry has no network of its own: what there is would be the engine's, and a closed one has none.
    let runsc = serde_json::json!({"path": "/usr/bin/runsc", "runtimeArgs": ["--network=none", "--platform=systrap", "--ignore-cgroups"]});
    let runtimes =
        if Path::new("/usr/bin/runsc").exists() { serde_json::json!({"runsc": runsc}) } else { serde_json::json!({}) };
    fs::write(folder.join("daemon.json"), serde_json::json!({"runtimes": runtimes}).to_string())?;
    let shown = folder.display();
    // The empty unified mount would be taken for a whole one.
    let script = format!(
        "umount /sys/fs/cgroup/unified 2>/dev/null; ip link set lo up 2>/dev/null; \
         exec dockerd --config-file {shown}/daemon.json --data-root {shown}/data --exec-root {shown}/exec --pidfile {shown}/pid --host unix://{shown}/docker.sock \
         --group {TEST_USER} --storage-driver overlay2 --bridge none --iptables=false --ip6tables=false"
    );
    let pid = folder.join("pid");
    if pid.exists() {
        fs::remove_file(pid)?;
    }
    Command::new("unshare")
        .args(["--net", "--mount", "--", "sh", "-c", &script])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
}

impl Drop for Engine {
    fn drop(&mut self) {
        // What it started ends with a word to it; what a killed one left is ended by its own number.
        let signal = |pid: u32, signal: i32| {
            // SAFETY: takes integers. Our own child, or a process that our engine started and that names its folder.
            unsafe { libc::kill(pid as i32, signal) };
        };
        signal(self.process.id(), libc::SIGTERM);
        let until = Instant::now() + Duration::from_secs(20);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        signal(self.process.id(), libc::SIGKILL);
        match self.process.wait() {
            Ok(_) | Err(_) => {}
        }
        for pid in self.of_ours() {
            signal(pid, libc::SIGKILL);
        }
        let remove = || fs::remove_dir_all(&self.folder);
        let until = Instant::now() + Duration::from_secs(10);
        while remove().is_err() && self.folder.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
        }
        if self.folder.exists() {
            eprintln!("left behind: {}", self.folder.display());
        }
    }
}

impl Engine {
    /// containerd and what holds containers, whose words name our folder.
    fn of_ours(&self) -> Vec<u32> {
        let folder = self.folder.to_string_lossy().into_owned();
        let ours = |pid: &u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).into_owned();
            words.contains(&folder) && (words.contains("containerd") || words.contains("dockerd"))
        };
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        all.filter(ours).collect()
    }
}
