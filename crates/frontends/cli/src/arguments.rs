//! The words that belljar knows, and the request that they make.

mod agents;
mod artifacts;
mod code;
mod exports;
mod images;
mod network;
mod policies;
mod records;
mod scans;
pub mod secrets;

pub use network::forwarded;

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use model::{Asked, Request, Wall, WorkspaceMode, units};

/// What `run` is asked for, if the words are right: the same as `command` would say, made without the other commands.
/// Whoever gets nothing asks that one, which knows what to say of wrong words.
pub fn of_run(version: &'static str, words: &[OsString]) -> Option<ArgMatches> {
    if words.get(1).is_none_or(|word| word != "run") {
        return None;
    }
    top(version).subcommand(run()).try_get_matches_from(words).ok()
}

pub fn command(version: &'static str) -> Command {
    top(version)
        .about("Run what coding agents want to run, so that it can't hurt the machine, leak a secret or change a file unseen")
        .after_help(EXAMPLES)
        // Each is only made when it is called: a start of a sandbox has no time for the others' flags.
        .subcommand(run())
        .subcommands(kept())
        .subcommand(code::command())
        .subcommand(artifacts::command())
        .subcommand(collect())
        .subcommand(policies::approve())
        .subcommand(
            Command::new("explain")
                .about("Show, step by step, what `run` would do, without doing it")
                .defer(|explain| {
                    with_command(with_request(with_workspaces(explain))).arg(json("Print the plan as one JSON object"))
                }),
        )
        .subcommand(
            Command::new("check")
                .about("Say what the policy would answer to a command, code, a path or a host")
                .override_usage("belljar check [OPTIONS] 'LINE' | -- CMD...\n       belljar check --code FILE | --path PATH --op OP | --host HOST[:PORT]")
                .after_help(policies::CHECK_HELP)
                .defer(policies::check),
        )
        .subcommand(
            Command::new("policy")
                .about("Show, check, compare and trust policies")
                .after_help(policies::POLICY_HELP)
                .subcommand_required(true)
                .arg_required_else_help(true)
                .defer(policies::policy),
        )
        .subcommand(
            Command::new("scan")
                .about("Look for dangerous code and secrets in files")
                .after_help(scans::SCAN_HELP)
                .defer(scans::scan),
        )
        .subcommand(
            Command::new("log").about("Show what happened").after_help(records::LOG_HELP).defer(records::log),
        )
        .subcommand(
            Command::new("net")
                .about("Show what a run sent to the network, and what it was refused")
                .after_help(records::NET_HELP)
                .defer(records::net),
        )
        .subcommand(
            Command::new("forward")
                .about("Reach a server inside a run that goes on, from this machine's loopback")
                .after_help(network::FORWARD_HELP)
                .arg_required_else_help(true)
                .defer(network::forward),
        )
        .subcommand(
            Command::new("export")
                .about("Send the record elsewhere: to a SIEM, a collector, a log server, or a scraper of metrics")
                .after_help(exports::HELP)
                .arg_required_else_help(true)
                .defer(exports::export),
        )
        .subcommand(
            Command::new("receipt")
                .about("Show or verify the signed statement that a run ended with")
                .after_help(records::RECEIPT_HELP)
                .arg_required_else_help(true)
                .defer(records::receipt),
        )
        .subcommand(
            Command::new("ledger")
                .about("Verify, sign, anchor and archive the record of what happened")
                .after_help(records::LEDGER_HELP)
                .subcommand_required(true)
                .arg_required_else_help(true)
                .defer(records::ledger),
        )
        .subcommands(crate::serve::commands())
        .subcommand(agents::command())
        .subcommand(secrets::command())
        .subcommand(images::command())
        .subcommand(
            Command::new("doctor")
                .about("Show what this host can hold, wall by wall, and how to mend what it can't")
                .after_help("Exits with 0 if a backend is usable, 1 if none is.")
                .arg(json("Print the report as one JSON object")),
        )
        .subcommand(bench())
        .subcommand(
            Command::new("completions")
                .about("Print a completion script for a shell")
                .arg(Arg::new("shell").required(true).value_parser(value_parser!(clap_complete::Shell))),
        )
}

