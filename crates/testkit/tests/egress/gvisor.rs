//! The same gate for programs behind a kernel of their own: it makes their connections in the sandbox's network.

use belljar_testkit::Who;

use crate::needing::Needing;
use crate::world::{NAME, World};

pub const ALL: &[Needing] =
    &[("behind_gvisor_what_is_granted_is_reached_and_nothing_else", &["curl", "runsc"], granted)];

fn granted(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let mut flags = world.open();
    flags.extend(["--backend", "gvisor"].map(str::to_owned));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let url = format!("http://{NAME}:{}/bytes/10", world.http);
    let line = format!("curl -sS -m 10 '{url}'; curl -s -m 10 http://evil.test/");
    world.expect(&flags, &["sh", "-c", &line], 6, "xxxxxxxxxx")?;
    // By its number, past every name: it ends at the gate all the same.
    let line = format!("curl -s -m 10 http://192.0.2.1:{}/", world.http);
    let said = world.run(&flags, &["sh", "-c", &line])?;
    if said.code == Some(0) { Err(format!("{said:?}")) } else { Ok(()) }
}
