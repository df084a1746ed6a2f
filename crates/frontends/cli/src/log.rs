//! `belljar log`: what happened, a line an entry.

use std::collections::HashMap;
use std::time::Duration;

use clap::ArgMatches;
use jiff::Timestamp;
use model::{Entry, EntryQuery, Records, Trouble, units};
use serde_json::Value;

use crate::words::{self, Layout};
use crate::{NOT_SET_UP, kept, net, sparkline};

/// Of every run, and of no news to people; shown where they are asked for.
const QUIET: &[&str] = &["ledger.checkpoint", "run.receipt", SAMPLE, "sandbox.armed"];
/// The same, where one run is looked at.
const QUIET_IN_A_RUN: &[&str] = &["ledger.checkpoint", "run.receipt"];
const SAMPLE: &str = "run.sample";
/// What fits on a screen.
const NEWEST: usize = 50;

pub fn log(matches: &ArgMatches, records: &dyn Records) -> u8 {
    show(matches, records).unwrap_or_else(|trouble| kept::complain(&trouble))
}

fn show(matches: &ArgMatches, records: &dyn Records) -> Result<u8, Trouble> {
    let mut query = query(matches, records)?;
    if !matches.contains_id("type") && !matches.get_flag("json") {
        let quiet = if query.run.is_some() { QUIET_IN_A_RUN } else { QUIET };
        query.except = quiet.iter().map(|kind| (*kind).to_owned()).collect();
    }
    let (json, follow) = (matches.get_flag("json"), matches.get_flag("follow"));
    let lines = matches.get_one::<usize>("lines").copied();
    let most = lines.or((!json && query.run.is_none()).then_some(NEWEST));
    // Of one run, times count from its beginning.
    let of_one_run = query.run.is_some() && !json;
    // Samples are drawn at the end, where there is one.
    let samples = (of_one_run && !follow && query.kinds.is_empty()).then(Vec::new);
    let mut page = Page { json, origin: None, of_one_run, day: String::new(), samples, depths: HashMap::new() };
    let mut after = query.after;
    if let Some(most) = most {
        let newest = records.newest(&query, most)?;
        after = newest.last().map_or(after, |entry| entry.number);
        if newest.is_empty() && !follow && !json {
            words::say("belljar: nothing in the record is like that");
        }
        for entry in &newest {
            if !page.print(entry) {
                return Ok(NOT_SET_UP);
            }
        }
    }
    let query = EntryQuery { after, ..query };
    let mut printed = true;
    let mut each = |entry: Entry| {
        printed = page.print(&entry);
        printed
    };
    match (follow, most) {
        (true, _) => records.follow(&query, &mut each)?,
        (false, None) => records.each(&query, &mut each)?,
        (false, Some(_)) => {}
    }
    let printed = printed && page.draw();
    Ok(if printed { 0 } else { NOT_SET_UP })
}

/// Which entries the words are about.
pub fn query(matches: &ArgMatches, records: &dyn Records) -> Result<EntryQuery, Trouble> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let run = text("run").map(|which| run_id(&which, records)).transpose()?;
    Ok(EntryQuery {
        user: text("user"),
        agent: text("agent"),
        denied: matches.get_flag("denied"),
        run,
        except: Vec::new(),
        kinds: matches.get_many::<String>("type").into_iter().flatten().cloned().collect(),
        since: text("since").map(|since| moment(&since)).transpose()?,
        // Everything that begins so is not later.
        until: text("until").map(|until| moment(&until)).transpose()?.map(|until| until + "~"),
        after: 0,
    })
}

/// The start of a run's id, or of the last one's.
pub fn run_id(which: &str, records: &dyn Records) -> Result<String, Trouble> {
    if which == "last" {
        let query = EntryQuery { kinds: vec!["run.asked".to_owned()], ..EntryQuery::default() };
        let last = records.newest(&query, 1)?.pop().and_then(|entry| entry.run);
        return last.ok_or_else(|| Trouble {
            message: "nothing ran yet".to_owned(),
            fix: "see `belljar run --help`".to_owned(),
        });
    }
    if !(4..=32).contains(&which.len()) {
        let message = format!("`{}` is no id of a run", which.escape_debug());
        return Err(Trouble { message, fix: "give at least the first 4 digits, or `last`".to_owned() });
    }
    Ok(which.to_owned())
}