fn bench() -> Command {
    Command::new("bench")
        .about("Measure backends beside each other: start, memory, files, calls, and which programs run in them")
        .after_help(
            "Each is started as you would start it, many times and in turn, with state of its own: nothing of yours is \
             read or written. Compare the rows of one run with each other; another machine, or a busy one, has other numbers.",
        )
        .arg(
            Arg::new("backends")
                .long("backends")
                .value_name("NAMES")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .help("Only these, such as native,wasm [default: all that can be used here]"),
        )
        .arg(
            Arg::new("lang")
                .long("lang")
                .value_name("LANGUAGE")
                .value_parser(["python", "javascript"])
                .help("Start this language's interpreter, instead of a program that does nothing"),
        )
        .arg(
            Arg::new("rounds")
                .long("rounds")
                .value_name("NUMBER")
                .value_parser(value_parser!(u64).range(1..=10_000))
                .default_value("20")
                .help("How often each is started"),
        )
        .arg(
            Arg::new("longest")
                .long("longest")
                .value_name("TIME")
                .value_parser(units::duration)
                .default_value("3m")
                .help("Begin nothing new after this"),
        )
        .arg(Arg::new("image").long("image").value_name("IMAGE").help("For backends that run images: run this one"))
        .arg(
            Arg::new("chart")
                .long("chart")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Draw it into this SVG file as well"),
        )
        .arg(json("Print everything that was measured, with all samples, as one JSON object"))
}

fn top(version: &'static str) -> Command {
    let top = Command::new("belljar").version(version).subcommand_required(true);
    top.arg_required_else_help(true).disable_help_subcommand(true)
}

fn run() -> Command {
    Command::new("run")
        .about("Run a command in a sandbox")
        .after_help(RUN_HELP)
        .defer(|run| with_command(with_request(with_workspaces(run))).args(run_only()))
}

const EXAMPLES: &str = "\
Examples:
  belljar run -- cargo test                work on the current folder; its files stay as they are, no network
  belljar diff                             what that changed
  belljar apply                            take it; or `belljar discard`
  belljar run --timeout 30s --memory 512M --json -- ./untrusted
  belljar explain -- npm test              what would happen
  belljar serve                            the same as an HTTP API on this machine's loopback
  belljar mcp --print-config claude-code   the same as tools for an agent
  belljar doctor                           what this machine can hold";

const RUN_HELP: &str = "\
What the command sees: system programs and libraries, the tool-chains in PATH, the current folder, an empty private home,
/tmp and /dev/shm. Not: other files, other processes, the network, credentials, the rest of the environment.

What it changes in the current folder is kept apart: look at it with `belljar diff`, take it with `belljar apply`, throw
it away with `belljar discard`. With `--write` or `--workspace-mode direct` the real files change.

Exit codes: the command's own, or 128 + n if signal n ended it; 122 approval missing, 123 refused by policy, 124 time-out,
125 could not be set up or wrong usage, 126 cannot be executed, 127 not found. --result-file tells them apart.";

fn agent() -> Arg {
    let help = "For which agent: rules on that name hold as well [default: as its variables tell]";
    Arg::new("agent").long("agent").value_name("NAME").help(help)
}

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
    network::with_network(command)
        .arg(path("read", "Let the command read a file or folder").help_heading("Files"))
        .arg(path("write", "Let the command write to a file or folder, directly").help_heading("Files"))
        .arg(path("hide", "Hide a file or folder that is granted otherwise").help_heading("Files"))
        .arg(artifacts::flag())
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
                .help("Give the command a terminal of its own [default: if input, output and errors are one]"),
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
                .help("Run even if this wall can't be held here; the result says so")
                .help_heading("Isolation"),
        )
        .arg(
            Arg::new("backend")
                .long("backend")
                .value_name("NAME")
                .help("Isolate by this means: auto, native, wasm, gvisor or container [default: auto]")
                .help_heading("Isolation"),
        )
        .arg(
            Arg::new("image")
                .long("image")
                .value_name("IMAGE")
                .help("Run in this image of a container engine, instead of on the host's own programs")
                .help_heading("Isolation"),
        )
        .arg(
            Arg::new("runtime")
                .long("runtime")
                .value_name("NAME")
                .help("Let the container engine use this runtime, such as runsc or kata")
                .help_heading("Isolation"),
        )
        .arg(agent())
}

