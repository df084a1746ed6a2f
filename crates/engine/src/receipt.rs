//! What a run ends with: a statement of what went in, what held it and what came out, under the record's key.

use model::{Exit, Fate, Finished, Held, Wall};
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
    /// Walls that were tried from inside, and held.
    pub proven: Vec<Wall>,
    /// Of each stream that said something, what passed.
    pub output: Vec<(&'static str, Value)>,
}

/// Of a statement: artifacts that would make it longer are only in their digest.
const LONGEST: usize = 256 << 10;

/// Where the chain was when the run had ended.
pub struct Chain {
    pub installation: String,
    pub entries: u64,
    pub head: String,
}

pub fn statement(known: &Known, finished: &Finished, chain: &Chain) -> Value {
    let whole = stating(known, finished, chain, true);
    if whole.to_string().len() <= LONGEST { whole } else { stating(known, finished, chain, false) }
}

/// `listed`: with a line for each artifact, besides the digest of all.
fn stating(known: &Known, finished: &Finished, chain: &Chain, listed: bool) -> Value {
    let Known { run, user, agent, input, code, policy, approvals, proven, output } = known;
    let mut subject = vec![json!({"name": format!("run:{run}"), "digest": {"blake3": chain.head}})];
    for (stream, said) in output {
        subject.push(json!({"name": stream, "digest": {"blake3": said["blake3"]}}));
    }
    let artifacts = finished.gathered.iter().flat_map(|gathered| &gathered.artifacts);
    let (mut released, mut withheld) = (Vec::new(), Vec::new());
    let mut all = blake3::Hasher::new();
    for artifact in artifacts {
        all.update(json!(artifact).to_string().as_bytes());
        if !listed {
            continue;
        }
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
            // What `built-in` means is its version.
            "belljar": env!("CARGO_PKG_VERSION"),
            "run": run, "user": user, "agent": agent,
            "input": {"blake3": input}, "code": code.as_ref().map(|code| json!({"blake3": code})),
            "policy": policy, "approvals": approvals,
            "backend": finished.backend, "image": finished.image, "walls": walls, "proven": proven,
            "egress": finished.traffic.as_ref().map(|traffic| json!({
                "hosts": traffic.hosts, "connections": traffic.connections, "requests": traffic.requests,
                "refused": traffic.refused, "sent": traffic.sent, "received": traffic.received, "cached": traffic.cached,
                "secrets": traffic.secrets, "lost": traffic.lost,
            })),
            "outcome": {
                "exit": exit, "signal": signal, "overrun": finished.overrun,
                "denials": finished.denials.iter().map(|denial| denial.times).sum::<u64>() + finished.denials_not_listed,
                "redacted": finished.redacted, "changes": finished.leftover,
            },
            "artifacts": released, "withheld": withheld, "artifacts_listed": listed,
            "artifacts_digest": {"blake3": all.finalize().to_hex().as_str()},
            "ledger": {"installation": chain.installation, "entries": chain.entries, "head": chain.head},
        },
    })
}

#[cfg(test)]
mod tests {
    use model::{Artifact, Gathered, Shown};

    use super::*;

    fn finished(artifacts: usize) -> Finished {
        let artifact = |number: usize| Artifact {
            id: format!("{number:032x}"),
            run: "r".to_owned(),
            sandbox: None,
            workspace: Shown("/work".into()),
            path: Shown(format!("{}{number}", "x".repeat(2000)).into()),
            size: 1,
            executable: false,
            digest: Some("00".repeat(32)),
            kind: "text/plain".to_owned(),
            fate: Fate::Released,
            findings: Vec::new(),
            created: 0,
        };
        let artifacts = (0..artifacts).map(artifact).collect();
        Finished {
            run: "r".to_owned(),
            exit: Exit::Code(0),
            overrun: None,
            usage: model::Usage::default(),
            denials: Vec::new(),
            denials_not_listed: 0,
            output_dropped: 0,
            enforcement: model::Enforcement { walls: Vec::new() },
            accepted_gaps: Vec::new(),
            backend: "native".to_owned(),
            because: String::new(),
            image: None,
            leftover: None,
            inspected: model::Inspected::default(),
            redacted: Vec::new(),
            unguarded: Vec::new(),
            captured: None,
            traffic: None,
            alerts: Vec::new(),
            gathered: Some(Gathered { artifacts, ..Gathered::default() }),
            timing: Vec::new(),
        }
    }

    #[test]
    fn many_artifacts_are_in_their_digest_and_the_statement_fits_an_entry() {
        let chain = Chain { installation: "i".to_owned(), entries: 1, head: "h".to_owned() };
        let of = |count| statement(&Known::default(), &finished(count), &chain);
        let (few, many) = (of(3), of(1000));
        assert_eq!(few["subject"].as_array().map(Vec::len), Some(4));
        assert_eq!(few["predicate"]["artifacts_listed"], true);
        assert_eq!(many["predicate"]["artifacts_listed"], false);
        assert!(many.to_string().len() <= LONGEST);
        assert_ne!(many["predicate"]["artifacts_digest"], of(999)["predicate"]["artifacts_digest"]);
    }
}
