//! CPython 3.11, from the sources of Debian's package, with its library compiled beforehand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Built, is_fresh, quietly, stamp, tools};
use crate::place;

const VERSION: &str = "CPython 3.11.2";
const PACKAGE: &str = "python3.11";
const TARBALL: &str = "python3.11_3.11.2.orig.tar.gz";
/// SHA-256, as Debian signs it.
const DIGEST: &str = "2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849";
const FOLDER: &str = "Python-3.11.2";

const FLAGS: &str = "-Os -g0 -w -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_GETPID -D_WASI_EMULATED_PROCESS_CLOCKS \
                     -isystem /usr/include/wasm32-wasi";
/// Its stack lies before all else: one that overflows ends the module, and overwrites nothing.
const LINKED: &str = "-lwasi-emulated-signal -lwasi-emulated-getpid -lwasi-emulated-process-clocks \
                      -Wl,-z,stack-size=4194304 -Wl,--stack-first -Wl,--initial-memory=20971520 -Wl,--strip-all";
const CONFIGURED: &[&str] = &[
    "--host=wasm32-unknown-wasi", "--build=x86_64-pc-linux-gnu", "--with-build-python=/usr/bin/python3.11",
    "--with-ensurepip=no", "--disable-test-modules", "--disable-ipv6", "--prefix=/usr/local",
];
/// Of the library, what is of no use where there are no windows, processes or compilers.
const LEFT_OUT: &[&str] = &[
    "test", "idlelib", "tkinter", "turtledemo", "turtle.py", "lib2to3", "ensurepip", "distutils", "pydoc_data",
    "msilib", "curses", "dbm", "sqlite3", "venv", "multiprocessing",
];
const LIBRARY: &str = "/usr/local/lib/python3.11";

pub fn build(work: &Path) -> Result<Built, String> {
    let module = work.join("python.wasm");
    let library = work.join("python-library");
    let built = Built {
        language: "python",
        version: VERSION.to_owned(),
        source: format!("Debian's source package {PACKAGE}, {TARBALL}, sha256 {DIGEST}"),
        module: module.clone(),
        libraries: vec![(library.clone(), LIBRARY)],
        // Nothing is written beside the library, and nobody looks for packages of the user's.
        variables: vec![("PYTHONHOME", "/usr/local"), ("PYTHONDONTWRITEBYTECODE", "1"), ("PYTHONNOUSERSITE", "1")],
    };
    let tools = tools::version();
    let recipe = [CONFIGURED.join(" "), LEFT_OUT.join(" "), FLAGS.to_owned(), LINKED.to_owned()].join("\n");
    let inputs: [&[u8]; 3] = [DIGEST.as_bytes(), tools.as_bytes(), recipe.as_bytes()];
    let done = work.join("python.stamp");
    if is_fresh(&done, &inputs) && module.exists() && library.is_dir() {
        println!("python: built before");
        return Ok(built);
    }
    println!("python: fetching and building {VERSION}, some minutes");
    let tarball = fetch(work)?;
    let sources = work.join(FOLDER);
    if sources.exists() {
        fs::remove_dir_all(&sources).map_err(|error| error.to_string())?;
    }
    quietly(Command::new("tar").arg("xzf").arg(&tarball).arg("-C").arg(work))?;
    compile(&sources, &module)?;
    compiled_library(&sources.join("Lib"), &library)?;
    fs::remove_dir_all(&sources).map_err(|error| error.to_string())?;
    stamp(&done, &inputs)?;
    Ok(built)
}

