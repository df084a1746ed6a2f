//! The words of `secret`, and the secret that they name.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use model::{NewSecret, SecretSource, SecretText, units};

use super::json;

const HELP: &str = "\
Secrets that belljar adds to requests outside of the sandbox. What is inside gets a stand-in that opens nothing:

  belljar secret set GITHUB_TOKEN --host api.github.com --prefix ghp_
  gh auth token | belljar secret set GITHUB_TOKEN --host api.github.com
  belljar run --allow-net api.github.com --secret GITHUB_TOKEN -- ./release.sh
  belljar secret ls
  belljar secret rm GITHUB_TOKEN

Values are sealed in files that only you can read, and that no sandbox is shown. Every change is recorded, without its
value. Agents can't change them. See docs/vault.md.";

const SET_HELP: &str = "\
The value is asked for at the terminal, where it is not shown, or is all of standard input but for the end of its line.
It is never a word of the command line, which everybody on this machine could read. It is one line of visible ASCII
letters, with spaces between them, of at most 64 KiB: it goes into a header of HTTP.

Sources:
  store          a sealed file of belljar's own
  keyring        the desktop's keyring, through secret-tool (package libsecret-tools)
  env:VAR        the variable VAR of belljar's own environment, when the secret is used
  cmd:COMMAND    what COMMAND prints (run by sh, outside, within 30 seconds), for tokens that live for a short time:
                 belljar secret set DEPLOY --source 'cmd:vault-cli token create' --ttl 15m --host deploy.example.org

A name that is there already gets the new value; what is not said again stays as it was.";

pub fn command() -> Command {
    Command::new("secret").about("Keep secrets that are added to requests outside of the sandbox").defer(|secret| {
        secret
            .after_help(HELP)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand(set())
            .subcommand(
                Command::new("ls")
                    .about("List them: names, sources and hosts, never values")
                    .arg(json("Print them as one JSON list")),
            )
            .subcommand(
                Command::new("rm").about("Remove one").arg(name()).arg(json("Print what it was as one JSON object")),
            )
    })
}

fn set() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("set")
        .about("Keep a secret, or change it; its value comes from the terminal or standard input")
        .after_help(SET_HELP)
        .arg(name())
        // Taken so that it can be refused without being repeated.
        .arg(Arg::new("word").hide(true).num_args(0..).action(ArgAction::Append))
        .arg(
            option("source", "SOURCE", "Where its value is: store, keyring, env:VAR or cmd:COMMAND [default: store]")
                .value_parser(SecretSource::read),
        )
        .arg(
            option("host", "HOST[:PORT]", "Where it may go, if the policy and `--secret NAME@HOST` say nothing else")
                .action(ArgAction::Append)
                .value_delimiter(','),
        )
        .arg(option("ttl", "TIME", "Ask COMMAND again after this time [default: 15m]").value_parser(units::duration))
        .arg(option("variable", "VAR", "The variable inside that has the stand-in [default: NAME]"))
        .arg(option("prefix", "TEXT", "What the stand-in begins with, for programs that look at it (ghp_)"))
        .arg(json("Print it as one JSON object, without its value"))
}

fn name() -> Arg {
    let help = "Letters, digits, `_`, `-` and `.`";
    Arg::new("name").value_name("NAME").required(true).help(help)
}

/// What is to be kept, but for its value.
pub fn secret(matches: &ArgMatches, source: SecretSource, value: Option<SecretText>) -> NewSecret {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    NewSecret {
        name: text("name").unwrap_or_default(),
        source,
        value,
        hosts: matches.get_many::<String>("host").map(|hosts| hosts.cloned().collect()),
        ttl: matches.get_one::<Duration>("ttl").copied(),
        variable: text("variable"),
        prefix: text("prefix"),
    }
}
