//! `--config`: the words of the command line in a file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::client::Address;
use crate::desk::Desk;
use crate::{holds, told};

pub const ALL: &[(&str, Check)] = &[
    ("what_a_file_says_holds_and_flags_win_over_it", joined),
    ("what_is_not_understood_in_a_file_is_an_error_with_its_line", wrong),
];

fn write(desk: &Desk, name: &str, text: &str) -> Result<PathBuf, String> {
    let folder = desk.home.join(".config/belljar");
    told(fs::create_dir_all(&folder))?;
    let path = folder.join(name);
    told(fs::write(&path, text))?;
    for path in [&desk.home.join(".config"), &folder, &path] {
        told(desk.project.give(path))?;
    }
    told(fs::set_permissions(&path, fs::Permissions::from_mode(0o600)))?;
    Ok(path)
}

fn joined(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let shown = |desk: &Desk, words: &[&str]| -> Result<String, String> {
        let said = desk.project.done([&["serve", "--print-config"], words].concat())?;
        Ok(String::from_utf8_lossy(&said.out).into_owned())
    };
    let has = |text: &str, line: &str| holds(text.lines().any(|known| known == line), format!("`{line}` in {text}"));
    has(&shown(&desk, &[])?, "jobs = 32")?;
    // Found by itself.
    let usual = write(&desk, "service.toml", "jobs = 5\nrate = 1\nlisten = \"unix:../../served\"\nstate = \"here\"\n")?;
    let text = shown(&desk, &["--rate", "7"])?;
    for line in ["jobs = 5", "rate = 7", "queue = 64", "insecure-listen = false"] {
        has(&text, line)?;
    }
    has(&text, &format!("state = \"{}\"", usual.with_file_name("here").display()))?;
    // Another one, by its name, and what is printed is such a file.
    let other = write(&desk, "other.toml", &text.replace("jobs = 5", "jobs = 6"))?;
    let other = other.display().to_string();
    has(&shown(&desk, &["--config", &other])?, "jobs = 6")?;
    // It is served with, and tokens are looked for where it says that they are.
    let (child, address) = crate::server::begin(&desk, &["serve"])?;
    let served = Served(child);
    let Address::Socket(socket) = &address else { return Err(format!("{address:?}")) };
    holds(
        told(socket.canonicalize())? == told(desk.home.join("served").canonicalize())?,
        "it listens where the file says",
    )?;
    let token = told(fs::read_to_string(usual.with_file_name("here").join("token")))?;
    let list = desk.project.done(["token", "list"])?;
    holds(String::from_utf8_lossy(&list.out).contains("first"), "the token is listed")?;
    let bearer = format!("Bearer {}", token.trim());
    let asks = || -> Result<u16, String> {
        let sent = crate::client::send(&address, "GET", "/v1/sandboxes", &[("Authorization", &bearer)], b"")?;
        Ok(crate::client::receive(sent)?.status)
    };
    let all: Vec<u16> = (0..6).map(|_| asks()).collect::<Result<_, _>>()?;
    holds(all[0] == 200 && all.contains(&429), format!("one a second, as it says: {all:?}"))?;
    drop(served);
    Ok(())
}

struct Served(std::process::Child);

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn wrong(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.expect(&["serve", "--config", "none.toml", "--listen", "127.0.0.1:0"], 125, "there is no file")?;
    for (text, said) in [
        ("jobs = 4\njbos = 3\n", "service.toml:2: `jbos` is no key here; did you mean `jobs`?"),
        ("rate = 'often'\n", "service.toml:1: `rate`: invalid value 'often'"),
        ("tls-cert = 'a.pem'\n", "--tls-key"),
        ("listen = '0.0.0.0:0'\n", "beyond this machine's loopback"),
        ("[serve]\njobs = 1\n", "service.toml:1: `serve` is no key here"),
    ] {
        write(&desk, "service.toml", text)?;
        desk.expect(&["serve"], 125, said)?;
    }
    let path = write(&desk, "service.toml", "jobs = 4\n")?;
    told(fs::set_permissions(&path, fs::Permissions::from_mode(0o666)))?;
    desk.expect(&["serve"], 125, "can be changed by others than you")?;
    desk.expect(&["token", "list"], 125, "can be changed by others than you").map(drop)?;
    // The control: closed to others, it is read.
    told(fs::set_permissions(&path, fs::Permissions::from_mode(0o600)))?;
    desk.project.done(["token", "list"]).map(drop)
}
