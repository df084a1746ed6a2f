//! Receipts: what a run ends with holds for whoever has the key, with our tools and with those of others.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use belljar_testkit::Who;
use belljar_testkit::twice::{trial, why_not};
use libtest_mimic::Trial;
use serde_json::Value;

use crate::desk::Desk;

/// As in-toto's own libraries would: the envelope, then the statement in it.
const CHECK: &str = "\
import json, sys
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1 import statement_pb2
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey
data = json.load(open(sys.argv[1]))
key = SSlibKey.from_crypto(load_pem_public_key(open(sys.argv[2], 'rb').read()), keyid=data['signatures'][0]['keyid'])
envelope = Envelope.from_dict(data)
envelope.verify([key], 1)
statement = Statement.copy_from_pb(json_format.ParseDict(json.loads(envelope.payload), statement_pb2.Statement()))
statement.validate()
print(statement.pb.predicate_type, statement.pb.subject[0].name)
";

pub fn trials() -> Vec<Trial> {
    let python = PathBuf::from(std::env::var_os("BELLJAR_PEERS").unwrap_or_else(|| "/opt/belljar-peers".into()))
        .join("receipts/bin/python3");
    let mut trials = Vec::new();
    for who in [Who::Root, Who::Ordinary] {
        trials.push(trial("a_receipt_holds_and_a_changed_one_does_not", who, why_not(who), move || ours(who)));
        let python = python.clone();
        let without = (!python.exists()).then(|| "in-toto's tools are not installed".to_owned());
        let why_not = why_not(who).or(without);
        trials.push(trial("others_verify_a_receipt_too", who, why_not, move || others(who, &python)));
    }
    trials
}

/// A run that hands something over, its receipt and its key, as files.
fn receipt(desk: &Desk) -> Result<(Value, PathBuf, PathBuf), String> {
    // So many that what is signed is longer than any other text of an entry may be.
    let script = "mkdir out; echo glass > out/a.txt; for i in $(seq 90); do echo $i > out/b$i; done";
    desk.expect(&["run", "-q", "--artifact", "out", "--", "sh", "-c", script], 0, "")?;
    let said = desk.expect(&["receipt", "last"], 0, "")?;
    let envelope: Value = serde_json::from_slice(&said.out).map_err(|error| error.to_string())?;
    let key = desk.expect(&["ledger", "key", "--json"], 0, "")?;
    let key: Value = serde_json::from_slice(&key.out).map_err(|error| error.to_string())?;
    let (receipt_file, key_file) = (desk.home.join("receipt.json"), desk.home.join("key.pem"));
    fs::write(&receipt_file, &said.out).map_err(|error| error.to_string())?;
    fs::write(&key_file, key["public_key"].as_str().unwrap_or_default()).map_err(|error| error.to_string())?;
    Ok((envelope, receipt_file, key_file))
}

fn ours(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let (envelope, file, key) = receipt(&desk)?;
    let (file, key) = (file.to_string_lossy().into_owned(), key.to_string_lossy().into_owned());
    let said = desk.expect(&["receipt", "verify", &file, "--key", &key, "--json"], 0, "")?;
    let statement: Value = serde_json::from_slice(&said.out).map_err(|error| error.to_string())?;
    let predicate = &statement["predicate"];
    if predicate["walls"]["system-calls"] != "fully" || predicate["artifacts"][0]["path"] != "out/a.txt" {
        return Err(format!("{statement}"));
    }
    let proven: Vec<&str> = predicate["proven"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !["system-calls", "files", "network", "privileges"].iter().all(|wall| proven.contains(wall)) {
        return Err(format!("{statement}"));
    }
    // The chain that it names is the record's.
    let head = predicate["ledger"]["head"].as_str().unwrap_or("none");
    let log = desk.expect(&["log", "--json", "--type", "run.ended"], 0, "")?;
    if !String::from_utf8_lossy(&log.out).contains(head) {
        return Err(format!("{head} is not in the record"));
    }
    for change in ["payload", "sig", "type"] {
        let mut changed = envelope.clone();
        match change {
            "payload" => {
                let text = changed["payload"].as_str().unwrap_or_default().replacen("ey", "eY", 1);
                changed["payload"] = text.into();
            }
            "sig" => changed["signatures"][0]["sig"] = "AAAA".into(),
            _ => changed["payloadType"] = "text/plain".into(),
        }
        fs::write(&file, changed.to_string()).map_err(|error| error.to_string())?;
        desk.expect(&["receipt", "verify", &file, "--key", &key], 1, "the receipt does not hold")?;
    }
    // Nor with somebody else's key.
    let other = Desk::of(who)?;
    let (_, _, other_key) = receipt(&other)?;
    fs::write(&file, envelope.to_string()).map_err(|error| error.to_string())?;
    desk.expect(&["receipt", "verify", &file, "--key", &other_key.to_string_lossy()], 1, "did not sign it").map(drop)
}

fn others(who: Who, python: &PathBuf) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let (mut envelope, file, key) = receipt(&desk)?;
    let check =
        || Command::new(python).args(["-c", CHECK]).arg(&file).arg(&key).output().map_err(|error| error.to_string());
    let output = check()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() || !said.contains("attestations/receipt/v1 run:") {
        return Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr)));
    }
    // The control: they do not take every one.
    let text = envelope["payload"].as_str().unwrap_or_default().replacen("ey", "eY", 1);
    envelope["payload"] = text.into();
    fs::write(&file, envelope.to_string()).map_err(|error| error.to_string())?;
    match check()?.status.success() {
        true => Err("the control failed: a changed one was taken".to_owned()),
        false => Ok(()),
    }
}
