//! Tools that start the program in their arguments: package managers, managers of environments, and their like.

use shell::Word;

use super::{Carried, line_or_words};
use crate::options::is_option;

/// How a tool is told to start a program.
struct Runner {
    /// Words before it, one of which must be there; none, if the program comes at once.
    verbs: &'static [&'static str],
    /// Options whose value is the next word.
    values: &'static [&'static str],
    /// Options that take none.
    flags: &'static [&'static str],
    /// Options whose value is a line for a shell.
    lines: &'static [&'static str],
    /// Words between: the folder of `direnv exec`.
    before: usize,
}

const NODE_VALUES: &[&str] =
    &["-p", "--package", "--registry", "--prefix", "-w", "--workspace", "--cache", "--userconfig"];
const NODE_FLAGS: &[&str] = &["-y", "--yes", "--no", "-q", "--quiet", "-s", "--silent", "--no-install", "--bun"];
const PYTHON_VALUES: &[&str] = &[
    "--with", "--with-editable", "--with-requirements", "--from", "--spec", "-p", "--python", "--extra", "--group",
    "--only-group", "--no-group", "--package", "--project", "--directory", "--index", "--index-url",
    "--index-strategy", "--env-file", "--pip-args", "-P", "-C", "-i", "-e", "--env",
];
const PYTHON_FLAGS: &[&str] = &[
    "--isolated", "--locked", "--frozen", "--active", "--all-extras", "--all-groups", "--dev", "--offline", "--exact",
    "-q", "--quiet", "-v", "--verbose", "-s", "--script", "--only-dev", "--all-packages", "--refresh",
];

fn runner(name: &str) -> Option<Runner> {
    let plain = Runner { verbs: &[], values: &[], flags: &[], lines: &[], before: 0 };
    let node = |verbs| Runner { verbs, values: NODE_VALUES, flags: NODE_FLAGS, lines: &["-c", "--call"], before: 0 };
    let python = |verbs| Runner { verbs, values: PYTHON_VALUES, flags: PYTHON_FLAGS, lines: &[], before: 0 };
    Some(match name {
        "npx" | "bunx" | "pnpx" => node(&[]),
        "npm" | "pnpm" | "bun" => node(&["exec", "x", "exe", "dlx"]),
        "yarn" => Runner { lines: &[], ..node(&["exec", "dlx", "workspace * exec", "workspaces foreach exec"]) },
        "corepack" => plain,
        "uvx" => python(&[]),
        "uv" | "rye" | "poetry" | "pdm" | "pipenv" | "pipx" | "hatch" | "pixi" => {
            python(&["run", "tool run", "env run"])
        }
        "tox" => python(&["exec", "e"]),
        "fnm" => Runner { values: &["--using"], ..plain }.after(&["exec"]),
        "nvm" | "n" => Runner { before: 1, ..plain }.after(&["exec", "run"]),
        "devbox" | "foreman" => plain.after(&["run"]),
        "flox" | "guix" => plain.after(&["activate", "shell", "environment"]),
        "env-cmd" => Runner { values: &["-f", "--file", "-e", "--environments"], ..plain },
        "watchexec" => Runner { values: &["-w", "--watch", "-e", "--exts", "-i", "--ignore", "-d", "-s"], ..plain },
        "conda" | "mamba" | "micromamba" => Runner {
            values: &["-n", "--name", "-p", "--prefix", "--cwd"],
            flags: &["--no-capture-output", "--live-stream", "-v"],
            ..plain
        }
        .after(&["run"]),
        "bundle" => Runner { flags: &["--keep-file-descriptors"], ..plain }.after(&["exec"]),
        "mise" | "rtx" => {
            Runner { values: &["-C", "--cd"], lines: &["-c", "--command"], ..plain }.after(&["exec", "x"])
        }
        "asdf" | "rbenv" | "pyenv" | "nodenv" | "goenv" | "volta" => plain.after(&["exec", "run"]),
        "rustup" => Runner { flags: &["--install"], before: 1, ..plain }.after(&["run"]),
        "direnv" => Runner { before: 1, ..plain }.after(&["exec"]),
        "nix" => {
            Runner { lines: &[], ..plain }.after(&["shell -c", "develop -c", "shell --command", "develop --command"])
        }
        "nix-shell" => Runner { lines: &["--run", "--command"], ..plain },
        "xvfb-run" => Runner {
            values: &[
                "-e", "-f", "-n", "-p", "-s", "-w", "--error-file", "--auth-file", "--server-num", "--server-args",
            ],
            flags: &["-a", "--auto-servernum", "-l"],
            ..plain
        },
        "dotenv" | "dotenvx" => Runner { values: &["-f", "--file", "-e", "-c", "-v"], flags: &["run"], ..plain },
        "dbus-run-session" | "unbuffer" | "cross-env" | "cross-env-shell" | "caffeinate" | "ccache" | "sccache"
        | "catchsegv" | "reptyr" => plain,
        "doppler" | "infisical" | "aws-vault" | "chamber" => plain.after(&["run", "exec"]),
        "hyperfine" | "concurrently" => plain,
        _ => return None,
    })
}

