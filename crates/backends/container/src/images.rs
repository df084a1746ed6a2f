//! Images: belljar's own, those that an engine has, and those that are made from what is on this host.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use model::ImageShown;
use serde::Deserialize;

use crate::api::{Api, Image};
use crate::tar::{self, Archive, Entry, What};
use crate::trouble::{Result, Unusable};

/// Where belljar's own is kept. The tag is the digest of what is in it.
const OWN: &str = "belljar/busybox";
const MADE_BY_US: &str = "belljar.image";

const BUSYBOXES: &[&str] = &["/bin/busybox", "/usr/bin/busybox", "/bin/busybox-static", "/usr/local/bin/busybox"];

/// What scripts take for granted.
const APPLETS: &[&str] = &[
    "[", "arch", "ash", "awk", "base64", "basename", "bunzip2", "bzcat", "bzip2", "cat", "chmod", "chown", "cmp",
    "comm", "cp", "cpio", "cut", "date", "dd", "df", "diff", "dirname", "du", "echo", "ed", "env", "expand", "expr",
    "factor", "false", "find", "fold", "free", "grep", "egrep", "fgrep", "gunzip", "gzip", "head", "hexdump",
    "hostname", "id", "install", "ip", "kill", "killall", "less", "link", "ln", "ls", "md5sum", "mkdir", "mkfifo",
    "mktemp", "more", "mount", "mv", "nc", "nice", "nl", "nohup", "nproc", "nslookup", "od", "paste", "patch", "pgrep",
    "pidof", "ping", "pkill", "printenv", "printf", "ps", "pwd", "readlink", "realpath", "rev", "rm", "rmdir", "sed",
    "seq", "setsid", "sh", "sha1sum", "sha256sum", "sha512sum", "shuf", "sleep", "sort", "split", "stat", "strings",
    "stty", "sync", "tac", "tail", "tar", "tee", "test", "time", "timeout", "touch", "tr", "true", "truncate", "tty",
    "uname", "unexpand", "uniq", "unlink", "unxz", "unzip", "uptime", "vi", "wc", "wget", "which", "whoami", "xargs",
    "xxd", "xzcat", "yes", "zcat",
];

/// An image by the name that somebody gave, or belljar's own; it is there afterwards.
pub fn find(api: &Api, name: Option<&str>, pull: bool) -> Result<(String, Image)> {
    let Some(name) = name else { return own(api) };
    check_name(name)?;
    let image = match (api.image(name), pull) {
        (Err(Unusable::NoImage { .. }), true) => {
            api.pull(name)?;
            api.image(name)?
        }
        (Err(Unusable::NoImage { name }), false) => return Err(Unusable::NotPulled { name }),
        (found, _) => found?,
    };
    check_machine(name, &image)?;
    Ok((name.to_owned(), image))
}

/// Names go into addresses and messages: what no name has is not asked for.
pub fn check_name(name: &str) -> Result<()> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let sound = !name.is_empty()
        && name.len() <= 255
        && name.bytes().all(fits)
        && name.as_bytes()[0].is_ascii_alphanumeric()
        && !name.contains("..")
        && !name.contains("//");
    match sound {
        true => Ok(()),
        false => Err(Unusable::NoName { name: name.escape_debug().to_string() }),
    }
}

fn check_machine(name: &str, image: &Image) -> Result<()> {
    let here = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let is = format!("{}/{}", image.os, image.architecture);
    let fits =
        (image.os.is_empty() || image.os == "linux") && (image.architecture.is_empty() || image.architecture == here);
    match fits {
        true => Ok(()),
        false => Err(Unusable::OtherMachine { name: name.to_owned(), is, here: format!("linux/{here}") }),
    }
}

