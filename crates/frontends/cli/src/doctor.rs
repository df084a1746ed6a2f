//! `belljar doctor`: what this host can hold.

use clap::ArgMatches;
use model::{Diagnosis, Feature, Held, Service};

use crate::words::{self, Layout};

pub fn doctor(matches: &ArgMatches, service: &dyn Service) -> u8 {
    let diagnosis = service.diagnose();
    let usable = diagnosis.backends.iter().any(|backend| backend.usable);
    let text = match matches.get_flag("json") {
        true => words::json(&diagnosis, Layout::Page),
        false => Ok(words::page(lines(&diagnosis))),
    };
    if words::print(text) && usable { 0 } else { 1 }
}

pub fn lines(diagnosis: &Diagnosis) -> Vec<String> {
    let mut lines = vec![format!("belljar {} on {}", diagnosis.version, diagnosis.kernel)];
    let blank = String::new;
    for backend in &diagnosis.backends {
        let usable = if backend.usable { "usable" } else { "not usable without accepting gaps" };
        lines.extend([blank(), format!("backend {}: {usable}", backend.backend), blank(), "this host".to_owned()]);
        for feature in &backend.features {
            let mark = if feature.works { "ok" } else { "no" };
            lines.push(format!("  {mark}  {:<30} {}", feature.what, feature.detail));
            if !feature.fix.is_empty() {
                lines.push(format!("      {:<30} fix: {}", "", feature.fix));
            }
        }
        lines.extend([blank(), "walls".to_owned()]);
        for holding in &backend.enforcement.walls {
            let (held, why) = match &holding.held {
                Held::Fully => ("fully", holding.by.as_str()),
                Held::Partly(why) => ("partly", why.as_str()),
                Held::Not(why) => ("not", why.as_str()),
            };
            lines.push(format!("  {held:<7} {:<15} {why}", holding.wall.name()));
            if !holding.fix.is_empty() {
                lines.push(format!("  {:<7} {:<15} fix: {}", "", "", holding.fix));
            }
        }
    }
    let Feature { what, works, detail, fix } = &diagnosis.workspaces;
    lines.extend([blank(), format!("{what}: {}", if *works { "work" } else { "do not work" }), format!("  {detail}")]);
    if !fix.is_empty() {
        lines.push(format!("  fix: {fix}"));
    }
    lines
}
