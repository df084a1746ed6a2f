//! The engine's API, as much of it as we use: what is asked, and what of the answers is read.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::http::{self, Body};
use crate::sockets;
use crate::trouble::{IMPORTING, LOADING, Result, Unusable};

/// Of the API: Docker 20.10 and Podman 3 speak it, and what we ask for is in it.
const OLDEST: (u32, u32) = (1, 41);
/// What we know; engines of today take nothing older.
const NEWEST: (u32, u32) = (1, 44);
pub const OLDEST_SHOWN: &str = "1.41";
/// For whatever an engine does at once. Making and starting containers is slow on a busy host.
const PATIENCE: Duration = Duration::from_secs(120);
/// Letters of an engine's complaint that are passed on.
const LONGEST_SAID: usize = 600;

/// An engine that answers.
#[derive(Clone, Debug)]
pub struct Api {
    socket: PathBuf,
    prefix: String,
    /// As it calls itself.
    pub shown: String,
    pub podman: bool,
    /// Who answers, as the kernel says.
    pub owner: u32,
    /// Which version of Podman's own API it speaks besides.
    libpod: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Info {
    pub security_options: Vec<String>,
    /// Podman says it here, Docker among the options of security.
    pub rootless: bool,
    pub runtimes: BTreeMap<String, serde_json::Value>,
    pub default_runtime: String,
    pub memory_limit: bool,
    pub swap_limit: bool,
    pub pids_limit: bool,
    pub cpu_cfs_quota: bool,
    pub cgroup_version: String,
    pub storage_driver: String,
    pub init_binary: String,
    pub live_restore_enabled: bool,
}

/// What Podman says of itself in its own API.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OwnInfo {
    host: OwnHost,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OwnHost {
    cgroup_controllers: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Image {
    pub id: String,
    pub repo_tags: Vec<String>,
    pub repo_digests: Vec<String>,
    pub architecture: String,
    pub os: String,
    pub size: u64,
    pub config: Option<ImageConfig>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ImageConfig {
    pub env: Option<Vec<String>>,
    pub volumes: Option<BTreeMap<String, serde_json::Value>>,
    pub labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ListedImage {
    pub id: String,
    pub repo_tags: Option<Vec<String>>,
    pub size: u64,
    pub created: u64,
    pub labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Inspected {
    pub state: State,
    pub image: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct State {
    pub running: bool,
    #[serde(rename = "OOMKilled")]
    pub oom_killed: bool,
    pub pid: i32,
    pub exit_code: i64,
    pub error: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Listed {
    pub id: String,
    pub labels: Option<BTreeMap<String, String>>,
    pub state: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ListedVolume {
    pub name: String,
    pub labels: Option<BTreeMap<String, String>>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Waited {
    pub status_code: i64,
    pub error: Option<Message>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Message {
    #[serde(alias = "Message")]
    pub message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Made {
    pub id: String,
    /// What of it the engine will not do.
    #[serde(default)]
    pub warnings: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ExecState {
    pub running: bool,
    pub pid: i32,
    pub exit_code: Option<i64>,
}

/// What of a container's use is told every second.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Stats {
    pub cpu_stats: CpuStats,
    pub memory_stats: MemoryStats,
    pub pids_stats: PidsStats,
    pub blkio_stats: serde_json::Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CpuStats {
    pub cpu_usage: CpuUsage,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CpuUsage {
    pub total_usage: u64,
    pub usage_in_kernelmode: u64,
    pub usage_in_usermode: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct MemoryStats {
    pub usage: u64,
    pub max_usage: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PidsStats {
    pub current: u64,
}

impl Api {
    /// The first engine that answers.
    pub fn find() -> Result<Api> {
        let candidates = sockets::candidates(|name| std::env::var_os(name))?;
        let mut first = None;
        for socket in &candidates {
            match Api::at(socket) {
                Ok(api) => return Ok(api),
                // The plainest reason is told: one that is not there is none.
                Err(Unusable::Down { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(Unusable::NoEngine { tried: candidates }))
    }

    pub fn at(socket: &Path) -> Result<Api> {
        let mut api = Api {
            socket: socket.to_owned(),
            prefix: String::new(),
            shown: String::new(),
            podman: false,
            owner: 0,
            libpod: String::new(),
        };
        let asked = http::ask(socket, "GET", "/_ping", Body::None, Some(PATIENCE)).map_err(|error| api.down(error))?;
        let header = |name: &str| asked.header(name).unwrap_or_default().to_owned();
        let (speaks, system) = (header("api-version"), header("ostype"));
        if number(&speaks) < OLDEST {
            return Err(Unusable::TooOld { speaks, needed: OLDEST_SHOWN });
        }
        if !system.is_empty() && system != "linux" {
            return Err(Unusable::NotLinux(system));
        }
        // What it means is settled, and newer engines still know it.
        let (major, minor) = number(&speaks).min(NEWEST);
        api.prefix = format!("/v{major}.{minor}");
        api.podman = asked.header("libpod-api-version").is_some();
        api.libpod = header("libpod-api-version");
        api.owner = asked.peer().map_err(|error| api.down(error))?;
        let server = header("server");
        api.shown = server.split_once(' ').map_or(server.as_str(), |(name, _)| name).replace('/', " ");
        Ok(api)
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Which version of the API is spoken, as a part of an address.
    pub fn spoken(&self) -> &str {
        &self.prefix
    }

    pub fn info(&self) -> Result<Info> {
        self.get("tell what it has", "/info")
    }

    /// Which control groups Podman has to give, if it is one that tells. What it says to Docker's clients is what the
    /// host has, also where none of it is Podman's to give.
    pub fn controllers(&self) -> Result<Option<Vec<String>>> {
        let what = "tell which control groups it has";
        let path = format!("/v{}/libpod/info", escaped(&self.libpod));
        let asked = http::ask(&self.socket, "GET", &path, Body::None, Some(PATIENCE));
        match asked.and_then(http::Answer::whole).map_err(|error| self.down(error))? {
            (200, body) => read::<OwnInfo>(what, &body).map(|info| info.host.cgroup_controllers),
            other => Err(said(what, other)),
        }
    }

    pub fn image(&self, name: &str) -> Result<Image> {
        let found = self.get("look at an image", &format!("/images/{}/json", escaped(name)));
        found.map_err(|error| match error.is_status(404) {
            true => Unusable::NoImage { name: name.to_owned() },
            false => error,
        })
    }

    pub fn images(&self) -> Result<Vec<ListedImage>> {
        self.get("list its images", "/images/json")
    }

    pub fn remove_image(&self, name: &str) -> Result<()> {
        self.done("remove an image", "DELETE", &format!("/images/{}", escaped(name)), Body::None).map(drop).map_err(
            |error| match error.is_status(404) {
                true => Unusable::NothingToRemove { name: name.to_owned() },
                false => error,
            },
        )
    }

    /// A plain tree as an image; the engine unpacks it, we do not.
    pub fn import(&self, tree: &mut dyn Read, name: &str, changes: &[String]) -> Result<String> {
        let (repository, tag) = split_name(name);
        let changes: String = changes.iter().map(|change| format!("&changes={}", escaped(change))).collect();
        // Podman takes the whole name in one and passes over a tag.
        let named = match self.podman {
            true => format!("repo={}", escaped(&format!("{repository}:{tag}"))),
            false => format!("repo={}&tag={}", escaped(repository), escaped(tag)),
        };
        let path = format!("/images/create?fromSrc=-&{named}{changes}");
        let said = self.lines(IMPORTING, "POST", &path, Body::Stream(tree, "application/x-tar"))?;
        match said.last().and_then(|line| line["status"].as_str()) {
            Some(id) => Ok(id.to_owned()),
            None => Err(Unusable::Unreadable { what: IMPORTING.to_owned(), why: "it names none".to_owned() }),
        }
    }

    /// Images as `docker save` and others write them, with layers; says what was loaded.
    pub fn load(&self, archive: &mut dyn Read) -> Result<Vec<String>> {
        let said = self.lines(LOADING, "POST", "/images/load?quiet=1", Body::Stream(archive, "application/x-tar"))?;
        let names = said.iter().filter_map(|line| line["stream"].as_str()).filter_map(|text| {
            let text = text.trim();
            text.strip_prefix("Loaded image: ").or(text.strip_prefix("Loaded image ID: ")).map(str::to_owned)
        });
        Ok(names.collect())
    }

    pub fn tag(&self, image: &str, name: &str) -> Result<()> {
        let (repository, tag) = split_name(name);
        let path = format!("/images/{}/tag?repo={}&tag={}", escaped(image), escaped(repository), escaped(tag));
        self.done("name an image", "POST", &path, Body::None).map(drop)
    }

    pub fn pull(&self, name: &str) -> Result<()> {
        let (repository, tag) = split_name(name);
        let path = format!("/images/create?fromImage={}&tag={}", escaped(repository), escaped(tag));
        self.lines("pull an image", "POST", &path, Body::None).map(drop)
    }

    pub fn create(&self, name: &str, configuration: &impl Serialize) -> Result<Made> {
        let body = json("make a container", configuration)?;
        let path = format!("/containers/create?name={}", escaped(name));
        let answer = self.done("make a container", "POST", &path, Body::Json(&body))?;
        read("make a container", &answer)
    }

    pub fn create_volume(&self, configuration: &impl Serialize) -> Result<()> {
        let body = json("make a volume", configuration)?;
        self.done("make a volume", "POST", "/volumes/create", Body::Json(&body)).map(drop)
    }

    pub fn start(&self, id: &str) -> Result<()> {
        self.done("start a container", "POST", &format!("/containers/{id}/start"), Body::None).map(drop)
    }

    /// Its streams, from before it is started.
    pub fn attach(&self, id: &str, input: bool) -> Result<(UnixStream, Vec<u8>)> {
        let path =
            format!("{}/containers/{id}/attach?stream=1&stdout=1&stderr=1&stdin={}", self.prefix, u8::from(input));
        self.hijack("attach to a container", &path, b"")
    }

    fn hijack(&self, what: &str, path: &str, body: &[u8]) -> Result<(UnixStream, Vec<u8>)> {
        let asked = http::upgrade(&self.socket, path, body, Some(PATIENCE)).map_err(|error| self.down(error))?;
        match asked {
            Ok(connection) => Ok(connection),
            Err(answer) => Err(said(what, answer.whole().map_err(|error| self.down(error))?)),
        }
    }

    /// Answers when it has ended; asked before it is started, so that nothing is missed.
    pub fn wait(&self, id: &str) -> Result<Pending> {
        self.pending("POST", &format!("/containers/{id}/wait?condition=next-exit"))
    }

    /// What it uses, a line every second or so.
    pub fn stats(&self, id: &str) -> Result<Pending> {
        self.pending("GET", &format!("/containers/{id}/stats?stream=1"))
    }

    pub fn kill(&self, id: &str, signal: i32) -> Result<()> {
        let path = format!("/containers/{id}/kill?signal={signal}");
        ignoring(&[404, 409], self.done("send a signal to a container", "POST", &path, Body::None))
    }

    pub fn resize(&self, id: &str, rows: u16, columns: u16) -> Result<()> {
        let path = format!("/containers/{id}/resize?h={rows}&w={columns}");
        ignoring(&[404, 409, 500], self.done("resize a terminal", "POST", &path, Body::None))
    }

    pub fn inspect(&self, id: &str) -> Result<Inspected> {
        let until = Instant::now() + UNTIL_KNOWN;
        loop {
            let looked = self.get("look at a container", &format!("/containers/{id}/json"));
            match looked {
                Err(error) if has_just_ended(&error) && Instant::now() < until => std::thread::sleep(ASK_AGAIN),
                looked => return looked,
            }
        }
    }

    /// Whether something is at a path of the container's root.
    pub fn has_path(&self, id: &str, path: &str) -> Result<bool> {
        let path = format!("/containers/{id}/archive?path={}", escaped(path));
        match self.done("look at a path", "HEAD", &path, Body::None) {
            Ok(_) => Ok(true),
            Err(error) if error.is_status(404) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Ends it if it runs; one that is gone already is no error.
    pub fn remove(&self, id: &str) -> Result<()> {
        let path = format!("/containers/{id}?force=1&v=1");
        ignoring(&[404], self.done("remove a container", "DELETE", &path, Body::None))
    }

    pub fn remove_volume(&self, name: &str) -> Result<()> {
        let path = format!("/volumes/{}", escaped(name));
        ignoring(&[404], self.done("remove a volume", "DELETE", &path, Body::None))
    }

    pub fn labelled(&self, label: &str) -> Result<Vec<Listed>> {
        let filter = escaped(&format!("{{\"label\":[\"{label}\"]}}"));
        self.get("list containers", &format!("/containers/json?all=1&filters={filter}"))
    }

    pub fn labelled_volumes(&self, label: &str) -> Result<Vec<ListedVolume>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Volumes {
            volumes: Option<Vec<ListedVolume>>,
        }
        let filter = escaped(&format!("{{\"label\":[\"{label}\"]}}"));
        let found: Volumes = self.get("list volumes", &format!("/volumes?filters={filter}"))?;
        Ok(found.volumes.unwrap_or_default())
    }

    /// A further program in a container that runs: its number, to be begun with `begin_exec`.
    pub fn exec(&self, id: &str, configuration: &impl Serialize) -> Result<String> {
        let body = json("start a program in a container", configuration)?;
        let path = format!("/containers/{id}/exec");
        let answer = self.done("start a program in a container", "POST", &path, Body::Json(&body))?;
        read::<Made>("start a program in a container", &answer).map(|made| made.id)
    }

    pub fn begin_exec(&self, exec: &str, terminal: bool) -> Result<(UnixStream, Vec<u8>)> {
        let body = format!("{{\"Detach\":false,\"Tty\":{terminal}}}");
        self.hijack("start a program in a container", &format!("{}/exec/{exec}/start", self.prefix), body.as_bytes())
    }

    pub fn exec_state(&self, exec: &str) -> Result<ExecState> {
        self.get("look at a program in a container", &format!("/exec/{exec}/json"))
    }

    pub fn resize_exec(&self, exec: &str, rows: u16, columns: u16) -> Result<()> {
        let path = format!("/exec/{exec}/resize?h={rows}&w={columns}");
        ignoring(&[404, 409, 500], self.done("resize a terminal", "POST", &path, Body::None))
    }

    fn get<T: DeserializeOwned>(&self, what: &str, path: &str) -> Result<T> {
        read(what, &self.done(what, "GET", path, Body::None)?)
    }

    /// Answers that come in lines of their own, each an object; one that tells of an error is one.
    fn lines(&self, what: &str, method: &str, path: &str, body: Body<'_>) -> Result<Vec<serde_json::Value>> {
        let path = format!("{}{path}", self.prefix);
        let answer = http::ask(&self.socket, method, &path, body, None).map_err(|error| self.down(error))?;
        let (status, text) = answer.whole().map_err(|error| self.down(error))?;
        if !(200..300).contains(&status) {
            return Err(said(what, (status, text)));
        }
        let lines = serde_json::Deserializer::from_slice(&text).into_iter::<serde_json::Value>();
        let lines: Vec<serde_json::Value> = lines.collect::<std::result::Result<_, _>>().map_err(unreadable(what))?;
        match lines.iter().find_map(|line| line["error"].as_str()) {
            Some(error) => Err(Unusable::Said { what: what.to_owned(), status, said: error.trim().to_owned() }),
            None => Ok(lines),
        }
    }

    fn done(&self, what: &str, method: &str, path: &str, body: Body<'_>) -> Result<Vec<u8>> {
        let path = format!("{}{path}", self.prefix);
        let answer = http::ask(&self.socket, method, &path, body, Some(PATIENCE)).map_err(|error| self.down(error))?;
        let whole = match method {
            // It has a length and no body.
            "HEAD" => (answer.status, Vec::new()),
            _ => answer.whole().map_err(|error| self.down(error))?,
        };
        match whole {
            (200..300 | 304, body) => Ok(body),
            other => Err(said(what, other)),
        }
    }

    fn pending(&self, method: &str, path: &str) -> Result<Pending> {
        Pending::ask(&self.socket, method, &format!("{}{path}", self.prefix)).map_err(|error| self.down(error))
    }

    fn down(&self, source: io::Error) -> Unusable {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Unusable::Forbidden { socket: self.socket.clone() },
            _ => Unusable::Down { socket: self.socket.clone(), source },
        }
    }
}

/// An answer that is waited for together with other things.
pub struct Pending {
    stream: UnixStream,
    bytes: Vec<u8>,
}

impl Pending {
    fn ask(socket: &Path, method: &str, path: &str) -> io::Result<Pending> {
        use std::io::Write;
        let mut stream = UnixStream::connect(socket)?;
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        stream.set_nonblocking(true)?;
        Ok(Pending { stream, bytes: Vec::new() })
    }

    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Takes what has come. False: nothing more comes.
    pub fn hear(&mut self) -> io::Result<bool> {
        let mut buffer = [0u8; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(read) => self.bytes.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The last whole object in what came, and forgets what is before it. What is between objects (heads of answers and
    /// of chunks) has no braces in it.
    pub fn last_object<T: DeserializeOwned>(&mut self) -> Option<T> {
        let (mut last, mut from) = (None, 0);
        while let Some(start) = self.bytes[from..].iter().position(|byte| *byte == b'{') {
            let start = from + start;
            let mut objects = serde_json::Deserializer::from_slice(&self.bytes[start..]).into_iter::<T>();
            let Some(Ok(object)) = objects.next() else {
                from = start;
                break;
            };
            from = start + objects.byte_offset();
            last = Some(object);
        }
        if last.is_some() {
            self.bytes.drain(..from);
        }
        last
    }
}

fn json(what: &str, value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(unreadable(what))
}

fn read<T: DeserializeOwned>(what: &str, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(unreadable(what))
}

fn unreadable(what: &str) -> impl FnOnce(serde_json::Error) -> Unusable {
    let what = what.to_owned();
    move |error| Unusable::Unreadable { what, why: error.to_string() }
}

/// How long Podman may take to be told of a container's end, and how often it is asked meanwhile.
const UNTIL_KNOWN: Duration = Duration::from_secs(1);
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// Podman looks into the folder of the first process, and takes it for an error of its own if that ends meanwhile.
fn has_just_ended(error: &Unusable) -> bool {
    matches!(error, Unusable::Said { status: 500.., said, .. } if said.contains("/proc/") && said.contains("no such "))
}

fn said(what: &str, (status, text): (u16, Vec<u8>)) -> Unusable {
    let message = serde_json::from_slice::<Message>(&text).map(|said| said.message);
    let said = message.unwrap_or_else(|_| format!("{status} {}", String::from_utf8_lossy(&text).trim()));
    // Some say all that they were told once more.
    let said = match said.char_indices().nth(LONGEST_SAID) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said,
    };
    Unusable::Said { what: what.to_owned(), status, said }
}

fn ignoring(statuses: &[u16], done: Result<Vec<u8>>) -> Result<()> {
    match done {
        Ok(_) => Ok(()),
        Err(error) if statuses.iter().any(|status| error.is_status(*status)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn number(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// A name's repository and tag. A digest stays where it is.
fn split_name(name: &str) -> (&str, &str) {
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') && !name.contains('@') => (repository, tag),
        _ if name.contains('@') => (name, ""),
        _ => (name, "latest"),
    }
}

/// For a part of an address.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_tag_and_digests_have_none() {
        assert_eq!(split_name("busybox"), ("busybox", "latest"));
        assert_eq!(split_name("a.b:5000/c"), ("a.b:5000/c", "latest"));
        assert_eq!(split_name("a.b:5000/c:7"), ("a.b:5000/c", "7"));
        assert_eq!(split_name("c@sha256:ab"), ("c@sha256:ab", ""));
    }

    #[test]
    fn a_container_that_has_just_ended_is_no_trouble_of_the_engines() {
        let error = |status, said: &str| said_by("look at a container", status, said);
        assert!(has_just_ended(&error(500, "read /proc/32745/cgroup: no such process")));
        assert!(has_just_ended(&error(500, "open /proc/32745/cgroup: no such file or directory")));
        assert!(!has_just_ended(&error(404, "no such container")));
        assert!(!has_just_ended(&error(500, "open /var/lib/x: no such file or directory")));
    }

    fn said_by(what: &str, status: u16, said: &str) -> Unusable {
        Unusable::Said { what: what.to_owned(), status, said: said.to_owned() }
    }

    #[test]
    fn no_name_gets_out_of_its_place_in_an_address() {
        assert_eq!(escaped("a/../b?x=y#z%\r\n é"), "a%2F..%2Fb%3Fx%3Dy%23z%25%0D%0A%20%C3%A9");
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(number("1.100") > number("1.41"));
        assert!(number("") < OLDEST);
        assert!(number("nonsense") < OLDEST);
    }
}
