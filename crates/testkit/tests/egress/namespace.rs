//! A small internet of the test's own: two networks with a wire between them, a public address at its far end with a server
//! and a resolver. belljar runs at the near end, whose loopback has a server that nobody may reach.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use belljar_testkit::Who;

use crate::desk::Desk;
use crate::told;

/// Why there can be none, if so.
pub fn why_not() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root to make networks".to_owned());
    }
    let programs = ["/usr/sbin/ip", "/usr/bin/nsenter", "/usr/bin/unshare"];
    programs
        .iter()
        .find(|program| !PathBuf::from(program).exists())
        .map(|program| format!("no {}", program.replace('/', "-")))
}

pub struct Internet {
    pub desk: Desk,
    pub folder: PathBuf,
    far: Child,
    near: Child,
    servers: Vec<Child>,
}

/// Belongs to somebody else on the real one; here nobody gets there.
pub const PUBLIC: &str = "93.184.216.34";

/// Answers names below `rebind.test`, by what is asked: `changes` is public at first and then at home, `both` is both at once,
/// `six` is at home in version 6, `public` is public. Each question is a line in FOLDER/questions. And serves HTTP on port 8080.
const FAR: &str = r#"
import http.server, socket, struct, sys, threading
folder, public = sys.argv[1:3]
seen = {}
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("content-length", "6"); self.end_headers(); self.wfile.write(b"public")
    def log_message(self, *_): pass
pages = http.server.ThreadingHTTPServer((public, 8080), Page)
threading.Thread(target=pages.serve_forever, daemon=True).start()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((public, 53))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(4096)
    at, labels = 12, []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode().lower()); at += 1 + data[at]
    kind = struct.unpack(">H", data[at + 1:at + 3])[0]
    name = labels[0]
    answers = []
    if kind == 1:
        seen[name] = seen.get(name, 0) + 1
        with open(folder + "/questions", "a") as file: file.write(name + "\n")
        home, away = socket.inet_aton("127.0.0.1"), socket.inet_aton(public)
        answers = {"changes": [away] if seen[name] == 1 else [home], "both": [away, home], "public": [away], "asks": [away],
            "metadata": [socket.inet_aton("169.254.169.254")], "home": [home]}.get(name, [])
    if kind == 28 and name == "six":
        answers = [socket.inet_pton(socket.AF_INET6, one) for one in ("::1", "::ffff:127.0.0.1", "fe80::1")]
    question = data[12:at + 5]
    records = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(one)) + one for one in answers)
    s.sendto(data[:2] + b"\x81\x80" + struct.pack(">HHHH", 1, len(answers), 0, 0) + question + records, peer)
"#;

/// Whoever reaches one of these is noted.
const HOME: &str = r#"
import http.server, socket, sys, threading
folder = sys.argv[1]
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(folder + "/home", "a") as file: file.write(self.path + "\n")
        self.send_response(200); self.send_header("content-length", "4"); self.end_headers(); self.wfile.write(b"home")
    def log_message(self, *_): pass
class Six(http.server.ThreadingHTTPServer): address_family = socket.AF_INET6
for server in [http.server.ThreadingHTTPServer(("127.0.0.1", port), Page) for port in (8080, 8081)] + [Six(("::1", 8080), Page)]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"#;

impl Internet {
    pub fn of(who: Who) -> Result<Internet, String> {
        let desk = Desk::of(who)?;
        let folder = desk.home.join("internet");
        told(fs::create_dir_all(&folder))?;
        told(fs::write(folder.join("resolv.conf"), format!("nameserver {PUBLIC}\noptions timeout:5 attempts:2\n")))?;
        told(fs::write(folder.join("nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files dns\n"))?;
        let (far, near) = (network()?, network()?);
        let mut internet = Internet { desk, folder, far, near, servers: Vec::new() };
        let (far, near) = (internet.far.id().to_string(), internet.near.id().to_string());
        in_network(&near, &["ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", &far])?;
        for words in [
            "addr add 198.51.100.1/30 dev near", "link set near up", "link set lo up",
            "route add default via 198.51.100.2",
        ] {
            in_network(&near, &["ip"].into_iter().chain(words.split(' ')).collect::<Vec<_>>())?;
        }
        let address = format!("addr add {PUBLIC}/32 dev lo");
        for words in ["addr add 198.51.100.2/30 dev far", "link set far up", "link set lo up", &address] {
            in_network(&far, &["ip"].into_iter().chain(words.split(' ')).collect::<Vec<_>>())?;
        }
        internet.serve(&far, FAR)?;
        internet.serve(&near, HOME)?;
        Ok(internet)
    }

    fn serve(&mut self, network: &str, script: &str) -> Result<(), String> {
        let mut command = entering(network);
        command.args(["/usr/bin/python3", "-c", script]).arg(&self.folder).arg(PUBLIC);
        let mut child = told(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())?;
        let mut line = String::new();
        let out = child.stdout.take();
        self.servers.push(child);
        told(BufReader::new(out.ok_or("it has an output")?).read_line(&mut line))?;
        if line == "ready\n" { Ok(()) } else { Err(format!("a server of the test's: {line}")) }
    }

    /// `belljar run` with these flags at the near end, which asks the resolver at the far one.
    pub fn command(&self, flags: &[&str], words: &[&str]) -> Command {
        let plain = self.desk.project.command([&["run"], flags, &["--"], words].concat());
        let bind = "mount --bind \"$1/resolv.conf\" /etc/resolv.conf && mount --bind \"$1/nsswitch.conf\" /etc/nsswitch.conf && \
                    shift && exec \"$@\"";
        let mut command = entering(&self.near.id().to_string());
        command.args(["unshare", "--mount", "--propagation", "private", "sh", "-c", bind, "sh"]).arg(&self.folder);
        command.arg(plain.get_program()).args(plain.get_args());
        command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = plain.get_current_dir() {
            command.current_dir(folder);
        }
        command.stdin(Stdio::null());
        command
    }

    /// What reached a server at home.
    pub fn home(&self) -> String {
        fs::read_to_string(self.folder.join("home")).unwrap_or_default()
    }

    pub fn questions(&self) -> String {
        fs::read_to_string(self.folder.join("questions")).unwrap_or_default()
    }
}

impl Drop for Internet {
    fn drop(&mut self) {
        for child in self.servers.iter_mut().chain([&mut self.far, &mut self.near]) {
            child.kill().and_then(|()| child.wait().map(drop)).ok();
        }
    }
}

/// A process that has a network of its own, and does nothing.
fn network() -> Result<Child, String> {
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "echo ready; exec sleep 600"]).stdin(Stdio::null());
    let mut child = told(command.stdout(Stdio::piped()).spawn())?;
    let mut line = String::new();
    told(BufReader::new(child.stdout.take().ok_or("it has an output")?).read_line(&mut line))?;
    if line == "ready\n" { Ok(child) } else { Err("no network of its own".to_owned()) }
}

fn entering(network: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{network}/ns/net"));
    command
}

fn in_network<W: AsRef<OsStr> + std::fmt::Debug>(network: &str, words: &[W]) -> Result<(), String> {
    let done = told(entering(network).args(words).output())?;
    if done.status.success() { Ok(()) } else { Err(format!("{words:?}: {}", String::from_utf8_lossy(&done.stderr))) }
}
