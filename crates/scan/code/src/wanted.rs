//! Which code a command would run, as far as its words tell.

use shell::{Origin, Simple, Word};

use crate::Language;

/// Code that should be looked at before the command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// In the words themselves: `python -c CODE`.
    Text { name: String, language: Option<Language>, text: String },
    /// A script. Relative to where the command starts.
    File { path: String, language: Option<Language> },
    /// What comes in on its standard input is code.
    Input { language: Option<Language> },
    /// What an installer or builder obeys, if it is there: in this folder, relative to where the command starts.
    Manifest { folder: String, name: &'static str },
}

/// More scripts than this in one command are not looked for.
const MOST: usize = 64;

/// Of a command's words, as they would be executed.
pub fn wanted(words: &[String]) -> Vec<Wanted> {
    let mut found: Vec<Wanted> = Vec::new();
    // The words themselves: what `bash -c` runs is code in the words of this command, whatever is in it.
    for command in shell::of_words(words).commands {
        let one = of_command(&command);
        found.extend(one.into_iter().filter(|wanted| !found.contains(wanted)).collect::<Vec<_>>());
        if found.len() >= MOST {
            found.truncate(MOST);
            break;
        }
    }
    found
}

fn of_command(command: &Simple) -> Vec<Wanted> {
    let mut found = Vec::new();
    let name = command.name().unwrap_or_default();
    if let Some(code) = &command.code {
        let text = code.text.clone();
        found.push(Wanted::Text { name: format!("code of `{name}`"), language: language(code.language), text });
    }
    if let Some(script) = &command.script {
        let language = language(script.language);
        match (&script.origin, command.reads.last()) {
            (Origin::File(Word::Known(path)), _) | (Origin::Input, Some(Word::Known(path))) => {
                found.push(Wanted::File { path: path.clone(), language });
            }
            // Only known when it runs.
            (Origin::File(_), _) | (Origin::Input, Some(_)) => {}
            (Origin::Input, None) if only_tells(&command.arguments) => {}
            (Origin::Input, None) => found.push(Wanted::Input { language }),
        }
    }
    // `./configure`: a script, or a program without source.
    if let Some(program) = command.program.known().filter(|program| program.contains('/') && !command.is_standard()) {
        found.push(Wanted::File { path: program.to_owned(), language: None });
    }
    found.extend(manifests(name, &command.arguments));
    found
}

/// `python3 --version` reads nothing.
fn only_tells(arguments: &[Word]) -> bool {
    let tells = |word: &Word| matches!(word.known(), Some("--version" | "-V" | "--help" | "-h" | "-v" | "-VV"));
    arguments.iter().any(tells)
}

/// By the name that policies, and the reader of shell, have for it.
pub fn language(name: &str) -> Option<Language> {
    match name {
        "node" => Some(Language::JavaScript),
        name => Language::named(name),
    }
}

/// What an installer obeys besides its arguments, and the words with which it does.
struct Installer {
    programs: &'static [&'static str],
    /// The first word that is no option; none: always.
    words: &'static [&'static str],
    manifests: &'static [&'static str],
}

const INSTALLERS: &[Installer] = &[
    Installer {
        programs: &["npm", "pnpm", "yarn", "bun", "cnpm"],
        words: &[
            "install", "i", "ci", "add", "in", "update", "up", "rebuild", "link", "pack", "publish", "run",
            "run-script", "test", "t", "start", "",
        ],
        manifests: &["package.json", ".npmrc", "binding.gyp"],
    },
    Installer {
        programs: &["pip", "pip3", "pipx", "uv", "poetry", "pdm", "hatch", "python", "python3"],
        words: &["install", "sync", "build", "wheel", "pip", "add", "-m"],
        manifests: &["setup.py", "setup.cfg", "pyproject.toml", "pip.conf"],
    },
    Installer {
        programs: &["cargo"],
        words: &["build", "b", "run", "r", "test", "t", "check", "c", "bench", "install", "clippy", "doc", "nextest"],
        manifests: &["build.rs"],
    },
    Installer {
        programs: &["composer"],
        words: &["install", "i", "update", "require", "dump-autoload"],
        manifests: &["composer.json"],
    },
    Installer {
        programs: &["gem", "bundle", "bundler", "rake"],
        words: &[],
        manifests: &["Gemfile", "Rakefile", "extconf.rb"],
    },
    Installer {
        programs: &["make", "gmake", "bmake"],
        words: &[],
        manifests: &["GNUmakefile", "makefile", "Makefile"],
    },
    Installer { programs: &["just"], words: &[], manifests: &["justfile"] },
    Installer { programs: &["docker", "podman", "buildah"], words: &["build"], manifests: &["Dockerfile"] },
];

