//! Installers and builders: files that they obey besides their arguments, and which of those are code that they run.

use shell::Word;

use super::{Script, Wanted, joined, loads, of_script};
use crate::Language;
use crate::manifest::{self, Line};

/// A file that an installer obeys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Whose manifest it is, as people say it: `pip install`.
    pub by: String,
    /// Relative to where the command starts. `*` as its last part stands for every folder there.
    pub folder: String,
    /// `*.gemspec` stands for every file that ends so.
    pub name: String,
    /// It is run by that, and not just read.
    pub runs: bool,
    /// Of its scripts, those that are asked for; none: those that an installation runs.
    pub asked: Option<Vec<String>>,
}

/// What an installer obeys, and the words with which it does.
struct Installer {
    programs: &'static [&'static str],
    /// The first word that is no option; none: always.
    words: &'static [&'static str],
    /// Those that are code, and run, have a `!` before them.
    manifests: &'static [&'static str],
}

const INSTALLERS: &[Installer] = &[
    Installer {
        programs: &["npm", "pnpm", "yarn", "bun", "cnpm"],
        words: &[
            "install", "i", "ci", "add", "in", "update", "up", "rebuild", "link", "pack", "publish", "run",
            "run-script", "test", "t", "start", "stop", "restart", "",
        ],
        manifests: &["package.json", ".npmrc", "binding.gyp"],
    },
    Installer {
        programs: &["pip", "pip3", "pipx", "uv", "poetry", "pdm", "hatch", "python", "python3"],
        words: &["install", "sync", "build", "wheel", "pip", "add", "-m"],
        manifests: &["!setup.py", "setup.cfg", "pyproject.toml", "pip.conf"],
    },
    Installer {
        programs: &["cargo"],
        words: &["build", "b", "run", "r", "test", "t", "check", "c", "bench", "install", "clippy", "doc", "nextest"],
        manifests: &["!build.rs", "Cargo.toml"],
    },
    Installer {
        programs: &["composer"],
        words: &["install", "i", "update", "require", "dump-autoload", "run", "run-script", "exec"],
        manifests: &["composer.json"],
    },
    Installer {
        programs: &["gem", "bundle", "bundler", "rake"],
        words: &[],
        manifests: &["Gemfile", "Rakefile", "!extconf.rb", "!*.gemspec"],
    },
    Installer {
        programs: &["make", "gmake", "bmake"],
        words: &[],
        manifests: &["GNUmakefile", "makefile", "Makefile"],
    },
    Installer { programs: &["just"], words: &[], manifests: &["justfile", "Justfile", ".justfile"] },
    Installer { programs: &["docker", "podman", "buildah"], words: &["build"], manifests: &["Dockerfile"] },
];

/// Modules of Python that install or build, behind `-m`.
const MODULES: &[&str] = &["pip", "build", "pipx", "uv", "poetry", "pdm", "hatch", "ensurepip", "setuptools"];

pub fn obeyed(program: &str, arguments: &[Word], from: &str) -> Vec<Wanted> {
    let family = program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    // `./lib[dev]` is a pattern to a shell, and an extra to pip: it is taken as it is written.
    let is_told = |word: &&Word| word.known().is_some() || !word.text().contains(['$', '`', '*', '?', '{', '~']);
    let known: Vec<&str> = arguments.iter().filter(is_told).map(Word::text).collect();
    // `-m` says what runs: it counts as the word that it is. What follows an option that sends it elsewhere does not.
    let sent = |place: usize| place > 0 && SENDS.contains(&known[place - 1]);
    let plain = |(place, word): &(usize, &&str)| **word == "-m" || !word.starts_with(['-', '+']) && !sent(*place);
    let mut operands = known.iter().enumerate().filter(plain).map(|(_, word)| *word);
    let first = operands.next().unwrap_or("");
    let second = operands.next().unwrap_or("");
    if first == "-m" && !MODULES.contains(&second) {
        return Vec::new();
    }
    let by = match first {
        "" => program.to_owned(),
        "-m" => format!("{program} -m {second}"),
        first => format!("{program} {first}"),
    };
    let mut found = Vec::new();
    for Installer { programs, words, manifests } in INSTALLERS {
        if !programs.contains(&program) && !programs.contains(&family) {
            continue;
        }
        if !words.is_empty() && !words.contains(&first) {
            continue;
        }
        let asked = asked_scripts(first, second);
        for folder in folders(&known) {
            let folder = joined(from, &folder);
            found.extend(manifests.iter().map(|name| {
                let (runs, name) = name.strip_prefix('!').map_or((false, *name), |name| (true, name));
                let (by, name, folder) = (by.clone(), name.to_owned(), folder.clone());
                Wanted::Manifest(Manifest { by, folder, name, runs, asked: asked.clone() })
            }));
        }
        found.extend(named(&known, from));
        found.extend(packed(&by, &known));
    }
    found
}

