//! Attacks from inside a module. Each succeeds as a plain program of the same user, which is the control.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::thread;

use belljar_testkit::Who;
use belljar_testkit::modules::Kind;
use belljar_testkit::twice::Check;

use crate::table::{Table, ended, shown, text};

pub const ALL: &[(&str, Check)] = &[
    ("dot_dot_does_not_lead_out", dot_dot),
    ("an_absolute_path_does_not_lead_out", absolute),
    ("a_link_in_the_workspace_does_not_lead_out", link),
    ("a_link_to_a_folder_outside_is_not_written_through", write_link),
    ("the_hosts_own_files_are_not_there", host_files),
    ("compiled_modules_and_their_seals_are_not_there", cache),
    ("compiled_modules_can_not_be_granted", grant_cache),
    ("without_a_grant_there_is_no_socket", sockets),
    ("no_variable_comes_through_that_was_not_granted", variables),
];

const SECRET: &str = "bell-under-seven-glasses";

fn outside(table: &Table) -> Result<String, String> {
    let file = table.project.work.with_file_name("secret.txt");
    fs::write(&file, SECRET).and_then(|()| table.project.give(&file)).map_err(|error| error.to_string())?;
    Ok(shown(&file))
}

/// The plain program gains it, and no module does.
fn not_gained(table: &Table, words: &[&str], flags: &[&str]) -> Result<(), String> {
    let bare = table.bare(words)?;
    if !text(&bare).contains(SECRET) {
        return Err(format!("the control failed: {bare:?}"));
    }
    for kind in Kind::MODULES {
        let said = table.run(kind, flags, words)?;
        if text(&said).contains(SECRET) || !said.error.contains("kept from it") {
            return Err(format!("{kind:?}: {said:?}"));
        }
    }
    Ok(())
}

fn dot_dot(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    outside(&table)?;
    for path in ["../secret.txt", "notes/../../secret.txt", "./notes/.././../secret.txt"] {
        not_gained(&table, &["read", path], &[])?;
    }
    Ok(())
}

fn absolute(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let secret = outside(&table)?;
    not_gained(&table, &["read", &secret], &[])?;
    not_gained(&table, &["read", &format!("/proc/self/root{secret}")], &[])
}

fn link(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let secret = outside(&table)?;
    let around = shown(table.project.work.parent().unwrap_or(&table.project.work));
    for (target, name) in [(secret.as_str(), "straight"), ("../secret.txt", "relative"), (&around, "folder")] {
        symlink(target, table.project.work.join(name)).map_err(|error| error.to_string())?;
    }
    for path in ["straight", "relative", "folder/secret.txt"] {
        not_gained(&table, &["read", path], &[])?;
    }
    Ok(())
}

fn write_link(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let secret = outside(&table)?;
    symlink(&secret, table.project.work.join("straight")).map_err(|error| error.to_string())?;
    for kind in Kind::MODULES {
        let said = table.run(kind, &["--workspace-mode", "direct"], &["write", "straight", "gone"])?;
        if said.code == Some(0) || fs::read_to_string(&secret).map_err(|error| error.to_string())? != SECRET {
            return Err(format!("{kind:?} wrote through it: {said:?}"));
        }
    }
    ended(table.bare(&["write", "straight", "gone"])?, 0)?;
    match fs::read_to_string(&secret).map_err(|error| error.to_string())?.as_str() {
        "gone" => Ok(()),
        _ => Err("the control failed".to_owned()),
    }
}

fn host_files(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    for path in ["/etc/passwd", "/proc/self/environ", "/proc/self/maps", "/usr/bin/env", "/dev/null"] {
        let bare = table.bare(&["write", "/dev/null", ""])?;
        ended(bare, 0)?;
        for kind in Kind::MODULES {
            let said = table.run(kind, &[], &["read", path])?;
            if !said.error.contains("kept from it") {
                return Err(format!("{kind:?} read {path}: {said:?}"));
            }
        }
    }
    Ok(())
}

fn cache(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    ended(table.run(Kind::Plain, &[], &["exit", "0"])?, 0)?;
    let folder = table.project.state.join("belljar/wasm");
    let kept = fs::read_dir(&folder).map_err(|error| error.to_string())?.flatten();
    let mut any = false;
    for entry in kept {
        any = true;
        for kind in Kind::MODULES {
            let path = shown(&entry.path());
            for words in [["read", &path].as_slice(), &["write", &path, "x"], &["remove", &path]] {
                let said = table.run(kind, &[], words)?;
                if !said.error.contains("kept from it") {
                    return Err(format!("{kind:?} {words:?}: {said:?}"));
                }
            }
        }
    }
    match any {
        true => Ok(()),
        false => Err("nothing is kept: there was nothing to attack".to_owned()),
    }
}

fn grant_cache(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    ended(table.run(Kind::Plain, &[], &["exit", "0"])?, 0)?;
    let folder = shown(&table.project.state.join("belljar/wasm"));
    for flag in ["--read", "--write"] {
        let said = table.run(Kind::Plain, &[flag, &folder], &["list", &folder])?;
        if said.code == Some(0) || !said.error.contains("files.state") {
            return Err(format!("{flag}: {said:?}"));
        }
    }
    Ok(())
}

fn sockets(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?.to_string();
    let answering = thread::spawn(move || {
        // Whoever comes; the control does, and it is the only one that may.
        let (mut caller, _) = listener.accept()?;
        let mut asked = [0; 256];
        let mut count = 0;
        // To its end: whoever hangs up on unread words resets the connection.
        while !asked[..count].ends_with(b"\r\n\r\n") {
            count += caller.read(&mut asked[count..])?;
        }
        caller.write_all(b"HTTP/1.0 200 OK\r\n\r\n")?;
        caller.write_all(SECRET.as_bytes())?;
        Ok::<usize, std::io::Error>(count)
    });
    for kind in Kind::MODULES {
        let said = table.run(kind, &[], &["connect", &address])?;
        if !said.error.contains("kept from it") {
            return Err(format!("{kind:?}: {said:?}"));
        }
    }
    let bare = table.bare(&["connect", &address])?;
    answering.join().map_err(|_| "the listener failed".to_owned())?.map_err(|error| error.to_string())?;
    match text(&bare).contains(SECRET) {
        true => Ok(()),
        false => Err(format!("the control failed: {bare:?}")),
    }
}

fn variables(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    for kind in Kind::MODULES {
        let mut command = table.project.command(["run", "-q", "--", kind.file(), "say"]);
        command.env("DEPLOY_TOKEN", SECRET).env("+SMUGGLED", SECRET).env("RUST_BACKTRACE", "full");
        let said = crate::table::fed(&mut command, b"")?;
        let said = ended(said, 0)?;
        if text(&said).contains(SECRET) || text(&said).contains("RUST_BACKTRACE") {
            return Err(format!("{kind:?}: {said:?}"));
        }
    }
    Ok(())
}
