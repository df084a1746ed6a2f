//! OCSF 1.5: what security teams' stores take. What has no place of its own there is under `unmapped`, whole.

use model::Entry;
use serde_json::{Map, Value, json};

use crate::Origin;
use crate::entry::{Weight, base_name, micros, rule, summary, text, weight, words};

const VERSION: &str = "1.5.0";

/// A class of events, and what was done in its terms.
struct Class {
    number: u64,
    name: &'static str,
    category: (u64, &'static str),
    activity: (u64, &'static str),
}

const fn class(number: u64, name: &'static str, category: (u64, &'static str), activity: (u64, &'static str)) -> Class {
    Class { number, name, category, activity }
}

const SYSTEM: (u64, &str) = (1, "System Activity");
const FINDINGS: (u64, &str) = (2, "Findings");
const APPLICATION: (u64, &str) = (6, "Application Activity");

fn class_of(entry: &Entry) -> Class {
    let finding = class(2004, "Detection Finding", FINDINGS, (1, "Create"));
    let file = |activity| class(1001, "File System Activity", SYSTEM, activity);
    let lifecycle = |activity| class(6002, "Application Lifecycle", APPLICATION, activity);
    let request = |activity| class(6003, "API Activity", APPLICATION, activity);
    match entry.kind.as_str() {
        "monitor.alert" => finding,
        _ if entry.denied => finding,
        "program.started" => class(1007, "Process Activity", SYSTEM, (1, "Launch")),
        "files.changed" | "commit.ended" => file((3, "Update")),
        "artifact.released" => file((2, "Read")),
        "sandbox.opening" => lifecycle((3, "Start")),
        "run.ended" => lifecycle((4, "Stop")),
        "sandbox.created" => lifecycle((1, "Install")),
        "sandbox.discarded" | "sandbox.removed" | "sandbox.collected" => lifecycle((2, "Remove")),
        "sandbox.rolled-back" => lifecycle((8, "Update")),
        "run.asked" => request((1, "Create")),
        "commit.begun" => request((3, "Update")),
        "run.judged" | "approval.asked" | "approval.answered" => request((99, "Other")),
        _ => class(0, "Base Event", (0, "Uncategorized"), (99, "Other")),
    }
}

pub fn event(origin: &Origin, entry: &Entry) -> Value {
    let class = class_of(entry);
    let (severity_id, severity) = match weight(entry) {
        Weight::Ordinary => (1, "Informational"),
        Weight::Notable => (2, "Low"),
        Weight::Refused => (3, "Medium"),
        // The monitor says itself how serious it is.
        Weight::Alarm => match text(&entry.data, "severity") {
            "info" => (1, "Informational"),
            "low" => (2, "Low"),
            "medium" => (3, "Medium"),
            "critical" => (5, "Critical"),
            _ => (4, "High"),
        },
    };
    let mut metadata = json!({
        "version": VERSION,
        "product": product(origin),
        "uid": origin.name_of(entry),
        "sequence": entry.number,
        "event_code": entry.kind,
        "log_name": "ledger",
        "log_provider": "belljar",
        "original_time": entry.at,
    });
    if let Some(run) = &entry.run {
        metadata["correlation_uid"] = run.clone().into();
    }
    let mut event = json!({
        "metadata": metadata,
        "category_uid": class.category.0, "category_name": class.category.1,
        "class_uid": class.number, "class_name": class.name,
        "activity_id": class.activity.0, "activity_name": class.activity.1,
        "type_uid": class.number * 100 + class.activity.0,
        "type_name": format!("{}: {}", class.name, class.activity.1),
        "severity_id": severity_id, "severity": severity,
        "time": micros(&entry.at) / 1000, "timezone_offset": 0,
        "message": summary(entry),
        "unmapped": {"type": entry.kind, "n": entry.number, "hash": entry.hash, "run": entry.run, "data": entry.data},
    });
    if let Some(fields) = event.as_object_mut() {
        match class.number {
            2004 => finding(origin, entry, fields),
            1007 => started(origin, entry, fields),
            1001 => changed(origin, entry, fields),
            6002 => lived(origin, entry, fields),
            6003 => requested(origin, entry, fields),
            _ => {}
        }
    }
    event
}

fn product(origin: &Origin) -> Value {
    json!({"name": "belljar", "vendor_name": "belljar", "version": origin.version, "uid": "belljar"})
}

/// Who it was for. An agent asks through the user's account.
fn actor(entry: &Entry) -> Value {
    let mut actor = Map::new();
    let name = entry.user.as_deref().unwrap_or("unknown");
    actor.insert("user".to_owned(), json!({"name": name, "type_id": 1, "type": "User"}));
    if let Some(agent) = &entry.agent {
        actor.insert("app_name".to_owned(), agent.clone().into());
    }
    if let Some(run) = &entry.run {
        actor.insert("session".to_owned(), json!({"uid": run}));
    }
    actor.into()
}

fn device(origin: &Origin) -> Value {
    let mut device = json!({"type_id": 0, "type": "Unknown", "uid": origin.installation});
    if !origin.host.is_empty() {
        device["hostname"] = origin.host.clone().into();
    }
    device
}

fn status(fields: &mut Map<String, Value>, succeeded: bool) {
    let (id, name) = if succeeded { (1, "Success") } else { (2, "Failure") };
    fields.insert("status_id".to_owned(), id.into());
    fields.insert("status".to_owned(), name.into());
}

/// What was refused, and what looks wrong. We were there: it did not happen.
fn finding(origin: &Origin, entry: &Entry, fields: &mut Map<String, Value>) {
    let title = match rule(entry) {
        Some(rule) => format!("{} ({rule})", entry.kind),
        None => entry.kind.clone(),
    };
    let types = [entry.kind.clone()];
    let info = json!({
        "uid": origin.name_of(entry), "title": title, "desc": summary(entry), "types": types,
        "created_time": micros(&entry.at) / 1000, "product_uid": "belljar",
        "analytic": {"uid": rule(entry).unwrap_or(&entry.kind), "name": rule(entry).unwrap_or(&entry.kind), "type_id": 1, "type": "Rule"},
    });
    fields.insert("finding_info".to_owned(), info);
    fields.insert("status_id".to_owned(), 1.into());
    fields.insert("status".to_owned(), "New".into());
    fields.insert("device".to_owned(), device(origin));
    fields.insert("evidences".to_owned(), json!([{"actor": actor(entry), "data": entry.data}]));
    if entry.denied {
        let control = [
            ("action_id", json!(2)),
            ("action", json!("Denied")),
            ("disposition_id", json!(2)),
            ("disposition", json!("Blocked")),
        ];
        fields.extend(control.map(|(name, value)| (name.to_owned(), value)));
        fields["metadata"]["profiles"] = json!(["security_control"]);
    }
}

fn started(origin: &Origin, entry: &Entry, fields: &mut Map<String, Value>) {
    let data = &entry.data;
    let program = text(data, "program");
    let mut process = json!({
        "name": base_name(program), "cmd_line": words(&data["arguments"]),
        "file": {"name": base_name(program), "path": program, "type_id": 1, "type": "Regular File"},
        "user": {"name": entry.user.as_deref().unwrap_or("unknown"), "type_id": 1, "type": "User"},
        "created_time": micros(&entry.at) / 1000,
    });
    let mut actor = actor(entry);
    if let Some(pid) = data["process"].as_u64() {
        process["pid"] = pid.into();
    }
    if let Some(parent) = data["parent"].as_u64() {
        process["parent_process"] = json!({"pid": parent});
        actor["process"] = json!({"pid": parent});
    }
    fields.insert("process".to_owned(), process);
    fields.insert("actor".to_owned(), actor);
    fields.insert("device".to_owned(), device(origin));
    status(fields, true);
}

fn changed(origin: &Origin, entry: &Entry, fields: &mut Map<String, Value>) {
    let data = &entry.data;
    let file = match entry.kind.as_str() {
        "artifact.released" => {
            let path = text(data, "path");
            let mut file = json!({"name": base_name(path), "path": path, "type_id": 1, "type": "Regular File"});
            if let Some(digest) = data["digest"].as_str() {
                // They know no BLAKE3 by number.
                file["hashes"] = json!([{"algorithm_id": 99, "algorithm": "BLAKE3", "value": digest}]);
            }
            if let Some(size) = data["size"].as_u64() {
                file["size"] = size.into();
            }
            file
        }
        _ => {
            let sandbox = text(data, "sandbox");
            let name = if sandbox.is_empty() { "workspace" } else { sandbox };
            json!({"name": name, "type_id": 2, "type": "Folder"})
        }
    };
    fields.insert("file".to_owned(), file);
    fields.insert("actor".to_owned(), actor(entry));
    fields.insert("device".to_owned(), device(origin));
    status(fields, !data["trouble"].is_string());
}

fn lived(origin: &Origin, entry: &Entry, fields: &mut Map<String, Value>) {
    let data = &entry.data;
    fields.insert("app".to_owned(), product(origin));
    fields.insert("actor".to_owned(), actor(entry));
    fields.insert("device".to_owned(), device(origin));
    if entry.kind != "run.ended" {
        return status(fields, true);
    }
    let clean = text(data, "outcome") == "ran" && data["exit"] == 0 && !data["overrun"].is_string();
    status(fields, clean);
    if let Some(code) = data["exit"].as_i64() {
        fields.insert("status_code".to_owned(), code.to_string().into());
    }
    if let Some(seconds) = data["usage"]["wall_time"].as_f64() {
        // Bounded by the type: more than any run.
        fields.insert("duration".to_owned(), ((seconds * 1000.0) as u64).into());
    }
}

fn requested(origin: &Origin, entry: &Entry, fields: &mut Map<String, Value>) {
    let mut api = json!({"operation": entry.kind, "service": {"name": "belljar", "uid": origin.installation}});
    if let Some(run) = &entry.run {
        api["request"] = json!({"uid": run});
    }
    let mut place = json!({"uid": origin.installation});
    if !origin.host.is_empty() {
        place["hostname"] = origin.host.clone().into();
    }
    fields.insert("api".to_owned(), api);
    fields.insert("actor".to_owned(), actor(entry));
    fields.insert("src_endpoint".to_owned(), place);
    status(fields, true);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::samples;

    #[test]
    fn each_kind_has_the_class_that_its_readers_look_for() {
        let classes: Vec<u64> = samples::run()
            .iter()
            .map(|entry| event(&samples::origin(), entry)["class_uid"].as_u64().unwrap_or_default())
            .collect();
        assert_eq!(classes, [6003, 6003, 6003, 6003, 6002, 1007, 2004, 6002, 0]);
    }

    #[test]
    fn what_was_refused_is_a_finding_that_says_it_was_blocked() {
        let event = event(&samples::origin(), &samples::run()[6]);
        assert_eq!(event["disposition"], "Blocked");
        assert_eq!(event["type_uid"], 200_401);
        assert_eq!(event["metadata"]["uid"], "00112233445566778899aabbccddeeff/7");
        assert_eq!(event["metadata"]["profiles"], json!(["security_control"]));
        assert_eq!(event["finding_info"]["title"], "call.denied (unshare)");
        assert_eq!(event["time"], 1_794_838_807_123_u64);
    }

    #[test]
    fn an_alarm_was_seen_and_not_blocked() {
        let event =
            event(&samples::origin(), &samples::entry(1, "monitor.alert", false, json!({"detector": "mining"})));
        assert_eq!((&event["severity"], event.get("disposition")), (&json!("High"), None));
        let data = json!({"detector": "mining", "severity": "critical", "measured": "all processors for 60 s"});
        let event = super::event(&samples::origin(), &samples::entry(1, "monitor.alert", false, data));
        assert_eq!((&event["severity_id"], &event["class_uid"]), (&json!(5), &json!(2004)));
        assert_eq!(event["message"], "monitor.alert: mining (critical): all processors for 60 s");
    }

    #[test]
    fn whatever_has_no_place_is_unmapped() {
        let event = event(&samples::origin(), &samples::entry(1, "new.kind", false, json!({"a": [1]})));
        assert_eq!((&event["class_uid"], &event["type_uid"]), (&json!(0), &json!(99)));
        assert_eq!(event["unmapped"]["data"], json!({"a": [1]}));
    }
}
