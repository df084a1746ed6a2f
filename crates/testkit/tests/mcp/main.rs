//! MCP as its clients meet it: the official ones from PyPI and npm drive every tool, over standard input and over HTTP, at the
//! newest revision and at an older one; and what no honest client sends is sent raw.

mod attacks;
#[allow(dead_code)]
#[path = "../service/client.rs"]
mod client;
mod clients;
mod code;
#[allow(dead_code)]
#[path = "../policy/desk.rs"]
mod desk;
mod every_tool;
mod person;
mod raw;
#[allow(dead_code)]
#[path = "../service/server.rs"]
mod server;
mod stories;

use belljar_testkit::contestant::belljar;
use belljar_testkit::{Who, twice};
use libtest_mimic::{Arguments, Trial};

fn main() {
    let missing = (!belljar().with_file_name("belljar-service").exists())
        .then(|| "belljar-service is not built beside belljar".to_owned());
    let mut trials: Vec<Trial> = Vec::new();
    for who in [Who::Root, Who::Ordinary] {
        let why_not = || missing.clone().or_else(|| twice::why_not(who));
        for (name, check) in [stories::ALL, attacks::ALL, code::ALL].concat() {
            trials.push(twice::trial(name, who, why_not(), move || check(who)));
        }
        for (name, driver) in clients::ALL {
            for (mode, at) in [("2026-07-28", "the_newest_revision"), ("legacy", "an_older_revision")] {
                for over in [every_tool::Over::Stdio, every_tool::Over::Http] {
                    let name = format!("every_tool_by_{name}_over_{}_at_{at}", over.name());
                    let why_not = why_not().or_else(|| clients::why_not(*driver));
                    trials.push(twice::trial(&name, who, why_not, move || every_tool::check(who, *driver, mode, over)));
                }
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Errors of all kinds, as what tests say.
pub fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

pub fn holds(is: bool, what: impl std::fmt::Display) -> Result<(), String> {
    if is { Ok(()) } else { Err(what.to_string()) }
}

/// Some things are asked about, one is denied; whatever else is as ever.
pub const POLICY: &str = "[[rule]]\nwhen = { program = \"id\" }\nthen = \"ask\"\nwhy = \"a person looks\"\n\n\
    [[rule]]\nid = \"no-who\"\nwhen = { program = \"who\" }\nthen = \"deny\"\nwhy = \"not here\"\n";