/// The command itself, behind all flags.
fn with_command(command: Command) -> Command {
    command.arg(
        Arg::new("command")
            .value_name("CMD")
            .required(true)
            .num_args(1..)
            .trailing_var_arg(true)
            .value_parser(value_parser!(OsString))
            .help("The command and its arguments"),
    )
}

/// Flags that choose what a sandbox is made over.
fn with_workspaces(command: Command) -> Command {
    command
        .arg(
            Arg::new("workspace")
                .long("workspace")
                .value_name("DIR")
                .help("Work on this folder instead of the current one; may be repeated")
                .action(ArgAction::Append)
                .value_parser(value_parser!(PathBuf))
                .help_heading("Files"),
        )
        .arg(
            Arg::new("workspace-mode")
                .long("workspace-mode")
                .value_name("MODE")
                .help("cow: keep changes apart; direct: change the real files; readonly [default: cow]")
                .value_parser(["cow", "direct", "readonly"])
                .hide_possible_values(true)
                .help_heading("Files"),
        )
}

/// Commands on sandboxes that are kept.
fn kept() -> [Command; 14] {
    [
        Command::new("diff").about("Show what a sandbox changed, or how two differ").defer(|diff| {
            diff.override_usage("belljar diff [OPTIONS] [ID [ID]] [PATH]...")
                .after_help(DIFF_HELP)
                .arg(words("The sandbox [default: the one used last]; two to compare them; then paths"))
                .arg(
                    switch("stat", "One line a file, with the number of lines that changed (as without flags)")
                        .conflicts_with("patch"),
                )
                .arg(switch("patch", "A unified patch, for `git apply` and `patch -p1`").short('p'))
                .arg(switch("exact", "Leave secrets in the patch, so that it can be applied").requires("patch"))
                .arg(json("Print the changes as one JSON object").conflicts_with("patch"))
                .arg(paths())
        }),
        Command::new("apply").about("Take a sandbox's changes onto the real files").defer(|apply| {
            apply
                .override_usage("belljar apply [OPTIONS] [ID] [PATH]...")
                .after_help(APPLY_HELP)
                .arg(words("The sandbox [default: the one used last]; then paths"))
                .arg(switch("check", "Only say what would happen"))
                .arg(switch("ours", "Where both changed the same, keep what is on the host").conflicts_with("theirs"))
                .arg(switch("theirs", "Where both changed the same, take what the sandbox made"))
                .arg(json("Print what happened as one JSON object"))
                .arg(paths())
        }),
        Command::new("discard")
            .about("Throw a sandbox's changes away")
            .defer(|discard| discard.arg(which_or_last()).arg(json("Print what was thrown away as one JSON object"))),
        Command::new("ps")
            .about("List sandboxes that run or are kept")
            .defer(|ps| ps.arg(json("Print them as one JSON list"))),
        Command::new("show")
            .about("Show one sandbox")
            .defer(|show| show.arg(which()).arg(json("Print it as one JSON object"))),
        Command::new("create").about("Make a sandbox to be used again and again, over the current folder").defer(
            |create| {
                with_request(with_workspaces(create.after_help(CREATE_HELP)))
                    .arg(Arg::new("name").long("name").value_name("NAME").help("Call it so"))
                    .arg(json("Print it as one JSON object"))
            },
        ),
        Command::new("exec").about("Run a command in a sandbox that is kept").defer(|exec| {
            let exec = exec.after_help("What the sandbox was made with holds; flags given here are added to it.");
            with_command(with_request(exec.arg(which()))).args(run_only())
        }),
        Command::new("open").about("Open a kept sandbox and stay, so that what is started in it goes on").defer(
            |open| {
                let quiet = Arg::new("quiet")
                    .short('q')
                    .long("quiet")
                    .action(ArgAction::SetTrue)
                    .help("Say nothing of your own");
                open.after_help(OPEN_HELP)
                    .arg(which())
                    .arg(quiet)
                    .arg(json("Say when it is open, and the result, as one JSON object each"))
            },
        ),
        Command::new("stop")
            .about("End a sandbox that is open, with everything that runs in it; its changes stay")
            .defer(|stop| stop.arg(which()).arg(json("Print it as one JSON object"))),
        Command::new("cp").about("Copy a file into a sandbox, or out of it").defer(|cp| {
            let end = |name: &'static str, help: &'static str| {
                Arg::new(name)
                    .required(true)
                    .value_name(if name == "from" { "FROM" } else { "TO" })
                    .value_parser(value_parser!(OsString))
                    .help(help)
            };
            cp.after_help(CP_HELP)
                .arg(end("from", "A file here, `-` for standard input, or ID:PATH in a sandbox"))
                .arg(end("to", "The same, with `-` for standard output; one of the two is in a sandbox"))
        }),
        Command::new("rm")
            .about("Remove sandboxes with all their changes and snapshots")
            .defer(|rm| rm.arg(which().num_args(1..).help("Their ids, starts of them, or names"))),
        Command::new("snapshot").about("Keep what a sandbox is now, to come back to it").defer(|snapshot| {
            snapshot
                .arg(which())
                .arg(Arg::new("name").long("name").value_name("NAME").help("Call it so [default: s1, s2, …]"))
                .arg(json("Print it as one JSON object"))
        }),
        Command::new("rollback").about("Go back to a snapshot; what was changed since is gone").defer(|rollback| {
            rollback
                .arg(which())
                .arg(Arg::new("snapshot").value_name("SNAPSHOT").help("Its name [default: the newest]"))
                .arg(json("Print it as one JSON object"))
        }),
        Command::new("fork").about("Make sandboxes that begin where this one is, and go on without each other").defer(
            |fork| {
                let number = Arg::new("number").short('n').long("number").value_name("NUMBER").help("How many");
                fork.arg(which())
                    .arg(number.default_value("1").value_parser(value_parser!(u16).range(1..=64)))
                    .arg(
                        Arg::new("context").long("context").value_name("NAME").help(
                            "With the variables of this context of python, of one that is open; the forks are, too",
                        ),
                    )
                    .arg(json("Print them as one JSON list"))
            },
        ),
    ]
}

