//! Powers → what the worker is told in the module's place, and what it sees besides. Pure.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::paths::is_within;
use model::{Access, Command, Files, Network, Origin, Place, Powers};

use crate::failure::Failure;
use crate::interpreters::Interpreter;
use crate::worker::{self, Worker};

/// What the module is made of.
#[derive(Debug)]
pub enum Code {
    /// Compiled before; or about to be, if it is not `ready`.
    Compiled { file: PathBuf, ready: bool },
    /// As it was written: the worker compiles it where it runs.
    Written(PathBuf),
}

#[derive(Debug)]
pub struct Lowered {
    pub command: Command,
    pub environment: Vec<(OsString, OsString)>,
    pub seen: Vec<Place>,
    /// What is done before a sandbox is opened.
    pub first: Option<String>,
}

/// Before each variable of the module's: none of them speaks to the worker.
const MARK: &[u8] = b"+";
/// Private folders of the jar in which the module's own are made. Not where their names would be: something of ours may
/// lie below those, and be seen.
const SCRATCH: &str = "/dev/shm";
/// What the worker needs itself. A limit that leaves it no more is left as it is: the jar holds it anyway.
const OWN_MEMORY: u64 = 32 << 20;

pub fn lower(
    powers: &Powers,
    worker: &Worker,
    code: Code,
    interpreter: Option<&Interpreter>,
) -> Result<Lowered, Failure> {
    let Powers { command, files, environment, network, limits } = powers;
    let mut words: Vec<OsString> = vec![worker::NAME.into(), "run".into()];
    let mut seen = vec![worker.place.clone()];
    let mut first = None;
    match code {
        Code::Compiled { file, ready } => {
            words.extend(["--compiled".into(), file.clone().into()]);
            if !ready {
                first = Some(format!(
                    "compile  {} in a sandbox of its own, kept as {}",
                    command.program.display(),
                    file.display()
                ));
            }
            seen.extend(worker::seen(file));
        }
        Code::Written(file) => {
            words.extend(["--module".into(), file.clone().into()]);
            let visible = files.places.iter().any(|place| is_within(&file, &place.path));
            seen.extend(worker::seen(file).filter(|_| !visible));
        }
    }
    let memory = limits.memory.checked_sub(OWN_MEMORY).filter(|left| *left >= OWN_MEMORY).unwrap_or(limits.memory);
    words.extend(["--memory".into(), memory.to_string().into()]);
    match network {
        Network::Closed => {}
        Network::Gated(_) => words.push("--network".into()),
    }
    for folder in folders(files, &command.directory, &seen)? {
        words.extend([folder.word.into(), folder.from.into(), folder.name.into()]);
    }
    let mut variables = environment.clone();
    if let Some(interpreter) = interpreter {
        for library in &interpreter.libraries {
            words.extend(["--read".into(), library.place.path.clone().into(), library.name.clone().into()]);
            seen.push(library.place.clone());
        }
        for (name, value) in &interpreter.variables {
            variables.retain(|(known, _)| known != name.as_str());
            variables.push((name.into(), value.into()));
        }
    }
    words.extend(["--directory".into(), command.directory.clone().into(), "--".into()]);
    words.extend(command.arguments.iter().cloned());
    for (name, value) in &variables {
        if name.to_str().is_none() || value.to_str().is_none() {
            return Err(Failure::setup(
                format!("the variable `{}` is no text, and modules take only text", name.to_string_lossy()),
                format!("leave it out with `--env {}=`", name.to_string_lossy()),
            ));
        }
    }
    if let Some(word) = command.arguments.iter().find(|word| word.to_str().is_none()) {
        return Err(Failure::setup(
            format!("the argument `{}` is no text, and modules take only text", word.to_string_lossy()),
            "pass it in a file or on standard input",
        ));
    }
    let command = Command {
        program: worker.place.path.clone(),
        arguments: words,
        // The jar's root: where the module starts is what it is told.
        directory: "/".into(),
        terminal: command.terminal,
    };
    let environment = variables.into_iter().map(|(name, value)| (marked(&name), value)).collect();
    Ok(Lowered { command, environment, seen, first })
}

