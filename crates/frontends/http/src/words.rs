//! The words that `belljar serve` and `belljar token` know.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use model::units;

use crate::admission::{Measure, Terms};
use crate::line::Room;
use crate::listen::Place;
use crate::tokens::Scope;

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    pub listen: Place,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub insecure: bool,
    /// Tokens, and the state of all tenants but the user.
    pub state: PathBuf,
    pub terms: Terms,
    pub largest_body: usize,
    pub connections: usize,
    pub ready: usize,
    /// Sandboxes with a warm interpreter that wait for each kind of run that was asked for lately.
    pub warm: usize,
    pub drain: std::time::Duration,
    /// Ports of sandboxes are hosts below this name.
    pub ports_host: String,
}

impl Options {
    /// Where files of jobs are put: beside the state, since no sandbox may be over that.
    pub fn work(&self) -> PathBuf {
        let name = self.state.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.state.with_file_name(format!("{name}-workspaces"))
    }
}

pub fn command(version: &'static str) -> Command {
    Command::new("belljar")
        .version(version)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(serve())
        .subcommand(token())
}

const SERVE_HELP: &str = "\
At its first start it makes a token for the tenant `local`, whose sandboxes, questions and ledger are your own: `belljar ps`,
`belljar approve` and `belljar log` show them. The token is in STATE/token, for you alone to read.

  belljar serve &
  curl -H \"Authorization: Bearer $(cat ~/.local/state/belljar-service/token)\" \\
       -H 'Content-Type: application/json' -d '{\"language\": \"python\", \"code\": \"print(6 * 7)\"}' http://127.0.0.1:7070/v1/run

The API describes itself at /v1/reference and /v1/openapi.json; /mcp is the same for MCP clients. SIGTERM ends it in order; see docs/service.md.";

pub fn serve() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("NUMBER")
            .default_value(default)
            .value_parser(value_parser!(u32).range(1..=100_000))
            .help(help)
    };
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf)).help(help)
    };
    Command::new("serve")
        .about("Serve belljar as an HTTP API: tenants, tokens, streams")
        .after_help(SERVE_HELP)
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS")
                .default_value("127.0.0.1:7070")
                .value_parser(Place::read)
                .help("ADDRESS:PORT, or unix:PATH for a socket that only this user can open"),
        )
        .arg(file("tls-cert", "Serve TLS with this chain of certificates (PEM)").requires("tls-key"))
        .arg(file("tls-key", "And this private key (PEM)").requires("tls-cert"))
        .arg(
            Arg::new("insecure-listen")
                .long("insecure-listen")
                .action(ArgAction::SetTrue)
                .help("Serve beyond loopback without TLS: whoever is on the way reads tokens"),
        )
        .arg(
            Arg::new("ports-host")
                .long("ports-host")
                .value_name("NAME")
                .default_value("localhost")
                .value_parser(below)
                .help("Ports of sandboxes are hosts below this name: nothing of yours should be"),
        )
        .arg(state())
        .arg(config())
        .arg(
            Arg::new("print-config")
                .long("print-config")
                .action(ArgAction::SetTrue)
                .help("Print what it would serve with, as such a file, and serve nothing"),
        )
        .arg(number("jobs", "32", "Jobs at once, of all tenants").help_heading("Limits"))
        .arg(number("jobs-per-tenant", "16", "Jobs at once, of one tenant").help_heading("Limits"))
        .arg(number("jobs-per-agent", "12", "Jobs at once, of one agent of a tenant").help_heading("Limits"))
        .arg(number("queue", "64", "Jobs of one tenant that wait; more are told to come again").help_heading("Limits"))
        .arg(number("queue-per-agent", "48", "Of these, of one agent").help_heading("Limits"))
        .arg(
            number(
                "open-per-tenant",
                "32",
                "Open sandboxes, background runs and terminals of one tenant; these are no jobs",
            )
            .help_heading("Limits"),
        )
        .arg(number("open-per-agent", "24", "Of these, of one agent").help_heading("Limits"))
        .arg(number("rate", "200", "Requests of one tenant in a second").help_heading("Limits"))
        .arg(number("rate-per-agent", "150", "Of these, of one agent").help_heading("Limits"))
        .arg(number("connections", "1024", "Connections at once").help_heading("Limits"))
        .arg(
            Arg::new("body")
                .long("body")
                .value_name("SIZE")
                .default_value("16M")
                .value_parser(units::bytes)
                .help("Largest body of a request")
                .help_heading("Limits"),
        )
        .arg(number("ready", "3", "Processes that wait for the next job").help_heading("Limits"))
        .arg(
            Arg::new("warm")
                .long("warm")
                .value_name("NUMBER")
                .default_value("3")
                .value_parser(value_parser!(u32).range(0..=64))
                .help("Sandboxes with a warm interpreter that wait for each kind of run asked for lately; 0 for none")
                .help_heading("Limits"),
        )
        .arg(
            Arg::new("drain")
                .long("drain")
                .value_name("TIME")
                .default_value("30s")
                .value_parser(units::duration)
                .help("When told to end: how long jobs may go on")
                .help_heading("Limits"),
        )
}

