//! The words of `export`, and the places that they name.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, value_parser};
use model::{Destination, ExportFormat};

use super::{records, switch};

pub const HELP: &str = "\
  belljar export ocsf --since 1d > events.ndjson
  belljar export cloudevents -f --cursor siem --to https://siem.example.org/events --header-file ~/.siem-token
  belljar export syslog -f --cursor syslog --to tls://log.example.org
  belljar export otlp --cursor traces --to https://collector.example.org:4318
  belljar export prometheus --listen 127.0.0.1:9464

Places: - for standard output, file:PATH, https://…, http://… (this machine only, unless --unencrypted), and for syslog
syslog: (which is unix:/dev/log), unix:PATH, udp://HOST:514, tcp://HOST:601, tls://HOST:6514.
With --cursor NAME it goes on where it ended last; nothing is left out, and what was not taken is sent again.
With -f, a place that is away is tried again until it is back. See docs/export.md.";

pub fn export(export: Command) -> Command {
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(value_parser!(PathBuf)).help(help)
    };
    let formats = ExportFormat::ALL.map(ExportFormat::name);
    records::filters(export)
        .arg(
            Arg::new("format")
                .value_name("FORMAT")
                .required(true)
                .value_parser(PossibleValuesParser::new(formats))
                .help("The form that entries are given"),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("WHERE")
                .value_parser(destination)
                .default_value("-")
                .help("Where they are sent"),
        )
        .arg(
            Arg::new("cursor").long("cursor").value_name("NAME").help("Go on where the last export of this name ended"),
        )
        .arg(path("header-file", "FILE", "Headers to send along, a line each: `Authorization: Bearer …`"))
        .arg(path("ca", "FILE", "Believe only the authorities in this file (PEM) [default: those of this machine]"))
        .arg(switch("unencrypted", "Send to other machines without encryption"))
        .arg(switch("one-each", "Post each CloudEvent by itself rather than several together"))
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS")
                .value_parser(value_parser!(SocketAddr))
                .conflicts_with_all(["to", "follow", "cursor"])
                .help("Serve metrics at http://ADDRESS/metrics (127.0.0.1:9464), and go on counting"),
        )
        .arg(
            switch("listen-anywhere", "Let other machines read them: ADDRESS need not be of this machine alone")
                .requires("listen"),
        )
}

/// A place, as people write it.
fn destination(text: &str) -> Result<Destination, String> {
    let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
    let path = || match rest.is_empty() {
        true => Err(format!("`{scheme}:` names no path; write it like {scheme}:/path")),
        false => Ok(PathBuf::from(rest)),
    };
    match scheme {
        "-" if rest.is_empty() && text == "-" => Ok(Destination::Output),
        "file" => path().map(Destination::File),
        "http" | "https" => Ok(Destination::Http(text.to_owned())),
        "unix" => path().map(Destination::Unix),
        "syslog" if rest.is_empty() => Ok(Destination::Unix("/dev/log".into())),
        "udp" => machine(rest, 514).map(|(host, port)| Destination::Udp { host, port }),
        "tcp" => machine(rest, 601).map(|(host, port)| Destination::Tcp { host, port }),
        "tls" => machine(rest, 6514).map(|(host, port)| Destination::Tls { host, port }),
        _ => {
            Err("it is no place; use -, file:PATH, https://…, unix:PATH, udp://HOST, tcp://HOST or tls://HOST"
                .to_owned())
        }
    }
}

/// `//HOST`, `//HOST:PORT` or `//[ADDRESS]:PORT`.
fn machine(text: &str, usual: u16) -> Result<(String, u16), String> {
    let bad = || "it names no machine; write it like tcp://log.example.org:601".to_owned();
    let text = text.strip_prefix("//").ok_or_else(bad)?.trim_end_matches('/');
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or_else(bad)?;
            (host, after.strip_prefix(':').or(after.is_empty().then_some("")).ok_or_else(bad)?)
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let port = if port.is_empty() { usual } else { port.parse().map_err(|_| bad())? };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':' | '%');
    if host.is_empty() || port == 0 || !host.chars().all(plain) { Err(bad()) } else { Ok((host.to_owned(), port)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_understood_or_complained_about() {
        let host = || "log.example.org".to_owned();
        for (text, place) in [
            ("-", Destination::Output),
            ("file:a:b", Destination::File("a:b".into())),
            ("https://a/b", Destination::Http("https://a/b".to_owned())),
            ("syslog:", Destination::Unix("/dev/log".into())),
            ("udp://log.example.org", Destination::Udp { host: host(), port: 514 }),
            ("tcp://log.example.org:99/", Destination::Tcp { host: host(), port: 99 }),
            ("tls://[::1]:7", Destination::Tls { host: "::1".to_owned(), port: 7 }),
            ("tls://[::1]", Destination::Tls { host: "::1".to_owned(), port: 6514 }),
        ] {
            assert_eq!(destination(text).as_ref(), Ok(&place), "{text}");
        }
        for bad in [
            "", "-x", "-:", "file:", "unix:", "udp:a", "udp://", "tcp://a:x", "tcp://a:0", "tls://[::1",
            "tls://[::1]x", "ftp://a", "tcp://a b", "syslog:x",
        ] {
            assert!(destination(bad).is_err(), "{bad}");
        }
    }
}
