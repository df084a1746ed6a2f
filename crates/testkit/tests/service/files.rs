//! Files of sandboxes over the API: an ordinary day, and everything that somebody might try instead.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::client::{self, Answer};
use crate::server::{Server, until};
use crate::{holds, told};

pub const ALL: &[(&str, Check)] = &[
    ("files_are_read_and_written_whether_it_is_open_or_not", day),
    ("a_file_is_replaced_only_if_it_is_what_it_was_said_to_be", conditions),
    ("what_is_read_out_has_no_secret_and_all_of_it_is_on_the_record", released),
    ("no_spelling_and_no_link_leads_out_of_the_sandbox", traversal),
    ("what_is_hidden_from_commands_is_hidden_from_this_too", hidden),
    ("a_link_that_is_swapped_under_way_leads_nowhere", swapped),
    ("a_pipe_or_a_device_in_the_way_keeps_nobody_waiting", specials),
    ("no_archive_harms_anybody", archives),
    ("whoever_works_inside_can_be_ended_from_inside_and_no_more", killed),
    ("a_folder_with_very_many_names_is_cut", huge),
    ("what_happens_in_a_folder_is_told_as_it_happens", watched),
    ("another_tenants_files_are_not_there", tenants),
    ("files_take_the_scopes_that_they_say", scopes),
];

/// Made with these files; open or not.
fn sandbox(server: &Server, open: bool, files: &Value) -> Result<String, String> {
    let made = server.post("/v1/sandboxes", &json!({"files": files, "open": open}))?.expect(201)?.json()?;
    holds(made["open"] == open, &made)?;
    Ok(made["id"].as_str().ok_or("an id")?.to_owned())
}

fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn get(server: &Server, id: &str, what: &str, path: &str) -> Result<Answer, String> {
    server.get(&format!("/v1/sandboxes/{id}/files{what}?path={}", escaped(path)))
}

fn put(server: &Server, id: &str, query: &str, body: &[u8], more: &[(&str, &str)]) -> Result<Answer, String> {
    let bearer = format!("Bearer {}", server.token);
    let headers = [&[("Authorization", bearer.as_str())], more].concat();
    let path = format!("/v1/sandboxes/{id}/files{query}");
    client::receive(client::send(&server.address, "PUT", &path, &headers, body)?)
}

fn remove(server: &Server, id: &str, query: &str) -> Result<Answer, String> {
    server.as_(&server.token, "DELETE", &format!("/v1/sandboxes/{id}/files?{query}"), None, &[])
}

fn exec(server: &Server, id: &str, line: &str) -> Result<Value, String> {
    let body = json!({"command": ["sh", "-c", line]});
    let ran = server.post(&format!("/v1/sandboxes/{id}/exec"), &body)?.expect(200)?.json()?;
    Ok(ran["result"].clone())
}