impl Runner {
    fn after(self, verbs: &'static [&'static str]) -> Runner {
        Runner { verbs, ..self }
    }
}

/// The most places where the program may begin, where options are not known.
const MOST_GUESSES: usize = 4;

pub fn carried(name: &str, arguments: &[Word]) -> Vec<Carried> {
    if is_python(name) {
        return module(arguments).into_iter().collect();
    }
    // Each of their words is a line.
    if matches!(name, "hyperfine" | "concurrently") {
        let is_line = |word: &&Word| !word.known().is_some_and(|text| is_option(text) || !text.contains(' '));
        return arguments.iter().filter(is_line).map(|word| Carried::Line(word.clone())).collect();
    }
    match name {
        "coverage" if arguments.first().and_then(Word::known) == Some("run") => {
            return module(&arguments[1..]).into_iter().collect();
        }
        "nodemon" | "chokidar" => return lines_anywhere(arguments, &["-x", "--exec", "-c", "--command"], ""),
        "cargo" if arguments.first().and_then(Word::known) == Some("watch") => {
            let mut carried = lines_anywhere(arguments, &["-s", "--shell"], "");
            carried.extend(lines_anywhere(arguments, &["-x", "--exec"], "cargo "));
            return carried;
        }
        "nix" if arguments.first().and_then(Word::known) == Some("run") => return nix_run(&arguments[1..]),
        _ => {}
    }
    let Some(runner) = runner(name) else { return Vec::new() };
    let rest = match runner.verbs {
        [] => Some(arguments),
        verbs => verbs.iter().find_map(|verb| after_verb(verb, &runner, arguments)),
    };
    rest.map_or_else(Vec::new, |rest| runner.started(name, rest))
}

/// The values of options that are lines for a shell, wherever they stand.
fn lines_anywhere(arguments: &[Word], options: &[&str], before: &str) -> Vec<Carried> {
    let is_one = |word: &Word| word.known().is_some_and(|text| options.contains(&text));
    let line = |word: &Word| match word.known() {
        Some(text) => Carried::Line(Word::Known(format!("{before}{text}"))),
        None => Carried::Unknown(word.clone()),
    };
    arguments.windows(2).filter(|pair| is_one(&pair[0])).map(|pair| line(&pair[1])).collect()
}

/// `nix run nixpkgs#git -- push` is a push.
fn nix_run(arguments: &[Word]) -> Vec<Carried> {
    let package = arguments.iter().filter_map(Word::known).find(|text| !is_option(text));
    let Some((_, program)) = package.and_then(|package| package.split_once('#')) else { return Vec::new() };
    let after = arguments.iter().skip_while(|word| word.known() != Some("--")).skip(1).cloned();
    vec![Carried::Words(std::iter::once(Word::Known(program.to_owned())).chain(after).collect())]
}

impl Runner {
    /// What is started, wherever it may begin.
    fn started(&self, name: &str, rest: &[Word]) -> Vec<Carried> {
        let mut carried = Vec::new();
        // `mise x node -- npm publish`: words before may be packages.
        if let Some(at) =
            rest.iter().position(|word| word.known() == Some("--")).filter(|at| *at > 0 && at + 1 < rest.len())
        {
            carried.push(program(name, &rest[at + 1..]));
        }
        let mut guesses = 0;
        let mut before = self.before;
        let mut at = 0;
        while let Some(word) = rest.get(at) {
            let Some(text) = word.known() else {
                carried.push(Carried::Unknown(word.clone()));
                return carried;
            };
            let (option, attached) = match text.split_once('=').filter(|_| text.starts_with("--")) {
                Some((option, value)) => (option, Some(value)),
                None => (text, None),
            };
            at += 1;
            if self.lines.contains(&option) {
                let line = attached.map(|line| Word::Known(line.to_owned())).or_else(|| rest.get(at).cloned());
                // Without quotes the line is all that follows, to a reader; to the tool it is one word.
                carried.extend(line.map(Carried::Line));
                carried.extend(line_or_words(&rest[at.min(rest.len())..]).filter(|_| attached.is_none()));
                return carried;
            }
            match text {
                "--" => {}
                _ if attached.is_some() || self.flags.contains(&text) => {}
                _ if self.values.contains(&text) => at += 1,
                text if is_option(text) => {
                    // Nobody can tell whether the next word is its value: it may as well be the program.
                    if guesses < MOST_GUESSES && rest.get(at).is_some_and(|next| !next.may_start_with("-")) {
                        carried.push(program(name, &rest[at..]));
                        guesses += 1;
                        at += 1;
                    }
                }
                // `cross-env A=b program`; but `twine==5.0` is a program.
                text if is_assignment(text) => {}
                _ if before > 0 => before -= 1,
                _ => {
                    carried.push(program(name, &rest[at - 1..]));
                    return carried;
                }
            }
        }
        carried
    }
}