/// A name that others can be below.
fn below(word: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(plain);
    match word.len() <= 200 && word.split('.').all(label) && word.parse::<std::net::IpAddr>().is_err() {
        true => Ok(word.to_owned()),
        false => Err("write a name of small letters, digits, `-` and dots".to_owned()),
    }
}

fn state() -> Arg {
    Arg::new("state")
        .long("state")
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .help("Where tokens and tenants are kept [default: ~/.local/state/belljar-service]")
}

fn config() -> Arg {
    Arg::new("config").long("config").value_name("FILE").value_parser(value_parser!(PathBuf)).help(
        "Settings in TOML, with the words of these flags as keys; flags win [default: ~/.config/belljar/service.toml, if there]",
    )
}

const TOKEN_HELP: &str = "\
Scopes: run (run, make sandboxes), files (take changes, discard, snapshots, removal), read (look at everything of the tenant),
approve (answer questions; never on an agent's token), admin (secrets, metrics).

  belljar token create --tenant team-a --scopes run,files,read
  belljar token create --agent coder --scopes run,read      for an agent: it can't approve what it asks for";

fn token() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("token")
        .about("Make, list and revoke tokens for the HTTP API")
        .after_help(TOKEN_HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("create")
                .about("Make a token and print it, this once")
                .arg(text("tenant", "NAME", "Whose it is; `local` has your own state").default_value("local"))
                .arg(
                    text("scopes", "LIST", "run, files, read, approve, admin")
                        .value_delimiter(',')
                        .default_value("run,files,read")
                        .value_parser(Scope::read),
                )
                .arg(text("agent", "NAME", "It is for this agent: all it asks for is asked for by that name"))
                .arg(text("name", "TEXT", "What it is for").default_value(""))
                .arg(text("expires", "TIME", "It holds for so long (12h, 30d)").value_parser(units::duration))
                .arg(state())
                .arg(config()),
        )
        .subcommand(Command::new("list").about("List tokens, without what they are").arg(state()).arg(config()))
        .subcommand(
            Command::new("revoke")
                .about("Let a token hold no more, from the next request on")
                .arg(Arg::new("id").value_name("ID").required(true).help("As `list` shows it"))
                .arg(state())
                .arg(config()),
        )
}

/// Where the service's state lies, if anywhere.
pub fn state_folder(matches: &ArgMatches) -> Option<PathBuf> {
    let said = matches.get_one::<PathBuf>("state").cloned();
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || variable("HOME").filter(|home| home.is_dir()).map(|home| home.join(".local/state"));
    let usual = || variable("XDG_STATE_HOME").or_else(home).map(|folder| folder.join("belljar-service"));
    said.and_then(|said| std::path::absolute(said).ok()).or_else(usual)
}

pub fn options(matches: &ArgMatches) -> Option<Options> {
    let number = |name: &str| matches.get_one::<u32>(name).copied().unwrap_or(1);
    let count = |name: &str| usize::try_from(number(name)).unwrap_or(usize::MAX);
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let measure = |stays: &str, rate: &str| Measure {
        stays: count(stays),
        rate: number(rate),
        burst: number(rate).saturating_mul(2),
    };
    let body = matches.get_one::<u64>("body").copied().unwrap_or(1 << 20);
    Some(Options {
        listen: matches.get_one::<Place>("listen").cloned()?,
        certificate: path("tls-cert"),
        key: path("tls-key"),
        insecure: matches.get_flag("insecure-listen"),
        state: state_folder(matches)?,
        terms: Terms {
            room: Room {
                all: count("jobs"),
                tenant: count("jobs-per-tenant"),
                agent: count("jobs-per-agent"),
                queue: count("queue"),
                agent_queue: count("queue-per-agent"),
            },
            tenant: measure("open-per-tenant", "rate"),
            agent: measure("open-per-agent", "rate-per-agent"),
        },
        // A job has it inside JSON of its own, which may be twice as long.
        largest_body: usize::try_from(body).unwrap_or(usize::MAX).min(service::job::LARGEST_JOB / 2),
        connections: count("connections"),
        ready: count("ready").min(64),
        warm: count("warm"),
        drain: matches.get_one("drain").copied().unwrap_or_default(),
        ports_host: matches.get_one::<String>("ports-host").cloned()?,
    })
}
