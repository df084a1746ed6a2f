//! A secret is used and never held.

use std::io::Write;
use std::process::Stdio;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::told;
use crate::world::{NAME, World};

pub const ALL: &[(&str, Check)] = &[("a_secret_is_added_outside_and_never_seen_inside", added)];

const VALUE: &str = "mermaid-under-the-ice-4711";

fn added(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let mut set =
        world.desk.project.command(["secret", "set", "API_TOKEN", "--host", &format!("{NAME}:{}", world.https)]);
    let mut child = told(set.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())?;
    told(child.stdin.take().ok_or("it has an input")?.write_all(VALUE.as_bytes()))?;
    let done = told(child.wait_with_output())?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    let open = world.open();
    let mut flags: Vec<&str> = open.iter().map(String::as_str).collect();
    flags.push("--secret=API_TOKEN");
    let script = format!(
        "curl -sS -m 10 -H \"Authorization: Bearer $API_TOKEN\" {}; env; cat /proc/self/environ",
        world.url("/echo")
    );
    let said = world.expect(&flags, &["sh", "-c", &script], 0, "authorization")?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    if out.contains(VALUE) || said.error.contains(VALUE) || !out.contains("belljar-API_TOKEN-") {
        return Err(format!("{said:?}"));
    }
    let arrived = world.arrived()?;
    if arrived.len() != 1 || arrived[0]["headers"]["authorization"] != format!("Bearer {VALUE}") {
        return Err(format!("{arrived:?}"));
    }
    // Somebody else's account at the same host is nobody's business.
    let other = format!(
        "curl -sS -m 10 -o /dev/null -w '%{{http_code}}' -H 'Authorization: Bearer mine' {}",
        world.url("/echo")
    );
    world.expect(&flags, &["sh", "-c", &other], 0, "403")?;
    if world.arrived()?.len() != 1 {
        return Err(format!("{:?}", world.arrived()));
    }
    let log = world.desk.expect(&["log", "--json", "--run", "last"], 0, "")?;
    let text = String::from_utf8_lossy(&log.out).into_owned();
    if text.contains(VALUE) {
        return Err("the value is in the record".to_owned());
    }
    let used = world.desk.expect(&["log", "--json", "--type", "secret.used"], 0, "")?;
    let text = String::from_utf8_lossy(&used.out).into_owned();
    if !text.contains("\"API_TOKEN\"") || text.contains(VALUE) {
        return Err(text);
    }
    Ok(())
}
