//! `belljar explain`: the plan, without running it.

use clap::ArgMatches;
use model::{Held, Plan, Service};

use crate::{arguments, result, run, words};

pub fn explain(matches: &ArgMatches, service: &dyn Service) -> u8 {
    match service.explain(&arguments::request(matches)) {
        Ok(plan) => {
            let text = if matches.get_flag("json") { json(&plan) } else { text(&plan) };
            if words::print(&text) { 0 } else { 1 }
        }
        Err(outcome) => {
            match matches.get_flag("json") {
                true => words::say(&serde_json::to_string(&result::object(&outcome)).unwrap_or_default()),
                false => words::say(&run::summary(&outcome)),
            }
            result::code(&outcome)
        }
    }
}

fn json(plan: &Plan) -> String {
    serde_json::to_string_pretty(plan).map_or_else(|_| String::new(), |text| text + "\n")
}

pub fn text(plan: &Plan) -> String {
    let mut text = format!("backend  {}\n", plan.backend);
    for step in &plan.steps {
        text += &format!("{:<8} {}\n", step.by, step.does);
    }
    text += "\nenvironment\n";
    for variable in &plan.environment {
        text += &format!("  {}\n", variable.escape_debug());
    }
    text += "\nwalls\n";
    for holding in &plan.enforcement.walls {
        let held = match &holding.held {
            Held::Fully => format!("fully    {}", holding.by),
            Held::Partly(why) => format!("partly   {why}"),
            Held::Not(why) => format!("not      {why}"),
        };
        text += &format!("  {:<15} {held}\n", holding.wall.name());
    }
    text
}
