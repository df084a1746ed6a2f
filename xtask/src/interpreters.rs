//! `cargo xtask interpreters`: JavaScript and Python as WebAssembly modules, built from sources that are pinned by digest,
//! and installed beside belljar with a list of what they are. What was fetched and built once is not fetched or built again.

mod javascript;
mod python;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use testkit::contestant::peers_folder;

use crate::place;

/// One interpreter, as it is installed.
struct Built {
    language: &'static str,
    version: String,
    /// Where it came from.
    source: String,
    module: PathBuf,
    /// Folders that it reads: here, and as it knows them.
    libraries: Vec<(PathBuf, &'static str)>,
    variables: Vec<(&'static str, &'static str)>,
}

/// `folder`: where `belljar` is, or will be; otherwise beside every build of it.
pub fn install(folder: Option<&str>) -> Result<(), String> {
    tools::install()?;
    // Of root's, beside all else that tests need: minutes that the next build here does not take again.
    let work = if place::are_we_root() { peers_folder() } else { place::targets() }.join("interpreters");
    fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    let built = [javascript::build(&work)?, python::build(&work)?];
    let places = folder.map_or_else(builds, |folder| vec![PathBuf::from(folder)]);
    for place in &places {
        for one in &built {
            put(one, &place.join("interpreters").join(one.language))?;
        }
        println!("installed in {}", place.join("interpreters").display());
    }
    Ok(())
}

/// Where belljar was built: the default build, and the one that is released.
fn builds() -> Vec<PathBuf> {
    let kinds = ["gnu", "musl"].map(|kind| format!("{}-unknown-linux-{kind}/release", std::env::consts::ARCH));
    let folders: Vec<PathBuf> =
        kinds.iter().map(|kind| place::targets().join(kind)).filter(|folder| folder.is_dir()).collect();
    if folders.is_empty() { vec![place::targets().join(&kinds[0])] } else { folders }
}

/// Everything anew, and the list last: without it there is no interpreter.
fn put(built: &Built, folder: &Path) -> Result<(), String> {
    let complain = |error: std::io::Error| format!("cannot install {}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(complain)?;
    }
    fs::create_dir_all(folder).map_err(complain)?;
    let name = format!("{}.wasm", built.language);
    fs::copy(&built.module, folder.join(&name)).map_err(complain)?;
    let mut libraries = Vec::new();
    for (at, (from, known)) in built.libraries.iter().enumerate() {
        let to = format!("library{at}");
        let mut files = Vec::new();
        copy(from, &folder.join(&to), Path::new(""), &mut files).map_err(complain)?;
        libraries.push(json!({ "folder": to, "name": known, "files": files }));
    }
    let list = json!({
        "version": built.version,
        "source": built.source,
        "module": name,
        "digest": digest(&folder.join(&name)).map_err(complain)?,
        "libraries": libraries,
        "variables": built.variables,
    });
    let text = serde_json::to_vec_pretty(&list).map_err(|error| error.to_string())?;
    fs::write(folder.join("installed.json"), text).map_err(complain)
}

fn copy(from: &Path, to: &Path, name: &Path, files: &mut Vec<(PathBuf, String)>) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    let mut entries = fs::read_dir(from)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (inner, name) = (to.join(entry.file_name()), name.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &inner, &name, files)?;
        } else {
            fs::copy(entry.path(), &inner)?;
            files.push((name, digest(&inner)?));
        }
    }
    Ok(())
}

fn digest(file: &Path) -> std::io::Result<String> {
    Ok(blake3::hash(&fs::read(file)?).to_hex().to_string())
}

/// Whether what is built is what these inputs give. A recipe that changes builds anew.
fn is_fresh(stamp: &Path, inputs: &[&[u8]]) -> bool {
    fs::read_to_string(stamp).is_ok_and(|known| known == of(inputs))
}

fn stamp(stamp: &Path, inputs: &[&[u8]]) -> Result<(), String> {
    fs::write(stamp, of(inputs)).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn of(inputs: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new();
    for input in inputs {
        hasher.update(&(input.len() as u64).to_le_bytes()).update(input);
    }
    hasher.finalize().to_hex().to_string()
}

/// A step of a build, silent unless it fails.
fn quietly(command: &mut Command) -> Result<(), String> {
    let said = command.output().map_err(|error| format!("{}: {error}", crate::steps::words(command)))?;
    if said.status.success() {
        return Ok(());
    }
    let last = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    };
    Err(format!("{}:\n{}\n{}", crate::steps::words(command), last(&said.stdout), last(&said.stderr)))
}