/// So long ago, or a time as it stands in entries, or the beginning of one.
fn moment(text: &str) -> Result<String, Trouble> {
    let bad = || Trouble {
        message: format!("`{}` is no time", text.escape_debug()),
        fix: "say how long ago (`1h`, `30m`, `7d`), or when: `2026-11-16`, `2026-11-16T14:00`".to_owned(),
    };
    if let Ok(ago) = units::duration(text) {
        let then = Timestamp::now().checked_sub(ago).map_err(|_| bad())?;
        return Ok(format!("{then:.6}"));
    }
    // A day with or without hours, minutes and seconds: as text it sorts as it should.
    let form = "dddd-dd-ddTdd:dd:dd.ddddddZ";
    let fits = text.len() >= 10
        && text.len() <= form.len()
        && text.bytes().zip(form.bytes()).all(|(letter, wanted)| match wanted {
            b'd' => letter.is_ascii_digit(),
            b'T' => letter == b'T' || letter == b' ',
            _ => letter == wanted,
        });
    if fits { Ok(text.replace(' ', "T")) } else { Err(bad()) }
}

struct Page {
    json: bool,
    of_one_run: bool,
    origin: Option<Timestamp>,
    /// Said once for all entries of it.
    day: String,
    /// What is drawn rather than told.
    samples: Option<Vec<Value>>,
    /// Of processes that are shown.
    depths: HashMap<i64, usize>,
}

impl Page {
    fn print(&mut self, entry: &Entry) -> bool {
        if self.json {
            return words::print(words::json(entry, Layout::Line).map(|line| line + "\n"));
        }
        if entry.kind == SAMPLE
            && let Some(samples) = &mut self.samples
        {
            samples.push(entry.data.clone());
            return true;
        }
        let mut lines = Vec::new();
        let (day, clock) = entry.at.split_once('T').unwrap_or(("", &entry.at));
        if day != self.day {
            lines.push(format!("— {day} —"));
            day.clone_into(&mut self.day);
        }
        let when = match self.of_one_run {
            true => self.offset(&entry.at),
            false => clock.get(..12).unwrap_or(clock).to_owned(),
        };
        let mark = if entry.denied { "✗" } else { " " };
        // Of one run, who asked is said where it was asked, and which run is known.
        let who = match &entry.agent {
            Some(agent) if !self.of_one_run || entry.kind == "run.asked" => format!("  [{agent}]"),
            _ => String::new(),
        };
        let (run, within) = match self.of_one_run {
            true => (String::new(), "  ".repeat(self.depth(entry))),
            false => {
                let run = entry.run.as_deref().map_or("–", |run| run.get(..8).unwrap_or(run));
                (format!("{run:<8}  "), String::new())
            }
        };
        lines.push(format!("{when:>12} {mark} {run}{:<19} {within}{}{who}", entry.kind, described(entry)));
        words::print(Ok(words::page(lines)))
    }

    /// How many programs that are shown are around this one.
    fn depth(&mut self, entry: &Entry) -> usize {
        const DEEPEST: usize = 12;
        if entry.kind != "program.started" {
            return 0;
        }
        let number = |name: &str| entry.data[name].as_i64();
        let known = |name: &str| number(name).and_then(|process| self.depths.get(&process)).copied();
        let depth = known("process").or_else(|| known("parent").map(|depth| depth + 1)).unwrap_or(0).min(DEEPEST);
        if let Some(process) = number("process") {
            self.depths.insert(process, depth);
        }
        depth
    }

    /// What the run used over its time, if it took long enough.
    fn draw(&self) -> bool {
        let lines = sparkline::lines(self.samples.as_deref().unwrap_or_default());
        let indented: Vec<String> = lines.iter().map(|line| format!("{:>14} {line}", "")).collect();
        indented.is_empty() || words::print(Ok(words::page(indented)))
    }

    fn offset(&mut self, at: &str) -> String {
        let Ok(time) = at.parse::<Timestamp>() else { return at.to_owned() };
        let origin = *self.origin.get_or_insert(time);
        let since = time.duration_since(origin).unsigned_abs();
        format!("+{:.3} s", since.as_secs_f64())
    }
}

