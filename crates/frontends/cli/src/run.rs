//! `belljar run`: the command's own input, output and exit code pass through; ours is one line at the end.

use std::path::PathBuf;

use clap::ArgMatches;
use model::{Denial, Exit, Finding, Finished, Leftover, Outcome, Overrun, Redacted, Service, Severity, Traffic};

use crate::result_file::ResultFile;
use crate::words::Layout;
use crate::{NOT_SET_UP, arguments, artifacts, words};

pub fn run(matches: &ArgMatches, service: &dyn Service) -> u8 {
    run_by(matches, |request| service.run(request))
}

/// Has a request carried out, and says how it ended.
pub fn run_by(matches: &ArgMatches, carry_out: impl FnOnce(&model::Request) -> Outcome) -> u8 {
    if matches.contains_id("capture") && !matches.get_flag("json") && !matches.contains_id("result-file") {
        words::say("belljar: `--capture` puts output into the result; add `--json` or `--result-file FILE`");
        return NOT_SET_UP;
    }
    // Opened before anything runs: a result that can't be written is found out in time.
    let file = match matches.get_one::<PathBuf>("result-file").map(|path| (path, ResultFile::open(path))) {
        None => None,
        Some((_, Ok(file))) => Some(file),
        Some((path, Err(error))) => {
            words::say(&format!(
                "belljar: cannot write the result to `{}`: {error}; choose another file",
                path.display()
            ));
            return NOT_SET_UP;
        }
    };
    let outcome = carry_out(&arguments::request(matches));
    let code = wire::code(&outcome);
    if let Some(file) = file
        && let Err(error) = words::json(&wire::object(&outcome), Layout::Line)
            .map_err(Into::into)
            .and_then(|text| file.write((text + "\n").as_bytes()))
    {
        words::say(&format!("belljar: cannot write the result: {error}"));
    }
    if matches.get_flag("json") {
        say_as_json(&outcome);
    } else if !matches.get_flag("quiet") || !matches!(outcome, Outcome::Ran(_)) {
        words::say(&summary(&outcome));
    }
    code
}

pub fn say_as_json(outcome: &Outcome) {
    match words::json(&wire::object(outcome), Layout::Line) {
        Ok(text) => words::say(&text),
        Err(error) => words::say(&format!("belljar: cannot say the result as JSON: {error}")),
    }
}

/// One line that says how it ended.
pub fn summary(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ran(finished) => ran(finished),
        Outcome::Refused(refusal) => {
            format!("belljar: refused: {}; rule: {}; hint: {}", refusal.message, refusal.rule, refusal.hint)
        }
        Outcome::NotSetUp(failure) => format!("belljar: {}; fix: {}", failure.message, failure.fix),
        Outcome::NotStarted(failure) => {
            format!("belljar: {}; fix: {}", failure.message, failure.fix)
        }
    }
}

fn ran(finished: &Finished) -> String {
    let ended = match (finished.overrun, finished.exit) {
        (Some(Overrun::WallTime), _) => "ended at the time limit".to_owned(),
        (Some(Overrun::CpuTime), _) => "ended at the processor-time limit".to_owned(),
        (Some(Overrun::Memory), _) => "ended at the memory limit".to_owned(),
        (Some(Overrun::Disk), _) => "ended at the disk limit".to_owned(),
        (Some(Overrun::Cancelled), _) => "ended on request".to_owned(),
        (Some(Overrun::Suspended), _) => "ended because its agent was suspended".to_owned(),
        (None, Exit::Code(code)) => format!("exit {code}"),
        (None, Exit::Signal(signal)) => format!("ended by signal {signal}"),
    };
    let usage = &finished.usage;
    let mut line =
        format!("belljar: {ended} after {}, {}", words::time(usage.wall_time), words::size(usage.peak_memory));
    if usage.out_of_memory_kills > 0 && finished.overrun != Some(Overrun::Memory) {
        line += &format!("; {} process(es) ended for want of memory", usage.out_of_memory_kills);
    }
    if finished.output_dropped > 0 {
        line += &format!("; {} of output dropped", words::size(finished.output_dropped));
    }
    if let Some(traffic) = &finished.traffic {
        line += &network(traffic);
    }
    if !finished.redacted.is_empty() {
        line += &format!("; taken out: {}", redacted(&finished.redacted));
    }
    if let Some(first) = finished.unguarded.first() {
        let more = finished.unguarded.len() - 1;
        let more = if more > 0 { format!(" and {more} more, see --json") } else { String::new() };
        line += &format!("; not looked for in the output: {} ({}){more}", first.variable, first.why);
    }
    if let Some(found) = found(&finished.inspected.findings) {
        line += &format!("; found: {found}");
    }
    if !finished.denials.is_empty() {
        line += &format!("; denied: {}", denials(&finished.denials, finished.denials_not_listed));
    }
    let gaps: Vec<_> = finished
        .accepted_gaps
        .iter()
        .map(|(wall, held)| match held {
            model::Held::Not(_) => format!("{wall} not held"),
            _ => format!("{wall} partly held"),
        })
        .collect();
    if !gaps.is_empty() {
        line += &format!("; {}", gaps.join(", "));
    }
    if let Some(leftover) = &finished.leftover {
        line += &format!("; {}", left(leftover));
    }
    if let Some(gathered) = &finished.gathered {
        line += &format!("; {}", artifacts::summary(gathered));
    }
    line
}

