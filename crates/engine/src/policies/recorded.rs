//! What was asked for, kept for `belljar policy test`: a line for each envelope. No record of what happened: that is the
//! ledger's.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use model::{Envelope, Watch};

use crate::release;

const FILE: &str = "envelopes.jsonl";
/// Then it becomes the older one, and another begins.
const LARGEST: u64 = 1 << 20;

pub fn files() -> Vec<PathBuf> {
    let Some(state) = workspace::state_folder() else { return Vec::new() };
    vec![state.join(format!("{FILE}.old")), state.join(FILE)]
}

/// Opens a file that may be anything: a pipe in its place must not keep us waiting.
pub fn open(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let file = File::from(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is no file"));
    }
    Ok(file)
}

/// Nobody's safety rests on this, so a run does not end for want of it; but it is said.
pub fn write(envelopes: &[Envelope], environment: &[(OsString, OsString)], watch: &dyn Watch) {
    let files = files();
    let [old, file] = files.as_slice() else { return };
    if let Err(error) = append(envelopes, environment, file, old) {
        watch.warn(&format!("cannot keep what was asked for `belljar policy test`: {error}"));
    }
}

fn append(
    envelopes: &[Envelope],
    environment: &[(OsString, OsString)],
    path: &Path,
    old: &Path,
) -> std::io::Result<()> {
    let mut lines = Vec::new();
    for envelope in envelopes {
        serde_json::to_writer(&mut lines, envelope)?;
        lines.push(b'\n');
    }
    // What is put in the place of a secret needs no quotes, so a line stays JSON.
    let lines = release::without_known(&lines, environment);
    // A pipe in its place would keep us waiting for a reader.
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let open = || File::options().append(true).create(true).mode(0o600).custom_flags(nonblocking).open(path);
    let mut file = match (open(), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == std::io::ErrorKind::NotFound => {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            open()?
        }
        (opened, _) => opened?,
    };
    // One call, at the end: lines of several processes stay whole.
    file.write_all(&lines)?;
    if file.stream_position()? > LARGEST {
        std::fs::rename(path, old)?;
    }
    Ok(())
}