/// What an entry says, in a few words.
pub fn described(entry: &Entry) -> String {
    let data = &entry.data;
    let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
    let list = |name: &str| strings(&data[name]);
    match entry.kind.as_str() {
        "run.asked" if data["files"].is_object() => {
            let word = |name: &str| data["files"][name].as_str().unwrap_or_default();
            format!("files: {} {}", word("operation"), word("path"))
        }
        "run.asked" => {
            let inside = match data["sandbox"].as_str() {
                Some(sandbox) => format!("  (in {sandbox})"),
                None => String::new(),
            };
            format!("{}{inside}", command(&list("command")))
        }
        // What is allowed by what everybody may do needs no words.
        "run.judged" if data["ruling"] == "allow" && data["findings"].as_array().is_none_or(Vec::is_empty) => {
            let rules: Vec<&str> = objects(&data["rules"]).iter().filter_map(|rule| rule["rule"].as_str()).collect();
            if rules.is_empty() { "allow".to_owned() } else { format!("allow: {}", rules.join(", ")) }
        }
        "run.judged" => {
            let rules: Vec<String> =
                objects(&data["rules"]).iter().map(|rule| strings_of(rule, &["rule", "why"])).collect();
            let because = if rules.is_empty() { String::new() } else { format!(": {}", rules.join("; ")) };
            let findings = match objects(&data["findings"]).len() {
                0 => String::new(),
                count => format!("; {count} findings"),
            };
            format!("{}{because}{findings}", text("ruling"))
        }
        "approval.asked" => list("rules").join(", "),
        "approval.answered" if data["yes"] == true => format!("yes, by {}", text("by")),
        "approval.answered" => format!("no: {}", text("why")),
        "sandbox.opening" => {
            let walls = data["walls"].as_object();
            let weak = walls.into_iter().flatten().filter(|(_, held)| *held != "fully");
            let weak: Vec<String> =
                weak.map(|(wall, held)| format!("{wall} {}", held.as_str().unwrap_or_default())).collect();
            let walls = if weak.is_empty() { "every wall fully held".to_owned() } else { weak.join("; ") };
            format!("{}: {walls}", text("backend"))
        }
        "sandbox.armed" => format!("tried from inside, and held: {}", list("proven").join(", ")),
        "output.released" => {
            let streams = ["stdout", "stderr", "terminal"].into_iter().filter(|name| data[name].is_object());
            let said = streams.map(|name| {
                let digest = data[name]["blake3"].as_str().unwrap_or_default();
                let size = words::size(data[name]["bytes"].as_u64().unwrap_or(0));
                format!("{size} on {name} (blake3 {}…)", digest.get(..16).unwrap_or(digest))
            });
            said.collect::<Vec<_>>().join(", ")
        }
        SAMPLE => {
            let time = |name: &str| Duration::try_from_secs_f64(data[name].as_f64().unwrap_or(0.0)).unwrap_or_default();
            let size = |name: &str| words::size(data[name].as_u64().unwrap_or(0));
            format!(
                "{} of processor time, {} of memory, {} processes, {} read, {} written",
                words::time(time("processor")),
                size("memory"),
                data["processes"],
                size("read"),
                size("written")
            )
        }
        "program.started" => {
            format!("{} {}: {}", data["process"], text("program"), command(&list("arguments")))
        }
        "call.denied" => {
            let times = match data["times"].as_u64() {
                None | Some(1) => String::new(),
                Some(times) => format!(" × {times}"),
            };
            format!("{} by {}{times}", text("call"), text("program"))
        }
        "files.changed" => {
            let counts =
                ["added", "modified", "deleted", "renamed"].map(|what| (data[what].as_u64().unwrap_or(0), what));
            let counts: Vec<String> =
                counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
            const SHOWN: usize = 3;
            let paths: Vec<&str> = objects(&data["paths"]).iter().filter_map(|path| path["path"].as_str()).collect();
            let more = if paths.len() > SHOWN { ", …" } else { "" };
            let paths = paths.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
            let paths = if paths.is_empty() { paths } else { format!(": {paths}{more}") };
            format!("{} in {}{paths}", counts.join(", "), text("sandbox"))
        }
        "files.worked" => {
            let end = if data["done"] == true { String::new() } else { format!(": not done; {}", text("why")) };
            format!("{} {}{end}", text("operation"), text("path"))
        }
        "code.ran" => {
            let end = match (data["error"].as_str(), data["lost"].as_str()) {
                (_, Some(lost)) => format!("; the context is gone: {lost}"),
                (Some(error), None) => format!(": {error}"),
                (None, None) => String::new(),
            };
            format!("cell {} of {}{end}", data["cell"], text("context"))
        }
        "context.interrupted" | "context.ended" => format!("{} in {}", text("context"), text("sandbox")),
        "sandbox.expired" => format!("{}: {}", text("sandbox"), text("why")),
        "artifact.released" => text("path"),
        "artifact.withheld" => format!("{}: {}", text("path"), text("why")),
        "commit.begun" => format!("from {}", text("sandbox")),
        "commit.ended" => match data["trouble"].as_str() {
            Some(trouble) => trouble.to_owned(),
            None => commit(data),
        },
        "monitor.alert" => {
            format!("{} ({}): {}; usual: {}", text("detector"), text("severity"), text("measured"), text("baseline"))
        }
        "agent.suspended" | "agent.resumed" | "agent.throttled" | "agent.asked-about" => {
            let why = if text("why").is_empty() { String::new() } else { format!(": {}", text("why")) };
            format!("{} by {}{why}", text("agent"), text("by"))
        }
        kind if kind.starts_with("network.") || kind == "secret.used" => net::described(entry),
        "secret.set" | "secret.removed" => format!("{} ({})", text("name"), text("source")),
        "run.ended" => ended(data),
        "run.receipt" => {
            let signatures = objects(&data["signatures"]);
            format!("signed by key {}", signatures.first().and_then(|signed| signed["keyid"].as_str()).unwrap_or("–"))
        }
        "policy.trusted" | "policy.distrusted" => text("file"),
        "approval.standing" | "approval.revoked" => format!("{}: {} ({})", text("rule"), text("about"), text("id")),
        "ledger.checkpoint" => format!("signed up to entry {} by key {}", data["entries"], text("key")),
        "ledger.recovered" => format!("{} bytes of an entry that was never whole", data["torn_bytes"]),
        _ if data.as_object().is_none_or(|data| data.is_empty()) => String::new(),
        _ => data.to_string(),
    }
}

