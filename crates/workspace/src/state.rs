//! The one file that remembers: sandboxes, what their files were before, and takings under way. SQLite holds it
//! together when many belljars write at once, and when one is killed.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};
use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::base::{Base, Bases, Kind};
use crate::blobs::Hash;
use crate::error::{Error, Result};
use crate::record::Record;

mod artifacts;

pub use artifacts::Row;

pub struct State {
    connection: Connection,
    path: PathBuf,
}

/// How far a taking is. Whoever finds one that was cut off goes on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Writing beside; nothing real has changed.
    Staging = 0,
    /// Past the point of no return, unless a step can't be taken.
    Taking = 1,
    /// A step could not be taken, and those before it are put back.
    Undoing = 2,
}

impl Phase {
    fn of(number: i64) -> Phase {
        match number {
            0 => Phase::Staging,
            1 => Phase::Taking,
            _ => Phase::Undoing,
        }
    }
}

/// `bell`, as a number: so that nobody takes another program's file for ours.
const APPLICATION: i64 = 0x6265_6c6c;
const VERSION: i64 = 2;
const SCHEMA: &str = "
    CREATE TABLE sandbox (id TEXT PRIMARY KEY, name TEXT UNIQUE, used INTEGER NOT NULL, record TEXT NOT NULL);
    CREATE TABLE base (
        sandbox TEXT NOT NULL REFERENCES sandbox ON DELETE CASCADE,
        workspace INTEGER NOT NULL,
        path BLOB NOT NULL,
        known INTEGER NOT NULL, kind INTEGER NOT NULL, mode INTEGER NOT NULL, size INTEGER NOT NULL,
        modified INTEGER NOT NULL, changed INTEGER NOT NULL, inode INTEGER NOT NULL, hash BLOB,
        PRIMARY KEY (sandbox, workspace, path)
    ) WITHOUT ROWID;
    CREATE TABLE journal (id TEXT PRIMARY KEY, sandbox TEXT NOT NULL, committing INTEGER NOT NULL, plan TEXT NOT NULL);
";

/// What was written and not yet written back is read by each who comes while nobody else is there, and begins anew only for one
/// who finds all of it written back: among those who come, write and leave, nobody does.
const MOST_TO_READ: u64 = 100 * 4096;

/// Makes it short again, once in a while. Whoever is at it meanwhile is left alone; then the next one does it.
fn write_back(connection: &Connection, path: &Path) -> rusqlite::Result<()> {
    let written = std::fs::metadata(path.with_extension("sqlite-wal")).map_or(0, |stat| stat.len());
    if written <= MOST_TO_READ {
        return Ok(());
    }
    let patience = |time| connection.busy_timeout(time);
    patience(Duration::ZERO)?;
    match connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        // Only for speed: whatever is the matter with the file or its disk is told to who reads or writes it next.
        Ok(()) | Err(_) => patience(PATIENCE),
    }
}

/// With others who write.
const PATIENCE: Duration = Duration::from_secs(30);

impl State {
    /// Opens the state in a folder of ours, and makes it if there is none.
    pub fn open(folder: &Path) -> Result<State> {
        let path = folder.join("state.sqlite");
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let unusable = |why: String| Error::State { path: path.clone(), why };
        let open = || -> rusqlite::Result<Connection> {
            let connection = Connection::open_with_flags(&path, flags)?;
            connection.busy_timeout(PATIENCE)?;
            // The last to leave would otherwise write all of it back, and wait for the disk.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.pragma_update(None, "foreign_keys", true)?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            write_back(&connection, &path)?;
            connection.pragma_update(None, "wal_autocheckpoint", 100)?;
            Ok(connection)
        };
        let connection = open().map_err(|error| unusable(error.to_string()))?;
        let mut state = State { connection, path: path.clone() };
        state.prepare()?;
        Ok(state)
    }

