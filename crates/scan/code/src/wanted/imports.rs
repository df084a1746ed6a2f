//! Files that code takes in from beside itself, found by their letters: no parser runs here. What is found too much is
//! not there, or is looked at for nothing.

use super::{Script, Wanted, folder_of, joined, loads, of_script};
use crate::Language;

/// Names that are taken from one text.
const MOST: usize = 256;
/// A name is no longer.
const LONGEST: usize = 256;

/// What a text in this language, in this file or in none, takes in. `roots`: where modules of its own are looked for.
pub fn taken_in(text: &str, language: Language, file: Option<&str>, roots: &[String]) -> Vec<Wanted> {
    let folder = file.map(folder_of).unwrap_or_default();
    let mut found = match language {
        Language::Python => python(text, &folder, roots),
        Language::JavaScript | Language::TypeScript | Language::Tsx => javascript(text, &folder),
        Language::Shell => shell(text, file),
        Language::Ruby => ruby(text, &folder, roots),
        Language::Php => php(text, &folder),
        _ => Vec::new(),
    };
    if found.len() > MOST {
        found.truncate(MOST);
        let name = file.unwrap_or("the code");
        found.push(Wanted::Unfollowed(format!("{name}: it takes in more than {MOST} files")));
    }
    found
}

fn guess(name: &str, places: Vec<String>, language: Language, roots: &[String]) -> Wanted {
    Wanted::File(Script {
        name: name.to_owned(),
        places,
        language: Some(language),
        roots: roots.to_vec(),
        missing: None,
    })
}

fn shell(text: &str, file: Option<&str>) -> Vec<Wanted> {
    let mut found = of_script(text, file);
    found.retain(|wanted| !matches!(wanted, Wanted::Input { .. }));
    for wanted in &mut found {
        // A script that is not there may well be made before it is run.
        if let Wanted::File(script) = wanted {
            script.missing = None;
        }
    }
    found
}

fn python(text: &str, folder: &str, roots: &[String]) -> Vec<Wanted> {
    if !text.contains("import") && !text.contains("run_path") && !text.contains("exec") {
        return Vec::new();
    }
    let own = [folder.to_owned()];
    let roots = if roots.is_empty() { &own[..] } else { roots };
    let mut found = Vec::new();
    let mut module = |name: &str| {
        if name.len() > LONGEST || found.len() > MOST {
            return;
        }
        let dots = name.len() - name.trim_start_matches('.').len();
        let places: Vec<String> = match dots {
            0 => roots.iter().flat_map(|root| loads::module_places(root, name)).collect(),
            dots => {
                let up = (1..dots.min(8)).fold(folder.to_owned(), |folder, _| joined(&folder, ".."));
                let mut places = loads::module_places(&up, &name[dots..]);
                places.push(joined(&up, "__init__.py"));
                places
            }
        };
        found.push(guess(name, places, Language::Python, roots));
    };
    for (at, word) in words(text, &["import", "from"]) {
        if !begins_statement(&text[..at]) {
            continue;
        }
        let rest = statement(&text[at + word.len()..]);
        if word == "import" {
            rest.split(',').take(MOST).filter_map(|part| part.split_whitespace().next()).for_each(&mut module);
        } else if let Some((from, names)) = rest.split_once("import") {
            let from: String = from.split_whitespace().collect();
            module(&from);
            let end = if from.ends_with('.') || from.is_empty() { "" } else { "." };
            let names = names.split([',', '(', ')']).take(MOST).filter_map(|part| part.split_whitespace().next());
            names.filter(|name| *name != "*").for_each(|name| module(&format!("{from}{end}{name}")));
        }
    }
    for (_, name) in literals_after(text, &["__import__", "import_module", "run_module"]) {
        module(name);
    }
    for (_, path) in
        literals_after(text, &["run_path", "exec(open", "execfile", "spec_from_file_location", "SourceFileLoader"])
    {
        if path.ends_with(".py") && found.len() <= MOST {
            let mut places = vec![path.to_owned(), joined(folder, path)];
            places.dedup();
            found.push(guess(path, places, Language::Python, roots));
        }
    }
    found
}

