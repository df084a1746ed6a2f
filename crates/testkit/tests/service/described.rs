//! The OpenAPI document, held against the server by schemathesis: no error of ours, and no answer that is not described.

use std::path::PathBuf;
use std::process::Command;

use belljar_testkit::Who;
use belljar_testkit::contestant::peers_folder;

use crate::client::Address;
use crate::desk::Desk;
use crate::server::Server;
use crate::{holds, told};

fn program() -> PathBuf {
    peers_folder().join("schemathesis/bin/schemathesis")
}

pub fn why_not() -> Option<String> {
    (!program().exists()).then(|| "schemathesis is not installed".to_owned())
}

pub fn check(who: Who) -> Result<(), String> {
    let server = Server::with(Desk::of(who)?, &["--rate", "10000"])?;
    let token = server.make_token(&["--tenant", "described", "--scopes", "run,files,read,approve,admin"])?;
    let Address::Port(port) = server.address else { return Err("it is on loopback".to_owned()) };
    let mut command = Command::new(program());
    command.args(["run", &format!("http://127.0.0.1:{port}/v1/openapi.json")]);
    command.args(["-H", &format!("Authorization: Bearer {token}"), "--max-examples", "10", "--seed", "1"]);
    // On a busy host an answer may take longer than the ten seconds that it waits by itself.
    command.args(["--request-timeout", "90"]);
    command.args(["--phases", "examples,coverage,fuzzing", "--exclude-path-regex", "stream|events|watch"]);
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
    let output = told(command.args(["--checks", checks]).current_dir(&server.desk.home).output())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let end: String =
        said.lines().rev().take(80).collect::<Vec<_>>().into_iter().rev().map(|line| format!("{line}\n")).collect();
    holds(output.status.success() && said.contains("passed"), end)
}