    /// Whose file it is, and which version of it. Both as of one moment: another may be making it.
    fn whose(&mut self) -> rusqlite::Result<(i64, i64)> {
        let look = self.connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
        let number = |name: &str| look.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0));
        Ok((number("application_id")?, number("user_version")?))
    }

    fn prepare(&mut self) -> Result<()> {
        // SQLite does not wait for those who turn a new file into one that many can write to, so those wait for each
        // other here, and whoever they disturb joins them.
        let busy = |error: &rusqlite::Error| error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
        let whose = match self.whose() {
            Ok((0, 0)) => None,
            Err(error) if busy(&error) => None,
            known => Some(self.tried(known)?),
        };
        let (application, version, _making) = match whose {
            Some((application, version)) => (application, version, None),
            None => {
                let lock = self.lock()?;
                let known = self.whose();
                let (application, version) = self.tried(known)?;
                (application, version, Some(lock))
            }
        };
        match (application, version) {
            (APPLICATION, VERSION) => Ok(()),
            (APPLICATION, 1) => self.bring_up_to_date(),
            (APPLICATION, newer) if newer > VERSION => {
                Err(self.unusable(format!("a newer belljar wrote it (version {newer}; this one knows {VERSION})")))
            }
            (0, 0) => self.make(),
            _ => Err(self.unusable("it is another program's".to_owned())),
        }
    }

    /// Held until it is let go, or its holder dies.
    fn lock(&self) -> Result<OwnedFd> {
        let lock = || -> rustix::io::Result<OwnedFd> {
            let folder = self.path.parent().unwrap_or(Path::new("/"));
            let folder = rustix::fs::open(folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::fs::flock(&folder, FlockOperation::LockExclusive)?;
            Ok(folder)
        };
        lock().map_err(|error| self.unusable(error.to_string()))
    }

    /// Of an empty file. Only whoever holds the lock does it.
    fn make(&mut self) -> Result<()> {
        let make = |connection: &mut Connection| -> rusqlite::Result<bool> {
            connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if change.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? > 0 {
                return Ok(false);
            }
            change.execute_batch(SCHEMA)?;
            change.execute_batch(artifacts::SCHEMA)?;
            change.pragma_update(None, "application_id", APPLICATION)?;
            change.pragma_update(None, "user_version", VERSION)?;
            change.commit()?;
            Ok(true)
        };
        let made = make(&mut self.connection);
        match self.tried(made)? {
            true => Ok(()),
            false => Err(self.unusable("it is another program's".to_owned())),
        }
    }

    /// From the first version, which knew no artifacts.
    fn bring_up_to_date(&mut self) -> Result<()> {
        let path = self.path.clone();
        let change = |connection: &mut Connection| -> rusqlite::Result<()> {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another may have done it while we waited.
            if change.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? == 1 {
                change.execute_batch(artifacts::SCHEMA)?;
                change.pragma_update(None, "user_version", VERSION)?;
            }
            change.commit()
        };
        change(&mut self.connection).map_err(|error| Error::State { path, why: error.to_string() })
    }

    fn unusable(&self, why: String) -> Error {
        Error::State { path: self.path.clone(), why }
    }

    fn tried<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|error| self.unusable(error.to_string()))
    }

    /// All of them, the one that was used last first.
    pub fn records(&self) -> Result<Vec<Record>> {
        let read = || -> rusqlite::Result<Vec<(String, String)>> {
            let mut query = self.connection.prepare("SELECT id, record FROM sandbox ORDER BY used DESC, rowid DESC")?;
            query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        self.tried(read())?.iter().map(|(id, text)| self.understand(id, text)).collect()
    }

    pub fn record(&self, id: &str) -> Result<Option<Record>> {
        let text: Option<String> = self.tried(
            self.connection.query_row("SELECT record FROM sandbox WHERE id = ?1", [id], |row| row.get(0)).optional(),
        )?;
        text.map(|text| self.understand(id, &text)).transpose()
    }

    fn understand(&self, id: &str, text: &str) -> Result<Record> {
        serde_json::from_str(text).map_err(|error| self.unusable(format!("sandbox {id} can't be understood: {error}")))
    }

    /// Remembers a sandbox and, for each workspace by its number, what its files were before.
    pub fn save(&mut self, record: &Record, bases: &BTreeMap<usize, Bases>) -> Result<()> {
        let text = serde_json::to_string(record).map_err(|error| self.unusable(error.to_string()))?;
        let path = self.path.clone();
        let save = |connection: &mut Connection| -> rusqlite::Result<()> {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            change.execute(
                "INSERT INTO sandbox (id, name, used, record) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (id) DO UPDATE SET name = ?2, used = ?3, record = ?4",
                params![record.id, record.name, record.used as i64, text],
            )?;
            for (workspace, bases) in bases {
                insert_bases(&change, &record.id, *workspace, bases)?;
            }
            change.commit()
        };
        match save(&mut self.connection) {
            Ok(()) => Ok(()),
            Err(rusqlite::Error::SqliteFailure(error, _))
                if error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE =>
            {
                Err(Error::Taken(record.shown()))
            }
            Err(error) => Err(Error::State { path, why: error.to_string() }),
        }
    }

    pub fn bases(&self, sandbox: &str, workspace: usize) -> Result<Bases> {
        let read = || -> rusqlite::Result<Bases> {
            let mut query = self.connection.prepare(
                "SELECT path, known, kind, mode, size, modified, changed, inode, hash FROM base
                 WHERE sandbox = ?1 AND workspace = ?2",
            )?;
            let rows = query.query_map(params![sandbox, workspace as i64], |row| {
                let base = Base {
                    known: row.get(1)?,
                    kind: match row.get::<_, i64>(2)? {
                        0 => Kind::File,
                        1 => Kind::Folder,
                        2 => Kind::Link,
                        _ => Kind::Special,
                    },
                    mode: row.get(3)?,
                    size: row.get::<_, i64>(4)? as u64,
                    modified: row.get(5)?,
                    changed: row.get(6)?,
                    inode: row.get::<_, i64>(7)? as u64,
                    hash: row.get::<_, Option<Vec<u8>>>(8)?.as_deref().and_then(Hash::read),
                };
                Ok((row.get(0)?, base))
            })?;
            rows.collect()
        };
        self.tried(read())
    }

    /// Forgets some of what files were before.
    pub fn forget_bases(&mut self, sandbox: &str, workspace: usize, paths: &[Vec<u8>]) -> Result<()> {
        let path = self.path.clone();
        let forget = |connection: &mut Connection| -> rusqlite::Result<()> {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for path in paths {
                change.execute(
                    "DELETE FROM base WHERE sandbox = ?1 AND workspace = ?2 AND path = ?3",
                    params![sandbox, workspace as i64, path],
                )?;
            }
            change.commit()
        };
        forget(&mut self.connection).map_err(|error| Error::State { path, why: error.to_string() })
    }

    pub fn remove(&mut self, sandbox: &str) -> Result<()> {
        let removed = self.connection.execute("DELETE FROM sandbox WHERE id = ?1", [sandbox]).map(drop);
        self.tried(removed)
    }

    /// Hashes of contents that somebody may still need.
    pub fn hashes(&self) -> Result<Vec<Hash>> {
        let read = || -> rusqlite::Result<Vec<Vec<u8>>> {
            let mut query = self.connection.prepare(
                "SELECT hash FROM base WHERE hash IS NOT NULL
                 UNION SELECT digest FROM artifact WHERE digest IS NOT NULL AND rule IS NULL",
            )?;
            query.query_map([], |row| row.get(0))?.collect()
        };
        Ok(self.tried(read())?.iter().filter_map(|bytes| Hash::read(bytes)).collect())
    }

    /// Journals of takings that have not come to their end: id, how far it was, plan.
    pub fn journals(&self) -> Result<Vec<(String, Phase, String)>> {
        let read = || -> rusqlite::Result<Vec<(String, Phase, String)>> {
            let mut query = self.connection.prepare("SELECT id, committing, plan FROM journal ORDER BY rowid")?;
            query.query_map([], |row| Ok((row.get(0)?, Phase::of(row.get(1)?), row.get(2)?)))?.collect()
        };
        self.tried(read())
    }

    /// A taking of this sandbox has not come to its end.
    pub fn has_journal(&self, sandbox: &str) -> Result<bool> {
        let count =
            self.connection.query_row("SELECT count(*) FROM journal WHERE sandbox = ?1", [sandbox], |row| row.get(0));
        self.tried(count.map(|count: i64| count > 0))
    }

    pub fn write_journal(&mut self, id: &str, sandbox: &str, phase: Phase, plan: &str) -> Result<()> {
        let write = || -> rusqlite::Result<()> {
            // Before anything of it happens, it is on the disk.
            self.connection.pragma_update(None, "synchronous", "FULL")?;
            self.connection.execute(
                "INSERT INTO journal (id, sandbox, committing, plan) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (id) DO UPDATE SET committing = ?3, plan = ?4",
                params![id, sandbox, phase as i64, plan],
            )?;
            self.connection.pragma_update(None, "synchronous", "NORMAL")
        };
        self.tried(write())
    }

    pub fn end_journal(&mut self, id: &str) -> Result<()> {
        let ended = self.connection.execute("DELETE FROM journal WHERE id = ?1", [id]).map(drop);
        self.tried(ended)
    }
}

