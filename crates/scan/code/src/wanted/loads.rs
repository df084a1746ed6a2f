//! What an interpreter takes in beside its script, or in its stead: by options and by variables.

use shell::{Simple, Word};

use super::{From, Script, Wanted, joined};
use crate::Language;

/// A module that is not here is a tool that was installed; what it does is not in the workspace.
const INSTALLED: &str = "it is not in the workspace: a program without source here";

/// The option before code, as people know it.
pub fn option_for_code(program: &str) -> &'static str {
    match family(program) {
        "node" | "nodejs" | "bun" | "tsx" | "ruby" | "jruby" | "perl" | "lua" | "luajit" | "Rscript" | "julia"
        | "elixir" => "-e",
        "php" => "-r",
        "awk" | "gawk" | "mawk" | "nawk" => "program",
        _ => "-c",
    }
}

fn family(program: &str) -> &str {
    program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-')
}

/// A script by its path, where it may also be a folder.
pub fn script(path: &str, language: Option<Language>, places: Vec<String>) -> Script {
    let mut all = places.clone();
    let inner: &[&str] = match language {
        Some(Language::Python) => &["/__main__.py"],
        Some(Language::JavaScript) => &[".js", "/index.js"],
        _ => &[],
    };
    // A name with an ending is a file's.
    let is_bare = !path.rsplit('/').next().unwrap_or(path).trim_start_matches('.').contains('.');
    if is_bare {
        all.extend(
            places.iter().flat_map(|place| inner.iter().map(|end| place.trim_end_matches('/').to_owned() + end)),
        );
    }
    let language = match language {
        Some(Language::JavaScript) if path.ends_with("ts") || path.ends_with(".tsx") => Language::of(path, b""),
        language => language,
    };
    Script { name: path.to_owned(), places: all, language, ..Script::default() }
}

/// Folders where modules are looked for besides the script's own.
pub fn roots(command: &Simple, from: &From) -> Vec<String> {
    let mut roots = Vec::new();
    let variable = match family(command.name().unwrap_or_default()) {
        "python" | "pypy" | "ipython" => "PYTHONPATH",
        "ruby" | "jruby" => "RUBYLIB",
        _ => return roots,
    };
    if let Some(list) = value(command, variable) {
        roots.extend(list.split(':').take(8).flat_map(|folder| from.places(folder)));
    }
    if variable == "RUBYLIB" {
        roots.extend(values(&command.arguments, &["-I"]).into_iter().take(8).flat_map(|folder| from.places(folder)));
    }
    roots
}

/// Files that it reads as code without being told to run them.
pub fn beside(command: &Simple, from: &From) -> Vec<Wanted> {
    let name = command.name().unwrap_or_default();
    match family(name) {
        "python" | "pypy" | "ipython" => python(name, command, from),
        "node" | "nodejs" | "bun" | "tsx" | "ts-node" => {
            let mut found = javascript(&command.arguments, from);
            if let Some(options) = value(command, "NODE_OPTIONS") {
                let words: Vec<Word> = options.split_whitespace().map(|word| Word::Known(word.to_owned())).collect();
                found.extend(javascript(&words, from));
            }
            found
        }
        "deno" => after(command, &["run", "test", "bench"], Language::TypeScript, from),
        "go" => after(command, &["run"], Language::Go, from),
        "java" => after(command, &[], Language::Java, from),
        "ruby" | "jruby" => ruby(command, from),
        "pytest" | "py.test" => tests(&command.arguments, from),
        "bash" | "sh" | "dash" | "ash" | "ksh" | "zsh" | "mksh" | "rbash" => {
            let mut files = values(&command.arguments, &["--rcfile", "--init-file"]);
            files.extend(["BASH_ENV", "ENV"].iter().filter_map(|variable| value(command, variable)));
            files.into_iter().map(|path| said(path, Language::Shell, from.places(path))).collect()
        }
        _ => Vec::new(),
    }
}

fn said(path: &str, language: Language, places: Vec<String>) -> Wanted {
    Wanted::File(Script { missing: Some("it is not there"), ..script(path, Some(language), places) })
}

/// What a variable is set to for this command, if that is known.
fn value<'a>(command: &'a Simple, variable: &str) -> Option<&'a str> {
    let (_, value) = command.assignments.iter().rev().find(|(name, _)| name == variable)?;
    value.known().filter(|value| !value.is_empty())
}

/// What these options are given, as the next word, after `=`, or attached to a letter.
fn values<'a>(arguments: &'a [Word], options: &[&str]) -> Vec<&'a str> {
    let known: Vec<&str> = arguments.iter().map(|word| word.known().unwrap_or_default()).collect();
    let mut found = Vec::new();
    for (place, word) in known.iter().enumerate() {
        for option in options {
            let value = match word.strip_prefix(option) {
                Some("") => known.get(place + 1).copied(),
                Some(rest) if option.starts_with("--") => rest.strip_prefix('='),
                Some(rest) => Some(rest),
                None => None,
            };
            found.extend(value.filter(|value| !value.is_empty()));
        }
    }
    found
}