fn day(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    for open in [false, true] {
        let id =
            sandbox(&server, open, &json!({"src/a.py": "import os\nprint(1)\n", "b.bin": {"base64": "AAECAw=="}}))?;
        let read = get(&server, &id, "", "src/a.py")?.expect(200)?;
        holds(read.text() == "import os\nprint(1)\n", "as it was sent")?;
        holds(read.header("content-type") == Some("application/octet-stream"), "never a page of ours")?;
        let tag = read.header("etag").ok_or("a tag")?.to_owned();
        holds(tag == format!("\"{}\"", blake3::hash(&read.body).to_hex()), "which is its digest")?;
        let ranged = |range: &str| {
            let path = format!("/v1/sandboxes/{id}/files?path=b.bin");
            server.as_(&server.token, "GET", &path, None, &[("Range", range)])
        };
        let part = ranged("bytes=1-2")?.expect(206)?;
        holds(part.body == [1, 2] && part.header("content-range") == Some("bytes 1-2/4"), format!("{part:?}"))?;
        holds(ranged("bytes=-1")?.expect(206)?.body == [3], "the end of it")?;
        holds(ranged("bytes=2-")?.expect(206)?.body == [2, 3], "the rest of it")?;
        holds(ranged("bytes=9-")?.expect(416)?.header("content-range") == Some("bytes */4"), "there is no such part")?;
        holds(ranged("bytes=nonsense")?.expect(200)?.body.len() == 4, "what is no range is none")?;
        let wrote = put(&server, &id, "?path=new/deep/c.txt&mode=750", b"written", &[])?.expect(200)?.json()?;
        holds(wrote["bytes"] == 7, &wrote)?;
        let stat = get(&server, &id, "/stat", "new/deep/c.txt")?.expect(200)?.json()?;
        holds(stat["kind"] == "file" && stat["mode"] == 0o750 && stat["size"] == 7, &stat)?;
        // What a command there sees is the same.
        let seen = exec(&server, &id, "cat new/deep/c.txt; echo more >> new/deep/c.txt")?;
        holds(seen["stdout"]["text"] == "written", &seen)?;
        holds(get(&server, &id, "", "new/deep/c.txt")?.expect(200)?.text() == "writtenmore\n", "and the other way")?;
        let listed = server.get(&format!("/v1/sandboxes/{id}/files/list?depth=3"))?.expect(200)?.json()?;
        let paths: Vec<&str> =
            listed["entries"].as_array().into_iter().flatten().filter_map(|entry| entry["path"].as_str()).collect();
        holds(paths == ["b.bin", "new", "new/deep", "new/deep/c.txt", "src", "src/a.py"], &listed)?;
        let found =
            server.get(&format!("/v1/sandboxes/{id}/files/search?pattern=PRINT&ignore_case=true&names=*.py"))?;
        let found = found.expect(200)?.json()?;
        holds(found["matches"][0]["line"] == 2 && found["matches"][0]["path"] == "src/a.py", &found)?;
        let found = server.get(&format!("/v1/sandboxes/{id}/files/search?pattern=^im.*s$&regex=true"))?.expect(200)?;
        holds(found.json()?["count"] == 1, "by a pattern")?;
        server.get(&format!("/v1/sandboxes/{id}/files/search?pattern=(&regex=true"))?.expect(422)?;
        let folder = |path: &str, body: Value| server.post(&format!("/v1/sandboxes/{id}/files/{path}"), &body);
        folder("folder", json!({"path": "made"}))?.expect(201)?;
        folder("folder", json!({"path": "made"}))?.expect(409)?;
        folder("folder", json!({"path": "x/y/z", "parents": true}))?.expect(201)?;
        folder("move", json!({"path": "b.bin", "to": "made/b.bin"}))?.expect(200)?;
        folder("move", json!({"path": "src/a.py", "to": "made/b.bin"}))?.expect(409)?;
        folder("move", json!({"path": "src/a.py", "to": "made/b.bin", "replace": true}))?.expect(200)?;
        folder("move", json!({"path": "gone", "to": "elsewhere"}))?.expect(404)?;
        remove(&server, &id, "path=made")?.expect(409)?;
        let gone = remove(&server, &id, "path=made&recursive=true")?.expect(200)?.json()?;
        holds(gone["count"] == 2, &gone)?;
        get(&server, &id, "", "made/b.bin")?.expect(404)?;
        let archive = get(&server, &id, "/tar", "new")?.expect(200)?;
        let unpacked = sandbox(&server, open, &json!({"k": ""}))?;
        let taken = put(&server, &unpacked, "/tar?path=.", &archive.body, &[])?.expect(200)?.json()?;
        holds(taken["count"] == 2, &taken)?;
        holds(get(&server, &unpacked, "", "deep/c.txt")?.expect(200)?.text() == "writtenmore\n", "there and back")?;
        if open {
            server.post(&format!("/v1/sandboxes/{id}/stop"), &json!({}))?.expect(200)?;
        }
        // All of it is a change like any other.
        let diff = server.get(&format!("/v1/sandboxes/{id}/diff"))?.expect(200)?.text();
        holds(diff.contains("new/deep/c.txt") && !diff.contains(".belljar-"), diff)?;
    }
    let (asked, worked) = (server.entries("run.asked")?, server.entries("files.worked")?);
    holds(asked.iter().any(|entry| entry["data"]["files"]["operation"] == "write"), "asked")?;
    let wrote = worked.iter().find(|entry| entry["data"]["operation"] == "write").ok_or("it is on the record")?;
    let digest = blake3::hash(b"written").to_hex();
    holds(wrote["data"]["blake3"] == digest.as_str() && wrote["data"]["bytes"] == 7, wrote)?;
    holds(server.get("/v1/ledger/verify")?.expect(200)?.json()?["sound"] == true, "the ledger is sound")
}