fn marked(name: &OsStr) -> OsString {
    let mut marked = OsStr::from_bytes(MARK).to_owned();
    marked.push(name);
    marked
}

/// A folder for the module.
#[derive(Debug, PartialEq, Eq)]
struct Folder {
    word: &'static str,
    from: PathBuf,
    name: PathBuf,
}

/// What was granted, by its own names; a home and a place for temporary files; and where it starts.
/// `ours`: what the worker sees besides.
fn folders(files: &Files, start: &Path, ours: &[Place]) -> Result<Vec<Folder>, Failure> {
    let Files { ground: _, places, links: _, hidden: _, home, user_name: _ } = files;
    let word = |place: &Place| match place.access {
        Access::Read => "--read",
        // The mount decides whether it is a layer.
        Access::Layered | Access::Write => "--write",
    };
    let granted: Vec<&Place> =
        places.iter().filter(|place| !matches!(place.origin, Origin::System | Origin::Toolchain)).collect();
    let around = |path: &Path| granted.iter().rev().find(|place| place.folder && is_within(path, &place.path));
    let mut folders = Vec::new();
    for single in granted.iter().filter(|place| !place.folder && around(&place.path).is_none()) {
        let alone = single.path.parent().filter(|folder| has_only_files_of_the_grant(folder, &granted, files, ours));
        let Some(alone) = alone else {
            return Err(Failure::setup(
                format!(
                    "`{}` is a file, and a module can only be given folders; in the one that it is in there is more",
                    single.path.display()
                ),
                "grant the folder that it is in, put the file into a folder of its own, or leave it out",
            ));
        };
        // One for all files in it. Whether each may be written to, its mount decides; the folder is the jar's own, and what is made in it goes with it.
        let written = single.access != Access::Read;
        match folders.iter_mut().find(|folder: &&mut Folder| folder.from == alone) {
            Some(folder) if written => folder.word = "--write",
            Some(_) => {}
            None => folders.push(Folder { word: word(single), from: alone.to_owned(), name: alone.to_owned() }),
        }
    }
    let mut own: Vec<(&Path, &str)> = vec![(Path::new("/tmp"), "tmp")];
    // A home that is where temporary files are is no other folder.
    own.extend((home != Path::new("/tmp")).then_some((home.as_path(), "home")));
    for (name, part) in own {
        if around(name).is_none() {
            folders.push(Folder { word: "--scratch", from: Path::new(SCRATCH).join(part), name: name.to_owned() });
        }
    }
    for place in granted.iter().filter(|place| place.folder) {
        folders.push(Folder { word: word(place), from: place.path.clone(), name: place.path.clone() });
    }
    // Last, and only if it is part of one of these: the root of the jar has more in it than was granted.
    let here = Path::new(".");
    if let Some(place) = around(start) {
        folders.push(Folder { word: word(place), from: start.to_owned(), name: here.to_owned() });
    } else if let Some(scratch) = folders.iter().find(|folder| folder.word == "--scratch" && folder.name == start) {
        folders.push(Folder { word: "--scratch", from: scratch.from.clone(), name: here.to_owned() });
    }
    Ok(folders)
}

/// Whether nothing is in that folder of the jar but single files that were granted: then it can be given instead of them.
fn has_only_files_of_the_grant(folder: &Path, granted: &[&Place], files: &Files, ours: &[Place]) -> bool {
    let single = |place: &Place| {
        !place.folder && place.path.parent() == Some(folder) && granted.iter().any(|one| one.path == place.path)
    };
    let mut others = files.places.iter().chain(ours).filter(|place| !single(place));
    // The jar has files of its own in these.
    let own =
        ["/bin", "/dev", "/etc", "/lib", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var/tmp"].map(Path::new);
    let contains = |path: &Path| is_within(path, folder);
    let is_below = |path: &str| is_within(folder, Path::new(path));
    folder != Path::new("/")
        && !others.any(|place| contains(&place.path) || is_within(folder, &place.path))
        && !own.into_iter().any(contains)
        && !["/proc", "/sys", "/dev"].into_iter().any(is_below)
        && !contains(&files.home)
        && !files.links.iter().any(|(path, _)| contains(path))
}
