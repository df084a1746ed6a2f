//! Who takes part, over what, and how each is started.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testkit::contestant::{belljar, peer};
use testkit::{Contestant as Peer, Who};

use super::super::field::Field;
use super::super::memory::{below, name_of};
use super::super::runners::quiet;
use super::world::{World, mitmdump};

/// The name of the server inside, where somebody pins it to this machine.
const NAME: &str = "server.bench.test";
/// The client, wherever it runs.
const CLIENT: &str = "egress_speed";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contestant {
    Direct,
    Belljar,
    Srt,
    Mitmproxy,
}

impl Contestant {
    pub const ALL: [Contestant; 4] = [Contestant::Direct, Contestant::Belljar, Contestant::Srt, Contestant::Mitmproxy];
    pub const PEERS: [Contestant; 2] = [Contestant::Srt, Contestant::Mitmproxy];

    /// What is asked of it at once: a quarter of those who take many times as long.
    pub fn part_of(self, amount: u64) -> u64 {
        if Contestant::PEERS.contains(&self) { (amount / 4).max(2) } else { amount }
    }
}

/// What goes through, and whether somebody reads it on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    Tcp,
    Tls,
    ReadTls,
}

impl Lane {
    pub const ALL: [Lane; 3] = [Lane::Tcp, Lane::Tls, Lane::ReadTls];

    pub fn name(self) -> &'static str {
        match self {
            Lane::Tcp => "TCP",
            Lane::Tls => "TLS, passed through",
            Lane::ReadTls => "TLS, its requests read",
        }
    }
}

pub struct Contest {
    world: World,
    folder: PathBuf,
    homes: [(Who, PathBuf); 2],
    srt: Option<String>,
    mitmproxy: Option<String>,
    left_out: Vec<(Contestant, Lane, Who)>,
}

impl Contest {
    pub fn make(field: &Field) -> Result<Contest, String> {
        let built = std::env::current_exe().map_err(|error| format!("who am I? {error}"))?;
        let built = built.with_file_name("examples").join(CLIENT);
        let folder = field.root.join("world");
        field.folder(&folder, Who::Root)?;
        let world = World::begin(&built, &folder)?;
        for who in super::BOTH {
            for file in [&built, &world.authority] {
                let copy = field.project(who).join(file.file_name().unwrap_or_default());
                std::fs::copy(file, &copy).map_err(|error| format!("cannot make {}: {error}", copy.display()))?;
            }
        }
        let homes = super::BOTH.map(|who| (who, field.root.join(format!("{}-reader", who.name()))));
        for (who, home) in &homes {
            for folder in ["", ".config", ".config/belljar"] {
                field.folder(&home.join(folder), *who)?;
            }
            let port = world.tls;
            let policy =
                format!("version = 1\n[network]\ndownload = [\"{NAME}:{port}\"]\nallow = [\"127.0.0.1:{port}\"]\n");
            field.write(&home.join(".config/belljar/policy.toml"), &policy, *who)?;
        }
        for (name, read) in [("srt.json", json!(null)), ("srt-read.json", json!({}))] {
            let mut network = json!({ "allowedDomains": ["localhost", "127.0.0.1"], "deniedDomains": [] });
            if !read.is_null() {
                network["tlsTerminate"] = read;
            }
            let files = json!({ "denyRead": [], "allowWrite": [], "denyWrite": [] });
            let settings = json!({ "network": network, "filesystem": files });
            field.write(&folder.join(name), &settings.to_string(), Who::Root)?;
        }
        let mitmproxy = mitmdump().and_then(|program| version(&program));
        let srt = Peer::Srt.version();
        let mut contest = Contest { world, folder, homes, srt, mitmproxy, left_out: Vec::new() };
        for (peer, title) in [("srt", &contest.srt), ("mitmproxy", &contest.mitmproxy)] {
            if title.is_none() {
                println!("left out: {peer} is not installed; `cargo xtask needs` does that");
            }
        }
        contest.try_all(field)?;
        Ok(contest)
    }

    /// Whoever can't do it at all is left out, with the reason.
    fn try_all(&mut self, field: &Field) -> Result<(), String> {
        for who in super::BOTH {
            for (contestant, lane) in self.all(who) {
                match (self.said(field, contestant, lane, who, &["latency", "1", "1"]), contestant) {
                    (Ok(_), _) => {}
                    (Err(error), Contestant::Direct | Contestant::Belljar) => return Err(error),
                    (Err(error), _) => {
                        println!("left out: {contestant:?} as {}, {}: {error}", who.name(), lane.name());
                        self.left_out.push((contestant, lane, who));
                    }
                }
            }
        }
        Ok(())
    }

    /// With its version; nothing if it is not installed.
    pub fn title(&self, contestant: Contestant) -> Option<String> {
        match contestant {
            Contestant::Direct => Some("nothing between".to_owned()),
            Contestant::Belljar => Some("belljar".to_owned()),
            Contestant::Srt => self.srt.as_ref().map(|version| format!("srt {version}")),
            Contestant::Mitmproxy => self.mitmproxy.as_ref().map(|version| format!("mitmproxy {version}")),
        }
    }

