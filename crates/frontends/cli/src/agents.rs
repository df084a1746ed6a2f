//! `belljar agents`: who runs what, and what the monitor says of them.

use std::time::Duration;

use clap::ArgMatches;
use model::{Agents, Baseline, Entry, Trouble, Watched};
use serde::Serialize;

use crate::words::{self, Layout};
use crate::{NOT_SET_UP, kept, log};

pub fn agents(matches: &ArgMatches, agents: &dyn Agents) -> u8 {
    let done = match matches.subcommand() {
        Some(("suspend", matches)) => said(matches, |agent, why| agents.suspend(agent, why)),
        Some(("resume", matches)) => said(matches, |agent, why| agents.resume(agent, why)),
        _ => show(matches, agents),
    };
    done.unwrap_or_else(|trouble| kept::complain(&trouble))
}

/// One agent as programs read it.
#[derive(Serialize)]
struct Shown<'a> {
    state: &'static str,
    #[serde(flatten)]
    agent: &'a Watched,
    /// Alerts and what followed, the newest last.
    #[serde(skip_serializing_if = "<[Entry]>::is_empty")]
    entries: &'a [Entry],
}

impl<'a> Shown<'a> {
    fn of(agent: &'a Watched, entries: &'a [Entry]) -> Shown<'a> {
        Shown { state: agent.state(), agent, entries }
    }
}

fn show(matches: &ArgMatches, agents: &dyn Agents) -> Result<u8, Trouble> {
    let json = matches.get_flag("json");
    let text = match matches.get_one::<String>("which") {
        Some(which) => {
            let (agent, entries) = agents.look(which)?;
            match json {
                true => words::json(&Shown::of(&agent, &entries), Layout::Page),
                false => Ok(words::page(about(&agent, &entries))),
            }
        }
        None => {
            let list = agents.list()?;
            match json {
                true => {
                    let shown: Vec<Shown<'_>> = list.iter().map(|agent| Shown::of(agent, &[])).collect();
                    words::json(&shown, Layout::Page)
                }
                false => Ok(words::page(table(&list))),
            }
        }
    };
    Ok(if words::print(text) { 0 } else { NOT_SET_UP })
}

fn said(matches: &ArgMatches, say: impl FnOnce(&str, &str) -> Result<Watched, Trouble>) -> Result<u8, Trouble> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let agent = say(text("which"), text("why"))?;
    let text = match matches.get_flag("json") {
        true => words::json(&Shown::of(&agent, &[]), Layout::Page),
        false => Ok(words::page([format!("{} is {}", agent.agent, agent.state())])),
    };
    Ok(if words::print(text) { 0 } else { NOT_SET_UP })
}

fn table(list: &[Watched]) -> Vec<String> {
    if list.is_empty() {
        return vec!["nobody ran anything yet".to_owned()];
    }
    let head = ["AGENT", "RUNS", "LAST SEEN", "PROCESSOR", "MEMORY", "DENIED", "ALERTS", "STATE"];
    let mut rows = vec![head.map(str::to_owned)];
    for agent in list {
        rows.push([
            agent.agent.clone(),
            agent.runs.to_string(),
            seen(agent.last_seen),
            processor(agent),
            words::size(agent.peak_memory),
            agent.denials.saturating_add(agent.refused).to_string(),
            agent.alerts.to_string(),
            agent
                .trouble
                .as_ref()
                .map_or_else(|| agent.state().to_owned(), |_| format!("{}, unreadable", agent.state())),
        ]);
    }
    words::columns(&rows)
}

fn about(agent: &Watched, entries: &[Entry]) -> Vec<String> {
    let mut lines = vec![format!("agent      {}", agent.agent), format!("state      {}", agent.state())];
    if let Some(hold) = &agent.hold {
        let why = if hold.why.is_empty() { String::new() } else { format!(": {}", hold.why) };
        let since = if hold.since == 0 { String::new() } else { format!(", {}", words::ago(hold.since)) };
        lines.push(format!("           by {}{since}{why}", hold.by));
        lines.push(format!("           ends with `belljar agents resume {}`", agent.agent));
    }
    lines.extend(agent.trouble.iter().map(|trouble| format!("trouble    {trouble}")));
    lines.push(format!("seen       {}, first {}", seen(agent.last_seen), seen(agent.first_seen)));
    lines.push(format!("runs       {}, {} refused", agent.runs, agent.refused));
    lines.push(format!(
        "used       {} of processor time, {} of memory at most",
        processor(agent),
        words::size(agent.peak_memory)
    ));
    lines.push(format!("moved      {} read, {} written", words::size(agent.read), words::size(agent.written)));
    lines.push(format!("denied     {} calls", agent.denials));
    lines.push(format!("limits     {} time-outs, {} other limits reached", agent.timeouts, agent.overruns));
    lines.push(format!("alerts     {}", agent.alerts));
    if !agent.baselines.is_empty() {
        let mut rows = vec![["MEASURED", "NOW", "USUAL", "ALERT FROM"].map(str::to_owned)];
        rows.extend(agent.baselines.iter().map(|Baseline { what, now, usual, threshold }| {
            let usual = if usual.is_empty() { "–".to_owned() } else { usual.clone() };
            [what.clone(), now.clone(), usual, threshold.clone()]
        }));
        lines.push(String::new());
        lines.extend(words::columns(&rows));
    }
    if !entries.is_empty() {
        lines.push(String::new());
        let line = |entry: &Entry| {
            let at = entry.at.get(..19).unwrap_or(&entry.at).replace('T', " ");
            format!("{at}  {:<17} {}", entry.kind, log::described(entry))
        };
        lines.extend(entries.iter().map(line));
    }
    lines
}

fn seen(second: u64) -> String {
    if second == 0 { "never".to_owned() } else { words::ago(second) }
}

fn processor(agent: &Watched) -> String {
    words::time(Duration::try_from_secs_f64(agent.processor_seconds).unwrap_or_default())
}
