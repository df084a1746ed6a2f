//! The words of `agents`.

use clap::{Arg, Command};

use super::json;

const HELP: &str = "\
Who runs what here, as they call themselves, and what the monitor says of them; who gives no name is `user:NAME`:

  belljar agents                                all of them
  belljar agents claude-code                    one: what it used, what is usual for it, its last alerts
  belljar agents suspend claude-code --why 'looks at too much'
  belljar agents resume claude-code

Who is suspended runs nothing any more, and what runs is ended within a second or two. `user:NAME` is everything that this
user runs, whatever it calls itself. What follows from alerts by itself is in the policy, under `[monitor]`.";

pub fn command() -> Command {
    Command::new("agents").about("Show agents and what the monitor says of them; suspend and resume them").defer(
        |agents| {
            agents
                .after_help(HELP)
                .args_conflicts_with_subcommands(true)
                .arg(Arg::new("which").value_name("AGENT").help("Only this one, with more about it"))
                .arg(json("As JSON"))
                .subcommand(
                    Command::new("suspend")
                        .about("Let an agent run nothing any more, and end what it runs")
                        .arg(which())
                        .arg(why())
                        .arg(json("Print the agent as one JSON object")),
                )
                .subcommand(
                    Command::new("resume")
                        .about("Let an agent run again that is suspended, throttled or asked about")
                        .arg(which())
                        .arg(why())
                        .arg(json("Print the agent as one JSON object")),
                )
        },
    )
}

fn which() -> Arg {
    Arg::new("which").value_name("AGENT").required(true).help("Its name, or `user:NAME`")
}

fn why() -> Arg {
    Arg::new("why").long("why").value_name("TEXT").help("For the record, and for whoever is refused")
}