fn python(name: &str, command: &Simple, from: &From) -> Vec<Wanted> {
    let mut found = Vec::new();
    let roots = roots(command, from);
    // Taken in at every start, from wherever modules are looked for first.
    let customised =
        roots.iter().flat_map(|root| ["sitecustomize.py", "usercustomize.py"].map(|file| joined(root, file)));
    let places: Vec<String> = customised.collect();
    if !places.is_empty() {
        let language = Some(Language::Python);
        found.push(Wanted::File(Script { name: "sitecustomize".to_owned(), places, language, ..Script::default() }));
    }
    if let Some((module, rest)) = module(&command.arguments) {
        let mut roots = from.folders.iter().cloned().chain(roots).collect::<Vec<_>>();
        roots.dedup();
        let mut places = Vec::new();
        for root in &roots {
            places.extend(module_places(root, module));
            places.push(joined(root, &format!("{}/__main__.py", module.replace('.', "/"))));
        }
        let (name, language) = (format!("{name} -m {module}"), Some(Language::Python));
        found.push(Wanted::File(Script { name, places, language, roots, missing: Some(INSTALLED) }));
        if matches!(module, "pytest" | "py.test") {
            found.extend(tests(rest, from));
        }
    }
    found
}

/// `-m NAME` before any script, also as `-mNAME` or behind other letters.
fn module(arguments: &[Word]) -> Option<(&str, &[Word])> {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let letters = word.known()?.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        at += 1;
        match letters.find(['m', 'c', 'W', 'X']).map(|place| letters.split_at(place)) {
            Some((_, "m")) => return Some((arguments.get(at)?.known()?, &arguments[at + 1..])),
            Some((_, attached)) if attached.starts_with('m') => return Some((&attached[1..], &arguments[at..])),
            Some((_, "W" | "X")) => at += 1,
            Some((_, attached)) if attached.starts_with('c') => return None,
            _ => {}
        }
    }
    None
}

/// Where a module may be, with the packages around it.
pub fn module_places(root: &str, module: &str) -> Vec<String> {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let (mut places, mut folder) = (Vec::new(), root.to_owned());
    for part in module.split('.').take(8) {
        if !is_name(part) {
            break;
        }
        folder = joined(&folder, part);
        places.push(format!("{folder}.py"));
        places.push(format!("{folder}/__init__.py"));
    }
    places
}

/// Files of tests that are named, and what `pytest` takes in with them.
fn tests(arguments: &[Word], from: &From) -> Vec<Wanted> {
    let files = arguments.iter().filter_map(Word::known).filter_map(|word| word.split("::").next());
    let files: Vec<&str> = files.filter(|file| file.ends_with(".py") && !file.starts_with('-')).take(16).collect();
    let mut configured = from.places("conftest.py");
    let mut found: Vec<Wanted> = Vec::new();
    for file in files {
        configured.extend(from.places(&joined(&super::folder_of(file), "conftest.py")));
        found.push(said(file, Language::Python, from.places(file)));
    }
    configured.dedup();
    let (name, language) = ("conftest.py".to_owned(), Some(Language::Python));
    found.push(Wanted::File(Script { name, places: configured, language, ..Script::default() }));
    if found.len() == 1 {
        found.push(Wanted::Unfollowed("pytest: tests are looked at where their files are named".to_owned()));
    }
    found
}

fn javascript(arguments: &[Word], from: &From) -> Vec<Wanted> {
    let mut found = Vec::new();
    for path in values(arguments, &["-r", "--require", "--import", "--loader", "--experimental-loader"]) {
        let path = path.strip_prefix("file://").unwrap_or(path);
        // Any other name is a package's, which is not in the workspace.
        if path.starts_with(['.', '/']) {
            let places = from.places(path).iter().flat_map(|place| super::imports::javascript_places(place)).collect();
            found.push(said(path, Language::JavaScript, places));
        }
    }
    found
}

fn ruby(command: &Simple, from: &From) -> Vec<Wanted> {
    let mut found = Vec::new();
    let mut names = values(&command.arguments, &["-r"]);
    let options = value(command, "RUBYOPT").unwrap_or_default();
    names.extend(options.split_whitespace().filter_map(|word| word.strip_prefix("-r")));
    for name in names {
        let folders = if name.starts_with(['.', '/']) { from.folders.clone() } else { roots(command, from) };
        let with_ending = |folder: &String| [joined(folder, name), joined(folder, name) + ".rb"];
        let places: Vec<String> = folders.iter().flat_map(with_ending).collect();
        let missing = name.starts_with(['.', '/']).then_some("it is not there");
        if !places.is_empty() {
            found.push(Wanted::File(Script { missing, ..script(name, Some(Language::Ruby), places) }));
        }
    }
    found
}

/// The first operand after one of these words, where that is a file with a fitting name.
fn after(command: &Simple, words: &[&str], language: Language, from: &From) -> Vec<Wanted> {
    let known = || command.arguments.iter().filter_map(Word::known);
    if !words.is_empty() && !known().next().is_some_and(|first| words.contains(&first)) {
        return Vec::new();
    }
    let endings: &[&str] = match language {
        Language::Go => &[".go"],
        Language::Java => &[".java"],
        _ => &[".ts", ".tsx", ".mts", ".js", ".mjs", ".jsx"],
    };
    let is_file = |word: &&str| !word.starts_with('-') && endings.iter().any(|ending| word.ends_with(ending));
    let files: Vec<&str> = known().filter(is_file).take(16).collect();
    if files.is_empty() && !words.is_empty() {
        let name = command.name().unwrap_or_default();
        return vec![Wanted::Unfollowed(format!("{name}: which files it runs is not looked at"))];
    }
    files.into_iter().map(|file| said(file, Language::of(file, b"").unwrap_or(language), from.places(file))).collect()
}
