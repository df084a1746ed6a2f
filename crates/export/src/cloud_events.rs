//! CloudEvents 1.0, as JSON with everything in one object.

use model::Entry;
use serde_json::{Value, json};

use crate::Origin;

/// Of one event, and of several in a list.
pub const ONE: &str = "application/cloudevents+json";
pub const SEVERAL: &str = "application/cloudevents-batch+json";

pub fn event(origin: &Origin, entry: &Entry) -> Value {
    let mut event = json!({
        "specversion": "1.0",
        "id": origin.name_of(entry),
        "source": format!("urn:belljar:{}", plain(&origin.installation)),
        "type": format!("dev.belljar.{}", entry.kind),
        "time": entry.at,
        "datacontenttype": "application/json",
        "dataschema": "https://belljar.dev/schemas/entry/v1",
        // Twenty digits, so that as text they sort as they should.
        "sequence": format!("{:020}", entry.number),
        "denied": entry.denied,
        "data": entry,
    });
    if let Some(run) = entry.run.as_ref().filter(|run| !run.is_empty()) {
        event["subject"] = run.clone().into();
    }
    event
}

/// Only what may stand in a name of this kind without being escaped.
fn plain(text: &str) -> String {
    let kept: String = text.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
    if kept.is_empty() { "unknown".to_owned() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::samples;

    #[test]
    fn an_event_names_itself_its_source_and_the_run() {
        let event = event(&samples::origin(), &samples::run()[7]);
        assert_eq!(event["id"], "00112233445566778899aabbccddeeff/8");
        assert_eq!(event["source"], "urn:belljar:00112233445566778899aabbccddeeff");
        assert_eq!(event["type"], "dev.belljar.run.ended");
        assert_eq!(event["subject"], samples::RUN);
        assert_eq!(event["time"], "2026-11-16T14:20:08.123456Z");
        assert_eq!(event["data"]["data"]["exit"], 3);
    }

    #[test]
    fn what_is_no_run_has_no_subject() {
        let entry = Entry { run: None, ..samples::entry(1, "ledger.begun", false, Value::Null) };
        assert_eq!(event(&samples::origin(), &entry).get("subject"), None);
    }
}
