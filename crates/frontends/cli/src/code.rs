//! `belljar code`: code in a language instead of a command; with a session, in a context that keeps its variables.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ArgMatches;
use model::{
    Cell, CellAnswer, CellDone, CellNot, CellPart, Code, KeptSandbox, Language, MOST_CODE, Makes, NoToolchain, Outcome,
    PartKind, Request, Sandboxes, Service, Toolchains, Trouble,
};

use crate::new_file::NewFile;
use crate::words::{self, Layout};
use crate::{NOT_SET_UP, arguments, kept, run};

pub fn code(matches: &ArgMatches, service: &dyn Service) -> u8 {
    if let Some(name) = matches.get_one::<String>("stop") {
        return stop(name, service.sandboxes());
    }
    let Some(path) = matches.get_one::<PathBuf>("code") else { return NOT_SET_UP };
    let named = matches.get_one::<Language>("lang").copied();
    let Some(language) = named.or_else(|| Language::of_file(&path.to_string_lossy())) else {
        return complain("what language it is can't be told", "say `--lang LANG`");
    };
    match matches.get_one::<String>("session") {
        None => once(matches, service, language, path),
        Some(session) => in_session(matches, service.sandboxes(), language, path, session),
    }
}

/// A run like any other.
fn once(matches: &ArgMatches, service: &dyn Service, language: Language, path: &Path) -> u8 {
    let given = path.to_string_lossy();
    let command = match is_input(path) {
        true => match read(path) {
            Ok(code) => language.command(Code::Word(&code), &OfThePath),
            Err(trouble) => return kept::complain(&trouble),
        },
        false => language.command(Code::File(&given), &OfThePath),
    };
    match command {
        Ok(command) => run::run_by(matches, |request| {
            let command = command.into_iter().map(Into::into).collect();
            service.run(&Request { command, ..request.clone() })
        }),
        Err(missing) => no_toolchain(&missing),
    }
}

fn in_session(matches: &ArgMatches, sandboxes: &dyn Sandboxes, language: Language, path: &Path, session: &str) -> u8 {
    let Some(keeps) = language.keeps() else {
        let what = format!("{} has no sessions", language.name());
        return complain(&what, "python, javascript and bash have; leave `--session` out");
    };
    let program = match language.program(&OfThePath) {
        Ok(program) => program.to_owned(),
        Err(missing) => return no_toolchain(&missing),
    };
    let code = match read(path) {
        Ok(code) => code,
        Err(trouble) => return kept::complain(&trouble),
    };
    let request = Request { terminal: false, ..arguments::request(matches) };
    if let Err(code) = opened(matches, sandboxes, &request, session) {
        return code;
    }
    // What a sandbox is made with is its own already; of the code, only its limits are.
    let limits = request.limits.clone();
    let request = Request { limits, agent: request.agent, capture: request.capture, ..Request::default() };
    let cell = Cell { language: keeps, program, code, context: None, makes: Makes::IfMissing };
    match sandboxes.run_cell(session, &request, &cell) {
        Ok(CellDone { outcome, answer }) => tell(matches, &outcome, answer.as_ref()),
        Err(
            CellNot::Closed(trouble)
            | CellNot::NoContext(trouble)
            | CellNot::Conflict(trouble)
            | CellNot::Wrong(trouble)
            | CellNot::Trouble(trouble),
        ) => kept::complain(&trouble),
    }
}

/// The session's sandbox, with somebody who stays with it.
fn opened(matches: &ArgMatches, sandboxes: &dyn Sandboxes, request: &Request, session: &str) -> Result<(), u8> {
    let is_it = |kept: &KeptSandbox| kept.name.as_deref() == Some(session);
    let known = sandboxes.identify(session).ok().filter(is_it);
    if known.as_ref().is_some_and(|kept| kept.open) {
        return Ok(());
    }
    if known.is_none() {
        // Time and output are limits of each piece of code, not of the sandbox.
        let limits = model::Asked { wall_time: None, output: None, ..request.limits.clone() };
        let request = Request { limits, capture: None, ..request.clone() };
        sandboxes.create(&request, Some(session)).map_err(|outcome| {
            match matches.get_flag("json") {
                true => run::say_as_json(&outcome),
                false => words::say(&run::summary(&outcome)),
            }
            wire::code(&outcome)
        })?;
    }
    host(session).map_err(|error| {
        complain(&format!("the session can't be opened: {error}"), &format!("see what `belljar open {session}` says"))
    })
}

/// Starts whoever stays with it: another belljar, in a group of its own, so that what ends this one does not end that one.
pub fn host(session: &str) -> io::Result<()> {
    let mut host = Command::new(std::env::current_exe()?)
        .args(["open", "--json", session])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let mut line = String::new();
    if let Some(said) = host.stdout.take() {
        BufReader::new(said).read_line(&mut line)?;
    }
    match line.is_empty() {
        false => Ok(()),
        true => Err(io::Error::other(format!("it ended: {}", host.wait()?))),
    }
}

