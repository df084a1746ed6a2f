//! The words of `check`, `policy` and `approve`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Command, value_parser};

use super::{agent, json, switch};

pub const CHECK_HELP: &str = "\
A line is judged command by command, as a shell would start them. Such rules steer who is asked; the sandbox is the wall.

  belljar check 'git log && curl -s https://example.org | sh'
  belljar check -- git push --force
  belljar check --code script.py
  belljar check --path ~/.ssh --op read
  belljar check --host example.org:443

Exits with 0 if it is allowed, 2 if it is denied, 3 if a person would be asked, 64 if it is used wrongly.";

pub const POLICY_HELP: &str = "\
Policies are TOML files: /etc/belljar/policy.toml (the machine's, above all), ~/.config/belljar/policy.toml (yours) and
belljar.toml in a project. A project's file can only tighten until you trust it. A short one:

  version = 1
  extends = [\"balanced\", \"python\", \"claude-code\"]

Levels: locked, balanced, open. Languages: python, node, rust, go, java, ruby, shell. Agents: claude-code, codex, generic.";

pub fn check(check: Command) -> Command {
    check
        .arg(
            Arg::new("command")
                .value_name("CMD")
                .num_args(0..)
                .value_parser(value_parser!(OsString))
                .help("A line for a shell; or, as several words, a command: after `--` if it has options"),
        )
        .arg(
            Arg::new("code")
                .long("code")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(["path", "host", "command"])
                .help("A file with code"),
        )
        .arg(
            Arg::new("language")
                .long("language")
                .value_name("NAME")
                .requires("code")
                .help("What it is written in [default: as its name or first line says]"),
        )
        .arg(
            Arg::new("path")
                .long("path")
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .requires("op")
                .conflicts_with_all(["host", "command"])
                .help("A file or folder"),
        )
        .arg(
            Arg::new("op")
                .long("op")
                .value_name("OP")
                .requires("path")
                .value_parser(["read", "write", "commit"])
                .help("What to do with it"),
        )
        .arg(
            Arg::new("host")
                .long("host")
                .value_name("HOST[:PORT]")
                .conflicts_with("command")
                .help("A host to connect to"),
        )
        .arg(
            Arg::new("method")
                .long("method")
                .value_name("METHOD")
                .requires("host")
                .help("Of a request to the host: GET, POST; GET if only `--url` is said"),
        )
        .arg(
            Arg::new("url")
                .long("url")
                .value_name("PATH")
                .requires("host")
                .help("The path of a request to the host: `/repos/x?y=z`; `/` if only `--method` is said"),
        )
        .arg(agent())
        .arg(
            Arg::new("policy")
                .long("policy")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Take this file for your own policy"),
        )
        .arg(json("Print the verdict as one JSON object"))
}

pub fn policy(policy: Command) -> Command {
    let file = |help: &'static str| {
        Arg::new("file").value_name("FILE").required(true).value_parser(value_parser!(PathBuf)).help(help)
    };
    let folder = || {
        let folder = Arg::new("folder").value_name("DIR").value_parser(value_parser!(PathBuf));
        folder.help("The project [default: the current folder]")
    };
    policy
        .subcommand(
            Command::new("show")
                .about("What is in force here, line by line, and where it is said")
                .arg(json("Print it as one JSON object")),
        )
        .subcommand(
            Command::new("lint")
                .about("What is wrong with, or odd about, a file; or all that are in force")
                .after_help("Exits with 1 if there is an error.")
                .arg(file("A policy file").required(false))
                .arg(json("Print the remarks as one JSON list")),
        )
        .subcommand(
            Command::new("schema")
                .about("Print the JSON Schema of policy files, for editors")
                .arg(Arg::new("language").value_name("LANGUAGE").help("Of rules in another language instead: cedar")),
        )
        .subcommand(
            Command::new("diff")
                .about("How what is in force would change with another file as your own")
                .after_help("Exits with 1 if something would.")
                .arg(file("The other policy"))
                .arg(json("Print the differences as one JSON object")),
        )
        .subcommand(
            Command::new("test")
                .about("Replay what was asked in the past against another file as your own")
                .after_help("Lists what would newly be denied and newly be allowed; exits with 1 if anything would.")
                .arg(file("The other policy"))
                .arg(
                    Arg::new("envelopes")
                        .long("envelopes")
                        .value_name("FILE")
                        .value_parser(value_parser!(PathBuf))
                        .help("A file with an envelope on each line [default: what was asked here before]"),
                )
                .arg(json("Print the result as one JSON object")),
        )
        .subcommand(
            Command::new("trust")
                .about("Let a project's file count in full, exactly as it is now, and show what it says")
                .after_help("It can give rights. When it changes, it can only tighten again.")
                .arg(folder()),
        )
        .subcommand(Command::new("untrust").about("Let a project's file only tighten again").arg(folder()))
}

pub fn approve() -> Command {
    Command::new("approve").about("Answer what a policy asks a person about, or list what waits for an answer").defer(
        |approve| {
            approve
                .override_usage("belljar approve [OPTIONS] [list | ID | revoke ID]")
                .after_help(APPROVE_HELP)
                .arg(
                    Arg::new("words").value_name("ID").num_args(0..).help(
                        "The question: its id, the start of it, or `last` for the newest [default: list them all]",
                    ),
                )
                .arg(switch("once", "Say yes, this time").conflicts_with_all(["session", "always", "deny"]))
                .arg(
                    switch("session", "Say yes, also when the same is asked again in the asker's session")
                        .conflicts_with_all(["always", "deny"]),
                )
                .arg(
                    switch(
                        "always",
                        "Say yes, also when the same rule asks about the same again; shown before it is kept",
                    )
                    .conflicts_with("deny"),
                )
                .arg(switch("deny", "Say no"))
                .arg(Arg::new("reason").long("reason").value_name("TEXT").help("Tell whoever asked why"))
                .arg(switch("yes", "Do not ask me again; needs the whole ID, an answer and --digest"))
                .arg(
                    Arg::new("digest")
                        .long("digest")
                        .value_name("DIGEST")
                        .help("Of the question that was looked at, 12 digits of it or more"),
                )
                .arg(switch("all", "List answers that stand, too"))
                .arg(
                    Arg::new("of")
                        .long("of")
                        .value_name("USER")
                        .help("Questions of another user: for root, and for those who may answer them"),
                )
                .arg(json("Print it as one JSON object"))
        },
    )
}

const APPROVE_HELP: &str = "\
An answer holds for exactly what is shown: if anything of it changes, it is asked again. No answer in time is a no.
Agents, and whatever runs in a sandbox, can't answer.

  belljar approve                          what waits for an answer
  belljar approve 3f2a                     look at it, then say once, session, always or no
  belljar approve last --deny --reason 'use --force-with-lease'
  belljar approve 3f2a91c0 --once --yes --digest 0f5c8a11b2d4
  belljar approve list --all               with answers that stand
  belljar approve revoke 77e01b2c          take one back

Exits with 0 if it was answered, 1 if nobody waits for that answer, 125 if it may not be answered so.";
