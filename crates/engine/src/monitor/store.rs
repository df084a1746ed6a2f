//! What is known of agents, on disk: a small file for each, under a lock, and beside it a note of what holds for it.
//!
//! They lie where the ledger does: in the home that the user record names. An agent's name is whatever its variables say,
//! so files are named by its digest. A profile that is damaged is begun anew: only habits are lost. A hold is a file of its
//! own, and that it is there is what counts: one that can't be read is a suspension.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use model::{Hold, Response, Trouble};
use monitor::Profile;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use crate::user::User;

const VERSION: u32 = 1;
/// Agents that are remembered. Of more, those that were not seen for longest are forgotten, unless something holds for them.
const MOST: usize = 256;
/// Of a file, in bytes: none of ours is larger.
const LARGEST: usize = 2 * monitor::LARGEST;
const PROFILE: &str = "profile";
const HOLD: &str = "hold";
const FOR_EVERYONE: &str = "everyone";
/// All agents together. No agent can be called that.
pub const EVERYONE: &str = "*";

#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A profile's file, as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    agent: String,
    profile: Profile,
}

/// The file of one agent, kept open as long as a run lasts.
pub struct ProfileFile {
    store: Store,
    agent: String,
    path: PathBuf,
    file: File,
}

/// One that was found in the folder.
pub struct Found {
    pub agent: String,
    pub profile: Option<Profile>,
    pub hold: Option<Hold>,
    pub trouble: Option<String>,
}

impl Store {
    pub fn of(user: &User) -> Option<Store> {
        let ledger = crate::record::folder(user)?;
        Some(Store::at(ledger.parent()?.join("monitor")))
    }

    pub fn at(folder: PathBuf) -> Store {
        Store { folder }
    }

    fn place(&self, agent: &str, kind: &str) -> PathBuf {
        let digest = match agent {
            EVERYONE => FOR_EVERYONE.to_owned(),
            agent => blake3::hash(agent.as_bytes()).to_hex().as_str()[..32].to_owned(),
        };
        self.folder.join(format!("{digest}.{kind}"))
    }

    /// What holds for this agent now. Whatever is not known to be gone holds.
    pub fn hold(&self, agent: &str, now: u64) -> Result<Option<Hold>, Trouble> {
        let path = self.place(agent, HOLD);
        let file = match plain().read(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(Trouble {
                    message: format!("cannot tell whether `{agent}` is suspended, by `{}`: {error}", path.display()),
                    fix: "make it a file of yours, or remove it if the agent may run".to_owned(),
                });
            }
        };
        let hold = read_hold(file).unwrap_or_else(|why| Hold {
            agent: agent.to_owned(),
            response: Response::Suspend,
            why: format!("the note of what holds for it can't be read ({why}): {}", path.display()),
            by: "monitor".to_owned(),
            since: 0,
            until: None,
        });
        Ok(Some(hold).filter(|hold| hold.until.is_none_or(|until| now / 1000 < until)))
    }

    /// From now on. What is stricter stays.
    pub fn set_hold(&self, hold: &Hold, now: u64) -> Result<(), Trouble> {
        if self.hold(&hold.agent, now)?.is_some_and(|known| known.response > hold.response) {
            return Ok(());
        }
        let path = self.place(&hold.agent, HOLD);
        let written = || -> io::Result<()> {
            self.make()?;
            let beside = path.with_extension(format!("{}.new", std::process::id()));
            let mut file = plain().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
            serde_json::to_writer(&mut file, hold)?;
            file.flush()?;
            // It outlives the machine's end: whoever is suspended stays so.
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        written().map_err(|error| unusable(&path, &error))
    }

    /// Whether there was one.
    pub fn remove_hold(&self, agent: &str) -> Result<bool, Trouble> {
        let path = self.place(agent, HOLD);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(unusable(&path, &error)),
        }
    }

    fn make(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    pub fn open(&self, agent: &str) -> Result<ProfileFile, Trouble> {
        let path = self.place(agent, PROFILE);
        let open = || plain().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let opened = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.make().and_then(|()| open()),
            opened => opened,
        };
        let file = opened.map_err(|error| unusable(&path, &error))?;
        Ok(ProfileFile { store: self.clone(), agent: agent.to_owned(), path, file })
    }

    /// All that are known; who was seen last comes first.
    pub fn list(&self, now: u64) -> Result<Vec<Found>, Trouble> {
        let mut names: Vec<(PathBuf, bool)> = Vec::new();
        for (path, kind) in self.files()? {
            // Of those who have both, the profile.
            let other = path.with_extension(PROFILE);
            if kind == PROFILE || kind == HOLD && !other.exists() {
                names.push((path, kind == PROFILE));
            }
        }
        let mut found: Vec<Found> = Vec::new();
        for (path, is_profile) in names {
            if path.file_stem().is_some_and(|stem| stem == FOR_EVERYONE) {
                continue;
            }
            let named = |name: &Path| name.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let (agent, profile, trouble) = match is_profile {
                false => (None, None, None),
                true => match plain().read(true).open(&path).map_err(|error| error.to_string()).and_then(read) {
                    Ok(kept) => (Some(kept.agent), Some(kept.profile), None),
                    Err(why) => (None, None, Some(format!("{}: {why}", path.display()))),
                },
            };
            let hold_path = path.with_extension(HOLD);
            let agent = match (agent, plain().read(true).open(&hold_path).ok().and_then(|file| read_hold(file).ok())) {
                (Some(agent), _) => agent,
                (None, Some(hold)) => hold.agent,
                (None, None) => named(&path),
            };
            let hold = self.hold(&agent, now)?;
            // A note that no longer holds, of somebody who is not known otherwise.
            if is_profile || hold.is_some() {
                found.push(Found { agent, profile, hold, trouble });
            }
        }
        found.sort_by_key(|found| std::cmp::Reverse(found.profile.as_ref().map_or(0, Profile::last_seen)));
        Ok(found)
    }

    fn files(&self) -> Result<Vec<(PathBuf, String)>, Trouble> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unusable(&self.folder, &error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| unusable(&self.folder, &error))?.path();
            if let Some(kind) = path.extension().and_then(|kind| kind.to_str()).map(str::to_owned) {
                files.push((path, kind));
            }
        }
        Ok(files)
    }

    /// Names are cheap to make up: who was seen once, long ago, is forgotten.
    fn forget_the_oldest(&self) -> Result<(), Trouble> {
        let mut profiles: Vec<(SystemTime, PathBuf)> = Vec::new();
        for (path, kind) in self.files()? {
            if kind == PROFILE && !path.with_extension(HOLD).exists() {
                let changed = path.metadata().and_then(|known| known.modified()).unwrap_or(UNIX_EPOCH);
                profiles.push((changed, path));
            }
        }
        // One of them is everyone's.
        let many = profiles.len().saturating_sub(MOST + 1);
        profiles.sort();
        for (_, path) in profiles.into_iter().filter(|(_, path)| *path != self.place(EVERYONE, PROFILE)).take(many) {
            match fs::remove_file(&path) {
                Ok(()) => {}
                // Somebody else did so at the same time.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unusable(&path, &error)),
            }
        }
        Ok(())
    }
}

