//! Somebody's desk, and a world outside of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use belljar_testkit::Who;
use belljar_testkit::project::Said;
use serde_json::Value;

use crate::desk::{Desk, Saying};
use crate::told;

/// The world's names. All of them are this machine, as only somebody who writes its address allows.
pub const NAME: &str = "api.world.test";
pub const OTHER: &str = "other.world.test";
pub const STRANGER: &str = "stranger.test";

pub struct World {
    pub desk: Desk,
    child: Child,
    pub folder: PathBuf,
    pub https: u16,
    pub http: u16,
    pub raw: u16,
}

impl World {
    pub fn of(who: Who) -> Result<World, String> {
        let desk = Desk::of(who)?;
        let folder = desk.home.join("world");
        told(fs::create_dir_all(folder.join("files")))?;
        certify(&folder)?;
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/egress/server.py");
        let mut command = Command::new("/usr/bin/python3");
        command.arg(script).arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = told(command.spawn())?;
        let mut line = String::new();
        told(BufReader::new(child.stdout.take().ok_or("it has an output")?).read_line(&mut line))?;
        let ports: Value = told(serde_json::from_str(&line))?;
        let port = |name: &str| ports[name].as_u64().and_then(|port| u16::try_from(port).ok()).ok_or("a port");
        Ok(World { desk, child, folder, https: port("https")?, http: port("http")?, raw: port("raw")? })
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{NAME}:{}{path}", self.https)
    }

    /// `belljar run` with these flags, in a world whose names lead to its servers and whose authority the host trusts.
    pub fn command(&self, flags: &[&str], words: &[&str]) -> Command {
        let pins = [NAME, OTHER, STRANGER].map(|name| format!("--add-host={name}=127.0.0.1"));
        let pins: Vec<&str> = pins.iter().map(String::as_str).collect();
        let all = [&["run"], pins.as_slice(), flags, &["--"], words].concat();
        let mut command = self.desk.project.command(&all);
        command.env("SSL_CERT_FILE", self.folder.join("ca.pem"));
        command
    }

    pub fn run(&self, flags: &[&str], words: &[&str]) -> Result<Said, String> {
        Said::of_command(&mut self.command(flags, words))
    }

    /// With all three servers granted, by name and by address.
    pub fn open(&self) -> Vec<String> {
        let mut flags = Vec::new();
        for port in [self.https, self.http, self.raw] {
            flags.extend([format!("--allow-net={NAME}:{port}"), format!("--allow-net=127.0.0.1:{port}")]);
        }
        flags
    }

    /// A policy by which what goes to its server over TLS is read: `download` or `git`.
    pub fn reads(&self, list: &str, timeout: &str) -> Result<(), String> {
        self.reads_at(list, self.https, timeout)
    }

    pub fn reads_at(&self, list: &str, port: u16, timeout: &str) -> Result<(), String> {
        let lists = format!("[network]\n{list} = [\"{NAME}:{port}\"]\nallow = [\"127.0.0.1:{port}\"]\n");
        self.desk.policy(&format!("{lists}[approvals]\ntimeout = \"{timeout}\"\n"))
    }

    /// Runs in that, and what it says must be there.
    pub fn expect(&self, flags: &[&str], words: &[&str], code: i32, out: &str) -> Result<Said, String> {
        let said = self.run(flags, words)?;
        let text = String::from_utf8_lossy(&said.out).into_owned();
        match said.code == Some(code) && text.contains(out) {
            true => Ok(said),
            false => Err(format!("{words:?} {flags:?}\nwanted {code} and `{out}`, but got {said:?}")),
        }
    }

    /// From now on nobody answers there.
    pub fn ends(&mut self) -> Result<(), String> {
        told(self.child.kill().and_then(|()| self.child.wait().map(drop)))
    }

    /// What arrived at its servers.
    pub fn arrived(&self) -> Result<Vec<Value>, String> {
        let text = fs::read_to_string(self.folder.join("requests")).unwrap_or_default();
        text.lines().map(|line| told(serde_json::from_str(line))).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait().map(drop)).ok();
    }
}

/// An authority of the world's own, and a certificate for its names.
fn certify(folder: &Path) -> Result<(), String> {
    let names = format!("subjectAltName=DNS:{NAME},DNS:{OTHER},DNS:{STRANGER},DNS:localhost,IP:127.0.0.1");
    let openssl = |words: &[&str]| -> Result<(), String> {
        let done = told(Command::new("openssl").args(words).current_dir(folder).output())?;
        if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
    };
    told(fs::write(folder.join("names"), names))?;
    let curve = "ec_paramgen_curve:prime256v1";
    openssl(&[
        "req", "-x509", "-newkey", "ec", "-pkeyopt", curve, "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days",
        "2", "-subj", "/CN=the world's authority",
    ])?;
    openssl(&[
        "req", "-newkey", "ec", "-pkeyopt", curve, "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj",
        "/CN=world",
    ])?;
    openssl(&[
        "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "names", "-out", "server.pem",
    ])?;
    // Read by belljar of an ordinary user as well.
    use std::os::unix::fs::PermissionsExt;
    told(fs::set_permissions(folder.join("ca.pem"), fs::Permissions::from_mode(0o644)))
}