fn conditions(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server, true, &json!({"a": "one"}))?;
    put(&server, &id, "?path=a", b"two", &[("If-None-Match", "*")])?.expect(409)?;
    put(&server, &id, "?path=b", b"new", &[("If-None-Match", "*")])?.expect(200)?;
    let tag = get(&server, &id, "", "a")?.expect(200)?.header("etag").ok_or("a tag")?.to_owned();
    let two = put(&server, &id, "?path=a", b"two", &[("If-Match", &tag)])?.expect(200)?;
    put(&server, &id, "?path=a", b"three", &[("If-Match", &tag)])?.expect(412)?;
    put(&server, &id, "?path=nothing", b"x", &[("If-Match", &tag)])?.expect(412)?;
    put(&server, &id, "?path=a", b"x", &[("If-Match", "nonsense")])?.expect(422)?;
    put(&server, &id, "?path=a&mode=9", b"x", &[])?.expect(422)?;
    let now = get(&server, &id, "", "a")?.expect(200)?;
    holds(now.text() == "two" && now.header("etag") == two.header("etag"), "the second, and nothing after it")?;
    let path = format!("/v1/sandboxes/{id}/files?path=a");
    let known = two.header("etag").ok_or("a tag")?;
    server.as_(&server.token, "GET", &path, None, &[("If-None-Match", known)])?.expect(304)?;
    let listed = server.get(&format!("/v1/sandboxes/{id}/files/list"))?.expect(200)?.text();
    holds(!listed.contains(".belljar-"), "nothing is left beside it")?;
    put(&server, &id, "?path=sub", b"", &[])?.expect(200)?;
    holds(get(&server, &id, "", "sub")?.expect(200)?.body.is_empty(), "nothing can be written, too")?;
    put(&server, &id, "?path=sub/x", b"x", &[])?.expect(404)?;
    put(&server, &id, "?path=.", b"x", &[])?.expect(409)?;
    put(&server, &id, "?path=/etc/belljar-test", b"x", &[])?.expect(403)?;
    Ok(())
}

fn released(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    // Put together here, so that no scanner of sources takes this file for a leak.
    let key = ["AKIA", "QYLPMN5HHHFPZAM2"].concat();
    for open in [false, true] {
        let id = sandbox(&server, open, &json!({"conf": format!("id = {key}\nother\n"), "plain": "x"}))?;
        let read = get(&server, &id, "", "conf")?.expect(200)?;
        holds(!read.text().contains(&key) && read.text().contains("[redacted:aws.access-key]"), read.text())?;
        holds(read.header("belljar-redacted") == Some("1"), "and that is said")?;
        let path = format!("/v1/sandboxes/{id}/files?path=conf");
        server.as_(&server.token, "GET", &path, None, &[("Range", "bytes=0-30")])?.expect(403)?;
        let found = server.get(&format!("/v1/sandboxes/{id}/files/search?pattern=id%20%3D"))?.expect(200)?.text();
        holds(!found.contains(&key) && found.contains("[redacted:"), found)?;
        let archive = get(&server, &id, "/tar", ".")?.expect(200)?;
        let text = archive.text();
        holds(!text.contains(&key) && text.contains("[redacted:"), "nor in an archive")?;
    }
    let log = server.get("/v1/ledger?limit=1000")?.expect(200)?.text();
    holds(!log.contains(&key), "nor in the record")
}

