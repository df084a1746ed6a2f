//! OpenTelemetry traces, as OTLP in JSON: one span a run, below it one for each stage, and events for what was refused.

mod open;

pub use open::{OpenRuns, Told};

use model::Entry;
use serde_json::{Value, json};

use crate::Origin;
use crate::entry::{base_name, micros, rule, shortened, summary, text};

/// Of one span, as most collectors have it.
const MOST_EVENTS: usize = 128;
const LONGEST_VALUE: usize = 1024;
const MOST_WORDS: usize = 64;

/// What a collector takes at `/v1/traces`.
pub fn request(origin: &Origin, spans: Vec<Value>) -> Value {
    let mut resource = vec![
        attribute("service.name", "belljar".into()),
        attribute("service.version", origin.version.clone().into()),
        attribute("service.instance.id", origin.installation.clone().into()),
    ];
    if !origin.host.is_empty() {
        resource.push(attribute("host.name", origin.host.clone().into()));
    }
    let scope = json!({"name": "belljar", "version": origin.version});
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]})
}

/// The spans of one run, from its entries in their order. `left_out`: how many of them are not among these.
fn spans(run: &str, entries: &[Entry], left_out: u64) -> Vec<Value> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Vec::new() };
    let trace = trace_id(run);
    let root = span_id(run, "run");
    let at = |kind: &str| entries.iter().find(|entry| entry.kind == kind).map(|entry| micros(&entry.at));
    let (began, ended) = (micros(&first.at), at("run.ended").unwrap_or(micros(&last.at)));
    let mut all = vec![whole(&trace, &root, entries, left_out, began, ended)];
    let mut stage = |name: &str, from: Option<u64>, to: Option<u64>, events: Vec<Value>| {
        if let Some((from, to)) = from.zip(to) {
            let dropped = events.len().saturating_sub(MOST_EVENTS);
            let events: Vec<Value> = events.into_iter().take(MOST_EVENTS).collect();
            all.push(json!({
                "traceId": trace, "spanId": span_id(run, name), "parentSpanId": root, "name": name, "kind": 1,
                "startTimeUnixNano": nanos(from), "endTimeUnixNano": nanos(to.max(from)),
                "events": events, "droppedEventsCount": dropped,
            }));
        }
    };
    stage("judge", at("run.asked"), at("run.judged"), Vec::new());
    stage("approve", at("approval.asked"), at("approval.answered"), Vec::new());
    let started = at("program.started");
    let opened = at("sandbox.opening");
    stage("enclose", opened, started.or(opened.map(|_| ended)), Vec::new());
    let programs = entries.iter().filter(|entry| entry.kind == "program.started").map(event).collect();
    stage("supervise", started, started.map(|_| ended), programs);
    all
}

/// The span of the run itself. Its names are those of a tool that a model calls.
fn whole(trace: &str, root: &str, entries: &[Entry], left_out: u64, began: u64, ended: u64) -> Value {
    let of = |kind: &str| entries.iter().find(|entry| entry.kind == kind).map(|entry| &entry.data);
    let said = |name: &str, value: &str| attribute(name, shortened(value, LONGEST_VALUE).into());
    let first = entries.first();
    let mut attributes = vec![
        said("gen_ai.operation.name", "execute_tool"),
        said("gen_ai.tool.name", "belljar"),
        said("gen_ai.tool.type", "extension"),
    ];
    let named = [
        ("gen_ai.tool.call.id", first.and_then(|entry| entry.run.as_deref())),
        ("gen_ai.agent.name", first.and_then(|entry| entry.agent.as_deref())),
        ("user.name", first.and_then(|entry| entry.user.as_deref())),
    ];
    attributes.extend(named.into_iter().filter_map(|(name, value)| value.map(|value| said(name, value))));
    if let Some(asked) = of("run.asked") {
        let command = asked["command"].as_array().into_iter().flatten().filter_map(Value::as_str).take(MOST_WORDS);
        let command: Vec<Value> = command.map(|word| json!({"stringValue": shortened(word, LONGEST_VALUE)})).collect();
        attributes.push(json!({"key": "process.command_args", "value": {"arrayValue": {"values": command}}}));
        let program = text(asked, "program");
        if !program.is_empty() {
            attributes.push(said("process.executable.path", program));
            attributes.push(said("process.executable.name", base_name(program)));
        }
        if let Some(directory) = asked["directory"].as_str() {
            attributes.push(said("process.working_directory", directory));
        }
    }
    if let Some(judged) = of("run.judged") {
        attributes.push(said("belljar.ruling", text(judged, "ruling")));
        attributes.push(said("belljar.policy", text(judged, "policy")));
    }
    if let Some(backend) = of("sandbox.opening").and_then(|data| data["backend"].as_str()) {
        attributes.push(said("belljar.backend", backend));
    }
    let mut failed = None;
    match of("run.ended") {
        Some(data) => {
            let outcome = text(data, "outcome");
            attributes.push(said("belljar.outcome", outcome));
            if let Some(code) = data["exit"].as_i64() {
                attributes.push(attribute("process.exit.code", code.into()));
            }
            failed = match (outcome, data["overrun"].as_str(), data["exit"].as_i64()) {
                ("ran", None, Some(0)) => None,
                ("ran", Some(limit), _) => Some(format!("overrun.{limit}")),
                ("ran", None, Some(code)) => Some(format!("exit.{code}")),
                ("ran", None, None) => Some("signal".to_owned()),
                (other, ..) => Some(other.to_owned()),
            };
        }
        None => attributes.push(attribute("belljar.unfinished", true.into())),
    }
    if let Some(failed) = &failed {
        attributes.push(said("error.type", failed));
    }
    let told: Vec<Value> = entries.iter().filter(|entry| is_told(entry)).map(event).collect();
    let dropped = told.len().saturating_sub(MOST_EVENTS) as u64 + left_out;
    json!({
        "traceId": trace, "spanId": root, "name": "execute_tool belljar", "kind": 1,
        "startTimeUnixNano": nanos(began), "endTimeUnixNano": nanos(ended.max(began)),
        "attributes": attributes,
        "events": told.into_iter().take(MOST_EVENTS).collect::<Vec<_>>(),
        "droppedEventsCount": dropped.min(u64::from(u32::MAX)),
        "status": if failed.is_some() { json!({"code": 2, "message": failed}) } else { json!({}) },
    })
}

