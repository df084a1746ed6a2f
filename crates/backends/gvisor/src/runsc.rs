//! Where runsc is, and whether it is one that we know how to talk to.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use std::time::Duration;

use rustix::fs::{Access, FileType};
use sys::notes;

/// Names another one than the first in PATH.
const VARIABLE: &str = "BELLJAR_RUNSC";
/// The first that we have run all our tests on. Older ones lack the platform, or ways to pass descriptors on.
const OLDEST: u32 = 20_240_729;
/// Where is kept which one was new enough, below the folder for state.
const NOTES: &str = "gvisor";
const NOTE: &str = "runsc";
const FOR_A_MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runsc {
    /// Absolute and free of links.
    pub program: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    NotFound,
    /// That one, which was named.
    NotThere(PathBuf),
    Silent(PathBuf, String),
    TooOld {
        program: PathBuf,
        version: String,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::NotFound => write!(out, "gVisor's `runsc` is not installed"),
            Missing::NotThere(path) => {
                write!(out, "{VARIABLE} names `{}`, which is no program that can be run", path.display())
            }
            Missing::Silent(path, why) => write!(out, "`{} --version` does not say its version: {why}", path.display()),
            Missing::TooOld { program, version } => {
                write!(out, "`{}` is version {version}, and {OLDEST} is the oldest that will do", program.display())
            }
        }
    }
}

impl Missing {
    pub fn fix(&self) -> &'static str {
        match self {
            Missing::NotThere(_) => "set BELLJAR_RUNSC to a runsc, or unset it",
            Missing::NotFound | Missing::Silent(..) | Missing::TooOld { .. } => {
                "install the Debian package `runsc` (on Debian 12 from bookworm-backports: `apt install -t bookworm-backports runsc`; its own is too old), or set BELLJAR_RUNSC to one from gvisor.dev"
            }
        }
    }
}

impl Runsc {
    /// One that is there and new enough. To ask it for its version takes a tenth of a whole run, so what it said is kept in
    /// the folder for state, for this very file.
    pub fn known(state: Option<&Path>) -> Result<Runsc, Missing> {
        let runsc = Runsc::find()?;
        let (folder, same) = (state.map(|state| state.join(NOTES)), runsc.identity());
        let kept = folder.as_deref().and_then(|folder| notes::read(folder, NOTE, FOR_A_MONTH));
        if kept.is_some_and(|kept| same.as_ref().is_some_and(|same| kept == same.as_bytes())) {
            return Ok(runsc);
        }
        runsc.version()?;
        if let (Some(folder), Some(same)) = (folder, same) {
            match notes::write(&folder, NOTE, same.as_bytes()) {
                // It is asked again next time.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(runsc)
    }

    /// Which file it is, and of when: another one there is another's.
    fn identity(&self) -> Option<String> {
        use std::os::unix::fs::MetadataExt;
        let stat = std::fs::metadata(&self.program).ok()?;
        let numbers = [stat.mtime(), stat.mtime_nsec(), stat.ctime(), stat.ctime_nsec()];
        let (path, size) = (self.program.to_str()?, stat.size());
        Some(format!("{OLDEST} {path} {}:{} {size} {numbers:?}", stat.dev(), stat.ino()))
    }

    /// Cheap: only whether it is there.
    fn find() -> Result<Runsc, Missing> {
        if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
            let named = PathBuf::from(named);
            return runnable(&named).ok_or(Missing::NotThere(named));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let usual = ["/usr/local/bin", "/usr/bin", "/usr/sbin"].map(PathBuf::from);
        folders.chain(usual).find_map(|folder| runnable(&folder.join("runsc"))).ok_or(Missing::NotFound)
    }

    /// As it says itself, if it is new enough.
    pub fn version(&self) -> Result<String, Missing> {
        let silent = |why: String| Missing::Silent(self.program.clone(), why);
        let mut asked = Command::new(&self.program);
        let said = asked.arg("--version").env_clear().stdin(Stdio::null()).output();
        let said = said.map_err(|error| silent(error.to_string()))?;
        let text = String::from_utf8_lossy(&said.stdout);
        let version = version_in(&text).ok_or_else(|| silent("it says something else".to_owned()))?;
        match date_in(version) {
            Some(date) if date >= OLDEST => Ok(version.to_owned()),
            _ => Err(Missing::TooOld { program: self.program.clone(), version: version.to_owned() }),
        }
    }
}

fn runnable(path: &Path) -> Option<Runsc> {
    // Its own path: it is opened without following links.
    let program = std::fs::canonicalize(path).ok()?;
    let stat = rustix::fs::stat(&program).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode).is_file();
    let runs = rustix::fs::access(&program, Access::EXEC_OK | Access::READ_OK).is_ok();
    let absolute = program.as_os_str().as_bytes().starts_with(b"/");
    (is_file && runs && absolute).then_some(Runsc { program })
}

/// `runsc version release-20240729.0`, with other lines after it.
fn version_in(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix("runsc version ").map(str::trim).filter(|version| !version.is_empty())
}

/// The day it was released: eight digits.
fn date_in(version: &str) -> Option<u32> {
    let digits = version.split(|letter: char| !letter.is_ascii_digit());
    digits.filter(|digits| digits.len() == 8).find_map(|digits| digits.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_debian_and_upstream_write_it() {
        for (said, version, date) in [
            ("runsc version 0.0~20240729.0\nspec: 1.0.2-dev\n", "0.0~20240729.0", Some(20_240_729)),
            ("runsc version release-20251110.0\n", "release-20251110.0", Some(20_251_110)),
            ("runsc version VERSION_MISSING\n", "VERSION_MISSING", None),
        ] {
            assert_eq!(version_in(said), Some(version));
            assert_eq!(date_in(version), date);
        }
        assert_eq!(version_in("runc version 1.1\n"), None);
        assert_eq!(version_in(""), None);
    }
}
