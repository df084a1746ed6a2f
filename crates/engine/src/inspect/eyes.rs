//! With whose eyes files are seen: a kept sandbox may have versions of its own.

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use workspace::{KeptView, Sight, Workspaces};

use crate::policies::recorded;

pub struct Eyes<'a> {
    workspaces: &'a Workspaces,
    kept: Option<&'a str>,
    /// Looked up once, for all files of a command.
    view: OnceCell<KeptView>,
}

impl<'a> Eyes<'a> {
    pub fn new(workspaces: &'a Workspaces, kept: Option<&'a str>) -> Eyes<'a> {
        Eyes { workspaces, kept, view: OnceCell::new() }
    }

    pub fn open(&self, path: &Path) -> io::Result<File> {
        self.see(path, host)
    }

    /// A file that is in the sandbox and not on the host: it was made there.
    pub fn is_made_inside(&self, path: &Path) -> bool {
        self.kept.is_some() && self.see(path, |_| Err(io::ErrorKind::NotFound.into())).is_ok()
    }

    /// A file that code names, not the caller: no link leads out of the folder.
    pub fn open_beneath(&self, folder: &Path, path: &Path) -> io::Result<File> {
        self.see(path, |path| {
            let below = path.strip_prefix(folder).map_err(io::Error::other)?;
            beneath(folder, below)
        })
    }

    fn see(&self, path: &Path, of_the_host: impl Fn(&Path) -> io::Result<File>) -> io::Result<File> {
        let Some(which) = self.kept else { return of_the_host(path) };
        let trouble = |trouble: model::Trouble| io::Error::other(trouble.to_string());
        let view = match self.view.get() {
            Some(view) => view,
            None => {
                let view = self.workspaces.view(which).map_err(trouble)?;
                self.view.get_or_init(|| view)
            }
        };
        match view.sight(path).map_err(trouble)? {
            Sight::Hosts => of_the_host(path),
            Sight::File(file) => Ok(file),
            Sight::Gone => Err(io::ErrorKind::NotFound.into()),
            Sight::Other => Err(io::Error::other("it is no file in the sandbox")),
        }
    }
}

pub fn host(path: &Path) -> io::Result<File> {
    recorded::open(path)
}

fn beneath(folder: &Path, below: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, folder, opened, Mode::empty())?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = match rustix::fs::openat2(&folder, below, flags, Mode::empty(), resolve) {
        Err(rustix::io::Errno::XDEV) => return Err(io::Error::other("it leads out of the workspace")),
        opened => File::from(opened?),
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no file")),
    }
}
