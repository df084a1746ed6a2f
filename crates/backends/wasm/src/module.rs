//! The bytes of a module, as its sandbox will see them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use model::paths::is_within;
use model::{Access, Grant, Kept, Place, Stack};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

use crate::failure::Failure;
use crate::interpreters::Interpreter;

/// Larger ones are not compiled.
pub const LARGEST: u64 = 64 << 20;

#[derive(Debug)]
pub struct Module {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

#[derive(Debug)]
pub enum Seen {
    OnTheHost(Module),
    /// The sandbox may have a newer one than the host. What is in a layer was written by whoever ran before: it is read
    /// inside.
    InALayer(PathBuf),
}

pub fn read(grant: &Grant, stacks: &[Stack], interpreter: Option<&Interpreter>) -> Result<Seen, Failure> {
    let files = &grant.powers().files;
    let path = match interpreter {
        Some(interpreter) => return Ok(Seen::OnTheHost(interpreter.read()?)),
        None => &grant.powers().command.program,
    };
    if files.hidden.iter().any(|(hidden, _)| is_within(path, hidden)) {
        let message = format!("there is no module at `{}` inside the sandbox: it is hidden", path.display());
        return Err(Failure::not_started(false, message, "do not hide it, or name another"));
    }
    if in_a_layer(path, &files.places, stacks) {
        return Ok(Seen::InALayer(path.clone()));
    }
    Ok(Seen::OnTheHost(bytes(path)?))
}

/// Whether a layer has something where the module is, or around it. One that has nothing there shows the host's.
fn in_a_layer(path: &Path, places: &[Place], stacks: &[Stack]) -> bool {
    let Some(place) = places.iter().rev().find(|place| is_within(path, &place.path)) else { return false };
    if place.access != Access::Layered {
        return false;
    }
    let Some(stack) = stacks.iter().find(|stack| stack.place == place.path) else { return true };
    let first = path.strip_prefix(&place.path).ok().and_then(|rest| rest.components().next());
    let (Kept::Overlay { earlier, layer }, Some(first)) = (&stack.kept, first) else { return true };
    let newest = layer.join("upper");
    earlier.iter().chain([&newest]).any(|layer| {
        // Also what is there and can't be looked at is there.
        let looked = std::fs::symlink_metadata(layer.join(first));
        !looked.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    })
}

/// Of a file that no link leads to: between the look at the path and now, somebody could have put one there.
pub fn bytes(path: &Path) -> Result<Module, Failure> {
    let missing = |error: io::Error| {
        let found = error.kind() != io::ErrorKind::NotFound;
        let message = format!("there is no module at `{}`: {error}", path.display());
        Failure::not_started(found, message, "check the path")
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file =
        openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).map_err(|error| missing(error.into()))?;
    let file = File::from(file);
    let stat = file.metadata().map_err(missing)?;
    if !stat.is_file() || stat.len() > LARGEST {
        let what = if stat.is_file() { "is larger than 64 MiB" } else { "is no file" };
        return Err(Failure::not_started(true, format!("cannot run it: `{}` {what}", path.display()), "name another"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(stat.len()).unwrap_or_default());
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(missing)?;
    Ok(Module { path: path.to_owned(), bytes })
}