fn traversal(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    // Something of the host that this user could read, and no sandbox may.
    let secret = server.desk.home.join("outside.txt");
    told(fs::write(&secret, "outside of every wall"))?;
    told(fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)))?;
    let outside = secret.to_string_lossy().into_owned();
    for open in [false, true] {
        let id = sandbox(&server, open, &json!({"a": "inside"}))?;
        let up = "../".repeat(40);
        let links = [
            format!("ln -s {outside} link; ln -s /proc/self/root{outside} root; ln -s /proc/1/root{outside} first"),
            "ln -s / whole; ln -s /proc/self/fd fds; ln -s /proc/self/environ env; ln -s loop loop; ln -s .. up"
                .to_owned(),
        ];
        for line in links {
            exec(&server, &id, &line)?;
        }
        let hostile = [
            outside.clone(),
            format!("{up}{outside}"),
            format!("a/../{up}{outside}"),
            format!("/./{outside}"),
            format!("//{outside}"),
            "link".to_owned(),
            "root".to_owned(),
            "first".to_owned(),
            "env".to_owned(),
            "loop".to_owned(),
            "fds/0".to_owned(),
            format!("whole{outside}"),
            "up/up/up/outside.txt".to_owned(),
            format!("/proc/self/root{outside}"),
            format!("/proc/1/root{outside}"),
            format!("/proc/self/cwd/{up}{outside}"),
            "/proc/self/environ".to_owned(),
            "/proc/self/mem".to_owned(),
            "/proc/self/maps".to_owned(),
            "/proc/self/exe".to_owned(),
            "/proc/1/environ".to_owned(),
            "/proc/1/cmdline".to_owned(),
            "/proc/self/fd/0".to_owned(),
            "/dev/fd/0".to_owned(),
            "/dev/stdin".to_owned(),
            "\0".to_owned(),
            "a\0b".to_owned(),
            "%2e%2e/%2e%2e/outside.txt".to_owned(),
            "..%2f..%2foutside.txt".to_owned(),
            "x".repeat(300),
            "x/".repeat(3000),
        ];
        for path in &hostile {
            for what in ["", "/stat", "/tar", "/list", "/search"] {
                let query = if what == "/search" { "&pattern=outside" } else { "" };
                let answer = server.get(&format!("/v1/sandboxes/{id}/files{what}?path={}{query}", escaped(path)))?;
                let leaked = answer.text().contains("outside of every wall");
                let served = answer.status == 200 && matches!(what, "" | "/tar");
                // That a link is there may be said; what it leads to may not.
                holds(!leaked && !served, format!("{path:?} {what}: {} {}", answer.status, answer.text()))?;
                holds(answer.status < 500, format!("{path:?} {what}: {}", answer.status))?;
            }
            let wrote = put(&server, &id, &format!("?path={}", escaped(path)), b"overwritten", &[])?;
            holds(wrote.status < 500, format!("{path:?}: {}", wrote.status))?;
            remove(&server, &id, &format!("path={}&recursive=true", escaped(path)))?;
            let body = json!({"path": "a", "to": path, "replace": true});
            server.post(&format!("/v1/sandboxes/{id}/files/move"), &body)?;
            put(&server, &id, "?path=a", b"inside", &[])?;
            holds(told(fs::read_to_string(&secret))? == "outside of every wall", format!("{path:?} changed it"))?;
        }
        // What is hidden inside stays hidden: the same for a command and for this.
        let listed = get(&server, &id, "/list", &server.desk.home.to_string_lossy())?;
        holds(!listed.text().contains("outside.txt"), listed.text())?;
    }
    Ok(())
}

fn hidden(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let project = server.desk.project.work.clone();
    server.desk.put("shown.txt", "shown")?;
    server.desk.put("hidden.txt", "nobody inside sees this")?;
    server.desk.put("closed/deep.txt", "nobody inside sees this")?;
    for open in [false, true] {
        let options = json!({"workspace": project, "hide": [project.join("hidden.txt"), project.join("closed")]});
        let made = server.post("/v1/sandboxes", &json!({"open": open, "options": options}))?.expect(201)?.json()?;
        let id = made["id"].as_str().ok_or("an id")?;
        holds(get(&server, id, "", "shown.txt")?.expect(200)?.text() == "shown", "what is shown is there")?;
        let absolute = project.join("hidden.txt").to_string_lossy().into_owned();
        for path in ["hidden.txt", "./hidden.txt", "closed/deep.txt", "closed", absolute.as_str(), "."] {
            for what in ["", "/tar", "/search"] {
                let query = if what == "/search" { "&pattern=nobody" } else { "" };
                let answer = server.get(&format!("/v1/sandboxes/{id}/files{what}?path={}{query}", escaped(path)))?;
                let told = answer.text();
                // But for the path that was asked for, which a problem repeats.
                let named = answer.status == 200 && told.contains("deep.txt");
                holds(!told.contains("nobody inside") && !named, format!("{path} {what}: {told}"))?;
            }
        }
        let wrote = put(&server, id, "?path=hidden.txt", b"overwritten", &[])?;
        holds(wrote.status != 200, format!("it was written: {}", wrote.text()))?;
        server.as_(&server.token, "DELETE", &format!("/v1/sandboxes/{id}"), None, &[])?.expect(200)?;
    }
    holds(told(fs::read_to_string(project.join("hidden.txt")))? == "nobody inside sees this", "and it is as it was")
}