fn manifests(program: &str, arguments: &[Word]) -> Vec<Wanted> {
    let family = program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    // `./lib[dev]` is a pattern to a shell, and an extra to pip: it is taken as it is written.
    let is_told = |word: &&Word| word.known().is_some() || !word.text().contains(['$', '`', '*', '?', '{', '~']);
    let known: Vec<&str> = arguments.iter().filter(is_told).map(Word::text).collect();
    // `-m` says what runs: it counts as the word that it is. What follows an option that sends it elsewhere does not.
    let sent = |place: usize| place > 0 && SENDS.contains(&known[place - 1]);
    let first =
        known.iter().enumerate().find(|(place, word)| **word == "-m" || !word.starts_with('-') && !sent(*place));
    let first = first.map_or("", |(_, word)| *word);
    let mut found = Vec::new();
    for Installer { programs, words, manifests } in INSTALLERS {
        if !programs.contains(&program) && !programs.contains(&family) {
            continue;
        }
        if !words.is_empty() && !words.contains(&first) {
            continue;
        }
        for folder in folders(&known) {
            found.extend(manifests.iter().map(|name| Wanted::Manifest { folder: folder.clone(), name }));
        }
    }
    found
}

/// Options that are followed by where to work.
const SENDS: &[&str] = &["-C", "--prefix", "--dir", "--cwd", "--directory", "--manifest-path"];

/// Where it would look: here, where an option sends it, and in folders that it is to install.
fn folders(words: &[&str]) -> Vec<String> {
    let mut folders = vec![".".to_owned()];
    for (place, word) in words.iter().enumerate() {
        let sent = SENDS.contains(word) || *word == "-e";
        let folder = match word.split_once('=') {
            Some(("--prefix" | "--dir" | "--cwd" | "--directory", folder)) => Some(folder),
            _ if sent => words.get(place + 1).copied(),
            _ => Some(*word).filter(|word| word.starts_with(['.', '/'])),
        };
        let folder = folder.map(|folder| folder.split('[').next().unwrap_or(folder));
        if let Some(folder) = folder.filter(|folder| !folder.is_empty() && *folder != ".")
            && folders.len() < 8
        {
            folders.push(folder.to_owned());
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &[&str]) -> Vec<Wanted> {
        wanted(&line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    fn file(path: &str, language: Option<Language>) -> Wanted {
        Wanted::File { path: path.to_owned(), language }
    }

    #[test]
    fn code_in_words_is_wanted_in_shells_too() {
        let found = of(&["bash", "-c", "cd x && python3 -c 'import os' && node y.js"]);
        let texts = found.iter().filter_map(|wanted| match wanted {
            Wanted::Text { language, text, .. } => Some((*language, text.as_str())),
            _ => None,
        });
        let texts: Vec<_> = texts.collect();
        assert!(texts.contains(&(Some(Language::Python), "import os")), "{texts:?}");
        assert!(texts.iter().any(|(language, _)| *language == Some(Language::Shell)), "{texts:?}");
        assert!(found.contains(&file("y.js", Some(Language::JavaScript))), "{found:?}");
    }

    #[test]
    fn scripts_are_wanted_by_name() {
        assert_eq!(of(&["python3.11", "-u", "tools/x.py", "-c"]), [file("tools/x.py", Some(Language::Python))]);
        assert_eq!(of(&["./configure", "--prefix=/x"]), [file("./configure", None)]);
        assert_eq!(of(&["bash"]), [Wanted::Input { language: Some(Language::Shell) }]);
        assert_eq!(of(&["ls", "-la"]), []);
        assert_eq!(of(&["python3", "--version"]), []);
    }

    #[test]
    fn installers_obey_manifests() {
        let manifest = |folder: &str, name| Wanted::Manifest { folder: folder.to_owned(), name };
        assert!(of(&["npm", "ci"]).contains(&manifest(".", "package.json")));
        assert!(of(&["npm", "--prefix", "web", "install"]).contains(&manifest("web", "package.json")));
        assert!(of(&["sh", "-c", "pip install -e ./lib[dev]"]).contains(&manifest("./lib", "setup.py")));
        assert!(of(&["make", "-C", "sub"]).contains(&manifest("sub", "Makefile")));
        assert!(!of(&["npm", "ls"]).iter().any(|wanted| matches!(wanted, Wanted::Manifest { .. })));
    }
}
