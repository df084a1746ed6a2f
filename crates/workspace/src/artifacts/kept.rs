//! Artifacts that are kept: listed, handed out, removed.

use std::io::{self, Read, Seek, SeekFrom, Write};

use model::{Artifact, Fate};
use rustix::fs::{Mode, OFlags};

use crate::blobs::Hash;
use crate::error::{Error, Result, cannot};
use crate::files::Seen;
use crate::state::{Row, State};
use crate::store::Store;

/// All, or those of one run or sandbox.
pub fn list(store: &Store, state: &mut State, of: Option<&str>) -> Result<Vec<Artifact>> {
    let rows = state.artifacts()?;
    let Some(of) = of else { return Ok(rows.into_iter().map(|row| row.artifact).collect()) };
    // A name is that of a sandbox that is still there; an id may be that of one that is gone.
    let named = match store.find(state, of) {
        Ok((record, _)) if record.name.as_deref() == Some(of) => Some(record.id),
        Ok(_) | Err(Error::NoSuch(_) | Error::None | Error::Ambiguous { .. }) => None,
        Err(error) => return Err(error),
    };
    let last = rows.first().map(|row| row.artifact.run.clone()).filter(|_| of == "last");
    let is_meant = |artifact: &Artifact| match (&named, &last) {
        (Some(named), _) => artifact.sandbox.as_ref() == Some(named),
        (_, Some(last)) => artifact.run == *last,
        _ => artifact.run.starts_with(of) || artifact.sandbox.as_ref().is_some_and(|sandbox| sandbox.starts_with(of)),
    };
    let found: Vec<Artifact> = rows.into_iter().map(|row| row.artifact).filter(is_meant).collect();
    match found.is_empty() && named.is_none() {
        true => Err(Error::NoArtifacts(of.to_owned())),
        false => Ok(found),
    }
}

/// The one whose id begins so.
pub fn find_one(state: &State, which: &str) -> Result<Row> {
    let mut found: Vec<Row> = state.artifacts()?.into_iter().filter(|row| row.artifact.id.starts_with(which)).collect();
    match found.len() {
        1 if !which.is_empty() => Ok(found.swap_remove(0)),
        0 | 1 => Err(Error::NoSuchArtifact(which.to_owned())),
        _ => {
            let short = |row: &Row| row.artifact.id.get(..12).unwrap_or(&row.artifact.id).to_owned();
            let candidates = found.iter().take(8).map(short).collect();
            Err(Error::AmbiguousArtifact { which: which.to_owned(), candidates })
        }
    }
}

/// Writes contents that are known to be what was released.
pub fn copy(store: &Store, state: &State, which: &str, to: &mut dyn Write) -> Result<Artifact> {
    let Row { artifact, hash } = find_one(state, which)?;
    if let Fate::Withheld(withheld) = &artifact.fate {
        let (reason, rule) = (withheld.reason.clone(), withheld.rule.clone());
        return Err(Error::Withheld { id: short(&artifact), reason, rule });
    }
    let damaged = || Error::Damaged { id: short(&artifact) };
    let hash = hash.ok_or_else(damaged)?;
    let path = store.blobs().folder().join(hash.to_string());
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(&path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Err(damaged()),
        opened => opened.map_err(cannot("open", &path))?,
    };
    let seen = Seen::of(&rustix::fs::fstat(&file).map_err(cannot("look at", &path))?);
    if !seen.is_file() || seen.size != artifact.size {
        return Err(damaged());
    }
    // Read twice: who gets the first byte gets all of what was released, and nothing else.
    let mut file = std::fs::File::from(file);
    if pass(&mut file, artifact.size, &mut io::sink()).map_err(cannot("read", &path))? != hash {
        return Err(damaged());
    }
    file.seek(SeekFrom::Start(0)).map_err(cannot("read", &path))?;
    match pass(&mut file, artifact.size, to).map_err(cannot("copy", &path))? == hash {
        true => Ok(artifact),
        false => Err(damaged()),
    }
}

fn pass(from: &mut std::fs::File, size: u64, to: &mut dyn Write) -> io::Result<Hash> {
    let mut from = from.take(size);
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0u8; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                hasher.update(&buffer[..length]);
                to.write_all(&buffer[..length])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    to.flush()?;
    Ok(Hash(*hasher.finalize().as_bytes()))
}

/// With its contents, unless another needs them.
pub fn remove(store: &Store, state: &mut State, which: &str) -> Result<Artifact> {
    let Row { artifact, hash } = find_one(state, which)?;
    state.remove_artifact(&artifact.id)?;
    // Where somebody keeps something at this moment, what nobody refers to is left to `gc`.
    if let (Some(hash), Some(_folder)) = (hash, store.blobs().hold_alone())
        && !state.hashes()?.contains(&hash)
    {
        let path = store.blobs().folder().join(hash.to_string());
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot("remove", path)(error)),
            _ => {}
        }
    }
    Ok(artifact)
}

/// Those made before this second since 1970.
pub fn outdated(state: &State, before: u64) -> Result<Vec<Artifact>> {
    let old = |row: Row| (row.artifact.created <= before).then_some(row.artifact);
    Ok(state.artifacts()?.into_iter().filter_map(old).collect())
}

fn short(artifact: &Artifact) -> String {
    artifact.id.get(..8).unwrap_or(&artifact.id).to_owned()
}