fn swapped(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let secret = server.desk.home.join("outside.txt");
    told(fs::write(&secret, "outside of every wall"))?;
    let outside = server.desk.home.to_string_lossy().into_owned();
    let id = sandbox(&server, true, &json!({"d/outside.txt": "inside"}))?;
    // Swapped as fast as it goes, between a folder and a link that leads out.
    let line = format!(
        "mkdir other; ln -s {outside} out; cp d/outside.txt other; i=0; while :; do mv d e; mv out d; mv d out; mv e d; done"
    );
    let body = json!({"command": ["sh", "-c", line], "background": true});
    let run = server.post(&format!("/v1/sandboxes/{id}/exec"), &body)?.expect(202)?.json()?;
    for _ in 0..40 {
        for what in ["", "/tar", "/list", "/stat"] {
            let path = if what.is_empty() { "d/outside.txt" } else { "d" };
            let answer = get(&server, &id, what, path)?;
            holds(!answer.text().contains("outside of every wall") && answer.status < 500, answer.text())?;
        }
        put(&server, &id, "?path=d/outside.txt", b"inside", &[])?;
    }
    holds(told(fs::read_to_string(&secret))? == "outside of every wall", "it was written to")?;
    let run = format!("/v1/runs/{}", run["id"].as_str().unwrap_or_default());
    server.as_(&server.token, "DELETE", &run, None, &[])?.expect(202)?;
    until("it has ended", || Ok(server.get(&run)?.expect(200)?.json()?["status"] != "running"))
}

fn specials(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    for open in [false, true] {
        let id = sandbox(&server, open, &json!({"a": "x"}))?;
        exec(&server, &id, "mkfifo pipe; ln -s pipe way; ln -s /dev/zero zero; ln -s /dev/tty tty")?;
        for path in ["pipe", "way", "zero", "tty", "/dev/zero", "/dev/null", "/dev/tty"] {
            let answer = get(&server, &id, "", path)?;
            holds((400..500).contains(&answer.status), format!("{path}: {}", answer.status))?;
        }
        put(&server, &id, "?path=pipe", b"x", &[])?.expect(409)?;
        let searched = server.get(&format!("/v1/sandboxes/{id}/files/search?pattern=x"))?.expect(200)?.json()?;
        holds(searched["count"] == 1, searched)?;
        let packed = get(&server, &id, "/tar", ".")?.expect(200)?;
        let named = |name: &[u8]| packed.body.chunks(512).any(|block| block.starts_with(name));
        holds(!named(b"pipe\0") && named(b"a\0") && named(b"way\0"), "a pipe is in no archive")?;
    }
    Ok(())
}

/// One entry of an archive.
fn entry(name: &str, kind: u8, target: &str, content: &[u8]) -> Vec<u8> {
    let mut block = [0u8; 512];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, &name.as_bytes()[..name.len().min(100)]);
    put(100, b"0000644\0");
    put(124, format!("{:011o}\0", content.len()).as_bytes());
    put(148, b"        ");
    put(156, &[kind]);
    put(157, &target.as_bytes()[..target.len().min(100)]);
    put(257, b"ustar\x0000");
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut all = block.to_vec();
    all.extend_from_slice(content);
    all.resize(all.len().next_multiple_of(512), 0);
    all
}

