//! All processes of a group stand still, until they are told to go on.
//!
//! The unified hierarchy can do that with any group. The older one has a hierarchy of its own for it, in which a group is made
//! when it is first needed: nobody else pays for it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sys::keeper::{self, Keeper};
use sys::process::Alone;

use super::{name_of, naming, own_group, write};

/// How long it may take until all stand still.
const PATIENCE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(2);

pub enum Freezer {
    Unified(PathBuf),
    /// Where its members are listed, and the group that holds them.
    Older {
        members: PathBuf,
        folder: PathBuf,
        keeper: Keeper,
    },
}

impl Freezer {
    /// For the group in this folder.
    pub fn of(folder: &Path, unified: bool) -> io::Result<Freezer> {
        if unified {
            return match folder.join("cgroup.freeze").exists() {
                true => Ok(Freezer::Unified(folder.to_owned())),
                false => Err(io::Error::other("this kernel's control groups can't stand still")),
            };
        }
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let own = own_group(&own, "freezer").ok_or_else(|| io::Error::other("there is no control group `freezer`"))?;
        let parent = Path::new("/sys/fs/cgroup/freezer").join(own.trim_start_matches('/'));
        let place = parent.join(folder.file_name().unwrap_or_default());
        // Known to somebody else before it exists.
        let keeper = Keeper::start(&[name_of(&place)?], None, Alone::prove()?)?;
        match std::fs::create_dir(&place) {
            Ok(()) => Ok(Freezer::Older { members: folder.to_owned(), folder: place, keeper }),
            Err(error) => {
                keeper.dismiss()?;
                Err(naming("make", &place, error))
            }
        }
    }

    pub fn freeze(&self) -> io::Result<()> {
        let frozen = match self {
            Freezer::Unified(folder) => {
                write(folder, "cgroup.freeze", "1")?;
                until(|| {
                    let events = std::fs::read_to_string(folder.join("cgroup.events"))?;
                    Ok(super::entry(&events, "frozen") == Some(1))
                })
            }
            Freezer::Older { members, folder, .. } => until(|| {
                // Whoever was not in it could have made others: those come in the next round.
                let new = take_in(members, folder)?;
                write(folder, "freezer.state", "FROZEN")?;
                let state = std::fs::read_to_string(folder.join("freezer.state"))?;
                Ok(new == 0 && state.trim() == "FROZEN" && take_in(members, folder)? == 0)
            }),
        };
        match frozen {
            Ok(true) => Ok(()),
            // All or nothing.
            Ok(false) => self.thaw().and_then(|()| Err(io::Error::other("not everything in it came to stand still"))),
            Err(error) => self.thaw().and(Err(error)),
        }
    }

    pub fn thaw(&self) -> io::Result<()> {
        match self {
            Freezer::Unified(folder) => write(folder, "cgroup.freeze", "0"),
            Freezer::Older { folder, .. } => write(folder, "freezer.state", "THAWED"),
        }
    }

    /// When nobody is in it any more.
    pub fn remove(self) -> io::Result<()> {
        match self {
            Freezer::Unified(_) => Ok(()),
            Freezer::Older { folder, keeper, .. } => {
                keeper::remove(&name_of(&folder)?).map_err(|error| naming("remove", &folder, error))?;
                keeper.dismiss()
            }
        }
    }
}

fn until(is: impl Fn() -> io::Result<bool>) -> io::Result<bool> {
    let end = Instant::now() + PATIENCE;
    loop {
        match is()? {
            true => return Ok(true),
            false if Instant::now() >= end => return Ok(false),
            false => std::thread::sleep(STEP),
        }
    }
}

/// How many had to be.
fn take_in(members: &Path, folder: &Path) -> io::Result<usize> {
    let list = |folder: &Path| -> io::Result<Vec<String>> {
        let text = std::fs::read_to_string(folder.join("cgroup.procs"))?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    let inside = list(folder)?;
    let mut count = 0;
    for process in list(members)?.iter().filter(|process| !inside.contains(process)) {
        count += 1;
        match write(folder, "cgroup.procs", process) {
            Ok(()) => {}
            // It has ended.
            Err(_) if !Path::new("/proc").join(process).exists() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}