/// Belljar's own image; made from the host's busybox when it is first asked for.
pub fn own(api: &Api) -> Result<(String, Image)> {
    let (path, bytes) = busybox()?;
    let tag = blake3::hash(&bytes).to_hex();
    let name = format!("{OWN}:{}-{LAYOUT}", &tag[..16]);
    match api.image(&name) {
        Ok(image) => Ok((name, image)),
        Err(Unusable::NoImage { .. }) => {
            make_own(api, &name, &path, bytes)?;
            let image = api.image(&name)?;
            Ok((name, image))
        }
        Err(error) => Err(error),
    }
}

/// Raised when what is beside busybox changes.
const LAYOUT: u32 = 1;

fn make_own(api: &Api, name: &str, busybox: &Path, bytes: Vec<u8>) -> Result<String> {
    let entry = |name: &str, mode, what| Entry { name: name.to_owned(), mode, owner: (0, 0), what };
    let mut entries = Vec::new();
    for folder in ["bin", "dev", "etc", "home", "proc", "root", "run", "sys", "usr", "usr/bin", "var"] {
        entries.push(entry(folder, 0o755, What::Folder));
    }
    for folder in ["tmp", "var/tmp"] {
        entries.push(entry(folder, 0o1777, What::Folder));
    }
    let files = [
        ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"),
        ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
        ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    ];
    entries.extend(files.map(|(name, text)| entry(name, 0o644, What::Bytes(text.as_bytes().to_vec()))));
    entries.push(entry("bin/busybox", 0o755, What::Bytes(bytes)));
    entries.push(entry("usr/bin/env", 0o777, What::Link("/bin/busybox".to_owned())));
    entries.extend(APPLETS.iter().map(|name| entry(&format!("bin/{name}"), 0o777, What::Link("busybox".to_owned()))));
    let changes = [format!("LABEL {MADE_BY_US}=busybox"), "ENV PATH=/bin:/usr/bin".to_owned()];
    let mut archive = Archive::new(entries.into_iter().map(Ok));
    api.import(&mut archive, name, &changes).map_err(|error| match error {
        Unusable::Failed { source, .. } => Unusable::Failed { what: format!("read `{}`", busybox.display()), source },
        other => other,
    })
}

fn busybox() -> Result<(PathBuf, Vec<u8>)> {
    for path in BUSYBOXES.iter().map(PathBuf::from) {
        if let Ok(bytes) = std::fs::read(&path)
            && is_static(&bytes)
        {
            return Ok((path, bytes));
        }
    }
    Err(Unusable::NoBusybox)
}