/// Scripts of a package that are run by their names, with what comes before and after each.
fn asked_scripts(first: &str, second: &str) -> Option<Vec<String>> {
    let name = match first {
        "run" | "run-script" => second,
        "test" | "t" => "test",
        "start" | "stop" | "restart" => first,
        _ => return None,
    };
    Some(vec![format!("pre{name}"), name.to_owned(), format!("post{name}")])
}

/// Files that say themselves what they are: `make -f x.mk`, `gem build x.gemspec`.
fn named(words: &[&str], from: &str) -> Vec<Wanted> {
    let mut found = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let after =
            matches!(*word, "-f" | "--file" | "--makefile" | "--justfile").then(|| words.get(place + 1).copied());
        let attached = ["--file=", "--makefile=", "--justfile="].iter().find_map(|option| word.strip_prefix(option));
        let file = after.flatten().or(attached).or(word.ends_with(".gemspec").then_some(*word));
        if let Some(file) = file.filter(|file| !file.starts_with('-') && found.len() < 8) {
            let (name, places) = (file.to_owned(), vec![joined(from, file)]);
            found.push(Wanted::File(Script { name, places, missing: Some("it is not there"), ..Script::default() }));
        }
    }
    found
}

/// Packages as files: what they run is inside of them.
fn packed(by: &str, words: &[&str]) -> Vec<Wanted> {
    const ENDINGS: &[&str] = &[".whl", ".tar.gz", ".tgz", ".gem", ".zip", ".crate"];
    let is_packed = |word: &&&str| !word.starts_with('-') && ENDINGS.iter().any(|ending| word.ends_with(ending));
    let say = |word: &&str| Wanted::Unfollowed(format!("{word}: what is in it and run by `{by}` is not looked at"));
    words.iter().filter(is_packed).take(8).map(say).collect()
}

/// Options that are followed by where to work.
const SENDS: &[&str] =
    &["-C", "--prefix", "--dir", "--cwd", "--directory", "--manifest-path", "--path", "--working-dir", "-d"];

/// Where it would look: here, where an option sends it, and in folders that it is to install.
fn folders(words: &[&str]) -> Vec<String> {
    let mut folders = vec![String::new()];
    for (place, word) in words.iter().enumerate() {
        let sent = SENDS.contains(word) || *word == "-e";
        let folder = match word.split_once('=') {
            Some(("--prefix" | "--dir" | "--cwd" | "--directory" | "--path" | "--manifest-path", folder)) => {
                Some(folder)
            }
            _ if sent => words.get(place + 1).copied(),
            _ => Some(*word).filter(|word| word.starts_with(['.', '/'])),
        };
        let folder = folder.map(|folder| folder.split('[').next().unwrap_or(folder));
        let folder = folder.map(|folder| folder.strip_suffix("Cargo.toml").unwrap_or(folder).trim_end_matches('/'));
        if let Some(folder) = folder.filter(|folder| !folder.is_empty() && *folder != ".")
            && folders.len() < 8
            && !folders.iter().any(|known| known == folder)
        {
            folders.push(folder.to_owned());
        }
    }
    folders
}

