//! The words that `belljar mcp` knows.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

/// Whose configuration is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    ClaudeCode,
    Codex,
    Cursor,
    Vscode,
}

impl Client {
    fn read(word: &str) -> Result<Client, String> {
        match word {
            "claude-code" => Ok(Client::ClaudeCode),
            "codex" => Ok(Client::Codex),
            "cursor" => Ok(Client::Cursor),
            "vscode" => Ok(Client::Vscode),
            _ => Err("use claude-code, codex, cursor or vscode".to_owned()),
        }
    }
}

const HELP: &str = "\
An MCP client starts this program and speaks with it over standard input and output. Tools that name no sandbox use one that is
made over the folder it was started in, when it is first needed. What tools change stays there: `belljar ps`, `belljar diff` and
`belljar apply` show and take it. Where the policy asks, and whenever an agent wants to `apply`, the call waits for you:

  belljar approve                 shows what is asked, and takes your answer; no tool can give it

  belljar mcp --print-config claude-code       what to put where, for this client
  belljar mcp --print-config codex --json      the same as JSON

Revisions 2026-07-28, 2025-11-25 and 2025-06-18. The same tools are at /mcp of `belljar serve`; see docs/mcp.md.";

pub fn command(version: &'static str) -> Command {
    Command::new("belljar")
        .version(version)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(mcp())
}

fn mcp() -> Command {
    Command::new("mcp")
        .about("Give an agent tools that run in a sandbox, over MCP")
        .after_help(HELP)
        .arg(
            Arg::new("workspace")
                .long("workspace")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("The folder that the default sandbox is over [default: the one this is started in]"),
        )
        .arg(
            Arg::new("sandbox")
                .long("sandbox")
                .value_name("ID")
                .help("Use this sandbox instead of making one: an id or a name, as `belljar ps` shows it"),
        )
        .arg(
            Arg::new("agent")
                .long("agent")
                .value_name("NAME")
                .help("Which agent it is for, for the policy and the record [default: as its variables say, or mcp]"),
        )
        .arg(
            Arg::new("jobs")
                .long("jobs")
                .value_name("NUMBER")
                .default_value("8")
                .value_parser(value_parser!(u32).range(1..=1_000))
                .help("Jobs at once"),
        )
        .arg(
            Arg::new("print-config")
                .long("print-config")
                .value_name("CLIENT")
                .value_parser(Client::read)
                .help("Print what to put where: claude-code, codex, cursor or vscode"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .requires("print-config")
                .help("Print it as JSON: `file`, `format` and `text`, and `command` where the client has one for it"),
        )
}

pub fn client(matches: &ArgMatches) -> Option<Client> {
    matches.get_one::<Client>("print-config").copied()
}
