//! Where questions meet people who are neither the asker nor root: a folder that root makes, once, for a group.
//!
//! No daemon stands between. Every asker has a folder of their own in it, which the spool's group can enter: whoever is in the
//! group can read a question and leave an answer, and can take away or rename nothing of others (the sticky bit). Who
//! answered is the kernel's word here as well, and only those whom the policy names count; to be in the group is not enough.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use model::Trouble;
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use super::folder::{Folder, Reach};
use super::users::{self, Approvers, Users};

pub const SPOOL: &str = "/var/lib/belljar/approvals";

/// Sticky, so that nobody removes another's; with the group's mark, so that what is made in it is the group's.
const MARKS: u32 = 0o3000;
/// Of an asker's folder: theirs and the group's, and sticky.
const OURS: u32 = 0o1770;

pub struct Spool {
    fd: OwnedFd,
    path: PathBuf,
    group: u32,
}

impl Spool {
    /// Nothing if there is none.
    pub fn found(path: &Path) -> Result<Option<Spool>, Trouble> {
        // Askers may enter it, and not look around.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(unusable(path, format!("it can't be opened: {error}"))),
        };
        let stat = rustix::fs::fstat(&fd).map_err(|error| unusable(path, error.to_string()))?;
        if stat.st_uid != 0 {
            return Err(unusable(path, format!("it belongs to user {}, and not to root", stat.st_uid)));
        }
        if stat.st_mode & MARKS != MARKS {
            return Err(unusable(path, format!("its mode is {:o}, and not 3773", stat.st_mode & 0o7777)));
        }
        Ok(Some(Spool { fd, path: path.to_owned(), group: stat.st_gid }))
    }

    /// Our own folder in it, made if there is none.
    pub fn ours(&self) -> Result<Folder, Trouble> {
        let us = users::us();
        let name = us.to_string();
        let path = self.path.join(&name);
        let cannot = |error: Errno| unusable(&path, format!("it can't be made: {error}"));
        match rustix::fs::mkdirat(&self.fd, &name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(cannot(error)),
        }
        let gone = || unusable(&path, "it is gone again".to_owned());
        let folder = Folder::within(self.fd.as_fd(), &path, us, Reach::Made(self.group))?.ok_or_else(gone)?;
        // After it is known to be ours: whoever made it before would have a say in it.
        rustix::fs::fchmod(folder.fd(), Mode::from_raw_mode(OURS)).map_err(cannot)?;
        match rustix::fs::mkdirat(folder.fd(), "session", Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(cannot(error)),
        }
        self.of(us)?.ok_or_else(gone)
    }

    /// That of this user, if there is one.
    pub fn of(&self, owner: u32) -> Result<Option<Folder>, Trouble> {
        let path = self.path.join(owner.to_string());
        Folder::within(self.fd.as_fd(), &path, owner, Reach::Group(self.group))
    }

    /// Who has a folder in it; nobody for those who may not look.
    pub fn askers(&self) -> Vec<u32> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(listing) = rustix::fs::openat(&self.fd, ".", flags, Mode::empty()) else { return Vec::new() };
        let Ok(entries) = Dir::read_from(&listing) else { return Vec::new() };
        let number = |name: &std::ffi::CStr| name.to_str().ok()?.parse::<u32>().ok();
        entries.filter_map(|entry| number(entry.ok()?.file_name())).collect()
    }

    /// Whether all of them can come here, as far as the machine's lists tell.
    fn admits(&self, approvers: &Approvers, users: &Users) -> Result<(), Trouble> {
        let closed_to = approvers.others().find(|id| users.is_known(*id) && !users.is_in(*id, self.group));
        let Some(id) = closed_to else { return Ok(()) };
        let (name, group) = (users.name(id), users.group_name(self.group));
        Err(Trouble {
            message: format!(
                "`approvals.approvers` names {name}, who is not in the group {group} of `{}` and can't answer there",
                self.path.display()
            ),
            fix: format!("`usermod -aG {group} {name}`, or name only `root`"),
        })
    }
}

/// Whether those whom a policy names can answer: a policy that promises people who can't be asked is not obeyed silently.
pub fn reaches(path: &Path, names: &[String]) -> Result<(), Trouble> {
    let users = Users::read()?;
    let approvers = users.approvers(names);
    if approvers.others().next().is_none() {
        return Ok(());
    }
    let spool = Spool::found(path)?.ok_or_else(|| missing(path, &approvers, &users))?;
    spool.admits(&approvers, &users)
}

/// The folder in which these people find a question of ours.
pub fn for_others(path: &Path, approvers: &Approvers, users: &Users) -> Result<Folder, Trouble> {
    Spool::found(path)?.ok_or_else(|| missing(path, approvers, users))?.ours()
}

fn missing(path: &Path, approvers: &Approvers, users: &Users) -> Trouble {
    let names: Vec<String> = approvers.others().map(|id| users.name(id)).collect();
    Trouble {
        message: format!(
            "`approvals.approvers` names {}, who can't reach your questions: there is no `{}`",
            names.join(", "),
            path.display()
        ),
        fix: format!("as root: `{}` for a group that they are in; or name only `root`", made_by(path)),
    }
}

fn unusable(path: &Path, why: String) -> Trouble {
    Trouble {
        message: format!("the folder for questions to others, `{}`, can't be used: {why}", path.display()),
        fix: format!("as root, remove it and make the spool anew: `{}`", made_by(Path::new(SPOOL))),
    }
}

fn made_by(path: &Path) -> String {
    format!("install -d -o root -g GROUP -m 3773 {}", path.display())
}
