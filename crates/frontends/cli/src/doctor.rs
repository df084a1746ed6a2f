//! `belljar doctor`: what this host can hold.

use clap::ArgMatches;
use model::{Diagnosis, Held, Service};

use crate::words;

pub fn doctor(matches: &ArgMatches, service: &dyn Service) -> u8 {
    let diagnosis = service.diagnose();
    let usable = diagnosis.backends.iter().any(|backend| backend.usable);
    let text = match matches.get_flag("json") {
        true => serde_json::to_string_pretty(&diagnosis).map_or_else(|_| String::new(), |text| text + "\n"),
        false => text(&diagnosis),
    };
    if words::print(&text) && usable { 0 } else { 1 }
}

pub fn text(diagnosis: &Diagnosis) -> String {
    let mut text = format!("belljar {} on {}\n", diagnosis.version, diagnosis.kernel);
    for backend in &diagnosis.backends {
        let usable = if backend.usable { "usable" } else { "not usable without accepting gaps" };
        text += &format!("\nbackend {}: {usable}\n\nthis host\n", backend.backend);
        for finding in &backend.findings {
            let mark = if finding.works { "ok" } else { "no" };
            text += &format!("  {mark}  {:<30} {}\n", finding.what, finding.detail);
            if !finding.fix.is_empty() {
                text += &format!("      {:<30} fix: {}\n", "", finding.fix);
            }
        }
        text += "\nwalls\n";
        for holding in &backend.enforcement.walls {
            let (held, why) = match &holding.held {
                Held::Fully => ("fully", holding.by.as_str()),
                Held::Partly(why) => ("partly", why.as_str()),
                Held::Not(why) => ("not", why.as_str()),
            };
            text += &format!("  {held:<7} {:<15} {why}\n", holding.wall.name());
            if !holding.fix.is_empty() {
                text += &format!("  {:<7} {:<15} fix: {}\n", "", "", holding.fix);
            }
        }
    }
    text
}
