//! Flags about the network.

use std::net::IpAddr;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use model::{NetworkAsked, Published};

use super::{json, switch};

pub fn with_network(command: Command) -> Command {
    let list = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).action(ArgAction::Append).help_heading("Network")
    };
    let hosts = |arg: Arg| arg.value_delimiter(',').value_parser(value_parser!(String));
    command
        .arg(hosts(list(
            "allow-net",
            "HOST[:PORT]",
            "Reach this host: `example.org`, `*.example.org`, `10.0.0.0/8:5432`, `localhost:8080`, `@pypi`; port 443 if none is said",
        )))
        .arg(hosts(list("deny-net", "HOST[:PORT]", "Do not reach this host, whatever the policy gives")))
        .arg(
            switch("no-net", "No network at all, whatever the policy gives")
                .conflicts_with_all(["allow-net", "publish", "secret", "add-host"])
                .help_heading("Network"),
        )
        .arg(list(
            "secret",
            "NAME[@HOST]",
            "Add this secret outside to requests that carry its stand-in, `$NAME`; see `belljar secret`",
        ))
        .arg(
            list("publish", "HOST:GUEST", "Let port GUEST of a server inside be reached at 127.0.0.1:HOST")
                .value_parser(published),
        )
        .arg(
            list("add-host", "NAME=ADDRESS", "Dial this address for the name; the address must be granted too, unless it is public")
                .value_parser(pinned),
        )
}

pub const FORWARD_HELP: &str = "\
As `--publish` does for a run that is still to begin. Nobody beyond this machine gets there; every visit is on the record
(`belljar net RUN`). Goes on until the run ends, or Ctrl-C.

  belljar ps                             what runs
  belljar forward 3f2a 8080:3000         127.0.0.1:8080 is port 3000 inside
  belljar forward last 5432 9000:9000    several at once; one number stands for both";

pub fn forward(forward: Command) -> Command {
    forward
        .arg(
            Arg::new("which")
                .value_name("ID")
                .required(true)
                .help("The start of a run's id, or a sandbox as `belljar ps` calls it, or `last`"),
        )
        .arg(
            Arg::new("ports")
                .value_name("HOST:GUEST")
                .required(true)
                .num_args(1..=16)
                .value_parser(published)
                .help("A port of 127.0.0.1, and the port inside that it leads to"),
        )
        .arg(json("Print what comes as JSON objects, one a line"))
}

pub fn forwarded(matches: &ArgMatches) -> Vec<Published> {
    let pairs = matches.get_many::<(u16, u16)>("ports").into_iter().flatten();
    pairs.map(|(host, guest)| Published { host: *host, guest: *guest }).collect()
}

pub fn network(matches: &ArgMatches) -> NetworkAsked {
    let texts = |name: &str| matches.get_many::<String>(name).into_iter().flatten().cloned().collect();
    NetworkAsked {
        allow: texts("allow-net"),
        deny: texts("deny-net"),
        none: matches.get_flag("no-net"),
        secrets: texts("secret"),
        publish: matches.get_many::<(u16, u16)>("publish").into_iter().flatten().copied().collect(),
        pinned: matches.get_many::<(String, IpAddr)>("add-host").into_iter().flatten().cloned().collect(),
    }
}

fn published(word: &str) -> Result<(u16, u16), String> {
    let port = |text: &str| match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("`{text}` is no port: 1 to 65535")),
    };
    match word.split_once(':') {
        Some((host, guest)) => Ok((port(host)?, port(guest)?)),
        None => port(word).map(|port| (port, port)),
    }
}

fn pinned(word: &str) -> Result<(String, IpAddr), String> {
    let (name, address) = word.split_once('=').ok_or("write NAME=ADDRESS, such as `registry.test=127.0.0.1`")?;
    let name = model::HostName::read(name).ok_or_else(|| format!("`{}` is no name of a host", name.escape_debug()))?;
    let address = address.trim_start_matches('[').trim_end_matches(']');
    let address = address.parse().map_err(|_| format!("`{}` is no address", address.escape_debug()))?;
    Ok((name.as_str().to_owned(), address))
}
