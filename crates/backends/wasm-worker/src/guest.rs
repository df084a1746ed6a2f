//! What a module has while it runs: its folders, words and streams, and no more.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use wasmtime::error::Context;
use wasmtime::{Engine, Result, Store, bail};
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::limits::Limits;
use crate::words::{Kind, Surroundings};

pub struct Guest {
    pub wasi: WasiP1Ctx,
    pub limits: Limits,
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.wasi.ctx()
    }
}

/// Before each variable of the module's among ours: none of them speaks to this program, whatever its name is.
pub const MARK: u8 = b'+';

impl Guest {
    /// All that the surroundings give; streams and words are still to come.
    pub fn prepare(surroundings: &Surroundings) -> Result<WasiCtxBuilder> {
        let mut context = WasiCtx::builder();
        // Of files, which are asked what this says when they are opened: a thread for each call would only take the time
        // that it takes to wait for it.
        context.allow_blocking_current_thread(true);
        for folder in &surroundings.folders {
            let rights = match folder.kind {
                Kind::Read => FsPerms::ReadOnly,
                Kind::Write => FsPerms::ReadWrite,
                Kind::Scratch => {
                    let made = std::fs::create_dir_all(&folder.from);
                    made.with_context(|| format!("cannot make the folder `{}`", folder.from.display()))?;
                    FsPerms::ReadWrite
                }
            };
            let opened = context.preopened_dir(&folder.from, text(folder.name.as_os_str())?, rights);
            opened.with_context(|| format!("cannot open the folder `{}`", folder.from.display()))?;
        }
        // Of all else, sleep above all: whoever waits for a module must be able to end it in its sleep.
        context.allow_blocking_current_thread(false);
        if let Some(directory) = &surroundings.directory {
            context.initial_cwd(text(directory.as_os_str())?);
        }
        // Said both ways: what the library takes for granted may change.
        context.allow_tcp(surroundings.network);
        context.allow_udp(surroundings.network);
        context.allow_ip_name_lookup(surroundings.network);
        if surroundings.network {
            // Who may be reached is decided at the gate, outside of this jar.
            context.inherit_network();
        }
        Ok(context)
    }

    pub fn store(self, engine: &Engine) -> Store<Guest> {
        let mut store = Store::new(engine, self);
        store.limiter(|guest| &mut guest.limits);
        store
    }
}

/// The module's variables, out of all that this program got.
pub fn variables(ours: impl Iterator<Item = (OsString, OsString)>) -> Result<Vec<(String, String)>> {
    let marked = ours.filter_map(|(name, value)| {
        let name = name.as_bytes().strip_prefix(&[MARK])?;
        Some((OsStr::from_bytes(name).to_owned(), value))
    });
    marked.map(|(name, value)| Ok((text(&name)?.to_owned(), text(&value)?.to_owned()))).collect()
}

/// Modules are told everything as text.
pub fn text(word: &OsStr) -> Result<&str> {
    match word.to_str() {
        Some(text) => Ok(text),
        None => bail!("`{}` is no text, and modules take only text", Path::new(word).display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_variables_are_the_modules() {
        let ours = [("PATH", "/bin"), ("+PATH", "/x"), ("+A", "b=c"), ("RUST_BACKTRACE", "1")];
        let ours = ours.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let theirs = variables(ours).expect("it can be done");
        assert_eq!(theirs, [("PATH".to_owned(), "/x".to_owned()), ("A".to_owned(), "b=c".to_owned())]);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let ours = [(OsString::from("+A"), OsStr::from_bytes(b"\xff").to_owned())];
        assert!(variables(ours.into_iter()).is_err());
    }
}
