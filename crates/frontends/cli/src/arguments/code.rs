//! The words of `code`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, value_parser};
use model::Language;

use super::{run_only, with_request, with_workspaces};

const HELP: &str = "\
  belljar code --lang python -                        code from standard input, in a sandbox of its own
  belljar code script.rb                              a file's name tells its language
  echo 'x = 41' | belljar code --lang python --session s -
  echo 'x + 1'  | belljar code --lang python --session s -     42: variables stay
  belljar code --stop s                               ends it; what it changed stays: `belljar diff s`

With `--session`, code runs in a context of an open sandbox of that name, which is made when it is first needed: python, javascript
and bash. The value of the last expression is printed; figures are kept with `--save-results DIR`. Time limits interrupt the code,
and its variables stay, unless it does not stop.";

pub fn command() -> Command {
    Command::new("code").about("Run code in a language; with a session, its variables stay").defer(|code| {
        let names = Language::ALL.map(Language::name).join(", ");
        let code = code
            .override_usage("belljar code [OPTIONS] [--lang LANG] FILE|-\n       belljar code --stop NAME")
            .after_help(HELP)
            .arg(
                Arg::new("code")
                    .value_name("FILE|-")
                    .value_parser(value_parser!(PathBuf))
                    .required_unless_present("stop")
                    .help("A file, or `-` for standard input"),
            )
            .arg(
                Arg::new("lang")
                    .long("lang")
                    .value_name("LANG")
                    .value_parser(|name: &str| {
                        Language::named(name).ok_or("no such language; see `belljar code --help`")
                    })
                    .help(format!("One of {names} [default: by the file's name]")),
            )
            .arg(
                Arg::new("session")
                    .long("session")
                    .value_name("NAME")
                    .conflicts_with_all(["result-file", "artifact"])
                    .help("Run it where code of this session ran before"),
            )
            .arg(
                Arg::new("save-results")
                    .long("save-results")
                    .value_name("DIR")
                    .requires("session")
                    .value_parser(value_parser!(PathBuf))
                    .help("Keep figures, tables and other results there, a file each"),
            )
            .arg(
                Arg::new("stop")
                    .long("stop")
                    .value_name("NAME")
                    .conflicts_with_all(["code", "lang", "session"])
                    .action(ArgAction::Set)
                    .help("End a session"),
            );
        with_request(with_workspaces(code)).args(run_only())
    })
}
