//! Attempts to have something else kept than what a server says to everybody: each beside the same without the trick, and judged
//! by what another sandbox gets afterwards.

use std::fs;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::attacks::{paths, same};
use crate::cached::{contents, downloads, fetched, keeps, package};
use crate::told;
use crate::world::{NAME, OTHER, World};

pub const ALL: &[(&str, Check)] = &[
    ("an_answer_that_is_not_for_everybody_or_not_whole_is_not_kept", twisted),
    ("nobody_inside_has_something_else_kept_under_a_name", poisoned),
    ("a_file_that_was_changed_on_the_disk_is_not_given", tampered),
    ("what_is_kept_can_not_be_reached_from_inside", unreachable),
];

/// A server that is not itself for a moment: what it says then must not stay.
fn twisted(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    keeps(&world, "")?;
    // Without any trick: this is what would stay.
    let plain = world.url("/twisted/plain/a.whl");
    same((fetched(&world, &plain)?, fetched(&world, &plain)?), (b"evil".to_vec(), b"evil".to_vec()), "it is kept")?;
    same(paths(&world)?.len(), 1, "and given")?;
    for kind in ["short", "long", "cookie", "private", "stored", "varies", "part", "redirect", "packed", "lost"] {
        let url = world.url(&format!("/twisted/{kind}/a.whl"));
        let first = world.run(&[], &["curl", "-sS", "-m", "60", &url])?;
        same(fetched(&world, &url)?, b"good".to_vec(), (kind, &first))?;
    }
    // Asked for by whoever shows who they are, or wants a part.
    for (number, header) in
        ["authorization: x", "cookie: a=b", "range: bytes=0-1", "private-token: x"].iter().enumerate()
    {
        let url = world.url(&format!("/twisted/plain/{number}.whl"));
        let first = world.run(&[], &["curl", "-sS", "-m", "60", "-H", header, &url])?;
        same(first.out, b"evil".to_vec(), header)?;
        same(fetched(&world, &url)?, b"good".to_vec(), header)?;
    }
    Ok(())
}

/// Says some bytes to a server in TLS, each on a connection of its own.
const SAYS: &str = r#"
import os, socket, ssl, sys
context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
def say(name, words):
    try:
        s = context.wrap_socket(socket.create_connection((name, PORT), 20), server_hostname=name)
        s.settimeout(20)
        s.sendall(words.encode())
        said = b""
        while data := s.recv(65536):
            said += data
        print(said.split(b"\r\n")[0].decode())
    except OSError as error:
        print(error)
a, b = "NAME:PORT", "OTHER:PORT"
end = "Connection: close\r\n\r\n"
say("OTHER", f"GET /host/a.whl HTTP/1.1\r\nHost: {b}\r\n{end}")
say("OTHER", f"GET /host/a.whl HTTP/1.1\r\nHost: {a}\r\n{end}")
say("OTHER", f"GET https://{a}/host/a.whl HTTP/1.1\r\nHost: {b}\r\n{end}")
say("OTHER", f"GET /host/a.whl HTTP/1.1\r\nHost: {b}\r\nHost: {a}\r\n{end}")
say("OTHER", f"GET /host/a.whl HTTP/1.1\r\nHost: {b}\r\nX-Forwarded-Host: {a}\r\n{end}")
say("NAME", f"GET /twisted/plain/b.whl HTTP/1.1\r\nHost: {a}\r\nContent-Length: 0\r\n\r\nGET /host/a.whl HTTP/1.1\r\nHost: {b}\r\n{end}")
say("NAME", f"GET /host/b.whl HTTP/1.1\r\nHost: {a}\r\nContent-Length: 70\r\n\r\nGET /host/a.whl HTTP/1.1\r\nHost: {b}\r\n{end}")
say("NAME", f"GET /host/x/..%2fa.whl HTTP/1.1\r\nHost: {a}\r\n{end}")
say("NAME", f"GET //host/a.whl HTTP/1.1\r\nHost: {a}\r\n{end}")
say("NAME", f"GET /host/a.whl?evil HTTP/1.1\r\nHost: {a}\r\n{end}")
say("NAME", f"HEAD /host/a.whl HTTP/1.1\r\nHost: {a}\r\n{end}")
say("NAME", f"POST /host/a.whl HTTP/1.1\r\nHost: {a}\r\nContent-Length: 4\r\n{end}evil")
"#;

fn poisoned(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    keeps(&world, "")?;
    let script = SAYS.replace("NAME", NAME).replace("OTHER", OTHER).replace("PORT", &world.https.to_string());
    let said = world.run(&[], &["/usr/bin/python3", "-c", &script])?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    let lines: Vec<&str> = out.lines().collect();
    // The first is no attack: it works, and is kept for the host that it was asked of.
    same((lines.len(), lines.first()), (12, Some(&"HTTP/1.1 200 OK")), &said)?;
    let before = paths(&world)?.len();
    let own = fetched(&world, &world.url("/host/a.whl"))?;
    same(String::from_utf8_lossy(&own).into_owned(), format!("{NAME}:{}", world.https), &out)?;
    same(paths(&world)?.len(), before + 1, "nothing was kept in its name")?;
    let other = fetched(&world, &format!("https://{OTHER}:{}/host/a.whl", world.https))?;
    same(String::from_utf8_lossy(&other).into_owned(), format!("{OTHER}:{}", world.https), &out)?;
    same(paths(&world)?.len(), before + 1, "and the other has its own")
}

fn tampered(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    keeps(&world, "")?;
    let content = package(&world, "a-1.0.whl", 2 << 20)?;
    let url = world.url("/files/packages/a-1.0.whl");
    fetched(&world, &url)?;
    for (asked, at) in [(2, 0), (3, content.len() - 1)] {
        let file = contents(&world)?.pop().ok_or("it is kept")?;
        let mut evil = content.clone();
        evil[at] ^= 1;
        told(fs::write(&file, evil))?;
        same(fetched(&world, &url)? == content, true, "what the server says")?;
        let net = String::from_utf8_lossy(&world.desk.expect(&["net"], 0, "")?.out).into_owned();
        same((net.contains("kept, but damaged"), net.contains("now kept")), (true, true), &net)?;
        same(fetched(&world, &url)? == content, true, "and then what is kept")?;
        same(paths(&world)?.len(), asked, "asked once more")?;
    }
    let file = contents(&world)?.pop().ok_or("it is kept")?;
    told(fs::write(&file, &content[..100]))?;
    same(fetched(&world, &url)? == content, true, "not what is left of it")
}

/// It is no place for anybody inside, whatever is given to them.
fn unreachable(who: Who) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let world = World::of(who)?;
    keeps(&world, "")?;
    package(&world, "a-1.0.whl", 5000)?;
    let url = world.url("/files/packages/a-1.0.whl");
    fetched(&world, &url)?;
    let folder = downloads(&world);
    let mode = told(fs::metadata(&folder))?.mode();
    same(mode & 0o777, 0o700, "for its owner alone")?;
    let state = world.desk.project.state.to_string_lossy().into_owned();
    let script = format!(
        "ls {0}; echo evil > {0}/belljar/downloads/contents/x; find / -name downloads 2>/dev/null; true",
        state
    );
    let given = format!("--write={state}");
    for flags in [&[][..], &[given.as_str()]] {
        world.run(flags, &["sh", "-c", &script])?;
        let kept = contents(&world)?;
        same(kept.iter().any(|file| file.ends_with("x")), false, &kept)?;
    }
    Ok(())
}
