//! A server on this machine's loopback, and mitmproxy's proxies beside it. Gone with this.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::contestant::peers_folder;

use crate::place;

pub struct World {
    server: Child,
    pub tcp: u16,
    pub tls: u16,
    /// Its authority; and that with those of this machine, as somebody's machine would have it.
    pub authority: PathBuf,
    pub trusted: PathBuf,
    /// One that reads, and one that lets everything through.
    pub mitmproxy: Option<[Proxy; 2]>,
}

pub struct Proxy {
    child: Child,
    pub port: u16,
    /// Whom its clients have to believe.
    pub authority: PathBuf,
}

impl World {
    pub fn begin(program: &Path, folder: &Path) -> Result<World, String> {
        let mut command = Command::new(program);
        command.arg("serve").arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().map_err(|error| format!("cannot run {}: {error}", program.display()))?;
        let mut line = String::new();
        let output = server.stdout.take().ok_or("the server has no output")?;
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        let ports: serde_json::Value =
            serde_json::from_str(&line).map_err(|error| format!("the server tells no ports: {error}"))?;
        let port = |name: &str| ports[name].as_u64().and_then(|port| u16::try_from(port).ok()).ok_or("a port");
        let authority = folder.join("ca.pem");
        let read =
            |path: &Path| std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
        let mut all = read(Path::new("/etc/ssl/certs/ca-certificates.crt")).unwrap_or_default();
        all.extend(read(&authority)?);
        let trusted = folder.join("trusted.pem");
        std::fs::write(&trusted, all).map_err(|error| format!("cannot write {}: {error}", trusted.display()))?;
        let mut world = World { server, tcp: port("tcp")?, tls: port("tls")?, authority, trusted, mitmproxy: None };
        world.mitmproxy = match mitmdump() {
            Some(program) => {
                let reads = Proxy::begin(&program, folder, &world.authority, &[])?;
                Some([reads, Proxy::begin(&program, folder, &world.authority, &["--ignore-hosts", ".*"])?])
            }
            None => None,
        };
        Ok(world)
    }
}

/// Where it is, if it is.
pub fn mitmdump() -> Option<PathBuf> {
    Some(peers_folder().join("mitmproxy/bin/mitmdump")).filter(|program| place::runs(program))
}

impl Proxy {
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    fn begin(program: &Path, folder: &Path, authority: &Path, more: &[&str]) -> Result<Proxy, String> {
        let own = folder.join("mitmproxy");
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        drop(listener);
        // It needs two descriptors for each connection. Large bodies are passed on as they come, as ours are.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "ulimit -n 8192; exec \"$@\"", "sh"]).arg(program).arg("--quiet");
        command.args(["--listen-host", "127.0.0.1", "--listen-port", &port.to_string()]);
        command.args(["--set", &format!("confdir={}", own.display())]);
        command.args(["--set", &format!("ssl_verify_upstream_trusted_ca={}", authority.display())]);
        command.args(["--set", "stream_large_bodies=1m"]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("cannot run mitmdump: {error}"))?;
        let mut proxy = Proxy { child, port, authority: own.join("mitmproxy-ca-cert.pem") };
        let until = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = proxy.child.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || Instant::now() > until {
                return Err(format!("mitmdump does not answer: {ended:?}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(proxy)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        stop(&mut self.server);
    }
}

fn stop(child: &mut Child) {
    if let Err(error) = child.kill().and_then(|()| child.wait()) {
        eprintln!("cannot end a server: {error}");
    }
}
