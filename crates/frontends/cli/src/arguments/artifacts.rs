//! The words of `artifacts`, and the flag that asks for some.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, value_parser};

use super::{json, switch};

const HELP: &str = "\
A run hands over what it was asked for, and what the policy lets pass; of the rest you see what it was and why it stayed:

  belljar run --artifact out --artifact '**/*.png' -- make report
  belljar artifacts ls                      everything that is kept, the newest run first
  belljar artifacts ls last                 of the last run; or of a run or a sandbox, by its id
  belljar artifacts get 3f2a -o report.pdf
  belljar artifacts get 3f2a | less
  belljar artifacts rm 3f2a

`belljar gc` removes what is old. A pattern: `*` is any part of one name, `?` one letter, `**` any number of folders; a
folder means all that is in it.";

pub fn flag() -> Arg {
    Arg::new("artifact")
        .long("artifact")
        .value_name("PATTERN")
        .action(ArgAction::Append)
        .help("Hand over what it writes here: a folder or a pattern in the workspace (out, '**/*.png')")
        .help_heading("Files")
}

pub fn command() -> Command {
    Command::new("artifacts").about("List, get and remove files that runs handed over").defer(|artifacts| {
        artifacts.after_help(HELP).subcommand_required(true).arg_required_else_help(true).subcommands([
            Command::new("ls")
                .about("List them, with why some are withheld")
                .arg(
                    Arg::new("of").value_name("RUN").help("Of this run or sandbox: its id, the start of it, or `last`"),
                )
                .arg(json("Print them as one JSON list")),
            Command::new("get")
                .about("Write one out, once it is known to be what was released")
                .after_help(GET_HELP)
                .arg(which())
                .arg(
                    Arg::new("output")
                        .short('o')
                        .long("output")
                        .value_name("FILE")
                        .value_parser(value_parser!(PathBuf))
                        .help("Write it to this file; `-` for standard output [default: standard output]"),
                )
                .arg(switch("force", "Replace the file if there is one").requires("output")),
            Command::new("rm")
                .about("Remove some, with their contents")
                .arg(which().num_args(1..).help("Their ids, or the starts of them")),
        ])
    })
}

const GET_HELP: &str = "\
To a terminal only text is written, and nothing that could command it. A file that is there already is not replaced
without --force; a link is replaced then, and never written through. Whether a program may be executed is kept of its mode,
nothing else. Exits with 123 if it is withheld.";

fn which() -> Arg {
    Arg::new("which").value_name("ID").required(true).help("Its id, or the start of it")
}
