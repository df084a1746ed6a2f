//! The words of `scan`.

use std::path::PathBuf;

use clap::{Arg, Command, value_parser};

use super::{json, switch};

pub const SCAN_HELP: &str = "\
A scan is a filter, not a wall: what it does not find may still be dangerous, and belongs in a sandbox all the same.
`belljar run` scans by itself what it is about to execute; a policy says under `[findings]` what follows from that.

  belljar scan .                           dangerous code and secrets below here
  belljar scan --severity low setup.py     also what is only worth a look
  belljar scan --sarif . > belljar.sarif   for code hosts
  belljar scan --rules                     every rule

Rules of your own: TOML files in ~/.config/belljar/scan; see docs/scan.md. Exits with 0 if nothing was found at or above
the severity, 1 if something was, 125 if it could not be done.";

pub fn scan(scan: Command) -> Command {
    scan.arg(
        Arg::new("path")
            .value_name("PATH")
            .num_args(1..)
            .required_unless_present("rules")
            .value_parser(value_parser!(PathBuf))
            .help("Files, and folders with all that is in them; links are not followed"),
    )
    .arg(
        Arg::new("severity")
            .long("severity")
            .value_name("LEAST")
            .value_parser(["low", "medium", "high", "critical"])
            .default_value("medium")
            .help("Leave out what is less grave"),
    )
    .arg(switch("rules", "List the rules instead").conflicts_with_all(["path", "sarif"]))
    .arg(switch("sarif", "Print the findings as a SARIF 2.1.0 log").conflicts_with("json"))
    .arg(json("Print the findings as one JSON object"))
}