fn is_assignment(text: &str) -> bool {
    let name = text.split_once('=').filter(|(_, value)| !value.starts_with('=')).map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
}

/// Behind words such as `tool run`, with options before and between.
fn after_verb<'a>(verb: &str, runner: &Runner, arguments: &'a [Word]) -> Option<&'a [Word]> {
    let mut wanted = verb.split(' ').peekable();
    let mut at = 0;
    while let Some(next) = wanted.peek() {
        let text = arguments.get(at)?.known()?;
        at += 1;
        match text {
            text if text == *next || *next == "*" && !is_option(text) => {
                wanted.next();
            }
            // Words of `nix shell` before `-c` are packages.
            _ if next.starts_with('-') => {}
            text if is_option(text) => {
                let is_flag = text.contains('=') || runner.flags.contains(&text);
                let next_is_verb = arguments.get(at).and_then(Word::known) == Some(*next);
                if !is_flag && !next_is_verb {
                    at += 1;
                }
            }
            _ => return None,
        }
    }
    Some(&arguments[at.min(arguments.len())..])
}

/// The program that a package is known for.
const KNOWN_AS: &[(&str, &str)] = &[
    ("@changesets/cli", "changeset"),
    ("@vscode/vsce", "vsce"),
    ("@railway/cli", "railway"),
    ("aws-cdk", "cdk"),
    ("firebase-tools", "firebase"),
    ("netlify-cli", "netlify"),
    ("awscli", "aws"),
];

/// `npm@latest` is npm, and `@changesets/cli` is `changeset`.
fn program(runner: &str, words: &[Word]) -> Carried {
    let Some((first, rest)) = words.split_first() else { return Carried::Words(Vec::new()) };
    let Some(text) = first.known() else { return Carried::Unknown(first.clone()) };
    // No program has a blank in its name: `yarn exec 'npm publish'` is a line.
    if text.contains(char::is_whitespace) {
        return Carried::Line(Word::Known(format!("{text} {}", super::written(rest))));
    }
    let bare = match text.char_indices().skip(1).find(|(_, letter)| *letter == '@') {
        Some((at, _)) => &text[..at],
        None => text.split(['=', '>', '<', '[']).next().filter(|bare| !bare.is_empty()).unwrap_or(text),
    };
    let known = KNOWN_AS.iter().find(|(package, _)| *package == bare).map_or(bare, |(_, program)| program);
    // `hatch run env:program`.
    let known = match known.split_once(':') {
        Some((_, program)) if runner == "hatch" && !program.is_empty() => program,
        _ => known,
    };
    Carried::Words(std::iter::once(Word::Known(known.to_owned())).chain(rest.iter().cloned()).collect())
}