fn archives(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let secret = server.desk.home.join("outside.txt");
    told(fs::write(&secret, "outside of every wall"))?;
    let outside = server.desk.home.to_string_lossy().into_owned();
    for open in [false, true] {
        let id = sandbox(&server, open, &json!({"a": "x"}))?;
        let unpack = |archive: &[u8]| put(&server, &id, "/tar?path=.", archive, &[]);
        for name in ["../up", "/etc/abs", "a/../../up", "..", "x/../../y"] {
            let answer = unpack(&entry(name, b'0', "", b"bad"))?;
            holds(answer.status == 422, format!("{name}: {} {}", answer.status, answer.text()))?;
        }
        // A link that leads out, and then something through it.
        let through = [entry("way", b'2', &outside, b""), entry("way/outside.txt", b'0', "", b"overwritten")].concat();
        holds((400..500).contains(&unpack(&through)?.status), "not through a link")?;
        holds(told(fs::read_to_string(&secret))? == "outside of every wall", "it was written to")?;
        let kinds: Vec<u8> = [
            entry("device", b'3', "", b""),
            entry("block", b'4', "", b""),
            entry("fifo", b'6', "", b""),
            entry("hard", b'1', "/etc/passwd", b""),
            entry("fine", b'0', "", b"fine"),
        ]
        .concat();
        let taken = unpack(&kinds)?.expect(200)?.json()?;
        holds(taken["count"] == 1 && taken["skipped"] == 4, &taken)?;
        holds(get(&server, &id, "", "fine")?.expect(200)?.text() == "fine", "what is a file is taken")?;
        // Says that it is very long, and is not; says that it is longer than anything.
        let mut long = entry("long", b'0', "", b"");
        long[124..136].copy_from_slice(b"77777777777\0");
        let sum: u64 = long
            .iter()
            .enumerate()
            .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) })
            .sum();
        long[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        unpack(&long)?.expect(413)?;
        unpack(b"no archive at all")?.expect(422)?;
        unpack(&[b'x'; 5000])?.expect(422)?;
        unpack(&entry("cut", b'0', "", &[1; 600])[..700])?.expect(422)?;
        unpack(b"")?.expect(200)?;
        let many: Vec<u8> = (0..50_100).flat_map(|_| entry("again", b'5', "", b"")).collect();
        unpack(&many)?.expect(413)?;
        server.as_(&server.token, "DELETE", &format!("/v1/sandboxes/{id}"), None, &[])?.expect(200)?;
    }
    Ok(())
}

fn killed(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server, true, &json!({"a": "x".repeat(1 << 20)}))?;
    // Ends whatever it can of what runs beside it.
    let line =
        "while :; do for p in /proc/[0-9]*; do n=${p#/proc/}; [ $n != $$ ] && kill -9 $n; done; done 2>/dev/null";
    let body = json!({"command": ["sh", "-c", line], "background": true});
    let run = server.post(&format!("/v1/sandboxes/{id}/exec"), &body)?.expect(202)?.json()?;
    let run = format!("/v1/runs/{}", run["id"].as_str().unwrap_or_default());
    for _ in 0..20 {
        let answer = get(&server, &id, "", "a")?;
        holds(matches!(answer.status, 200 | 409), format!("{} {}", answer.status, answer.text()))?;
        holds(answer.status != 200 || answer.body.len() == 1 << 20, "all of it or nothing")?;
        let wrote = put(&server, &id, "?path=b", &[b'y'; 100_000], &[])?;
        holds(matches!(wrote.status, 200 | 409), format!("{} {}", wrote.status, wrote.text()))?;
    }
    server.as_(&server.token, "DELETE", &run, None, &[])?.expect(202)?;
    until("it has ended", || Ok(server.get(&run)?.expect(200)?.json()?["status"] != "running"))?;
    holds(get(&server, &id, "", "a")?.expect(200)?.body.len() == 1 << 20, "and then all is well")
}

fn huge(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server, true, &json!({"a": "x"}))?;
    exec(
        &server,
        &id,
        "mkdir many; cd many; seq 1 12000 | xargs touch; cd ..; mkdir -p $(printf 'd/%.0s' $(seq 150))",
    )?;
    let listed = get(&server, &id, "/list", "many")?.expect(200)?.json()?;
    holds(listed["cut"] == true && listed["count"] == 10_000, &listed["count"])?;
    let deep = server.get(&format!("/v1/sandboxes/{id}/files/list?path=d&depth=32"))?.expect(200)?.json()?;
    holds(deep["count"] == 32, &deep["count"])?;
    get(&server, &id, "/tar", "d")?.expect(413)?;
    remove(&server, &id, "path=many&recursive=true")?.expect(200)?;
    remove(&server, &id, "path=d&recursive=true")?.expect(413)?;
    server.get(&format!("/v1/sandboxes/{id}/files/list?depth=33"))?.expect(422)?;
    Ok(())
}

