//! Interpreters that are modules themselves: which there are, where, and whether they are what was installed.
//!
//! `cargo xtask interpreters` builds and installs them, with a list of what they are. What differs from the list is not run.

use std::path::{Path, PathBuf};

use model::Place;
use serde::Deserialize;

use crate::cache;
use crate::failure::Failure;
use crate::module::{self, Module};
use crate::worker;

pub const LANGUAGES: [&str; 2] = ["python", "javascript"];
/// Beside the worker.
const FOLDER: &str = "interpreters";
const INSTALL: &str = "install it with `cargo xtask interpreters`";

#[derive(Debug)]
pub struct Interpreter {
    /// For people.
    pub version: String,
    module: PathBuf,
    digest: String,
    pub libraries: Vec<Library>,
    /// What it needs to find them.
    pub variables: Vec<(String, String)>,
}

/// What it reads while it runs.
#[derive(Debug)]
pub struct Library {
    pub place: Place,
    /// For the module.
    pub name: PathBuf,
    /// Of one that is a folder: its files' digests.
    files: Vec<(PathBuf, String)>,
}

/// What was installed, as whoever installed it wrote down.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    version: String,
    /// Beside the list, as are the libraries.
    module: PathBuf,
    digest: String,
    #[serde(default)]
    libraries: Vec<ListedLibrary>,
    #[serde(default)]
    variables: Vec<(String, String)>,
    /// From what, and how: for people.
    #[serde(default, rename = "source")]
    _source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedLibrary {
    folder: PathBuf,
    name: PathBuf,
    files: Vec<(PathBuf, String)>,
}

pub fn find(language: &str) -> Result<Interpreter, Failure> {
    let folders = worker::folders();
    let lists = folders.iter().map(|folder| folder.join(FOLDER).join(language).join("installed.json"));
    let Some(list) = lists.into_iter().find(|list| list.is_file()) else {
        let folders: Vec<String> =
            folders.iter().map(|folder| format!("`{}`", folder.join(FOLDER).display())).collect();
        return Err(Failure::setup(
            format!("there is no interpreter for {language} in {}", folders.join(" or ")),
            INSTALL,
        ));
    };
    read(&list)
}

fn read(list: &Path) -> Result<Interpreter, Failure> {
    let broken = |why: String| Failure::setup(format!("the list `{}` can't be read: {why}", list.display()), INSTALL);
    let text = std::fs::read(list).map_err(|error| broken(error.to_string()))?;
    let listed: Listed = serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
    let folder = list.parent().unwrap_or(list);
    let folder = sys::paths::real(folder).map_err(|error| broken(error.to_string()))?;
    let beside = |path: &Path| match path.components().all(|part| matches!(part, std::path::Component::Normal(_))) {
        true => Ok(folder.join(path)),
        false => Err(broken(format!("`{}` is not beside it", path.display()))),
    };
    let mut libraries = Vec::new();
    for library in listed.libraries {
        let path = beside(&library.folder)?;
        let place = worker::seen(path.clone()).ok_or_else(|| broken(format!("`{}` is not there", path.display())))?;
        libraries.push(Library { place, name: library.name, files: library.files });
    }
    Ok(Interpreter {
        version: listed.version,
        module: beside(&listed.module)?,
        digest: listed.digest,
        libraries,
        variables: listed.variables,
    })
}

impl Interpreter {
    /// The module, as it was installed: another is not run.
    pub fn read(&self) -> Result<Module, Failure> {
        let module = module::bytes(&self.module)?;
        match blake3::hash(&module.bytes).to_hex().as_str() == self.digest {
            true => Ok(module),
            false => Err(changed(&self.module)),
        }
    }

    /// All of it, libraries too.
    pub fn check(&self) -> Result<(), Failure> {
        self.read()?;
        for library in &self.libraries {
            for (file, digest) in &library.files {
                let path = library.place.path.join(file);
                let found = cache::digest(&path).map_err(|error| Failure::cannot("read", &path, error))?;
                if found != *digest {
                    return Err(changed(&path));
                }
            }
        }
        Ok(())
    }
}

fn changed(path: &Path) -> Failure {
    Failure::setup(format!("`{}` is not what was installed: its digest differs", path.display()), INSTALL)
}
