//! What holds for all entries, whatever is in them.

use export::{Origin, cloud_events, json_line, metrics::Metrics, ocsf, syslog, traces};
use model::Entry;
use proptest::prelude::*;
use serde_json::Value;

use belljar_export as export;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(field(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Names that mappings look for, and others.
fn field() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "command", "rules", "rule", "ruling", "outcome", "exit", "usage", "wall_time", "times", "call", "program",
        "arguments", "process", "parent", "path", "digest", "redacted", "detector", "why", "yes", "sandbox",
    ]);
    prop_oneof![known.prop_map(str::to_owned), any::<String>()]
}

fn entry() -> impl Strategy<Value = Entry> {
    let kind = prop::sample::select(vec![
        "run.asked", "run.judged", "run.ended", "run.receipt", "program.started", "call.denied", "artifact.released",
        "artifact.withheld", "commit.ended", "monitor.alert", "approval.answered", "sandbox.opening", "ledger.begun",
    ]);
    let kind = prop_oneof![4 => kind.prop_map(str::to_owned), 1 => any::<String>()];
    let at = prop_oneof![3 => Just("2026-11-16T14:20:01.123456Z".to_owned()), 1 => any::<String>()];
    let name = || proptest::option::of(any::<String>());
    (any::<u64>(), at, kind, any::<bool>(), name(), name(), name(), value(), any::<String>()).prop_map(
        |(number, at, kind, denied, run, user, agent, data, hash)| Entry {
            number,
            at,
            kind,
            denied,
            run,
            user,
            agent,
            data,
            hash,
        },
    )
}

fn origin() -> impl Strategy<Value = Origin> {
    (any::<String>(), any::<String>(), any::<String>()).prop_map(|(installation, host, version)| Origin {
        installation,
        host,
        version,
    })
}

/// The same, read by its grammar: a name, labels in quotes, a number.
fn is_sample(line: &str) -> bool {
    let name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let rest = line.trim_start_matches(name);
    let mut value = rest;
    if let Some(labels) = rest.strip_prefix('{') {
        let (mut quoted, mut escaped) = (false, false);
        let end = labels.char_indices().find(|(_, letter)| {
            let ends = !quoted && *letter == '}';
            (quoted, escaped) = match (*letter, escaped) {
                ('"', false) => (!quoted, false),
                ('\\', false) => (quoted, true),
                _ => (quoted, false),
            };
            ends
        });
        let Some((end, _)) = end else { return false };
        value = &labels[end + 1..];
    }
    rest.len() < line.len() && value.strip_prefix(' ').is_some_and(|value| value.parse::<f64>().is_ok())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_entry_has_a_form_in_each_format(origin in origin(), entries in proptest::collection::vec(entry(), 0..8)) {
        let mut open = traces::OpenRuns::default();
        let mut metrics = Metrics::default();
        for entry in entries {
            let line = syslog::line(&origin, &entry);
            prop_assert!(!line.chars().any(|letter| letter.is_control() || letter == '\u{2028}'), "{line:?}");
            prop_assert!(line.starts_with('<') && line.len() < 8192, "{}", line.len());
            prop_assert_eq!(syslog::framed(&line).split_once(' ').map(|(count, _)| count.to_owned()), Some(line.len().to_string()));
            for object in [ocsf::event(&origin, &entry), cloud_events::event(&origin, &entry)] {
                let line = json_line(&object);
                prop_assert!(!line.chars().any(char::is_control));
                let again: Value = serde_json::from_str(&line).expect("it is JSON");
                prop_assert_eq!(&again["id"], &object["id"]);
                prop_assert_eq!(&again["message"], &object["message"]);
            }
            metrics.observe(&entry);
            for span in open.observe(entry) {
                prop_assert_eq!(span["traceId"].as_str().map(str::len), Some(32));
            }
        }
        for line in metrics.text().lines() {
            prop_assert!(line.starts_with("# ") || is_sample(line), "{line:?}");
        }
        traces::request(&origin, open.rest());
    }
}
