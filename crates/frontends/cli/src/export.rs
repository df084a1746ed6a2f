//! `belljar export`: the record, sent elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ArgMatches;
use model::{Destination, Export, ExportFormat, Records, Service, Trouble};

use crate::{kept, log, words};

pub fn export(matches: &ArgMatches, service: &dyn Service) -> u8 {
    let done = wish(matches, service.records()).and_then(|wish| {
        let mut output = std::io::stdout().lock();
        service.exports().export(&wish, &mut output, &|text| words::say(&format!("belljar: {text}")))
    });
    match done {
        Ok(_) => 0,
        Err(trouble) => kept::complain(&trouble),
    }
}

fn wish(matches: &ArgMatches, records: &dyn Records) -> Result<Export, Trouble> {
    let name = matches.get_one::<String>("format").map(String::as_str).unwrap_or_default();
    let format = ExportFormat::ALL.into_iter().find(|format| format.name() == name).unwrap_or(ExportFormat::Ndjson);
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let mut to = matches.get_one::<Destination>("to").cloned().unwrap_or(Destination::Output);
    let mut follow = matches.get_flag("follow");
    if let Some(address) = matches.get_one::<SocketAddr>("listen") {
        if !address.ip().to_canonical().is_loopback() && !matches.get_flag("listen-anywhere") {
            return Err(Trouble {
                message: format!("at {address} other machines could read what runs here"),
                fix: "use 127.0.0.1, or say --listen-anywhere".to_owned(),
            });
        }
        (to, follow) = (Destination::Page(*address), true);
    }
    Ok(Export {
        format,
        query: log::query(matches, records)?,
        follow,
        to,
        cursor: matches.get_one::<String>("cursor").cloned(),
        header_file: path("header-file"),
        authorities: path("ca"),
        unencrypted: matches.get_flag("unencrypted"),
        one_each: matches.get_flag("one-each"),
    })
}
