//! Tells others outside: anchors their checkpoints, webhooks of alerts. Bounded, and nobody's answer decides anything.

use std::time::Duration;

use egress::{Client, Encryption, Settings, Trust, Url};
use export::{Origin, cloud_events, json_line};
use model::{Entry, HttpsAnchor, Trouble};

/// For a webhook that hangs. Whoever tells of a run that goes on holds its limits meanwhile, and is late by as much.
const PATIENCE: Duration = Duration::from_secs(2);

/// The seam that the ledger is handed: it has no network of its own.
pub fn post_checkpoint(anchor: &HttpsAnchor, checkpoint: &str, patience: Duration) -> Result<(), String> {
    let HttpsAnchor { url, header_file, authorities } = anchor;
    let told = || -> egress::Result<()> {
        let settings = Settings {
            url: Url::read(url)?,
            encryption: Encryption::Needed,
            trust: authorities.clone().map_or(Trust::Host, Trust::File),
            header_file: header_file.clone(),
            patience,
        };
        Client::new(settings)?.post("application/json", checkpoint.into()).map(drop)
    };
    told().map_err(|error| error.to_string())
}

pub fn is_an_address(url: &str) -> Result<(), Trouble> {
    Url::read(url).map(drop).map_err(trouble)
}

/// Tells a webhook of one entry of the record, such as an alert of the monitor, as a CloudEvent.
pub fn tell_webhook(installation: &str, version: &str, url: &str, entry: &Entry) -> Result<(), Trouble> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let origin = Origin { installation: installation.to_owned(), host, version: version.to_owned() };
    post_event(&origin, url, entry).map_err(trouble)
}

fn post_event(origin: &Origin, url: &str, entry: &Entry) -> egress::Result<()> {
    let settings = Settings {
        url: Url::read(url)?,
        encryption: Encryption::Needed,
        trust: Trust::Host,
        header_file: None,
        patience: PATIENCE,
    };
    let event = json_line(&cloud_events::event(origin, entry));
    Client::new(settings)?.post(cloud_events::ONE, event.into_bytes()).map(drop)
}

fn trouble(error: egress::Error) -> Trouble {
    Trouble { message: error.to_string(), fix: error.fix().to_owned() }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_webhook_hears_of_an_alert_as_a_cloud_event() -> std::io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/alerts", listener.local_addr()?);
        let serving = std::thread::spawn(move || -> std::io::Result<String> {
            let (mut stream, _) = listener.accept()?;
            let mut read = String::new();
            let mut buffer = [0; 4096];
            // Until the body is as long as its head says.
            let missing = |read: &String| {
                let (head, body) = read.split_once("\r\n\r\n")?;
                let mut lines = head.lines().map(str::to_ascii_lowercase);
                let length = lines.find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
                Some(length.unwrap_or(0).saturating_sub(body.len()))
            };
            while missing(&read) != Some(0) {
                let count = stream.read(&mut buffer)?;
                read += &String::from_utf8_lossy(&buffer[..count]);
            }
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
            Ok(read)
        });
        let origin = Origin { installation: "ab".to_owned(), ..Origin::default() };
        let entry = json!({"n": 7, "at": "2026-11-16T14:20:01.123456Z", "type": "monitor.alert", "data": {"detector": "mining"}});
        let entry: Entry = serde_json::from_value(entry)?;
        assert!(post_event(&origin, &url, &entry).is_ok());
        let read = serving.join().map_err(|_| std::io::ErrorKind::Other)??;
        let (head, body) = read.split_once("\r\n\r\n").unwrap_or_default();
        assert!(head.starts_with("POST /alerts ") && head.contains("application/cloudevents+json"), "{head}");
        let event: Value = serde_json::from_str(body)?;
        assert_eq!((&event["type"], &event["id"]), (&json!("dev.belljar.monitor.alert"), &json!("ab/7")));
        // Nobody is there any more.
        assert!(post_event(&origin, &url, &entry).is_err());
        Ok(())
    }
}