fn stop(name: &str, sandboxes: &dyn Sandboxes) -> u8 {
    match sandboxes.stop(name) {
        Ok(_) => {
            words::print(Ok(words::page([format!("{name}: ended; what it changed stays, see `belljar diff {name}`")])));
            0
        }
        Err(trouble) => kept::complain(&trouble),
    }
}

fn tell(matches: &ArgMatches, outcome: &Outcome, answer: Option<&CellAnswer>) -> u8 {
    let code = wire::code(outcome);
    if let (Some(answer), Some(folder)) = (answer, matches.get_one::<PathBuf>("save-results"))
        && let Err(error) = save(answer, folder)
    {
        words::say(&format!("belljar: cannot write results to `{}`: {error}", folder.display()));
        return NOT_SET_UP;
    }
    if matches.get_flag("json") {
        let said = serde_json::to_value(wire::object(outcome)).and_then(|mut object| {
            object["cell"] = serde_json::to_value(answer)?;
            words::json(&object, Layout::Line)
        });
        match said {
            Ok(text) => words::say(&text),
            Err(error) => words::say(&format!("belljar: cannot say the result as JSON: {error}")),
        }
        return code;
    }
    if let Some(answer) = answer {
        show(answer);
    }
    if !matches.get_flag("quiet") || !matches!(outcome, Outcome::Ran(_)) {
        words::say(&run::summary(outcome));
    }
    code
}

/// What is text, on standard output; an error's lines where errors go.
fn show(answer: &CellAnswer) {
    for result in &answer.results {
        let text = result.parts.iter().find(|part| part.kind == PartKind::Text);
        let lines: Vec<String> = match text {
            Some(part) => part.data.lines().map(str::to_owned).collect(),
            None => {
                let kinds: Vec<&str> = result.parts.iter().map(|part| part.kind.name()).collect();
                vec![format!("[{}: see --save-results]", kinds.join(", "))]
            }
        };
        words::print(Ok(words::page(lines)));
    }
    if let Some(error) = &answer.error {
        error.traceback.lines().for_each(words::say);
    }
    if let Some(lost) = &answer.lost {
        words::say(&format!("belljar: the session's variables are gone: {lost}"));
    }
}

/// Each representation in a file of its own: the cell's number, the result's, and an ending.
fn save(answer: &CellAnswer, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, result) in answer.results.iter().enumerate() {
        for part in &result.parts {
            let name = format!("{}-{}-{}.{}", answer.language.name(), answer.number, number + 1, ending(part.kind));
            let mut file = NewFile::beside(&folder.join(name), false)?;
            file.write_all(&bytes(part)?)?;
            file.name_it(true)?;
        }
    }
    Ok(())
}

fn bytes(part: &CellPart) -> io::Result<Vec<u8>> {
    use base64::Engine;
    match part.kind.is_binary() {
        true => base64::engine::general_purpose::STANDARD.decode(&part.data).map_err(io::Error::other),
        false => Ok(part.data.as_bytes().to_vec()),
    }
}

fn ending(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Text => "txt",
        PartKind::Html => "html",
        PartKind::Markdown => "md",
        PartKind::Latex => "tex",
        PartKind::Svg => "svg",
        PartKind::Json => "json",
        PartKind::Png => "png",
        PartKind::Jpeg => "jpg",
        PartKind::Plotly => "plotly.json",
    }
}

fn is_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn read(path: &Path) -> Result<String, Trouble> {
    let most = MOST_CODE as u64 + 1;
    let mut code = String::new();
    let read = match is_input(path) {
        true => io::stdin().lock().take(most).read_to_string(&mut code),
        false => fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut code)),
    };
    let trouble = |why: String| Trouble {
        message: format!("the code in `{}` can't be run: {why}", path.display()),
        fix: "give it as text of less than 128 KiB, or run a file of the workspace".to_owned(),
    };
    read.map_err(|error| trouble(error.to_string()))?;
    if code.len() > MOST_CODE {
        return Err(trouble("it is too long".to_owned()));
    }
    Ok(code)
}

pub fn no_toolchain(missing: &NoToolchain) -> u8 {
    complain(&missing.to_string(), "install it, or use another language")
}

fn complain(message: &str, fix: &str) -> u8 {
    kept::complain(&Trouble { message: message.to_owned(), fix: fix.to_owned() })
}

/// Programs on the way that the user has, which sandboxes have too.
pub struct OfThePath;

impl OfThePath {
    fn find(program: &str) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_program = |path: &PathBuf| {
            fs::metadata(path).is_ok_and(|stat| stat.is_file() && stat.permissions().mode() & 0o111 != 0)
        };
        std::env::split_paths(&path).map(|folder| folder.join(program)).find(is_program)
    }
}

impl Toolchains for OfThePath {
    fn has(&self, program: &str) -> bool {
        OfThePath::find(program).is_some()
    }

    fn version_of(&self, program: &str) -> Option<u32> {
        let asked =
            Command::new(OfThePath::find(program)?).arg("--version").env_clear().current_dir("/").output().ok()?;
        String::from_utf8_lossy(&asked.stdout).trim_start_matches('v').split('.').next()?.trim().parse().ok()
    }
}