impl Manifest {
    /// What the text of a manifest makes run, beyond the lines that the scanner reads itself.
    pub fn leads_to(&self, text: &str) -> Vec<Wanted> {
        let Manifest { by, folder, name, asked, .. } = self;
        let file = joined(folder, name);
        match name.as_str() {
            "pyproject.toml" => backend(text, folder),
            "Cargo.toml" => build_scripts(text, by, folder),
            name if name.ends_with(".gemspec") => extensions(text, by, folder),
            _ => {
                let runs = |line: &Line| match asked {
                    _ if line.name.is_empty() => true,
                    Some(asked) => asked.contains(&line.name),
                    None => line.at_install,
                };
                let lines = manifest::lines(&file, text).into_iter().filter(runs);
                // Relative to where the manifest lies, which is where its lines start.
                let lines = lines
                    .flat_map(|line| of_script(&format!("cd {}\n{}", shell::quoted(here(folder)), line.text), None));
                lines.filter(|wanted| !matches!(wanted, Wanted::Input { .. })).collect()
            }
        }
    }
}

fn here(folder: &str) -> &str {
    if folder.is_empty() { "." } else { folder }
}

/// A backend that lies in the tree: `build-backend = "ours"` with `backend-path = ["."]`.
fn backend(text: &str, folder: &str) -> Vec<Wanted> {
    let Ok(table) = text.parse::<toml::Table>() else { return Vec::new() };
    let system = table.get("build-system");
    let path = system.and_then(|system| system.get("backend-path")).and_then(|path| path.as_array());
    let name = system.and_then(|system| system.get("build-backend")).and_then(|name| name.as_str());
    let (Some(path), Some(name)) = (path, name) else { return Vec::new() };
    let module = name.split(':').next().unwrap_or(name);
    let roots: Vec<String> =
        path.iter().take(8).filter_map(|part| part.as_str()).map(|part| joined(folder, part)).collect();
    let places = roots.iter().flat_map(|root| loads::module_places(root, module)).collect();
    let (name, language) = (format!("build backend {module}"), Some(Language::Python));
    vec![Wanted::File(Script { name, places, language, roots, missing: Some("it is not in `backend-path`") })]
}

/// `build = "…"`, and the build scripts of a workspace's members.
fn build_scripts(text: &str, by: &str, folder: &str) -> Vec<Wanted> {
    let Ok(table) = text.parse::<toml::Table>() else { return Vec::new() };
    let script = |folder: String, name: &str| {
        let (by, name) = (by.to_owned(), name.to_owned());
        Wanted::Manifest(Manifest { by, folder, name, runs: true, asked: None })
    };
    let build = table.get("package").and_then(|package| package.get("build")).and_then(|build| build.as_str());
    let mut found: Vec<Wanted> = build.map(|build| script(folder.to_owned(), build)).into_iter().collect();
    let members =
        table.get("workspace").and_then(|workspace| workspace.get("members")).and_then(|list| list.as_array());
    for member in members.into_iter().flatten().filter_map(|member| member.as_str()).take(64) {
        let plain = member.strip_suffix("/*").unwrap_or(member);
        match plain.contains(['*', '?', '[']) {
            true => found.push(Wanted::Unfollowed(format!("build scripts of the members `{member}`"))),
            false => found.push(script(joined(folder, member), "build.rs")),
        }
    }
    found
}

/// `extensions = ["ext/x/extconf.rb"]`, however it is written.
fn extensions(text: &str, by: &str, folder: &str) -> Vec<Wanted> {
    let is_end = |letter: char| letter.is_whitespace() || "\"'()[]{},".contains(letter);
    let files = text.split(is_end).filter(|word| word.ends_with("extconf.rb") && word.len() < 256).take(16);
    files
        .map(|file| {
            let (by, name) = (by.to_owned(), file.to_owned());
            Wanted::Manifest(Manifest { by, folder: folder.to_owned(), name, runs: true, asked: None })
        })
        .collect()
}
