//! What is remembered of artifacts. They outlive the sandbox they were made in: nothing of one refers to the other.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use model::{Artifact, Fate, Shown, Withheld};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::blobs::Hash;
use crate::error::{Error, Result};
use crate::state::State;

/// `rule` and `reason` are those of what is withheld; its contents are not kept, though their digest may be known.
pub const SCHEMA: &str = "
    CREATE TABLE artifact (
        id TEXT PRIMARY KEY, run TEXT NOT NULL, sandbox TEXT,
        workspace BLOB NOT NULL, path BLOB NOT NULL,
        size INTEGER NOT NULL, executable INTEGER NOT NULL, digest BLOB, kind TEXT NOT NULL, findings TEXT NOT NULL,
        rule TEXT, reason TEXT, created INTEGER NOT NULL
    );
";

/// An artifact, and the hash that its contents are kept under.
pub struct Row {
    pub artifact: Artifact,
    pub hash: Option<Hash>,
}

const COLUMNS: &str =
    "id, run, sandbox, workspace, path, size, executable, digest, kind, findings, rule, reason, created";

impl State {
    /// All of one run, or none.
    pub fn save_artifacts(&mut self, rows: &[Row]) -> Result<()> {
        let path = self.path.clone();
        let findings: std::result::Result<Vec<String>, _> =
            rows.iter().map(|row| serde_json::to_string(&row.artifact.findings)).collect();
        let findings = findings.map_err(|error| self.unusable(error.to_string()))?;
        let save = |connection: &mut Connection| -> rusqlite::Result<()> {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                let marks = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13";
                let mut insert = change.prepare(&format!("INSERT INTO artifact ({COLUMNS}) VALUES ({marks})"))?;
                for (Row { artifact, hash }, findings) in rows.iter().zip(&findings) {
                    let withheld = artifact.withheld();
                    insert.execute(params![
                        artifact.id,
                        artifact.run,
                        artifact.sandbox,
                        artifact.workspace.bytes(),
                        artifact.path.bytes(),
                        i64::try_from(artifact.size).unwrap_or(i64::MAX),
                        artifact.executable,
                        hash.map(|hash| hash.0.to_vec()),
                        artifact.kind,
                        findings,
                        withheld.map(|withheld| &withheld.rule),
                        withheld.map(|withheld| &withheld.reason),
                        i64::try_from(artifact.created).unwrap_or(i64::MAX),
                    ])?;
                }
            }
            change.commit()
        };
        save(&mut self.connection).map_err(|error| Error::State { path, why: error.to_string() })
    }

    /// All of them, those of the newest run first; those of one run in the order in which they were found.
    pub fn artifacts(&self) -> Result<Vec<Row>> {
        let read = || -> rusqlite::Result<Vec<(Row, String)>> {
            let mut query = self.connection.prepare(&format!("SELECT {COLUMNS} FROM artifact ORDER BY rowid"))?;
            let rows: Vec<(Row, String)> = query.query_map([], row)?.collect::<rusqlite::Result<_>>()?;
            // A run is written down at once, so what it made stands together. Clocks may tell runs apart or not.
            let mut newest_first: Vec<Vec<(Row, String)>> = Vec::new();
            for row in rows {
                match newest_first.last_mut() {
                    Some(run) if run.first().is_some_and(|first| first.0.artifact.run == row.0.artifact.run) => {
                        run.push(row);
                    }
                    _ => newest_first.push(vec![row]),
                }
            }
            Ok(newest_first.into_iter().rev().flatten().collect())
        };
        let understand = |(mut row, findings): (Row, String)| {
            row.artifact.findings = serde_json::from_str(&findings).map_err(|error| {
                self.unusable(format!("the findings of artifact {} can't be understood: {error}", row.artifact.id))
            })?;
            Ok(row)
        };
        self.tried(read())?.into_iter().map(understand).collect()
    }

    pub fn remove_artifact(&mut self, id: &str) -> Result<()> {
        let removed = self.connection.execute("DELETE FROM artifact WHERE id = ?1", [id]).map(drop);
        self.tried(removed)
    }
}

fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<(Row, String)> {
    let shown = |bytes: Vec<u8>| Shown(OsStr::from_bytes(&bytes).into());
    let hash = row.get::<_, Option<Vec<u8>>>("digest")?.as_deref().and_then(Hash::read);
    let fate = match row.get::<_, Option<String>>("rule")? {
        None => Fate::Released,
        Some(rule) => {
            let reason = row.get::<_, Option<String>>("reason")?.unwrap_or_default();
            Fate::Withheld(Withheld { rule, reason })
        }
    };
    let number = |name: &str| row.get::<_, i64>(name).map(|number| u64::try_from(number).unwrap_or(0));
    let artifact = Artifact {
        id: row.get("id")?,
        run: row.get("run")?,
        sandbox: row.get("sandbox")?,
        workspace: shown(row.get("workspace")?),
        path: shown(row.get("path")?),
        size: number("size")?,
        executable: row.get("executable")?,
        digest: hash.map(|hash| hash.to_string()),
        kind: row.get("kind")?,
        fate,
        findings: Vec::new(),
        created: number("created")?,
    };
    Ok((Row { artifact, hash }, row.get("findings")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::new_id;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("belljar-state-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    pub fn an_artifact(fate: Fate) -> Row {
        let hash = Hash::of(b"contents");
        let artifact = Artifact {
            id: new_id().expect("an id"),
            run: new_id().expect("an id"),
            sandbox: None,
            workspace: Shown("/work".into()),
            path: Shown(OsStr::from_bytes(b"out/\xff\n").into()),
            size: 8,
            executable: true,
            digest: Some(hash.to_string()),
            kind: "text/plain".to_owned(),
            fate,
            findings: Vec::new(),
            created: 1,
        };
        Row { artifact, hash: Some(hash) }
    }

    #[test]
    fn what_is_written_down_reads_back_the_same_and_only_what_is_released_is_needed() {
        let folder = folder("same");
        let mut state = State::open(&folder).expect("a state");
        let released = an_artifact(Fate::Released);
        let withheld = an_artifact(Fate::Withheld(Withheld::new("rule", "reason")));
        let expected = [released.artifact.clone(), withheld.artifact.clone()];
        state.save_artifacts(&[withheld]).expect("it is saved");
        assert!(state.hashes().expect("they are there").is_empty());
        state.save_artifacts(&[released]).expect("it is saved");
        let read: Vec<Artifact> =
            state.artifacts().expect("they are there").into_iter().map(|row| row.artifact).collect();
        assert_eq!(read, expected);
        assert_eq!(state.hashes().expect("they are there"), [Hash::of(b"contents")]);
        state.remove_artifact(&expected[0].id).expect("it is removed");
        assert!(state.hashes().expect("they are there").is_empty());
        std::fs::remove_dir_all(folder).expect("it was there");
    }

    #[test]
    fn a_state_of_the_first_version_learns_of_artifacts_and_keeps_what_it_has() {
        let folder = folder("first");
        let old = Connection::open(folder.join("state.sqlite")).expect("a file");
        old.execute_batch(crate::state::SCHEMA).expect("the first schema");
        old.pragma_update(None, "application_id", crate::state::APPLICATION).expect("it is ours");
        old.pragma_update(None, "user_version", 1).expect("of the first version");
        old.execute("INSERT INTO journal VALUES ('j', 's', 0, 'plan')", []).expect("a row");
        drop(old);
        for _ in 0..2 {
            let mut state = State::open(&folder).expect("it is brought up to date");
            assert_eq!(state.journals().expect("it is kept").len(), 1);
            state.save_artifacts(&[an_artifact(Fate::Released)]).expect("it is saved");
        }
        assert_eq!(State::open(&folder).expect("a state").artifacts().expect("they are there").len(), 2);
        std::fs::remove_dir_all(folder).expect("it was there");
    }
}
