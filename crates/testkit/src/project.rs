//! Somebody's project with belljar's state beside it, and belljar called in it as its owner; removed afterwards.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::contestant::{TEST_USER, Who, belljar};
use crate::deeds::{self, Deed};
use crate::home;
use crate::tree::{self, Tree};

pub struct Project {
    pub work: PathBuf,
    /// `XDG_STATE_HOME`.
    pub state: PathBuf,
    pub who: Who,
    root: PathBuf,
    /// The list of users that belljar sees, if it is another than the machine's.
    users: Option<PathBuf>,
}

/// What a command said and how it ended.
pub struct Said {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub error: String,
}

impl Project {
    /// Not in /tmp, which a sandbox replaces.
    pub fn new(who: Who) -> io::Result<Project> {
        let root = fresh(Path::new("/var/tmp"));
        Project::over(&root, &root.join("work"), &root.join("state"), who)
    }

    /// The same in places that are there already.
    pub fn within(work: &Path, state: &Path, who: Who) -> io::Result<Project> {
        let root = fresh(work);
        Project::over(&root, &root.join("work"), &fresh(state), who)
    }

    fn over(root: &Path, work: &Path, state: &Path, who: Who) -> io::Result<Project> {
        let project =
            Project { work: work.to_owned(), state: state.to_owned(), who, root: root.to_owned(), users: None };
        for folder in [root, work, state] {
            fs::create_dir_all(folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
            project.give(folder)?;
        }
        Ok(project)
    }

    /// Hands something over to whom the project belongs.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        match self.other_user() {
            Some(id) => lchown(path, Some(id), Some(id)),
            None => Ok(()),
        }
    }

    fn other_user(&self) -> Option<u32> {
        (self.who == Who::Ordinary && rustix::process::geteuid().is_root()).then(|| self.who.user_id())
    }

    /// A file of the project, with the folders around it.
    pub fn put(&self, name: impl AsRef<OsStr>, contents: impl AsRef<[u8]>) -> io::Result<()> {
        let path = self.work.join(Path::new(name.as_ref()));
        for folder in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            if !folder.exists() {
                fs::create_dir(folder)?;
                self.give(folder)?;
            }
        }
        fs::write(&path, contents)?;
        self.give(&path)
    }

    /// Until everything that was written before is older than whatever begins now: the kernel's clock for files has a
    /// coarse hand.
    pub fn let_it_age(&self) {
        let time = |clock| {
            let time = rustix::time::clock_gettime(clock);
            (time.tv_sec, time.tv_nsec)
        };
        // The finest hand first: newer kernels use it where the coarse one would not tell two changes apart.
        let written = time(rustix::time::ClockId::Realtime);
        while time(rustix::time::ClockId::RealtimeCoarse) <= written {
            std::thread::yield_now();
        }
    }

    /// belljar with these words, as the owner, in the project.
    pub fn command<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Command {
        let mut command = match (&self.users, self.other_user()) {
            (Some(list), _) => home::command(list, self.user(), &belljar()),
            (None, other) => {
                let mut command = Command::new(belljar());
                other.map(|id| command.uid(id).gid(id));
                command
            }
        };
        command.args(words).current_dir(&self.work).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("XDG_STATE_HOME", &self.state).env("HOME", &self.root).stdin(Stdio::null());
        if self.other_user().is_some() {
            command.env("USER", TEST_USER);
        }
        command
    }

    /// From now on the list of users has the folder around the project as its owner's home.
    pub fn at_home(mut self) -> io::Result<Project> {
        self.users = Some(home::furnish(&self.root, self.user())?);
        Ok(self)
    }

    fn user(&self) -> u32 {
        self.other_user().unwrap_or_else(home::our_user)
    }

    pub fn belljar<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> io::Result<Said> {
        self.command(words).output().map(Said::of)
    }

    /// The same, where it must succeed.
    pub fn done<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Result<Said, String> {
        let mut command = self.command(words);
        let said = command.output().map(Said::of).map_err(|error| error.to_string())?;
        match said.code {
            Some(0) => Ok(said),
            _ => {
                let words: Vec<_> = command.get_args().take(4).collect();
                Err(format!("{words:?}: {said:?}"))
            }
        }
    }

    /// A new run that does these deeds; what it saw in the end.
    pub fn run(&self, deeds: &[Deed]) -> Result<Tree, String> {
        let words = ["run", "-q", "--"].map(str::to_owned).into_iter().chain(deeds::command(deeds, false));
        tree::told(&self.done(words)?.out)
    }

    /// The same in a sandbox that is kept.
    pub fn exec(&self, which: &str, deeds: &[Deed]) -> Result<Tree, String> {
        tree::told(&self.done(exec_words(which, deeds, false))?.out)
    }

    /// What is said as JSON.
    pub fn json<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Result<serde_json::Value, String> {
        let said = self.done(words)?;
        serde_json::from_slice(&said.out).map_err(|error| format!("{error}: {said:?}"))
    }

    /// The sandboxes of this project, as a list. `ps` also tells of runs without layers, from the record, which is one for all
    /// that its user runs: others may be at it.
    pub fn kept(&self) -> Result<serde_json::Value, String> {
        let mut list = self.json(["ps", "--json"])?;
        if let Some(list) = list.as_array_mut() {
            list.retain(|one| one["workspaces"].as_array().is_some_and(|places| !places.is_empty()));
        }
        Ok(list)
    }

    /// A sandbox to be used again, by its id.
    pub fn create(&self) -> Result<String, String> {
        let made = self.json(["create", "--json"])?;
        made["id"].as_str().map(str::to_owned).ok_or_else(|| format!("no id in {made}"))
    }

    pub fn tree(&self) -> Result<Tree, String> {
        tree::of(&self.work).map_err(|error| format!("cannot list the project: {error}"))
    }

    /// Something that belljar left: sandboxes, layers, or files of its own in the project.
    pub fn leavings(&self) -> Result<Vec<String>, String> {
        let list = self.kept()?;
        let mut left: Vec<String> = list.as_array().into_iter().flatten().map(|one| format!("sandbox {one}")).collect();
        let layers = fs::read_dir(self.state.join("belljar/layers")).into_iter().flatten().flatten();
        left.extend(layers.map(|layer| format!("layer {}", layer.path().display())));
        let ours = self.tree()?.into_keys().filter(|name| name.0.windows(8).any(|part| part == b".belljar"));
        left.extend(ours.map(|name| format!("file {name:?}")));
        Ok(left)
    }
}

pub fn exec_words(which: &str, deeds: &[Deed], wait: bool) -> Vec<String> {
    let words = ["exec", "-q", which, "--"].map(str::to_owned);
    words.into_iter().chain(deeds::command(deeds, wait)).collect()
}

fn fresh(around: &Path) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // One that was killed long ago had the same number, and may have left something.
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = around.join(format!("belljar-project-{}-{number}", std::process::id()));
        if path.symlink_metadata().is_err() {
            return path;
        }
    }
}

impl std::fmt::Debug for Said {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let out = String::from_utf8_lossy(&self.out);
        write!(to, "code {:?}, saying\n{out}\nand of errors\n{}", self.code, self.error)
    }
}

impl Said {
    pub fn of(output: Output) -> Said {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Said { code: output.status.code(), out: output.stdout, error }
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        for folder in [&self.root, &self.state] {
            let remove = || match fs::remove_dir_all(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
            // Some folders are closed to their owner.
            let open = || Command::new("chmod").args(["-R", "u+rwX"]).arg(folder).status();
            if let Err(error) = remove().or_else(|_| open().and_then(|_| remove())) {
                eprintln!("left behind: {}: {error}", folder.display());
            }
        }
    }
}
