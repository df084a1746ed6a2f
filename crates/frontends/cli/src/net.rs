//! `belljar net`: what went out to the network and what was refused, a line a name, a connection or a request.

use std::time::Duration;

use clap::ArgMatches;
use model::{Entry, EntryQuery, Records, Trouble};
use serde_json::Value;

use crate::words::{self, Layout};
use crate::{NOT_SET_UP, kept, log};

/// All that is of the network.
pub const KINDS: [&str; 2] = ["network", "secret.used"];

pub fn net(matches: &ArgMatches, records: &dyn Records) -> u8 {
    show(matches, records).unwrap_or_else(|trouble| kept::complain(&trouble))
}

fn show(matches: &ArgMatches, records: &dyn Records) -> Result<u8, Trouble> {
    let which = matches.get_one::<String>("which").map_or("last", String::as_str);
    let query = EntryQuery {
        run: Some(log::run_id(which, records)?),
        denied: matches.get_flag("denied"),
        kinds: KINDS.map(str::to_owned).to_vec(),
        ..EntryQuery::default()
    };
    let (json, follow) = (matches.get_flag("json"), matches.get_flag("follow"));
    let mut page = Page { json, waiting: Vec::new(), hold: !follow && !json, printed: true, any: false };
    let mut each = |entry: Entry| page.take(entry);
    match follow {
        true => records.follow(&query, &mut each)?,
        false => records.each(&query, &mut each)?,
    }
    page.end();
    if !page.any && !json {
        words::say("belljar: nothing of it went to the network, or tried to");
    }
    Ok(if page.printed { 0 } else { NOT_SET_UP })
}

struct Page {
    json: bool,
    /// Connections and requests that may still be answered: what came back belongs on their line.
    waiting: Vec<Entry>,
    /// Wait for that; whoever follows does not.
    hold: bool,
    printed: bool,
    any: bool,
}

impl Page {
    fn take(&mut self, entry: Entry) -> bool {
        self.any = true;
        if self.json {
            self.printed = words::print(words::json(&entry, Layout::Line).map(|line| line + "\n"));
            return self.printed;
        }
        if !self.hold {
            self.print(&entry);
            return self.printed;
        }
        let ends = match entry.kind.as_str() {
            "network.answer" => Some("network.request"),
            "network.closed" => Some("network.connection"),
            _ => None,
        };
        let same = |known: &&mut Entry| {
            Some(known.kind.as_str()) == ends
                && !known.denied
                && known.data["connection"] == entry.data["connection"]
                && known.data["took"].is_null()
        };
        match self.waiting.iter_mut().find(same) {
            Some(known) => {
                for part in ["status", "bytes", "took"] {
                    known.data[part] = entry.data[part].clone();
                }
                if !entry.data["cache"].is_null() {
                    let had = known.data["cache"].as_object().cloned().unwrap_or_default();
                    let has = entry.data["cache"].as_object().cloned().unwrap_or_default();
                    known.data["cache"] = had.into_iter().chain(has).collect();
                }
                // Beside the reason why it was let out.
                known.data["ended"] = entry.data["why"].clone();
            }
            None => self.waiting.push(entry),
        }
        true
    }

    fn end(&mut self) {
        for entry in std::mem::take(&mut self.waiting) {
            self.print(&entry);
        }
    }

    fn print(&mut self, entry: &Entry) {
        let clock = entry.at.split_once('T').map_or(entry.at.as_str(), |(_, clock)| clock);
        let mark = if entry.denied { "✗" } else { " " };
        let line = format!("{} {mark} {}", clock.get(..12).unwrap_or(clock), described(entry));
        self.printed &= words::print(Ok(words::page(vec![line])));
    }
}

/// One entry of the network, in a line.
pub fn described(entry: &Entry) -> String {
    let data = &entry.data;
    let text = |name: &str| data[name].as_str().unwrap_or_default();
    let port = data["port"].as_u64().map_or(String::new(), |port| format!(":{port}"));
    let host = match text("host") {
        address if address.contains(':') && !port.is_empty() => format!("[{address}]{port}"),
        name => format!("{name}{port}"),
    };
    let what = match entry.kind.as_str() {
        "network.name" => format!("name {host}"),
        "network.connection" => format!("connect {host}"),
        "network.closed" => format!("closed {host}"),
        "network.request" => format!("{} {host}{}", text("method"), text("path")),
        "network.answer" => format!("answer {host}"),
        "network.visit" => format!("visit {host}"),
        "network.forward" => format!("forward {host}"),
        "secret.used" => format!("secret {} for {host}", text("secret")),
        _ => host,
    };
    let mut parts = vec![what];
    if !text("program").is_empty() {
        parts.push(format!("by {} ({})", text("program"), data["process"]));
    }
    let address = text("address");
    if !address.is_empty() && address != text("host") {
        parts.push(format!("at {address}"));
    }
    if let Some(status) = data["status"].as_u64() {
        parts.push(status.to_string());
    }
    if let [Some(sent), Some(received)] = [data["bytes"][0].as_u64(), data["bytes"][1].as_u64()] {
        parts.push(format!("{} out, {} in", words::size(sent), words::size(received)));
    }
    if let Some(took) = took(&data["took"]) {
        parts.push(words::time(took));
    }
    for (word, said) in [("damaged", "kept, but damaged"), ("kept", "now kept"), ("served", "from kept downloads")] {
        if let Some(digest) = data["cache"][word].as_str() {
            parts.push(format!("{said} ({})", digest.get(..16).unwrap_or(digest)));
        }
    }
    if let Some(times) = data["times"].as_u64().filter(|times| *times > 1) {
        parts.push(match entry.kind == "network.connection" && !entry.denied {
            true => "the next of its addresses".to_owned(),
            false => format!("× {times}"),
        });
    }
    if !text("rule").is_empty() {
        parts.push(format!("[{}]", text("rule")));
    }
    let ended = if entry.kind == "network.closed" { text("why") } else { text("ended") };
    if !ended.is_empty() {
        parts.push(ended.to_owned());
    }
    if entry.denied {
        parts.push(text("why").to_owned());
        if !text("grant").is_empty() {
            parts.push(format!("what would allow it: {}", text("grant")));
        }
    }
    parts.join("  ")
}

fn took(value: &Value) -> Option<Duration> {
    Some(Duration::new(value["secs"].as_u64()?, u32::try_from(value["nanos"].as_u64()?).ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(kind: &str, denied: bool, data: Value) -> String {
        let entry: Entry = serde_json::from_value(json!({
            "n": 1, "at": "2026-01-01T00:00:00.000000Z", "type": kind, "denied": denied, "run": "aa", "user": "ann",
            "data": data, "hash": "",
        }))
        .expect("an entry");
        described(&entry)
    }

    #[test]
    fn addresses_are_written_so_that_their_port_is_seen_and_a_failure_says_why() {
        let closed = json!({"host": "::1", "port": 9, "why": "cannot connect: Connection refused"});
        assert_eq!(line("network.closed", false, closed), "closed [::1]:9  cannot connect: Connection refused");
        let next = json!({"host": "a.test", "port": 80, "address": "::1", "times": 2});
        assert_eq!(line("network.connection", false, next), "connect a.test:80  at ::1  the next of its addresses");
        let often = json!({"host": "a.test", "times": 7, "why": "is not a granted host"});
        assert_eq!(line("network.name", true, often), "name a.test  × 7  is not a granted host");
    }
}
