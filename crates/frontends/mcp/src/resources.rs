//! Resources: what runs handed over, what they said, and what the record has of them.

use rmcp::model::{Resource, ResourceTemplate};
use serde_json::Value;

const SCHEME: &str = "belljar://";

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    Artifact(String),
    Log(String),
    Record(String),
}

/// Nothing if it is no address of ours. Ids are plain digits and letters: there is nothing to decode, and nowhere to go up.
pub fn named(uri: &str) -> Option<Named> {
    let plain = |id: &str| {
        let fits = (8..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        fits.then(|| id.to_owned())
    };
    let rest = uri.strip_prefix(SCHEME)?;
    if let Some(id) = rest.strip_prefix("artifacts/") {
        return plain(id).map(Named::Artifact);
    }
    let (run, what) = rest.strip_prefix("runs/")?.split_once('/')?;
    match what {
        "log" => plain(run).map(Named::Log),
        "record" => plain(run).map(Named::Record),
        _ => None,
    }
}

pub fn artifact(artifact: &Value) -> Option<Resource> {
    let id = artifact["id"].as_str()?;
    let path = artifact["path"].as_str().unwrap_or("artifact");
    let kind = artifact["kind"].as_str().unwrap_or("application/octet-stream");
    let resource = Resource::new(format!("{SCHEME}artifacts/{id}"), path).with_mime_type(kind);
    Some(match artifact["size"].as_u64() {
        Some(size) => resource.with_size(size),
        None => resource,
    })
}

pub fn log(run: &str) -> Resource {
    Resource::new(format!("{SCHEME}runs/{run}/log"), format!("log of {run}"))
        .with_description("What the run said, on both streams")
        .with_mime_type("text/plain")
}

pub fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{SCHEME}artifacts/{{id}}"), "artifact")
            .with_description("A file that a run handed over; see `list_artifacts`"),
        ResourceTemplate::new(format!("{SCHEME}runs/{{run}}/log"), "log")
            .with_description("What a run of this server said, on both streams; the last 64 are kept")
            .with_mime_type("text/plain"),
        ResourceTemplate::new(format!("{SCHEME}runs/{{run}}/record"), "record")
            .with_description("What the ledger has of a run")
            .with_mime_type("application/json"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_an_id_and_nothing_else() {
        assert_eq!(named("belljar://artifacts/0123abcd"), Some(Named::Artifact("0123abcd".to_owned())));
        assert_eq!(named("belljar://runs/0123abcd/log"), Some(Named::Log("0123abcd".to_owned())));
        assert_eq!(named("belljar://runs/0123abcd/record"), Some(Named::Record("0123abcd".to_owned())));
        for hostile in [
            "", "belljar://", "belljar://artifacts/", "belljar://artifacts/../../etc/passwd", "belljar://runs//log",
            "belljar://artifacts/%2e%2e%2f%2e%2e", "belljar://runs/0123abcd", "belljar://runs/0123abcd/log/",
            "file:///etc/passwd", "belljar://runs/0123abcd/logs", "belljar://runs/0123abcd/../x",
            "BELLJAR://artifacts/0123abcd", "belljar://runs/01\u{0}3abcd/log",
        ] {
            assert_eq!(named(hostile), None, "{hostile}");
        }
        assert_eq!(named(&format!("belljar://artifacts/{}", "a".repeat(1 << 20))), None);
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_named_is_a_plain_id(text in "(belljar://)?(artifacts/|runs/)?.{0,80}(/log|/record)?") {
            if let Some(Named::Artifact(id) | Named::Log(id) | Named::Record(id)) = named(&text) {
                proptest::prop_assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()) && text.contains(&id));
            }
        }
    }
}