fn is_python(name: &str) -> bool {
    let starts = ["python", "pypy", "ipython", "py"];
    let version = starts.iter().find_map(|start| name.strip_prefix(start));
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// `python -m twine` is twine.
fn module(arguments: &[Word]) -> Option<Carried> {
    let mut at = 0;
    loop {
        let letters = arguments.get(at)?.known()?.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        at += 1;
        for (place, letter) in letters.char_indices() {
            let attached = &letters[place + letter.len_utf8()..];
            match letter {
                'm' if attached.is_empty() => return Some(program("python", arguments.get(at..)?)),
                'm' => {
                    let module = Word::Known(attached.to_owned());
                    let words: Vec<Word> = std::iter::once(module).chain(arguments[at..].iter().cloned()).collect();
                    return Some(program("python", &words));
                }
                'c' => return None,
                'W' | 'X' => {
                    at += usize::from(attached.is_empty());
                    break;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{carried, is_unclear};

    #[test]
    fn what_a_tool_starts_is_found() {
        for (line, wanted) in [
            ("npx npm publish", "npm publish"),
            ("npx -y npm@latest publish", "npm publish"),
            ("npx --package=npm -- npm publish", "npm publish"),
            ("npx -p npm npm publish", "npm publish"),
            ("npx -c 'git push'", "git push"),
            ("npx --call='git push'", "git push"),
            ("npm exec -- npm publish", "npm publish"),
            ("npm -w a exec npm publish", "npm publish"),
            ("npm x npm publish", "npm publish"),
            ("pnpm dlx npm publish", "npm publish"),
            ("pnpm -r exec git push", "git push"),
            ("yarn dlx npm publish", "npm publish"),
            ("yarn workspace a exec git push", "git push"),
            ("yarn workspaces foreach -A exec git push", "git push"),
            ("bunx --bun npm publish", "npm publish"),
            ("bun x npm publish", "npm publish"),
            ("corepack npm publish", "npm publish"),
            ("corepack pnpm@9 publish", "pnpm publish"),
            ("npx @changesets/cli publish", "changeset publish"),
            ("uvx twine upload x", "twine upload x"),
            ("uvx --from build --new twine upload x", "twine upload x"),
            ("uvx twine==5.0 upload x", "twine upload x"),
            ("uv run twine upload x", "twine upload x"),
            ("uv run --with twine twine upload x", "twine upload x"),
            ("uv tool run twine upload x", "twine upload x"),
            ("uv --directory a run --new twine upload x", "twine upload x"),
            ("pipx run twine upload x", "twine upload x"),
            ("pipx run --spec twine twine upload x", "twine upload x"),
            ("poetry run twine upload x", "twine upload x"),
            ("hatch run a:twine upload x", "twine upload x"),
            ("conda run -n a twine upload x", "twine upload x"),
            ("bundle exec gem push x", "gem push x"),
            ("mise exec -- git push", "git push"),
            ("direnv exec . git push", "git push"),
            ("rustup run nightly cargo publish", "cargo publish"),
            ("nix develop -c git push", "git push"),
            ("nix-shell --run 'git push'", "git push"),
            ("xvfb-run -a git push", "git push"),
            ("cross-env A=b git push", "git push"),
            ("hyperfine -w 1 'git push'", "git push"),
            ("python3 -m twine upload x", "twine upload x"),
            ("py -3.12 -m twine upload x", "twine upload x"),
            ("coverage run -m twine upload x", "twine upload x"),
            ("uvx 'twine>=5' upload x", "twine upload x"),
            ("yarn exec 'npm publish'", "npm publish"),
            ("pnpm -c exec 'npm publish'", "npm publish"),
            ("hatch env run -- twine upload x", "twine upload x"),
            ("tox exec -- twine upload x", "twine upload x"),
            ("mise x node@20 -- npm publish", "npm publish"),
            ("fnm exec --using 20 npm publish", "npm publish"),
            ("nvm exec 20 npm publish", "npm publish"),
            ("devbox run npm publish", "npm publish"),
            ("flox activate -- npm publish", "npm publish"),
            ("guix shell git -- git push", "git push"),
            ("dotenv -f x run npm publish", "npm publish"),
            ("dotenvx run -- npm publish", "npm publish"),
            ("env-cmd -f x npm publish", "npm publish"),
            ("nodemon -w src --exec 'git push'", "git push"),
            ("chokidar '**' -c 'git push'", "git push"),
            ("watchexec -w src git push", "git push"),
            ("cargo watch -s 'git push'", "git push"),
            ("cargo watch -x publish", "cargo publish"),
            ("nix run nixpkgs#git -- push", "git push"),
            ("python3.12 -Im twine upload x", "twine upload x"),
            ("python -W ignore -mtwine upload x", "twine upload x"),
        ] {
            assert!(carried(line).iter().any(|found| found == wanted), "{line}: {:?}", carried(line));
        }
    }

    #[test]
    fn what_starts_nothing_carries_nothing() {
        for line in [
            "npm publish", "npm test -- git push", "npm run exec", "yarn add git", "uv add twine",
            "uv pip install twine", "poetry add run", "python x.py -m twine", "python -c 'print(1)' -m twine",
            "bundle install", "npx", "uv run", "cargo watch", "nix run .", "pip install twine", "python",
        ] {
            assert_eq!(carried(line), Vec::<String>::new(), "{line}");
            assert!(!is_unclear(line), "{line}");
        }
    }
}
