//! Programs that know nothing of belljar reach what was granted, and nothing else.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::world::{NAME, STRANGER, World};

pub const ALL: &[(&str, Check)] = &[
    ("curl_reaches_a_granted_host_and_no_other", curl),
    ("python_reaches_it_without_a_proxy", python),
    ("a_server_that_speaks_first_is_heard", speaks_first),
    ("the_hosts_own_loopback_is_reached_where_it_is_granted", loopback),
];

fn curl(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let open = world.open();
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let ca = world.folder.join("ca.pem");
    let ca = ca.to_string_lossy();
    let read = format!("--read={ca}");
    let flags = [open.as_slice(), &[&read]].concat();
    world.expect(&flags, &["curl", "-sS", "-m", "10", "--cacert", &ca, &world.url("/echo")], 0, "\"GET\"")?;
    let stranger = format!("https://{STRANGER}:{}/echo", world.https);
    let said = world.run(&flags, &["curl", "-sS", "-m", "10", "--cacert", &ca, &stranger])?;
    if said.code != Some(6) || !said.error.contains("not a granted host") {
        return Err(format!("{said:?}"));
    }
    // By its address, with the granted name in its hello or another's.
    let at = format!("https://127.0.0.1:{}/echo", world.raw);
    let said = world.run(&open, &["curl", "-skS", "-m", "10", "--connect-to", "::203.0.113.7:443", &at])?;
    if said.code == Some(0) {
        return Err(format!("{said:?}"));
    }
    let arrived = world.arrived()?;
    if arrived.len() != 1 || arrived[0]["headers"]["host"] != format!("{NAME}:{}", world.https) {
        return Err(format!("{arrived:?}"));
    }
    Ok(())
}

fn python(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let open = world.open();
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let script = format!(
        "import urllib.request as u; print(u.urlopen('http://{NAME}:{}/bytes/1000000', timeout=10).read().count(b'x'))",
        world.http
    );
    world.expect(&open, &["/usr/bin/python3", "-c", &script], 0, "1000000").map(drop)
}

fn speaks_first(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let open = world.open();
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let script = format!(
        "import socket; s = socket.create_connection(('{NAME}', {}), 10); print(s.recv(100)); s.sendall(b'again'); print(s.recv(100))",
        world.raw
    );
    world.expect(&open, &["/usr/bin/python3", "-c", &script], 0, "b'SSH-2.0-outside\\r\\n'\nb'again'").map(drop)
}

fn loopback(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let grant = format!("--allow-net=localhost:{}", world.http);
    let url = format!("http://localhost:{}/echo", world.http);
    world.expect(&[&grant], &["curl", "-sS", "-m", "10", &url], 0, "\"GET\"")?;
    // Not without, and its own is its own.
    let said = world.run(&[], &["curl", "-sS", "-m", "10", &url])?;
    if said.code != Some(7) {
        return Err(format!("{said:?}"));
    }
    Ok(())
}