fn is_told(entry: &Entry) -> bool {
    entry.denied || entry.kind == "monitor.alert"
}

fn event(entry: &Entry) -> Value {
    let mut attributes =
        vec![attribute("belljar.entry", entry.number.into()), attribute("belljar.summary", summary(entry).into())];
    if let Some(rule) = rule(entry).filter(|_| entry.denied) {
        attributes.push(attribute("belljar.rule", shortened(rule, LONGEST_VALUE).into()));
    }
    json!({"timeUnixNano": nanos(micros(&entry.at)), "name": entry.kind, "attributes": attributes})
}

fn attribute(name: &str, value: Value) -> Value {
    let value = match &value {
        Value::Bool(yes) => json!({"boolValue": yes}),
        // As text: a number of JSON is not sure to hold all of it.
        Value::Number(number) => json!({"intValue": number.to_string()}),
        other => json!({"stringValue": other.as_str().unwrap_or_default()}),
    };
    json!({"key": name, "value": value})
}

fn nanos(micros: u64) -> String {
    micros.saturating_mul(1000).to_string()
}

/// The run's own id, which has the right length: whoever has one finds the other.
fn trace_id(run: &str) -> String {
    let fits =
        run.len() == 32 && run.bytes().all(|digit| digit.is_ascii_hexdigit()) && run.bytes().any(|digit| digit != b'0');
    if fits { run.to_ascii_lowercase() } else { digits(run, "trace", 32) }
}

fn span_id(run: &str, name: &str) -> String {
    digits(run, name, 16)
}

fn digits(run: &str, name: &str, count: usize) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("belljar export spans 1");
    hasher.update(name.as_bytes()).update(&[0]).update(run.as_bytes());
    let hex = hasher.finalize().to_hex();
    hex[..count].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::samples;

    #[test]
    fn a_run_is_a_span_with_its_stages_below_it() {
        let spans = spans(samples::RUN, &samples::run(), 0);
        let names: Vec<&str> = spans.iter().map(|span| text(span, "name")).collect();
        assert_eq!(names, ["execute_tool belljar", "judge", "approve", "enclose", "supervise"]);
        assert!(spans.iter().all(|span| span["traceId"] == samples::RUN));
        assert!(spans[1..].iter().all(|span| span["parentSpanId"] == spans[0]["spanId"]));
        assert_eq!(spans[0]["startTimeUnixNano"], "1794838801123456000");
        assert_eq!(spans[0]["endTimeUnixNano"], "1794838808123456000");
        assert_eq!(spans[0]["events"][0]["name"], "call.denied");
        assert_eq!(spans[0]["status"]["code"], 2);
        assert_eq!(spans[4]["events"][0]["name"], "program.started");
    }

    #[test]
    fn a_run_of_another_name_has_a_trace_too() {
        assert_eq!(trace_id("short").len(), 32);
        assert_ne!(trace_id(&"0".repeat(32)), "0".repeat(32));
        assert_ne!(span_id("a", "judge"), span_id("b", "judge"));
    }
}