/// The words of one statement, also where it goes on in parentheses or behind a backslash.
fn statement(text: &str) -> String {
    let text = beginning(text);
    let line = text.split(['\n', ';']).next().unwrap_or("");
    if line.contains('(') && !line.contains(')') {
        return without_comments(text.split(')').next().unwrap_or(line));
    }
    if !line.trim_end().ends_with('\\') {
        return without_comments(line);
    }
    let mut whole = String::new();
    for line in text.lines().take(64) {
        whole.push_str(line.trim_end().trim_end_matches('\\'));
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    without_comments(&whole)
}

/// As much as one statement has: text without an end must not be gone through for each word in it.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(4096)]
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split('#').next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Does a statement begin after this? At a line's begin, or behind `;` or `:`.
fn begins_statement(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with(['\n', '\r', ';', ':'])
}

/// Where these words stand as words.
fn words<'a>(text: &'a str, wanted: &'a [&'a str]) -> impl Iterator<Item = (usize, &'a str)> {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut all: Vec<(usize, &str)> = wanted.iter().flat_map(|word| text.match_indices(word).take(16 * MOST)).collect();
    all.sort_unstable();
    all.into_iter().filter(move |(at, word)| {
        let before = text[..*at].chars().next_back().is_some_and(is_letter);
        let after = text[at + word.len()..].chars().next().is_some_and(is_letter);
        !before && !after
    })
}

/// Texts in quotes right behind these names, with or without a parenthesis between.
fn literals_after<'a>(text: &'a str, names: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    for name in names {
        for (at, _) in text.match_indices(name).take(16 * MOST) {
            let rest = text[at + name.len()..].trim_start_matches([' ', '\t', '\n', '\r', '(']);
            if let Some(literal) = literal(rest) {
                found.push((*name, literal));
            }
            if found.len() > MOST {
                return found;
            }
        }
    }
    found
}

/// The text in quotes that this begins with.
fn literal(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|letter| matches!(letter, '"' | '\'' | '`'))?;
    let inner = beginning(&text[1..]);
    inner.find([quote, '\n']).map(|end| &inner[..end]).filter(|literal| !literal.is_empty() && literal.len() <= LONGEST)
}

fn javascript(text: &str, folder: &str) -> Vec<Wanted> {
    let mut found = Vec::new();
    for (_, path) in literals_after(text, &["require", "import", "from", "Worker", "fork"]) {
        // Any other name is a package's.
        if path.starts_with("./") || path.starts_with("../") || path == "." || path == ".." {
            let places = javascript_places(&joined(folder, path));
            let language = Language::of(path, b"").filter(|language| *language != Language::Text);
            found.push(guess(path, places, language.unwrap_or(Language::JavaScript), &[]));
        }
    }
    found
}

/// As Node, bundlers and TypeScript look for it.
pub fn javascript_places(path: &str) -> Vec<String> {
    let mut places = vec![path.to_owned()];
    let path = path.trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or(path);
    if let Some(bare) = path.strip_suffix(".js") {
        places.push(format!("{bare}.ts"));
    } else if !last.ends_with(".mjs") && !last.ends_with(".cjs") && !last.ends_with(".json") && !last.ends_with(".ts") {
        places
            .extend([".js", ".mjs", ".cjs", ".ts", ".tsx", "/index.js", "/index.ts"].map(|end| format!("{path}{end}")));
    }
    places
}

fn ruby(text: &str, folder: &str, roots: &[String]) -> Vec<Wanted> {
    let mut found = Vec::new();
    for (name, path) in literals_after(text, &["require_relative", "require", "load"]) {
        let mut folders = Vec::new();
        match name {
            "require_relative" => folders.push(folder.to_owned()),
            // From where the command starts; or from where it was told to look.
            _ if path.starts_with('.') || name == "load" => folders.push(String::new()),
            _ => folders.extend(roots.iter().cloned()),
        }
        let with_ending = |folder: &String| [joined(folder, path), joined(folder, path) + ".rb"];
        let places: Vec<String> = folders.iter().flat_map(with_ending).collect();
        if !places.is_empty() {
            found.push(guess(path, places, Language::Ruby, roots));
        }
    }
    found
}

fn php(text: &str, folder: &str) -> Vec<Wanted> {
    let mut found = Vec::new();
    for (at, word) in words(text, &["include", "include_once", "require", "require_once"]) {
        // `require __DIR__ . '/x.php'`: the first text of the statement.
        let rest = beginning(&text[at + word.len()..]).split([';', '\n']).next().unwrap_or("");
        let Some(path) = rest.find(['"', '\'']).and_then(|quote| literal(&rest[quote..])) else { continue };
        let own = joined(folder, path.trim_start_matches('/'));
        let mut places = vec![own];
        if !path.starts_with('/') {
            places.push(path.to_owned());
        }
        places.dedup();
        found.push(guess(path, places, Language::Php, &[]));
    }
    found
}
