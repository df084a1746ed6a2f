//! A process that waits for our end, and removes what we would leave if that comes too early: an engine's containers
//! outlive whoever asked for them. Meanwhile, or afterwards, it removes what earlier belljars have left.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use sys::process::{self, Alone, Forked, Namespaces};

use crate::api::Api;
use crate::labels;
use crate::trouble::{Result, Unusable};
use crate::work;

/// All that is made for one sandbox, by the names that it is made under.
#[derive(Clone, Debug, Default)]
pub struct Charge {
    /// The first is the payload's.
    pub containers: Vec<String>,
    pub volumes: Vec<String>,
    /// A folder of ours with files for the container.
    pub folder: Option<PathBuf>,
    /// What the kernel works in for its volumes; given back when they are gone.
    pub work: Option<PathBuf>,
}

impl Charge {
    /// All of it that is there. What was never made is no error.
    pub fn remove(&self, api: &Api) -> Result<()> {
        // All are tried, and the first complaint is told.
        let containers: Vec<Result<()>> = self.containers.iter().map(|name| api.remove(name)).collect();
        let volumes: Vec<Result<()>> = self.volumes.iter().map(|name| api.remove_volume(name)).collect();
        if let Some(folder) = &self.folder {
            match std::fs::remove_dir_all(folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => {
                    let what = format!("remove `{}`", folder.display());
                    return Err(Unusable::Failed { what, source });
                }
            }
        }
        let gone: Result<()> = containers.into_iter().chain(volumes).collect();
        gone?;
        match &self.work {
            Some(own) => work::give_back(own)
                .map_err(|source| Unusable::Failed { what: format!("give `{}` back", own.display()), source }),
            None => Ok(()),
        }
    }
}

pub struct Keeper {
    word: OwnedFd,
}

const ALL_IS_GONE: &[u8] = b".";
/// Before it looks for what others have left; under a second.
const BREATH: std::time::Duration = std::time::Duration::from_millis(700);

impl Keeper {
    pub fn start(api: &Api, charge: &Charge) -> io::Result<Keeper> {
        let (ear, word) = pipe_with(PipeFlags::CLOEXEC)?;
        match process::fork_into(Alone::prove()?, Namespaces::NONE, None)? {
            Forked::Parent { .. } => Ok(Keeper { word }),
            Forked::Child => {
                drop(word);
                process::exit(i32::from(watch(api, charge, ear).is_err()))
            }
        }
    }

    /// There is nothing to remove any more.
    pub fn dismiss(self) -> io::Result<()> {
        std::fs::File::from(self.word).write_all(ALL_IS_GONE)
    }
}

/// Folders to work in, of runs whose containers are gone.
fn recover(api: &Api, charge: &Charge) -> Result<()> {
    let Some(base) = charge.work.as_ref().and_then(|own| own.parent()) else { return Ok(()) };
    let mut live = labels::live(api)?;
    // Ours may not be made yet.
    live.extend(charge.containers.iter().filter_map(|name| name.strip_prefix("belljar-").map(str::to_owned)));
    work::recover(base, &live, std::time::Duration::from_secs(600))
        .map_err(|source| Unusable::Failed { what: format!("recover `{}`", base.display()), source })
}

fn watch(api: &Api, charge: &Charge, ear: OwnedFd) -> io::Result<()> {
    // What ends the caller's group, or its terminal, must not end us; signals are blocked already, all but one.
    process::new_session()?;
    rustix::thread::set_name(c"belljar-keeper")?;
    // A pipe that we held would never end for its reader.
    process::close_all_from(0, ear.as_raw_fd())?;
    // Most runs are over by then, and while one begins its engine has enough to do.
    let soon = !has_heard(&ear, BREATH)?;
    if soon {
        tidy(api, charge);
    }
    let mut word = [0u8; 1];
    if rustix::io::retry_on_intr(|| rustix::io::read(&ear, &mut word))? == 0 {
        charge.remove(api).map_err(|error| io::Error::other(error.to_string()))?;
    }
    if !soon {
        tidy(api, charge);
    }
    Ok(())
}

/// Removes what earlier belljars have left. What can't be removed now is found by the next.
fn tidy(api: &Api, charge: &Charge) {
    match labels::clean_up(api).and_then(|_| recover(api, charge)) {
        Ok(()) | Err(_) => {}
    }
}

fn has_heard(ear: &OwnedFd, patience: std::time::Duration) -> io::Result<bool> {
    let mut list = [PollFd::new(ear, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
    match poll(&mut list, Some(&timeout)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