fn watched(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server, true, &json!({"d/a": "x"}))?;
    let path = format!("/v1/sandboxes/{id}/files/watch?path=.&recursive=true");
    let mut stream = BufReader::new(server.send(&server.token, "GET", &path, None, &[])?);
    let mut line = String::new();
    while told(stream.read_line(&mut line))? > 0 && line != "\r\n" {
        line.clear();
    }
    put(&server, &id, "?path=d/new.txt", b"x", &[])?.expect(200)?;
    let mut heard = String::new();
    while !heard.contains("\"d/new.txt\"") {
        holds(told(stream.read_line(&mut heard))? > 0, format!("it ended: {heard}"))?;
    }
    exec(&server, &id, "mkdir fresh; rm d/a")?;
    while !(heard.contains("\"fresh\"") && heard.contains("{\"path\":\"d/a\",\"change\":\"removed\"}")) {
        holds(told(stream.read_line(&mut heard))? > 0, format!("it ended: {heard}"))?;
    }
    drop(stream);
    server.get(&format!("/v1/sandboxes/{id}/files/watch?path=nothing"))?.expect(404)?;
    let closed = sandbox(&server, false, &json!({"a": "x"}))?;
    server.get(&format!("/v1/sandboxes/{closed}/files/watch"))?.expect(422)?;
    Ok(())
}

fn tenants(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let other = server.make_token(&["--tenant", "other"])?;
    let id = sandbox(&server, true, &json!({"a": "mine"}))?;
    let body = json!({"command": ["sleep", "600"], "background": true, "interactive": true});
    let run = server.post(&format!("/v1/sandboxes/{id}/exec"), &body)?.expect(202)?.json()?;
    let run = run["id"].as_str().unwrap_or_default();
    let nothing = "0".repeat(32);
    let bearer = format!("Bearer {other}");
    for (method, path, body) in [
        ("GET", "/v1/sandboxes/ID/files?path=a", None),
        ("PUT", "/v1/sandboxes/ID/files?path=a", Some("x")),
        ("DELETE", "/v1/sandboxes/ID/files?path=a", None),
        ("GET", "/v1/sandboxes/ID/files/list", None),
        ("GET", "/v1/sandboxes/ID/files/stat?path=a", None),
        ("GET", "/v1/sandboxes/ID/files/search?pattern=a", None),
        ("GET", "/v1/sandboxes/ID/files/tar?path=a", None),
        ("PUT", "/v1/sandboxes/ID/files/tar?path=a", Some("x")),
        ("GET", "/v1/sandboxes/ID/files/watch", None),
        ("POST", "/v1/sandboxes/ID/files/folder", Some("{\"path\": \"a\"}")),
        ("POST", "/v1/sandboxes/ID/files/move", Some("{\"path\": \"a\", \"to\": \"b\"}")),
        ("POST", "/v1/sandboxes/ID/open", Some("{}")),
        ("POST", "/v1/sandboxes/ID/stop", None),
        ("POST", "/v1/runs/RUN/stdin", Some("x")),
        ("POST", "/v1/runs/RUN/signal", Some("{\"signal\": \"TERM\"}")),
    ] {
        let ask = |id: &str, run: &str| -> Result<Value, String> {
            let path = path.replace("ID", id).replace("RUN", run);
            let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
            let sent = client::send(&server.address, method, &path, &headers, body.unwrap_or_default().as_bytes())?;
            let mut problem = client::receive(sent)?.expect(404)?.json()?;
            problem["request_id"] = Value::Null;
            Ok(problem)
        };
        let (theirs, none) = (ask(&id, run)?, ask(&nothing, &nothing)?);
        holds(theirs == none, format!("{method} {path}: {theirs} and {none}"))?;
    }
    holds(get(&server, &id, "", "a")?.expect(200)?.text() == "mine", "nothing became of it")?;
    server.post(&format!("/v1/sandboxes/{id}/stop"), &json!({}))?.expect(200).map(drop)
}

fn scopes(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server, false, &json!({"a": "x"}))?;
    let (reads, writes) = (server.make_token(&["--scopes", "read"])?, server.make_token(&["--scopes", "files"])?);
    let path = format!("/v1/sandboxes/{id}/files?path=a");
    server.as_(&reads, "GET", &path, None, &[])?.expect(200)?;
    server.as_(&writes, "GET", &path, None, &[])?.expect(403)?;
    server.as_(&reads, "DELETE", &path, None, &[])?.expect(403)?;
    for token in [&reads, &writes] {
        server.as_(token, "POST", &format!("/v1/sandboxes/{id}/open"), Some(&json!({})), &[])?.expect(403)?;
    }
    server.as_(&writes, "DELETE", &path, None, &[])?.expect(200).map(drop)
}