/// A program that needs no loader: it runs where nothing else is.
fn is_static(program: &[u8]) -> bool {
    let number = |at: usize, length: usize| -> Option<u64> {
        let bytes = program.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    // ELF of 64 bits, the low byte first: where its program headers are, how long one is and how many.
    if program.get(..6) != Some(b"\x7fELF\x02\x01") {
        return false;
    }
    let (Some(at), Some(size), Some(count)) = (number(32, 8), number(54, 2), number(56, 2)) else { return false };
    const INTERPRETER: u64 = 3;
    (0..count).all(|index| {
        let place = usize::try_from(at + index * size).unwrap_or(usize::MAX);
        number(place, 4).is_some_and(|kind| kind != INTERPRETER)
    })
}

/// The same under a name of one's own.
pub fn from_busybox(api: &Api, name: Option<&str>) -> Result<(String, Image)> {
    let (own, _) = own(api)?;
    let name = match name {
        Some(name) => {
            check_name(name)?;
            api.tag(&own, name)?;
            name.to_owned()
        }
        None => own,
    };
    let image = api.image(&name)?;
    Ok((name, image))
}

/// A folder (a root, or an OCI layout) or an archive of either becomes an image. What is in it is the engine's to unpack.
pub fn import(api: &Api, from: &Path, name: Option<&str>) -> Result<(String, Image)> {
    if let Some(name) = name {
        check_name(name)?;
    }
    let unread = |source| Unusable::Failed { what: format!("read `{}`", from.display()), source };
    let stat = std::fs::metadata(from).map_err(unread)?;
    let loaded = if stat.is_dir() {
        match from.join("oci-layout").is_file() {
            true => Some(load_layout(api, &Blobs::Folder(from.to_owned()), name)?),
            false => None,
        }
    } else {
        load_archive(api, from, name)?
    };
    let name = match loaded {
        Some(loaded) => loaded,
        None => {
            let name = name.map_or_else(|| default_name(from), str::to_owned);
            let label = [format!("LABEL {MADE_BY_US}=import")];
            match stat.is_dir() {
                true => api.import(&mut Archive::new(tar::tree(from)), &name, &label)?,
                false => api.import(&mut File::open(from).map_err(unread)?, &name, &label)?,
            };
            name
        }
    };
    let image = api.image(&name)?;
    Ok((name, image))
}

/// What a file or folder is called, made into a name that engines take.
fn default_name(from: &Path) -> String {
    let stem = from.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let stem = stem.split(".tar").next().unwrap_or_default();
    let fit: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let fit = fit.trim_matches('-');
    format!("belljar/{}", if fit.is_empty() { "image" } else { fit })
}

const MOST_ENTRIES: usize = 100_000;

/// An archive with images in it, if it is one; nothing if it is a plain tree.
fn load_archive(api: &Api, from: &Path, name: Option<&str>) -> Result<Option<String>> {
    let unread = |source| Unusable::Failed { what: format!("read `{}`", from.display()), source };
    let mut file = File::open(from).map_err(unread)?;
    let there = tar::index(&mut file, MOST_ENTRIES).map_err(unread)?;
    let has = |wanted: &str| there.iter().any(|(name, ..)| name == wanted);
    if has("oci-layout") && !has("manifest.json") {
        return load_layout(api, &Blobs::Archive(from.to_owned(), there), name).map(Some);
    }
    // A compressed one can't be looked into: the engine says whether it is one.
    let compressed = there.is_empty();
    if !has("manifest.json") && !compressed {
        return Ok(None);
    }
    match api.load(&mut File::open(from).map_err(unread)?) {
        Ok(loaded) => named(api, loaded.first().map(String::as_str), name).map(Some),
        Err(Unusable::Said { said, .. }) if compressed && said.contains("no such file") => Ok(None),
        Err(error) => Err(error),
    }
}

fn named(api: &Api, loaded: Option<&str>, name: Option<&str>) -> Result<String> {
    let Some(loaded) = loaded else {
        return Err(Unusable::Unreadable { what: "load an image".to_owned(), why: "it names none".to_owned() });
    };
    match name {
        Some(name) => api.tag(loaded, name).map(|()| name.to_owned()),
        None => Ok(loaded.to_owned()),
    }
}

/// Where the parts of an OCI layout are.
enum Blobs {
    Folder(PathBuf),
    Archive(PathBuf, Vec<(String, u64, u64)>),
}

/// Descriptions are short; what is longer is none.
const LONGEST_DESCRIPTION: u64 = 4 << 20;

impl Blobs {
    /// Where something is: a file, from where on, and how long.
    fn place(&self, name: &str) -> io::Result<(PathBuf, u64, u64)> {
        match self {
            Blobs::Folder(folder) => {
                let path = folder.join(name);
                let stat = std::fs::symlink_metadata(&path)?;
                // A link could lead anywhere on this host, and what is there would become part of the image.
                match stat.is_file() {
                    true => Ok((path, 0, stat.len())),
                    false => Err(io::Error::other(format!("`{name}` is no file"))),
                }
            }
            Blobs::Archive(path, index) => {
                let found = index.iter().find(|(known, ..)| known == name);
                found.map(|(_, from, length)| (path.clone(), *from, *length)).ok_or(io::ErrorKind::NotFound.into())
            }
        }
    }

    fn description<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Result<(T, Vec<u8>)> {
        let read = || -> io::Result<Vec<u8>> {
            use std::io::Seek;
            let (path, from, length) = self.place(name)?;
            if length > LONGEST_DESCRIPTION {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let mut file = File::open(path)?;
            file.seek(io::SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.take(length).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes =
            read().map_err(|source| Unusable::Failed { what: format!("read `{name}` of the image"), source })?;
        let value = serde_json::from_slice(&bytes)
            .map_err(|error| Unusable::Unreadable { what: name.to_owned(), why: error.to_string() })?;
        Ok((value, bytes))
    }
}

#[derive(Deserialize)]
struct Described {
    digest: String,
    #[serde(default)]
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Platform {
    architecture: String,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Described>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Manifest {
    Image { config: Described, layers: Vec<Described> },
    Index(Index),
}

/// Older engines do not read OCI layouts: handed over in the form that all of them read.
fn load_layout(api: &Api, blobs: &Blobs, name: Option<&str>) -> Result<String> {
    let mut index: Index = blobs.description("index.json")?.0;
    let here = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    // An index may lead to another, and not for ever.
    for _ in 0..4 {
        let fits = |one: &&Described| one.platform.as_ref().is_none_or(|platform| platform.architecture == here);
        let chosen = index.manifests.iter().find(fits).ok_or_else(|| Unusable::Unreadable {
            what: "index.json".to_owned(),
            why: format!("it has no image for linux/{here}"),
        })?;
        match blobs.description::<Manifest>(&blob(&chosen.digest)?)?.0 {
            Manifest::Index(inner) => index = inner,
            Manifest::Image { config, layers } => return load_manifest(api, blobs, &config, &layers, name),
        }
    }
    Err(Unusable::Unreadable { what: "index.json".to_owned(), why: "it leads from one to another".to_owned() })
}

fn load_manifest(
    api: &Api,
    blobs: &Blobs,
    config: &Described,
    layers: &[Described],
    name: Option<&str>,
) -> Result<String> {
    let plain = |name: &str, what| Entry { name: name.to_owned(), mode: 0o644, owner: (0, 0), what };
    let config = blob(&config.digest)?;
    let (_, bytes) = blobs.description::<serde_json::Value>(&config)?;
    let mut entries = vec![plain("config.json", What::Bytes(bytes))];
    let mut names = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let place = blobs.place(&blob(&layer.digest)?);
        let (path, from, length) = place.map_err(|source| Unusable::Failed {
            what: format!("read the layer {} of the image", layer.digest),
            source,
        })?;
        let name = format!("{number}.tar");
        entries.push(plain(&name, What::File { path, from, length }));
        names.push(name);
    }
    let manifest = serde_json::json!([{ "Config": "config.json", "RepoTags": null, "Layers": names }]);
    entries.push(plain("manifest.json", What::Bytes(manifest.to_string().into_bytes())));
    let loaded = api.load(&mut Archive::new(entries.into_iter().map(Ok)))?;
    named(api, loaded.first().map(String::as_str), name)
}

/// The place of a part by its digest, which is somebody else's text.
fn blob(digest: &str) -> Result<String> {
    let sound = digest.split_once(':').filter(|(kind, hex)| {
        kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    match sound {
        Some((kind, hex)) if !kind.is_empty() && hex.len() >= 32 => Ok(format!("blobs/{kind}/{hex}")),
        _ => Err(Unusable::Unreadable { what: "a digest".to_owned(), why: digest.escape_debug().to_string() }),
    }
}

/// What an engine has.
pub fn list(api: &Api) -> Result<Vec<ImageShown>> {
    let mut all = Vec::new();
    for image in api.images()? {
        let ours = image.labels.as_ref().is_some_and(|labels| labels.contains_key(MADE_BY_US));
        let tags = image.repo_tags.unwrap_or_default();
        let names: Vec<String> = tags.into_iter().filter(|tag| tag != "<none>:<none>").collect();
        all.push(ImageShown { id: image.id, names, bytes: image.size, created: image.created, made_by_belljar: ours });
    }
    Ok(all)
}

pub fn shown((name, image): (String, Image)) -> ImageShown {
    let labels = image.config.as_ref().and_then(|config| config.labels.as_ref());
    let made_by_belljar = labels.is_some_and(|labels| labels.contains_key(MADE_BY_US));
    let mut names = image.repo_tags;
    if names.is_empty() {
        names.push(name);
    }
    ImageShown { id: image.id, names, bytes: image.size, created: 0, made_by_belljar }
}

/// A small Debian, made with the host's own debootstrap in a folder that is removed afterwards.
pub fn from_debootstrap(api: &Api, suite: &str, include: &[String], name: Option<&str>) -> Result<(String, Image)> {
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-+._".contains(&byte));
    if suite.is_empty() || suite.starts_with('-') || !plain(suite) || !include.iter().all(|one| plain(one)) {
        return Err(Unusable::Refused {
            wall: model::Wall::Files,
            message: format!("`{}` is no name of a suite, or a package has none", suite.escape_debug()),
            fix: "name one as Debian calls it, such as `bookworm`".to_owned(),
        });
    }
    let default = format!("belljar/debian:{suite}");
    let name = name.unwrap_or(&default);
    check_name(name)?;
    let folder = Scratch::new()?;
    let root = folder.0.join("root");
    let mut command = std::process::Command::new("debootstrap");
    command.arg("--variant=minbase");
    if !include.is_empty() {
        command.arg(format!("--include={}", include.join(",")));
    }
    let output = command.arg(suite).arg(&root).stdin(std::process::Stdio::null()).output();
    let fix = "run belljar as root, and install it (Debian: `debootstrap`); `belljar image from-host --busybox` needs neither";
    let refused = |message: String| Unusable::Refused { wall: model::Wall::Files, message, fix: fix.to_owned() };
    let output = output.map_err(|error| refused(format!("cannot run `debootstrap`: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        return Err(refused(format!("`debootstrap` failed: {last}")));
    }
    let label = [format!("LABEL {MADE_BY_US}=debootstrap")];
    api.import(&mut Archive::new(tar::tree(&root)), name, &label)?;
    let image = api.image(name)?;
    Ok((name.to_owned(), image))
}

/// A folder that nobody else can enter, gone in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        use std::os::unix::fs::DirBuilderExt;
        let mut random = [0u8; 8];
        let made = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(io::Error::from)
            .and_then(|_| {
                let path = std::env::temp_dir().join(format!("belljar-image-{:016x}", u64::from_le_bytes(random)));
                std::fs::DirBuilder::new().mode(0o700).create(&path).map(|()| path)
            });
        made.map(Scratch).map_err(|source| Unusable::Failed { what: "make a folder".to_owned(), source })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.0).is_err() {
            // In the system's own place for what is left.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_none_are_not_asked_for() {
        for good in ["busybox", "a.b:5000/c/d:7", "x@sha256:00ff"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "-x", "../x", "a//b", "a b", "a\nb", "a?b", "a%2fb", "ä", "/x"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_digest_leads_to_no_other_place() {
        let hex = "0".repeat(64);
        assert_eq!(blob(&format!("sha256:{hex}")).ok(), Some(format!("blobs/sha256/{hex}")));
        for bad in ["sha256:../../../../etc/passwd", "../x:00", "", ":", "sha256:"] {
            assert!(blob(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_a_program_without_a_loader_is_static() {
        assert!(!is_static(b""));
        assert!(!is_static(b"#!/bin/sh\n"));
        assert!(!is_static(&std::fs::read("/bin/sh").unwrap_or_default()));
    }

    #[test]
    fn what_a_file_is_called_makes_a_name() {
        assert_eq!(default_name(Path::new("/x/My Root.tar.gz")), "belljar/my-root");
        assert_eq!(default_name(Path::new("/")), "belljar/image");
    }
}
