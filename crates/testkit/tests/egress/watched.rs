//! The monitor hears of connections while they are open.

use std::net::TcpListener;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::Value;

use crate::told;
use crate::world::{NAME, World};

pub const ALL: &[(&str, Check)] = &[
    ("who_computes_for_a_pool_is_found_by_the_connection_while_it_runs", mines),
    ("who_downloads_from_a_port_that_pools_use_is_no_miner", downloads),
];

/// Ports that pools like, and one of those that nobody has now.
fn pool() -> Result<TcpListener, String> {
    let ports = [3333, 3334, 4444, 5555, 6666, 7777, 14433, 14444, 45560, 45700];
    ports.into_iter().find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()).ok_or("no port is free".to_owned())
}

/// Computes without a word, with a connection to a port; by nothing that it is called or told could it be known.
const WORKER: &str = "import socket, sys\n\
    port = int(sys.stdin.readline())\n\
    held = socket.create_connection(('api.world.test', port), 20)\n\
    while True: pass\n";

fn alerts(error: &str) -> Result<Value, String> {
    let line = error.lines().last().unwrap_or_default();
    let result: Value = serde_json::from_str(line).map_err(|wrong| format!("{wrong}: {error}"))?;
    Ok(result["alerts"].clone())
}

fn mines(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    // With a pool, two seconds of load are enough; without, twenty, which the control does not have.
    world.desk.policy("[monitor]\nmining = \"suspend\"\nmining_after = \"20s\"\nrunaway_after = \"1h\"\n")?;
    let listener = pool()?;
    let (pool, other) = (told(listener.local_addr())?.port(), world.raw);
    for (port, limit, found) in [(pool, "120s", true), (other, "6s", false)] {
        let flags = [
            format!("--allow-net={NAME}:{port}"),
            format!("--allow-net=127.0.0.1:{port}"),
            "--json".to_owned(),
            format!("--timeout={limit}"),
            format!("--agent=worker-{port}"),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let mut command = world.command(&flags, &["/usr/bin/python3", "-c", WORKER]);
        let input = world.folder.join("port");
        told(std::fs::write(&input, format!("{port}\n")))?;
        let done = told(command.stdin(told(std::fs::File::open(&input))?).output())?;
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        let alerts = alerts(&error)?;
        let said = alerts[0]["measured"].as_str().unwrap_or_default().contains(&format!("port {port} is one that"));
        // Suspended: it was found while it ran, not when it had ended.
        match found {
            true if error.contains("suspended") && alerts[0]["detector"] == "mining" && said => {}
            false if alerts.is_null() && !error.contains("alert: ") => {}
            _ => return Err(format!("port {port}: {error}")),
        }
    }
    Ok(())
}

fn downloads(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.desk.policy("[monitor]\nmining_after = \"20s\"\nrunaway_after = \"1h\"\n")?;
    let listener = pool()?;
    let port = told(listener.local_addr())?.port();
    // Whoever comes gets so much, slowly enough that it is watched for some seconds.
    let server = std::thread::spawn(move || -> std::io::Result<()> {
        use std::io::Write;
        let (mut client, _) = listener.accept()?;
        for _ in 0..60 {
            client.write_all(&[b'x'; 1 << 20])?;
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Ok(())
    });
    let script = format!(
        "import socket, hashlib\n\
         s = socket.create_connection(('{NAME}', {port}), 20)\n\
         h, f, all = hashlib.sha256(), open('/tmp/download', 'wb'), 0\n\
         while piece := s.recv(1 << 16): h.update(piece); f.write(piece); all += len(piece)\n\
         print(all)\n"
    );
    let flags = [format!("--allow-net={NAME}:{port}"), format!("--allow-net=127.0.0.1:{port}"), "--json".to_owned()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let said = world.expect(&flags, &["/usr/bin/python3", "-c", &script], 0, &(60 << 20).to_string())?;
    server.join().map_err(|_| "the server failed".to_owned())?.map_err(|error| error.to_string())?;
    match alerts(&said.error)?.is_null() && !said.error.contains("alert: ") {
        true => Ok(()),
        false => Err(format!("{said:?}")),
    }
}
