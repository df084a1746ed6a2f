//! What an engine has, kept for a while: to be told takes it longer than all else that is asked of it, because it starts
//! programs to find out. What matters of it is looked at again in each container (`proof`, and what it warns of).

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sys::notes;

use crate::api::Api;
use crate::facts::Engine;
use crate::profile;
use crate::trouble::{Result, Unusable};

/// Below the folder for state.
const FOLDER: &str = "engines";
/// Another configuration of the same engine is seen after this at the latest; most are restarted for it, and seen at once.
const FOR_A_WHILE: Duration = Duration::from_secs(600);
const FOR_EVER: Duration = Duration::from_secs(u64::MAX / 4);

#[derive(Serialize, Deserialize)]
struct Note {
    /// Which engine it is about.
    of: String,
    engine: Engine,
}

/// As it was told not long ago, or else now.
pub fn engine(state: Option<&Path>, api: &Api) -> Result<Engine> {
    let folder = state.map(|state| state.join(FOLDER));
    let (Some(folder), Some(of)) = (folder, identity(api)) else { return asked(api) };
    let name = blake3::hash(api.socket().as_os_str().as_encoded_bytes()).to_hex();
    let kept = notes::read(&folder, &name, FOR_A_WHILE);
    if let Some(note) = kept.and_then(|kept| serde_json::from_slice::<Note>(&kept).ok())
        && note.of == of
    {
        return Ok(note.engine);
    }
    let engine = asked(api)?;
    let note = serde_json::to_vec(&Note { of, engine: engine.clone() }).unwrap_or_default();
    match notes::write(&folder, &name, &note) {
        // It is asked again next time.
        Ok(_) | Err(_) => Ok(engine),
    }
}

fn asked(api: &Api) -> Result<Engine> {
    let controllers = if api.podman { api.controllers()? } else { None };
    Ok(Engine::new(api, &api.info()?, controllers.as_deref()))
}

/// An engine that is started again makes its socket anew.
fn identity(api: &Api) -> Option<String> {
    let stat = std::fs::metadata(api.socket()).ok()?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let numbers = [stat.ctime(), stat.ctime_nsec(), i64::try_from(stat.ino()).ok()?];
    Some(format!("{} {} {} {numbers:?}", boot.trim(), api.shown, api.spoken()))
}

/// A file with the list of system calls, named by its digest. Nobody but belljar's user can write to it.
pub fn profile(state: Option<&Path>) -> Result<PathBuf> {
    let failed =
        |source| Unusable::Failed { what: "write the list of system calls down for the engine".to_owned(), source };
    let folder = state.map(|state| state.join(FOLDER));
    let folder = folder.ok_or_else(|| failed(std::io::Error::other("there is no folder for state")))?;
    let text = serde_json::to_vec(&profile::profile()).map_err(|error| failed(error.into()))?;
    let name = format!("{}.json", blake3::hash(&text).to_hex());
    if notes::read(&folder, &name, FOR_EVER).is_some_and(|kept| kept == text) {
        return Ok(folder.join(name));
    }
    notes::write(&folder, &name, &text).map_err(failed)
}
