//! What a run ends with: a statement of what went in, what held it and what came out, under the record's key.

use model::{Exit, Fate, Finished, Held};
use serde_json::{Value, json};

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const RECEIPT: &str = "https://belljar.dev/attestations/receipt/v1";

/// What the record knows of the run besides its end.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub run: String,
    pub user: String,
    pub agent: Option<String>,
    /// Of everything that was asked.
    pub input: String,
    /// Of the code that it would run, as far as it could be read.
    pub code: Option<String>,
    pub policy: String,
    /// Questions and who said yes.
    pub approvals: Vec<(String, String)>,
}

/// Where the chain was when the run had ended.
pub struct Chain {
    pub installation: String,
    pub entries: u64,
    pub head: String,
}

pub fn statement(known: &Known, finished: &Finished, chain: &Chain) -> Value {
    let Known { run, user, agent, input, code, policy, approvals } = known;
    let mut subject = vec![json!({"name": format!("run:{run}"), "digest": {"blake3": chain.head}})];
    let artifacts = finished.gathered.iter().flat_map(|gathered| &gathered.artifacts);
    let (mut released, mut withheld) = (Vec::new(), Vec::new());
    for artifact in artifacts {
        let shown = json!({"path": artifact.path, "size": artifact.size, "blake3": artifact.digest});
        match &artifact.fate {
            Fate::Released => {
                let name = format!("artifact:{}", artifact.path.display());
                subject.push(json!({"name": name, "digest": {"blake3": artifact.digest}}));
                released.push(shown);
            }
            Fate::Withheld(why) => withheld.push(json!({"path": artifact.path, "rule": why.rule})),
        }
    }
    let walls: serde_json::Map<String, Value> = finished
        .enforcement
        .walls
        .iter()
        .map(|holding| {
            let held = match holding.held {
                Held::Fully => "fully",
                Held::Partly(_) => "partly",
                Held::Not(_) => "not",
            };
            (holding.wall.name().to_owned(), held.into())
        })
        .collect();
    let (exit, signal) = match finished.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
    };
    let approvals: Vec<Value> =
        approvals.iter().map(|(question, by)| json!({"question": question, "by": by})).collect();
    json!({
        "_type": STATEMENT,
        "subject": subject,
        "predicateType": RECEIPT,
        "predicate": {
            "run": run, "user": user, "agent": agent,
            "input": {"blake3": input}, "code": code.as_ref().map(|code| json!({"blake3": code})),
            "policy": policy, "approvals": approvals,
            "backend": finished.backend, "walls": walls,
            // Nothing goes out by network yet.
            "egress": [],
            "outcome": {
                "exit": exit, "signal": signal, "overrun": finished.overrun,
                "denials": finished.denials.iter().map(|denial| denial.times).sum::<u64>() + finished.denials_not_listed,
                "redacted": finished.redacted, "changes": finished.leftover,
            },
            "artifacts": released, "withheld": withheld,
            "ledger": {"installation": chain.installation, "entries": chain.entries, "head": chain.head},
        },
    })
}
