//! The words of `log` and `ledger`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, value_parser};
use model::units;

use super::{json, switch};

pub const LOG_HELP: &str = "\
  belljar log                        what happened last
  belljar log --run last             one run, from what was asked to how it ended
  belljar log --denied --since 1h    what was refused in the last hour
  belljar log --type commit -f       what is taken from sandboxes, as it happens
  belljar log --json > all.ndjson    everything, an object a line

Kinds: run.asked, run.judged, run.ended, run.receipt, approval.*, sandbox.*, program.started, run.sample,
network.*, call.denied, files.*, output.released, artifact.*, commit.*, policy.*, monitor.*, agent.*, ledger.*; a first word
stands for all of its kind.
Times are UTC. Values of secrets are never in the record.";

pub const LEDGER_HELP: &str = "\
Everything that happens is an entry in a file of lines, and each entry names the hash of the one before it: none can be
changed, removed or moved unseen. After each run the chain is signed. An anchor is told each signature, so that not even
the end can be cut off unseen. See docs/ledger.md.

  belljar ledger verify                        read all of it, and name what is not as it was written
  belljar ledger key                           the public key, for others who verify
  belljar ledger anchor --file /mnt/worm/belljar.anchor
  belljar ledger archive --older-than 90d --to /mnt/archive";

pub fn log(log: Command) -> Command {
    filters(log)
        .arg(
            Arg::new("lines")
                .short('n')
                .long("lines")
                .value_name("NUMBER")
                .value_parser(value_parser!(usize))
                .help("The newest so many [default: 50; all with --json, --run or --follow]"),
        )
        .arg(json("Print each entry as a JSON object on a line"))
}

/// Which entries, for all who read the record.
pub fn filters(command: Command) -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    command
        .arg(text("run", "ID", "Only of this run: the start of its id, or `last`"))
        .arg(text("agent", "NAME", "Only what this agent asked for"))
        .arg(text("user", "NAME", "Only what this user asked for"))
        .arg(switch("denied", "Only what was refused"))
        .arg(text("since", "TIME", "From then on: `1h` ago, or 2026-11-16T14:00"))
        .arg(text("until", "TIME", "Up to then"))
        .arg(
            text("type", "KIND", "Only such entries: `run.ended`, or `commit` for all that begin so")
                .action(ArgAction::Append)
                .value_delimiter(','),
        )
        .arg(Arg::new("follow").short('f').long("follow").action(ArgAction::SetTrue).help("Go on with what is to come"))
}

pub const NET_HELP: &str = "\
Every name that was asked for, every connection and every request that was read: who inside, where to, what came back, and
which rule decided. What was refused comes with the smallest rule that would allow it.

  belljar net                  of the last run
  belljar net 3f2a -f          of another, as it happens
  belljar net --denied --json  what was refused, an object a line";

pub fn net(net: Command) -> Command {
    net.arg(Arg::new("which").value_name("RUN").help("The start of a run's id [default: the last one]"))
        .arg(switch("denied", "Only what was refused"))
        .arg(Arg::new("follow").short('f').long("follow").action(ArgAction::SetTrue).help("Go on with what is to come"))
        .arg(json("Print each entry as a JSON object on a line"))
}

pub const RECEIPT_HELP: &str = "\
Each run ends with a statement of what went in, what held it and what came out, under the key of the record: a DSSE
envelope around an in-toto statement, which other tools verify too. See docs/ledger.md.

  belljar receipt last > receipt.json
  belljar receipt verify receipt.json --key their-key.pem";

pub fn receipt(receipt: Command) -> Command {
    let path = |name: &'static str| Arg::new(name).value_parser(value_parser!(PathBuf));
    receipt
        .args_conflicts_with_subcommands(true)
        .arg(Arg::new("which").value_name("ID").help("The start of a run's id, or `last`"))
        .arg(switch("statement", "Print what is said rather than the envelope around it"))
        .subcommand(
            Command::new("verify")
                .about("Say whether a receipt is signed by a key, and what it says")
                .after_help("Exits with 0 if it holds, 1 if it does not.")
                .arg(path("file").value_name("FILE").required(true).help("The receipt; `-` for standard input"))
                .arg(path("key").long("key").value_name("PEM").help("The public key [default: this user's own]"))
                .arg(json("Print the statement as one JSON object")),
        )
}

pub fn ledger(ledger: Command) -> Command {
    let path = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("PATH").value_parser(value_parser!(PathBuf)).help(help)
    };
    ledger
        .subcommand(
            Command::new("verify")
                .about("Read all of it, and name every entry that is not as it was written")
                .after_help("Exits with 0 if it is sound, 1 if it is not, 125 if it could not be read.")
                .arg(
                    Arg::new("folder")
                        .value_name("FOLDER")
                        .value_parser(value_parser!(PathBuf))
                        .help("Another record than this user's own: a copy, or an archive"),
                )
                .arg(path("key", "The public key that must have signed [default: the one beside it]"))
                .arg(path("anchor", "A file of checkpoints that an anchor kept").action(ArgAction::Append))
                .arg(path("archive", "A folder with segments that were moved away").action(ArgAction::Append))
                .arg(json("Print the report as one JSON object")),
        )
        .subcommand(
            Command::new("key")
                .about("Show the public key that signs, made on first use")
                .arg(json("As a JSON object")),
        )
        .subcommand(
            Command::new("archive")
                .about("Move whole segments elsewhere, where they still verify")
                .arg(
                    Arg::new("older-than")
                        .long("older-than")
                        .value_name("TIME")
                        .value_parser(units::duration)
                        .required(true)
                        .help("Only segments whose entries are all older (90d)"),
                )
                .arg(path("to", "The folder that they are moved to").required(true))
                .arg(switch("dry-run", "Only say what would be moved"))
                .arg(json("As a JSON object")),
        )
        .subcommand(
            Command::new("anchor")
                .about("Show, add or remove who is told each checkpoint")
                .arg(path("file", "Add a file that gets a line for each").conflicts_with_all(["command", "https"]))
                .arg(
                    Arg::new("command")
                        .long("command")
                        .value_name("LINE")
                        .conflicts_with("https")
                        .help("Add a command for `sh` that gets it on its standard input"),
                )
                .arg(
                    Arg::new("https")
                        .long("https")
                        .value_name("URL")
                        .help("Add a place that gets each posted, as JSON"),
                )
                .arg(path("header-file", "Headers to send along, a line each").requires("https"))
                .arg(path("ca", "Believe only the authorities in this file (PEM)").requires("https"))
                .arg(switch("remove", "Remove it instead"))
                .arg(json("As a JSON array")),
        )
}
