//! Exports: every entry has a form in each format, none ends a line of another, and room is bounded.

use export::metrics::Metrics;
use export::traces::{self, OpenRuns};
use export::{Origin, cloud_events, json_line, ocsf, syslog};
use model::Entry;
use serde_json::Value;

use crate::made_of;

pub fn law(bytes: &[u8]) {
    // Lines as they are in a record, and pieces of text in their places.
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Entry>(line).ok());
    let mut entries: Vec<Entry> = lines.take(64).collect();
    if let Some((number, denied, at, kind, run, agent, data)) =
        made_of::<(u64, bool, String, String, Option<String>, Option<String>, String)>(bytes)
    {
        let data = serde_json::from_str(&data).unwrap_or(Value::String(data));
        let user = agent.clone();
        entries.push(Entry { number, at, kind, denied, run, user, agent, data, hash: String::new() });
    }
    let names = entries.first().map(|entry| entry.kind.clone()).unwrap_or_default();
    let origin = Origin { installation: names.clone(), host: names.clone(), version: names };
    let (mut metrics, mut open) = (Metrics::default(), OpenRuns::default());
    for entry in entries {
        let line = syslog::line(&origin, &entry);
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(line.len() < 8 << 10, "{} bytes of syslog", line.len());
        let framed = syslog::framed(&line);
        assert!(framed.starts_with(&line.len().to_string()) && framed.ends_with(&line));
        for object in [ocsf::event(&origin, &entry), cloud_events::event(&origin, &entry)] {
            let line = json_line(&object);
            assert!(!line.chars().any(char::is_control), "{line:?}");
            assert!(serde_json::from_str::<Value>(&line).is_ok(), "{line}");
        }
        metrics.observe(&entry);
        hold(&open.observe(entry));
    }
    hold(&open.rest());
    assert!(open.names().next().is_none());
    let page = metrics.text();
    assert!(page.len() < 256 << 10, "{} bytes of metrics", page.len());
    for line in page.lines().filter(|line| !line.starts_with("# ")) {
        let value = line.rsplit(' ').next().unwrap_or_default();
        assert!(line.starts_with("belljar_") && value.parse::<f64>().is_ok(), "{line:?}");
    }
    traces::request(&origin, Vec::new());
}

fn hold(spans: &[Value]) {
    let digits = |value: &Value, count: usize| {
        let text = value.as_str().unwrap_or_default();
        text.len() == count && text.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    for span in spans {
        assert!(digits(&span["traceId"], 32) && digits(&span["spanId"], 16), "{span}");
        let time = |name: &str| span[name].as_str().and_then(|text| text.parse::<u64>().ok());
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
        assert!(span["events"].as_array().is_none_or(|events| events.len() <= 128), "{span}");
    }
}