    /// Those that take part.
    pub fn all(&self, who: Who) -> Vec<(Contestant, Lane)> {
        let lanes = Lane::ALL.into_iter();
        let all = lanes.flat_map(|lane| Contestant::ALL.into_iter().map(move |contestant| (contestant, lane)));
        all.filter(|(contestant, lane)| {
            self.title(*contestant).is_some() && !self.left_out.contains(&(*contestant, *lane, who))
        })
        .collect()
    }

    /// The client, with whatever is between it and the server.
    pub fn command(&self, field: &Field, contestant: Contestant, lane: Lane, who: Who, what: &[&str]) -> Command {
        let folder = field.project(who);
        let reads = lane == Lane::ReadTls;
        let port = if lane == Lane::Tcp { self.world.tcp } else { self.world.tls };
        let mut command = match contestant {
            Contestant::Direct | Contestant::Mitmproxy => Command::new(folder.join(CLIENT)),
            Contestant::Belljar => {
                let mut command = Command::new(belljar());
                command.args(["run", "-q", "--workspace-mode", "readonly", &format!("--add-host={NAME}=127.0.0.1")]);
                if !reads {
                    command.args([NAME, "127.0.0.1"].map(|host| format!("--allow-net={host}:{port}")));
                }
                command.arg("--").arg(folder.join(CLIENT));
                command
            }
            Contestant::Srt => {
                let mut command = Command::new(peer("srt"));
                let settings = self.folder.join(if reads { "srt-read.json" } else { "srt.json" });
                command.arg("--settings").arg(settings).arg("--").arg(folder.join(CLIENT));
                command
            }
        };
        quiet(&mut command, field, who, &folder);
        command.arg(if lane == Lane::Tcp { "tcp" } else { "tls" });
        command.arg(if contestant == Contestant::Belljar { NAME } else { "localhost" }).arg(port.to_string());
        let mut trust = folder.join("ca.pem");
        match contestant {
            Contestant::Direct => {}
            Contestant::Belljar => {
                command.env("SSL_CERT_FILE", &self.world.trusted);
                if let Some((_, home)) = self.homes.iter().find(|(one, _)| reads && *one == who) {
                    command.env("HOME", home);
                    trust = "env".into();
                }
            }
            Contestant::Srt => {
                command.env("NODE_EXTRA_CA_CERTS", &self.world.authority);
                if reads {
                    trust = "env".into();
                }
            }
            Contestant::Mitmproxy => {
                if let Some(proxy) = self.proxy(lane) {
                    command.env("HTTP_PROXY", format!("http://127.0.0.1:{}", proxy.port));
                    if reads {
                        trust = proxy.authority.clone();
                    }
                }
            }
        }
        command.arg(trust).args(what);
        command
    }

    /// How a program inside asks for a name.
    pub fn names(&self, field: &Field, who: Who, count: usize) -> Result<Value, String> {
        let mut command = Command::new(belljar());
        command.args(["run", "-q", "--workspace-mode", "readonly", &format!("--allow-net={NAME}"), "--"]);
        command.arg(field.project(who).join(CLIENT)).args(["name", NAME, &count.to_string()]);
        said(quiet(&mut command, field, who, &field.project(who)))
    }

    /// What the client says in the end.
    pub fn said(
        &self,
        field: &Field,
        contestant: Contestant,
        lane: Lane,
        who: Who,
        what: &[&str],
    ) -> Result<Value, String> {
        said(&mut self.command(field, contestant, lane, who, what))
    }

    /// The same, where a peer may fail: that is said, and does not end the benchmark.
    pub fn said_if_it_can(
        &self,
        field: &Field,
        contestant: Contestant,
        lane: Lane,
        who: Who,
        what: &[&str],
    ) -> Result<Option<Value>, String> {
        match self.said(field, contestant, lane, who, what) {
            Ok(said) => Ok(Some(said)),
            Err(error) if Contestant::PEERS.contains(&contestant) => {
                println!("failed: {contestant:?} as {}, {}: {error}", who.name(), lane.name());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn proxy(&self, lane: Lane) -> Option<&super::world::Proxy> {
        self.world.mitmproxy.as_ref().map(|[reads, passes]| if lane == Lane::ReadTls { reads } else { passes })
    }

    /// The processes that carry what goes through, while `child` runs: of belljar its gate, of others all of theirs.
    pub fn between(&self, contestant: Contestant, lane: Lane, child: &Child) -> Vec<u32> {
        match contestant {
            Contestant::Direct => Vec::new(),
            Contestant::Mitmproxy => self.proxy(lane).into_iter().map(super::world::Proxy::process).collect(),
            Contestant::Belljar => {
                below(child.id()).into_iter().filter(|process| name_of(*process) == "belljar-gate").collect()
            }
            Contestant::Srt => {
                let all = std::iter::once(child.id()).chain(below(child.id()));
                all.filter(|process| name_of(*process) != CLIENT).collect()
            }
        }
    }
}

fn version(program: &Path) -> Option<String> {
    let text = crate::place::said(Command::new(program).arg("--version"))?;
    text.lines().next()?.split_whitespace().last().map(str::to_owned)
}

fn said(command: &mut Command) -> Result<Value, String> {
    let words = crate::steps::words(command);
    let complain = |why: String| format!("`{words}`: {why}");
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| complain(error.to_string()))?;
    if !output.status.success() {
        return Err(complain(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| complain(format!("it says no samples: {error}")))
}