fn insert_bases(
    change: &rusqlite::Transaction<'_>,
    sandbox: &str,
    workspace: usize,
    bases: &Bases,
) -> rusqlite::Result<()> {
    let mut insert = change.prepare(
        "INSERT OR REPLACE INTO base (sandbox, workspace, path, known, kind, mode, size, modified, changed, inode, hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    for (path, base) in bases {
        let Base { known, kind, mode, size, modified, changed, inode, hash } = base;
        let kind = match kind {
            Kind::File => 0,
            Kind::Folder => 1,
            Kind::Link => 2,
            Kind::Special => 3,
        };
        insert.execute(params![
            sandbox,
            workspace as i64,
            path,
            known,
            kind,
            mode,
            *size as i64,
            modified,
            changed,
            *inode as i64,
            hash.map(|hash| hash.0.to_vec())
        ])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn what_is_to_be_read_at_each_opening_does_not_grow_with_all_that_was_ever_written() {
        let folder = std::env::temp_dir().join(format!("belljar-state-long-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        for number in 0..400 {
            // As a run does: comes, writes and leaves.
            let state = State::open(&folder).expect("a state");
            let (id, text) = (format!("{number:032x}"), "x".repeat(2000));
            let row = params![id, None::<String>, number, text];
            state
                .connection
                .execute("INSERT INTO sandbox (id, name, used, record) VALUES (?1, ?2, ?3, ?4)", row)
                .expect("kept");
        }
        let written = std::fs::metadata(folder.join("state.sqlite-wal")).expect("it is there").len();
        assert!(written < 2 * MOST_TO_READ, "{written} bytes");
        let state = State::open(&folder).expect("a state");
        let kept: i64 =
            state.connection.query_row("SELECT count(*) FROM sandbox", [], |row| row.get(0)).expect("counted");
        assert_eq!(kept, 400);
        drop(state);
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn many_who_open_it_first_all_get_it() {
        for round in 0..40 {
            let name = format!("belljar-state-first-{}-{round}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).expect("a folder");
            let start = Barrier::new(8);
            std::thread::scope(|scope| {
                let opens: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            start.wait();
                            State::open(&folder).and_then(|state| state.records())
                        })
                    })
                    .collect();
                for open in opens {
                    assert!(open.join().expect("no panic").expect("a state").is_empty());
                }
            });
            std::fs::remove_dir_all(&folder).expect("removed");
        }
    }
}
