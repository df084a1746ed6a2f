//! What open sandboxes take that nobody does anything in.

use serde_json::{Value, json};
use testkit::Who;

use super::{Amounts, Server};
use crate::bench::memory::{below, proportional_size};
use crate::bench::samples::{Samples, Table, met};

const WANTED_KIB: u64 = 1536;

pub fn measure(who: Who, server: &Server, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let title = format!("{} open sandboxes in which nothing runs, as {}", amounts.idle, who.name());
    let mut table = Table::new(title, &["", "KiB each", "wanted"]);
    let mut client = server.client()?;
    let before = (all(server), available()?);
    let mut ids = Vec::new();
    for number in 1..=amounts.idle {
        let (_, told) = client.ask("POST", "/v1/sandboxes", &json!({}))?;
        ids.push(told["id"].as_str().ok_or("a sandbox has an id")?.to_owned());
        if number % 100 == 0 {
            println!("idle: {number} of {} are open", amounts.idle);
        }
    }
    let after = (all(server), available()?);
    let each = |more: u64| more / amounts.idle as u64;
    let rows = [
        ("proportional size of all processes of belljar's", each(after.0.saturating_sub(before.0))),
        ("what the machine has less available, the kernel's own included", each(before.1.saturating_sub(after.1))),
    ];
    for (at, (what, size)) in rows.into_iter().enumerate() {
        samples.keep("idle", what, who.name(), size as f64, "KiB")?;
        let wanted = if at == 0 { met(size <= WANTED_KIB, &format!("≤ {WANTED_KIB} KiB")) } else { String::new() };
        table.rows.push(vec![what.to_owned(), size.to_string(), wanted]);
    }
    for id in ids {
        client.ask("DELETE", &format!("/v1/sandboxes/{id}"), &Value::Null)?;
    }
    Ok(table)
}

/// The server, and all that it started.
fn all(server: &Server) -> u64 {
    let pid = server.child.id();
    below(pid).into_iter().chain([pid]).filter_map(proportional_size).sum()
}

fn available() -> Result<u64, String> {
    let text = std::fs::read_to_string("/proc/meminfo").map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).ok_or("the kernel says no size")?;
    line.trim().trim_end_matches("kB").trim().parse().map_err(|_| format!("no size: {line}"))
}