fn collect() -> Command {
    Command::new("gc")
        .about("Remove sandboxes and kept downloads that were not used for long, old artifacts, and what nobody needs")
        .defer(|gc| {
            let older = Arg::new("older-than").long("older-than").value_name("TIME").default_value("7d");
            gc.arg(older.value_parser(units::duration).help("Not used, or made, for so long (12h, 7d)"))
                .arg(switch("dry-run", "Only say what would be removed"))
                .arg(json("Print what is removed as one JSON object"))
        })
}

fn which() -> Arg {
    let help = "Its id, the start of it, its name, or `last` for the one used last";
    Arg::new("which").value_name("ID").required(true).help(help)
}

fn which_or_last() -> Arg {
    which().required(false).help("Its id, the start of it, or its name [default: the one used last]")
}

fn words(help: &'static str) -> Arg {
    Arg::new("words").value_name("ID").num_args(0..).value_parser(value_parser!(OsString)).help(help)
}

fn paths() -> Arg {
    let paths = Arg::new("paths").value_name("PATH").last(true).num_args(0..);
    paths.value_parser(value_parser!(PathBuf)).help("Only these, and what is below them")
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

const CREATE_HELP: &str =
    "Prints its id. `belljar exec ID -- CMD` runs something in it; its changes stay until you take them.";

const CP_HELP: &str = "\
  belljar cp notes.txt work:docs/notes.txt
  belljar cp work:out.csv - | head

It is done inside the sandbox, behind its walls, whether it is open or not. Paths start in its workspace, or at its root with a
`/`. Folders that lead to it are made. What is taken out is without secrets, as the output of a command is. Up to 64 MiB.";

const OPEN_HELP: &str = "\
All walls are raised once, and stand until `belljar stop ID` or Ctrl-C. Meanwhile each `belljar exec ID -- CMD` is judged and
recorded as ever, and starts its command behind them: at once, and beside whatever was left running there. A command that
may have more or less than the sandbox was made with is refused, with what differs.

  belljar open work &
  belljar exec work -- sh -c 'python3 -m http.server 8000 >/dev/null 2>&1 &'
  belljar exec work -- curl -s http://localhost:8000/";

const DIFF_HELP: &str = "\
A word that is no sandbox is a path; after `--` every word is one.

  belljar diff                  what the sandbox used last changed
  belljar diff 3f2a src         what another changed below src
  belljar diff 3f2a 9c01        how the second of two forks differs from the first
  belljar diff -p | git apply   (in another clone)";

const APPLY_HELP: &str = "\
What nobody has changed on the host is taken. What both have changed is merged where the lines are apart; otherwise it is
a conflict: nothing of that file is written, and --ours or --theirs decides. Files that programs of the host act on by
themselves (git hooks and settings, CI, settings of agents, editors and shells) are only taken when they are named:

  belljar apply last .github/workflows/test.yml

A word that is no sandbox is a path; after `--` every word is one. Exits with 1 if there are conflicts.";

fn run_only() -> [Arg; 5] {
    [
        Arg::new("quiet").short('q').long("quiet").action(ArgAction::SetTrue).help("Say nothing of your own"),
        json("Say the result as one JSON object, on standard error"),
        Arg::new("result-file")
            .long("result-file")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("Write the result to a file, as one JSON object"),
        Arg::new("capture")
            .long("capture")
            .value_name("BYTES")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("64K")
            .value_parser(captured)
            .help("Put what the command says into the result, too: so much of each stream, half from its end [default: 64K]"),
        Arg::new("trace")
            .long("trace")
            .action(ArgAction::SetTrue)
            .hide(true)
            .help("Keep the time that each step takes"),
    ]
}

/// The result is one object in memory, so there is an end to it.
fn captured(word: &str) -> Result<u64, String> {
    match units::bytes(word).map_err(|bad| bad.to_string())? {
        bytes if bytes <= MOST_CAPTURED => Ok(bytes),
        _ => Err(format!("{} MiB is the most", MOST_CAPTURED >> 20)),
    }
}

const MOST_CAPTURED: u64 = 16 << 20;

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
        command: matches.try_get_many::<OsString>("command").ok().flatten().into_iter().flatten().cloned().collect(),
        read: paths("read"),
        write: paths("write"),
        hide: paths("hide"),
        workspaces: matches
            .try_get_many::<PathBuf>("workspace")
            .ok()
            .flatten()
            .into_iter()
            .flatten()
            .cloned()
            .collect(),
        workspace_mode: match matches.try_get_one::<String>("workspace-mode").ok().flatten().map(String::as_str) {
            Some("direct") => WorkspaceMode::Direct,
            Some("readonly") => WorkspaceMode::Readonly,
            _ => WorkspaceMode::Cow,
        },
        network: network::network(matches),
        environment: matches.get_many::<(OsString, Option<OsString>)>("env").into_iter().flatten().cloned().collect(),
        directory: matches.get_one::<PathBuf>("cwd").cloned(),
        terminal: matches.get_flag("terminal") || is_terminal(),
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
        backend: matches.get_one::<String>("backend").filter(|name| *name != "auto").cloned(),
        image: matches.get_one::<String>("image").cloned(),
        runtime: matches.get_one::<String>("runtime").cloned(),
        artifacts: matches.get_many::<String>("artifact").into_iter().flatten().cloned().collect(),
        agent: matches.get_one::<String>("agent").cloned(),
        capture: matches.try_get_one::<u64>("capture").ok().flatten().copied(),
        trace: matches.try_get_one::<bool>("trace").ok().flatten().copied().unwrap_or(false),
        revisions: Vec::new(),
        run: None,
    }
}

/// Whether somebody sits here, with nothing redirected.
fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}
