//! The words that belljar knows, and the request that they make.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use model::{Asked, Request, Wall, units};

pub fn command(version: &'static str) -> Command {
    Command::new("belljar")
        .version(version)
        .about("Run what coding agents want to run, so that it can't hurt the machine, leak a secret or change a file unseen")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .after_help(EXAMPLES)
        // Each is only made when it is called: a start of a sandbox has no time for the others' flags.
        .subcommand(
            Command::new("run")
                .about("Run a command in a sandbox")
                .after_help(RUN_HELP)
                .defer(|run| with_request(run).args(run_only())),
        )
        .subcommand(
            Command::new("explain")
                .about("Show, step by step, what `run` would do, without doing it")
                .defer(|explain| with_request(explain).arg(json("Print the plan as one JSON object"))),
        )
        .subcommand(
            Command::new("doctor")
                .about("Show what this host can hold, wall by wall, and how to mend what it can't")
                .after_help("Exits with 0 if a backend is usable, 1 if none is.")
                .arg(json("Print the report as one JSON object")),
        )
        .subcommand(
            Command::new("completions")
                .about("Print a completion script for a shell")
                .arg(Arg::new("shell").required(true).value_parser(value_parser!(clap_complete::Shell))),
        )
}

const EXAMPLES: &str = "\
Examples:
  belljar run -- python3 script.py         read the current folder, write nothing, no network
  belljar run --write . -- cargo test      the same, and write to the current folder
  belljar run --timeout 30s --memory 512M --json -- ./untrusted
  belljar explain -- npm test              what would happen
  belljar doctor                           what this machine can hold";

const RUN_HELP: &str = "\
What the command sees: system programs and libraries, the tool-chains in PATH, the current folder (read-only), an empty
private home, /tmp and /dev/shm. Not: other files, other processes, the network, credentials, the rest of the environment.

Exit codes: the command's own, or 128 + n if signal n ended it; 122 approval missing, 123 refused by policy, 124 time-out,
125 could not be set up or wrong usage, 126 cannot be executed, 127 not found. --result-file tells them apart.";

/// Flags of everything that takes a command.
fn with_request(command: Command) -> Command {
    let path = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("PATH")
            .help(help)
            .action(ArgAction::Append)
            .value_parser(value_parser!(PathBuf))
    };
    let quantity = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    command
        .arg(path("read", "Let the command read a file or folder").help_heading("Files"))
        .arg(path("write", "Let the command write to a file or folder, directly").help_heading("Files"))
        .arg(path("hide", "Hide a file or folder that is granted otherwise").help_heading("Files"))
        .arg(
            Arg::new("cwd")
                .long("cwd")
                .value_name("PATH")
                .help("Start in this folder, which must be granted")
                .value_parser(value_parser!(PathBuf))
                .help_heading("Files"),
        )
        .arg(
            Arg::new("env")
                .long("env")
                .value_name("NAME[=VALUE]")
                .help("Set a variable, or pass yours on")
                .action(ArgAction::Append)
                .value_parser(OsStringValueParser::new().map(|word| variable(&word))),
        )
        .arg(
            Arg::new("terminal")
                .short('t')
                .long("terminal")
                .action(ArgAction::SetTrue)
                .help("Give the command a terminal of its own"),
        )
        .arg(
            quantity("timeout", "TIME", "End it after this time (30s, 500ms, 2m)")
                .value_parser(units::duration)
                .help_heading("Limits"),
        )
        .arg(
            quantity("cpus", "NUMBER", "Processors it may use (2, 0.5)")
                .value_parser(units::processors)
                .help_heading("Limits"),
        )
        .arg(
            quantity("cpu-time", "TIME", "Processor time it may use, all processes together")
                .value_parser(units::duration)
                .help_heading("Limits"),
        )
        .arg(
            quantity(
                "memory",
                "SIZE",
                "Memory it may use, all processes together (512M) [default: 3/4 of the machine's]",
            )
            .value_parser(units::bytes)
            .help_heading("Limits"),
        )
        .arg(
            quantity("pids", "NUMBER", "Processes and threads it may have [default: 4096]")
                .value_parser(units::count)
                .help_heading("Limits"),
        )
        .arg(
            quantity("disk", "SIZE", "Bytes it may write in each writable place [default: 8G]")
                .value_parser(units::bytes)
                .help_heading("Limits"),
        )
        .arg(
            quantity("files", "NUMBER", "Files it may have open in one process [default: 16384]")
                .value_parser(units::count)
                .help_heading("Limits"),
        )
        .arg(
            quantity("output", "SIZE", "Bytes of its output, and of its error output, to pass on; the rest is dropped")
                .value_parser(units::bytes)
                .help_heading("Limits"),
        )
        .arg(
            Arg::new("accept-gap")
                .long("accept-gap")
                .value_parser(value_parser!(Wall))
                .value_name("WALL")
                .action(ArgAction::Append)
                .help("Run even if this wall can't be held here; the result says so"),
        )
        .arg(
            Arg::new("backend")
                .long("backend")
                .value_name("NAME")
                .help("Isolate by this means [default: the strongest]"),
        )
        .arg(
            Arg::new("command")
                .value_name("CMD")
                .required(true)
                .num_args(1..)
                .trailing_var_arg(true)
                .value_parser(value_parser!(OsString))
                .help("The command and its arguments"),
        )
}

fn run_only() -> [Arg; 4] {
    [
        Arg::new("quiet").short('q').long("quiet").action(ArgAction::SetTrue).help("Say nothing of your own"),
        json("Say the result as one JSON object, on standard error"),
        Arg::new("result-file")
            .long("result-file")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("Write the result to a file, as one JSON object"),
        Arg::new("trace")
            .long("trace")
            .action(ArgAction::SetTrue)
            .hide(true)
            .help("Keep the time that each step takes"),
    ]
}

fn json(help: &'static str) -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help(help)
}

fn variable(word: &OsStr) -> (OsString, Option<OsString>) {
    let bytes = word.as_bytes();
    let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (owned(&bytes[..at]), Some(owned(&bytes[at + 1..]))),
        None => (word.to_owned(), None),
    }
}

pub fn request(matches: &ArgMatches) -> Request {
    let paths = |name: &str| matches.get_many::<PathBuf>(name).into_iter().flatten().cloned().collect();
    Request {
        command: matches.get_many::<OsString>("command").into_iter().flatten().cloned().collect(),
        read: paths("read"),
        write: paths("write"),
        hide: paths("hide"),
        environment: matches.get_many::<(OsString, Option<OsString>)>("env").into_iter().flatten().cloned().collect(),
        directory: matches.get_one::<PathBuf>("cwd").cloned(),
        terminal: matches.get_flag("terminal"),
        limits: Asked {
            wall_time: matches.get_one("timeout").copied(),
            millicpus: matches.get_one("cpus").copied(),
            cpu_time: matches.get_one("cpu-time").copied(),
            memory: matches.get_one("memory").copied(),
            processes: matches.get_one("pids").copied(),
            disk: matches.get_one("disk").copied(),
            open_files: matches.get_one("files").copied(),
            output: matches.get_one("output").copied(),
        },
        accept_gaps: matches.get_many::<Wall>("accept-gap").into_iter().flatten().copied().collect(),
        backend: matches.get_one::<String>("backend").cloned(),
        trace: matches.try_get_one::<bool>("trace").ok().flatten().copied().unwrap_or(false),
    }
}