impl ProfileFile {
    /// Reads, changes and writes it, while nobody else does. Also says what was wrong with it, if it had to be begun anew.
    pub fn change<T>(&self, change: impl FnOnce(&mut Profile) -> T) -> Result<(T, Option<String>), Trouble> {
        let cannot = |error: &dyn std::fmt::Display| unusable(&self.path, error);
        flock(&self.file, FlockOperation::LockExclusive).map_err(|error| cannot(&error))?;
        let changed = self.change_locked(change);
        flock(&self.file, FlockOperation::Unlock).map_err(|error| cannot(&error))?;
        changed
    }

    fn change_locked<T>(&self, change: impl FnOnce(&mut Profile) -> T) -> Result<(T, Option<String>), Trouble> {
        let cannot = |error: &dyn std::fmt::Display| unusable(&self.path, error);
        let mut bytes = [0; LARGEST];
        let length = read_at_start(&self.file, &mut bytes).map_err(|error| cannot(&error))?;
        let known = bytes.get(..length).unwrap_or_default();
        let (mut profile, said) = match known.is_empty() {
            true => (Profile::default(), None),
            false => match parse(known) {
                Ok(kept) if kept.agent == self.agent => (kept.profile, None),
                Ok(_) => (Profile::default(), Some(self.begun_anew("it is of another agent"))),
                Err(why) => (Profile::default(), Some(self.begun_anew(&why))),
            },
        };
        let made = change(&mut profile);
        let kept = Kept { version: VERSION, agent: self.agent.clone(), profile };
        let mut text = serde_json::to_vec(&kept).map_err(|error| cannot(&error))?;
        // What is left of a longer one is covered, in the same write.
        text.resize(text.len().max(length), b' ');
        self.file.write_all_at(&text, 0).map_err(|error| cannot(&error))?;
        if length == LARGEST {
            self.file.set_len(text.len() as u64).map_err(|error| cannot(&error))?;
        }
        if known.is_empty() {
            self.store.forget_the_oldest()?;
        }
        Ok((made, said))
    }

    fn begun_anew(&self, why: &str) -> String {
        format!("what was known of `{}` is lost and begun anew: {}: {why}", self.agent, self.path.display())
    }
}

fn read_at_start(file: &File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    loop {
        let rest = bytes.get_mut(length..).unwrap_or_default();
        match file.read_at(rest, length as u64)? {
            0 => return Ok(length),
            more => length += more,
        }
        // Ours end with a brace or blanks; a second look at the end is only worth it for what is longer.
        if length < bytes.len()
            && bytes.get(..length).is_some_and(|known| known.ends_with(b"}") || known.ends_with(b" "))
        {
            return Ok(length);
        }
    }
}