/// Where it went, and what would have let it go where it could not.
fn network(traffic: &Traffic) -> String {
    const SHOWN: usize = 3;
    let mut text = String::new();
    if !traffic.hosts.is_empty() {
        let more = traffic.hosts.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = traffic.hosts.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        text += &format!(
            "; network: {shown}{more}, {} out, {} in",
            words::size(traffic.sent),
            words::size(traffic.received)
        );
        if traffic.cached > 0 {
            text += &format!(", {} of kept downloads", words::size(traffic.cached));
        }
    }
    if let Some(first) = traffic.denied.first() {
        let more = traffic.denied.len() - 1;
        let more = if more > 0 { format!(" and {more} more, see `belljar net --denied`") } else { String::new() };
        text += &format!("; refused: {}: {}; what would allow it: {}{more}", first.about, first.reason, first.grant);
    }
    if traffic.lost {
        text += "; its way out was lost before it ended";
    }
    text
}

fn redacted(list: &[Redacted]) -> String {
    const SHOWN: usize = 3;
    let one = |Redacted { what, times }: &Redacted| match times {
        1 => what.clone(),
        times => format!("{what} ×{times}"),
    };
    let mut text = list.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", ");
    if list.len() > SHOWN {
        text += &format!(" and {} more", list.len() - SHOWN);
    }
    text
}

/// The gravest finding, and how many more there are of some weight.
fn found(findings: &[Finding]) -> Option<String> {
    let mut grave = findings.iter().filter(|finding| finding.severity >= Severity::Medium);
    let first = grave.next()?.line();
    Some(match grave.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    })
}

/// What it changed, and how to look at it.
fn left(leftover: &Leftover) -> String {
    let Leftover { sandbox, tally, trouble, manifest: _, listed: _ } = leftover;
    if let Some(trouble) = trouble {
        return format!("its changes are kept as {sandbox}, but could not be looked at: {trouble}");
    }
    format!("changed: {}; look: belljar diff {sandbox}, take: belljar apply {sandbox}", words::tally(tally))
}

fn denials(list: &[Denial], not_listed: u64) -> String {
    const SHOWN: usize = 3;
    let one = |denial: &Denial| {
        let detail = denial.detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"));
        let times = if denial.times > 1 { format!(" ×{}", denial.times) } else { String::new() };
        format!("{} {}{detail}{times}", denial.program, denial.call)
    };
    let mut text = list.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", ");
    let more = not_listed.saturating_add(list.len().saturating_sub(SHOWN) as u64);
    if more > 0 {
        text += &format!(" and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_were_refused_the_line_says_so() {
        let one = |process| Denial {
            wall: model::Wall::SystemCalls,
            call: "mount".to_owned(),
            detail: None,
            program: "sh".to_owned(),
            process,
            times: 1,
        };
        let list: Vec<Denial> = (1..=4).map(one).collect();
        assert_eq!(denials(&list, 0), "sh mount, sh mount, sh mount and 1 more");
        // Found by the fuzzer.
        assert_eq!(denials(&list, u64::MAX), format!("sh mount, sh mount, sh mount and {} more", u64::MAX));
    }
}
