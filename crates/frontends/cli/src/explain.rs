//! `belljar explain`: the plan, without running it.

use clap::ArgMatches;
use model::{Held, Plan, Service};

use crate::words::Layout;
use crate::{arguments, run, words};

pub fn explain(matches: &ArgMatches, service: &dyn Service) -> u8 {
    match service.explain(&arguments::request(matches)) {
        Ok(plan) => {
            let text = match matches.get_flag("json") {
                true => words::json(&plan, Layout::Page),
                false => Ok(words::page(lines(&plan))),
            };
            if words::print(text) { 0 } else { 1 }
        }
        Err(outcome) => {
            match matches.get_flag("json") {
                true => run::say_as_json(&outcome),
                false => words::say(&run::summary(&outcome)),
            }
            wire::code(&outcome)
        }
    }
}

pub fn lines(plan: &Plan) -> Vec<String> {
    let mut lines = vec![format!("backend  {} ({})", plan.backend, plan.because)];
    lines.extend(plan.steps.iter().map(|step| format!("{:<8} {}", step.by, step.does)));
    lines.extend([String::new(), "environment".to_owned()]);
    lines.extend(plan.environment.iter().map(|variable| format!("  {}", variable.escape_debug())));
    lines.extend([String::new(), "walls".to_owned()]);
    lines.extend(plan.enforcement.walls.iter().map(|holding| {
        let held = match &holding.held {
            Held::Fully => format!("fully    {}", holding.by),
            Held::Partly(why) => format!("partly   {why}"),
            Held::Not(why) => format!("not      {why}"),
        };
        format!("  {:<15} {held}", holding.wall.name())
    }));
    lines
}