fn read(mut file: File) -> Result<Kept, String> {
    let mut bytes = Vec::new();
    (&mut file).take(LARGEST as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<Kept, String> {
    let kept: Kept = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match kept.version {
        VERSION => Ok(kept),
        other => Err(format!("it has version {other}, and this belljar knows {VERSION}")),
    }
}

fn read_hold(mut file: File) -> Result<Hold, String> {
    let mut bytes = Vec::new();
    (&mut file).take(LARGEST as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// No link is followed: what is here is ours.
fn plain() -> fs::OpenOptions {
    let mut options = File::options();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Trouble {
    Trouble {
        message: format!("cannot keep what is known of agents in `{}`: {error}", path.display()),
        fix: "make it a place of yours, or remove it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("our own folder");
        }
    }

    fn store() -> (Store, Folder) {
        let id = workspace::new_id().expect("an id");
        let folder = std::env::temp_dir().join(format!("belljar-monitor-{id}"));
        (Store::at(folder.clone()), Folder(folder))
    }

    fn hold(agent: &str, response: Response) -> Hold {
        Hold { agent: agent.to_owned(), response, why: "x".to_owned(), by: "y".to_owned(), since: 1, until: None }
    }

    fn runs(store: &Store, agent: &str) -> u64 {
        let file = store.open(agent).expect("a file");
        let terms = monitor::Terms::of(1.0);
        let change = |profile: &mut Profile| {
            profile.observe(&monitor::Observation::Asked, &terms, 1_000_000);
            profile.shown(agent, &terms, 1_000_000).runs
        };
        file.change(change).expect("it is written").0
    }

    #[test]
    fn what_was_observed_is_there_the_next_time() {
        let (store, _folder) = store();
        assert_eq!((1..=20).map(|_| runs(&store, "a")).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
        assert_eq!(runs(&store, "b"), 1);
    }

    #[test]
    fn a_damaged_profile_is_begun_anew_and_said() {
        let (store, _folder) = store();
        runs(&store, "a");
        for damage in ["", "no profile", "{\"version\":1}", &"x".repeat(100_000), "{}", "\0\0\0"] {
            fs::write(store.place("a", PROFILE), damage).expect("it is damaged");
            let (_, said) = store.open("a").and_then(|file| file.change(|_| ())).expect("it goes on");
            assert_eq!(said.is_some(), !damage.is_empty(), "{said:?}");
            assert_eq!(runs(&store, "a"), 1);
        }
        // Another's profile under this name.
        runs(&store, "b");
        fs::copy(store.place("b", PROFILE), store.place("a", PROFILE)).expect("it is copied");
        assert!(store.open("a").and_then(|file| file.change(|_| ())).expect("it goes on").1.is_some());
    }

    #[test]
    fn no_damage_ends_a_suspension() {
        let (store, _folder) = store();
        store.set_hold(&hold("a", Response::Suspend), 0).expect("it is set");
        let path = store.place("a", HOLD);
        for damage in ["", "{", "{\"agent\":\"a\",\"response\":\"off\"}", &"y".repeat(100_000)] {
            fs::write(&path, damage).expect("it is damaged");
            let found = store.hold("a", 1).expect("it is read").expect("it holds");
            assert_eq!(found.response, Response::Suspend, "{damage}");
        }
        fs::remove_file(&path).expect("ours");
        std::os::unix::fs::symlink("/nowhere", &path).expect("a link");
        assert!(store.hold("a", 1).is_err(), "a link is nobody's word");
        fs::remove_file(&path).expect("ours");
        fs::create_dir(&path).expect("a folder");
        assert!(store.hold("a", 1).is_ok_and(|hold| hold.is_some_and(|hold| hold.response == Response::Suspend)));
    }

    #[test]
    fn what_is_milder_takes_nothing_back_and_what_is_over_holds_no_more() {
        let (store, _folder) = store();
        store.set_hold(&hold("a", Response::Suspend), 0).expect("it is set");
        store.set_hold(&hold("a", Response::Throttle), 0).expect("it is set");
        assert_eq!(store.hold("a", 0).expect("it is read").map(|hold| hold.response), Some(Response::Suspend));
        assert!(store.remove_hold("a").expect("it is removed"));
        assert!(!store.remove_hold("a").expect("there is none"));
        store.set_hold(&Hold { until: Some(10), ..hold("a", Response::Throttle) }, 0).expect("it is set");
        assert!(store.hold("a", 9_999).expect("it is read").is_some());
        assert!(store.hold("a", 10_000).expect("it is read").is_none());
    }

    #[test]
    fn names_that_are_made_up_do_not_fill_the_disk() {
        let (store, _folder) = store();
        store.set_hold(&hold("0", Response::Suspend), 0).expect("it is set");
        runs(&store, EVERYONE);
        for number in 0..MOST + 50 {
            runs(&store, &number.to_string());
        }
        let kept = store.list(0).expect("it is listed");
        assert!(kept.len() <= MOST + 1, "{}", kept.len());
        assert!(kept.iter().any(|found| found.agent == "0" && found.hold.is_some()));
        assert!(store.place(EVERYONE, PROFILE).exists());
    }
}
