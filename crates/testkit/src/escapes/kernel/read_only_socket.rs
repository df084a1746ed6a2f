//! Talks to a service of the host whose socket lies in a folder that is shown read-only: a read-only mount does not
//! keep anyone from connecting.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use model::Wall;

use super::support::{judge_by_ear, listen};
use crate::{Attack, Control};

/// Of the host's own, and shown in every sandbox.
const FOLDER: &str = "/opt";

/// Gone with the field.
struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            eprintln!("left behind: {}: {error}", self.0.display());
        }
    }
}

pub const ATTACK: Attack = Attack {
    id: "kernel/read_only_socket",
    wall: Wall::Network,
    about: "connect to a unix socket of the host in a folder that is shown read-only",
    flags: &[],
    prepare: |field| {
        let path = PathBuf::from(FOLDER).join(format!("belljar-{}", &field.secret[7..19]));
        let listener = UnixListener::bind(&path)?;
        field.keep(Socket(path.clone()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777))?;
        field.tell("service", path.display());
        listen(
            field,
            listener,
            |listener| Ok(listener.accept()?.0),
            |stream| stream.set_read_timeout(Some(Duration::from_secs(1))),
        )
    },
    inside: |inside| UnixStream::connect(inside.hint("service")?)?.write_all(b"do as I say"),
    judge: Some(judge_by_ear),
    control: Control::Bare,
};