/// From wherever this machine gets its packages; once.
fn fetch(work: &Path) -> Result<PathBuf, String> {
    let tarball = work.join(TARBALL);
    if checked(&tarball).is_ok() {
        return Ok(tarball);
    }
    let apt = work.join("apt");
    let (lists, parts) = (apt.join("lists"), apt.join("parts"));
    for folder in [&lists.join("partial"), &parts] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    // The machine's own sources, as sources of sources.
    let mut any = false;
    for entry in fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten() {
        let Ok(text) = fs::read_to_string(entry.path()) else { continue };
        if entry.path().extension().is_some_and(|end| end == "sources") {
            let text = text.replace("Types: deb\n", "Types: deb-src\n");
            fs::write(parts.join(entry.file_name()), text).map_err(|error| error.to_string())?;
            any = true;
        }
    }
    if let Ok(text) = fs::read_to_string("/etc/apt/sources.list") {
        let lines: Vec<String> =
            text.lines().filter_map(|line| line.strip_prefix("deb ").map(|rest| format!("deb-src {rest}"))).collect();
        any |= !lines.is_empty();
        fs::write(parts.join("machine.list"), lines.join("\n") + "\n").map_err(|error| error.to_string())?;
    }
    if !any {
        return Err(format!("this machine names no source of packages; put {TARBALL} into {}", work.display()));
    }
    let apt_get = || {
        let mut command = Command::new("apt-get");
        command.args(["-o", "Dir::Etc::sourcelist=/dev/null"]);
        command.arg("-o").arg(format!("Dir::Etc::sourceparts={}", parts.display()));
        command.arg("-o").arg(format!("Dir::State::lists={}", lists.display())).current_dir(work);
        command
    };
    quietly(apt_get().args(["--quiet", "update"]))?;
    // It may fail for other parts of the package, which nobody needs: the digest tells.
    let fetched = quietly(apt_get().args(["--quiet", "source", "--download-only", PACKAGE]));
    checked(&tarball).map_err(|why| format!("{why}; {}", fetched.err().unwrap_or_default()))?;
    Ok(tarball)
}

fn checked(tarball: &Path) -> Result<(), String> {
    let said = place::said(Command::new("sha256sum").arg(tarball)).unwrap_or_default();
    match said.split_whitespace().next() {
        Some(found) if found == DIGEST => Ok(()),
        Some(found) => Err(format!("{} has the digest {found}, not {DIGEST}", tarball.display())),
        None => Err(format!("{} is not there", tarball.display())),
    }
}

fn compile(sources: &Path, module: &Path) -> Result<(), String> {
    let folder = sources.join("build-wasi");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let configured = |program: &str| {
        let mut command = Command::new(program);
        command.current_dir(&folder);
        for (name, value) in [
            ("CC", "clang --target=wasm32-wasi"),
            ("CPP", "clang --target=wasm32-wasi -E"),
            ("AR", "llvm-ar"),
            ("RANLIB", "llvm-ranlib"),
            ("CONFIG_SITE", "../Tools/wasm/config.site-wasm32-wasi"),
            // Otherwise the machine's own libraries would be found.
            ("PKG_CONFIG_LIBDIR", "/nonexistent"),
            ("PKG_CONFIG_PATH", ""),
            ("CFLAGS", FLAGS),
            ("LDFLAGS", LINKED),
        ] {
            command.env(name, value);
        }
        command
    };
    quietly(configured("../configure").args(CONFIGURED))?;
    let jobs = std::thread::available_parallelism().map_or(2, usize::from);
    quietly(configured("make").arg(format!("--jobs={jobs}")).arg("python.wasm"))?;
    fs::copy(folder.join("python.wasm"), module).map(drop).map_err(|error| format!("{}: {error}", module.display()))
}

/// Compiled by the machine's own Python of the same series, and never looked at again: nobody compares times.
fn compiled_library(sources: &Path, library: &Path) -> Result<(), String> {
    if library.exists() {
        fs::remove_dir_all(library).map_err(|error| error.to_string())?;
    }
    copied(sources, library).map_err(|error| format!("{}: {error}", library.display()))?;
    let mut python = Command::new("/usr/bin/python3.11");
    python.args(["-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash", "-s"]).arg(library);
    quietly(python.args(["-p", LIBRARY]).arg(library))
}

fn copied(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if LEFT_OUT.iter().any(|left| name == *left) || name == "__pycache__" || name == "tests" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copied(&entry.path(), &to.join(name))?;
        } else if entry.path().extension().is_some_and(|end| end == "py") {
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}
