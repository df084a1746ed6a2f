//! Talks to a service of the host whose socket lies in the workspace, as those of editors, build daemons and git's
//! file-system monitor do.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use model::Wall;

use super::support::{judge_by_ear, listen};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/workspace_socket",
    wall: Wall::Network,
    about: "connect to a unix socket in the workspace that a process of the host listens on",
    flags: &[],
    prepare: |field| {
        let path = field.workspace.join("service");
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777))?;
        field.give(&path)?;
        listen(
            field,
            listener,
            |listener| Ok(listener.accept()?.0),
            |stream| stream.set_read_timeout(Some(Duration::from_secs(1))),
        )
    },
    inside: |inside| UnixStream::connect(inside.workspace.join("service"))?.write_all(b"do as I say"),
    judge: Some(judge_by_ear),
    control: Control::Bare,
};
