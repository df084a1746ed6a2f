//! A user whose record names another home, as far as one command can see: belljar believes the record, not `HOME`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn our_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes a list of users in which this one lives there, and says where it is.
pub fn furnish(home: &Path, user: u32) -> io::Result<PathBuf> {
    let list = home.join("passwd");
    fs::write(&list, moved(&fs::read_to_string("/etc/passwd")?, user, home))?;
    Ok(list)
}

/// The program as this user, with this list of users.
pub fn command(list: &Path, user: u32, program: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]);
    if our_user() != 0 {
        command.args(["--user", "--map-current-user"]);
    }
    command.args(["sh", "-c", "mount --bind \"$1\" /etc/passwd && shift && exec \"$@\"", "sh"]).arg(list);
    if our_user() != user {
        let id = user.to_string();
        command.args(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"]);
    }
    command.arg(program);
    command
}

fn moved(list: &str, user: u32, home: &Path) -> String {
    let moved = |line: &str| {
        let mut fields: Vec<&str> = line.split(':').collect();
        let home = home.to_string_lossy();
        if fields.get(2).is_some_and(|id| *id == user.to_string()) && fields.len() > 5 {
            fields[5] = &home;
        }
        fields.join(":") + "\n"
    };
    list.lines().map(moved).collect()
}