/// As a shell would read it: where one word ends and the next begins can be seen.
fn command(words: &[String]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    let quoted = |word: &String| match !word.is_empty() && word.bytes().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn commit(data: &Value) -> String {
    let mut parts =
        vec![format!("{} taken from {}", data["taken_count"], data["sandbox"].as_str().unwrap_or_default())];
    for (name, word) in
        [("conflicts", "in conflict"), ("held_back", "protected"), ("refused", "refused"), ("asked", "asked about")]
    {
        let count = objects(&data[name]).len();
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    parts.join(", ")
}

fn ended(data: &Value) -> String {
    let text = |name: &str| data[name].as_str().unwrap_or_default();
    if text("outcome") != "ran" {
        return format!("{}: {}", text("outcome"), text("why"));
    }
    let how = match (data["overrun"].as_str(), data["exit"].as_i64(), data["signal"].as_i64()) {
        (Some(overrun), ..) => format!("ended by its limit on {overrun}"),
        (None, Some(code), _) => format!("exit {code}"),
        (None, None, signal) => format!("signal {}", signal.unwrap_or_default()),
    };
    let usage = &data["usage"];
    let seconds = |name: &str| Duration::try_from_secs_f64(usage[name].as_f64().unwrap_or(0.0)).unwrap_or_default();
    let processor = seconds("user_time") + seconds("system_time");
    let mut line = format!(
        "{how} after {}, {} of processor time, {} of memory",
        words::time(seconds("wall_time")),
        words::time(processor),
        words::size(usage["peak_memory"].as_u64().unwrap_or(0))
    );
    let redacted: u64 = objects(&data["redacted"]).iter().filter_map(|redacted| redacted["times"].as_u64()).sum();
    if redacted > 0 {
        line += &format!(", {redacted} secrets redacted");
    }
    if let Some(denials) = data["denials"].as_u64().filter(|count| *count > 0) {
        line += &format!(", {denials} calls denied");
    }
    line
}

fn objects(value: &Value) -> Vec<&Value> {
    value.as_array().into_iter().flatten().collect()
}

fn strings(value: &Value) -> Vec<String> {
    objects(value).iter().map(|value| value.as_str().unwrap_or_default().to_owned()).collect()
}

fn strings_of(value: &Value, names: &[&str]) -> String {
    let words = names.iter().filter_map(|name| value[*name].as_str()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_can_be_told_apart() {
        let words = ["sh", "-c", "echo it's", "", "a=b/c.d"].map(str::to_owned);
        assert_eq!(command(&words), r"sh -c 'echo it'\''s' '' a=b/c.d");
    }

    #[test]
    fn times_are_understood_or_complained_about() {
        for good in ["2026-11-16", "2026-11-16T14", "2026-11-16 14:00", "2026-11-16T14:00:01.000000Z"] {
            assert!(moment(good).is_ok(), "{good}");
        }
        for bad in ["yesterday", "2026-11-16X", "", "-1h", "2026-11-16T14:00:01.000000Z0"] {
            assert!(moment(bad).is_err(), "{bad}");
        }
        assert!(moment("1h").is_ok_and(|time| time.len() == 27));
    }
}
