//! Names that lie: with a resolver that answers as an attacker's would, in an internet of the test's own.

use belljar_testkit::Who;
use belljar_testkit::project::Said;
use belljar_testkit::twice::{self, Check};
use libtest_mimic::Trial;

use crate::attacks::same;
use crate::desk::Saying;
use crate::namespace::{Internet, why_not};

const ALL: &[(&str, Check)] = &[
    ("a_name_that_is_public_at_first_does_not_lead_home_later", rebinding),
    ("of_several_addresses_none_leads_home", several),
    ("questions_that_wait_hold_up_no_lookup", waiting),
];

pub fn trials() -> Vec<Trial> {
    let both = |(name, check): &(&'static str, Check)| {
        let (name, check) = (*name, *check);
        [Who::Root, Who::Ordinary]
            .map(|who| twice::trial(name, who, why_not().or(twice::why_not(who)), move || check(who)))
    };
    ALL.iter().flat_map(both).collect()
}

fn run(internet: &Internet, flags: &[&str], script: &str) -> Result<Said, String> {
    Said::of_command(&mut internet.command(flags, &["sh", "-c", script]))
}

fn rebinding(who: Who) -> Result<(), String> {
    let internet = Internet::of(who)?;
    let curl = |name: &str| format!("curl -sS -m 20 http://{name}.rebind.test:8080/{name}; echo \" $?\";");
    // Longer than an answer of the resolver is used again.
    let script = format!("{0} sleep 6; {0} {1}", curl("changes"), curl("public"));
    let said = run(&internet, &["--allow-net=*.rebind.test:8080"], &script)?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    let lines: Vec<&str> = out.lines().collect();
    same((lines.first(), lines.last()), (Some(&"public 0"), Some(&"public 0")), &said)?;
    same((out.contains("home"), internet.home()), (false, String::new()), &said)?;
    same(said.error.contains("it leads to a loopback address: 127.0.0.1"), true, &said)?;
    same(internet.questions().matches("changes").count() > 1, true, internet.questions())?;
    // Whoever grants the address is led there: it was the wall that held, not the resolver that failed.
    let granted = ["--allow-net=*.rebind.test:8080", "--allow-net=127.0.0.1:8080"];
    let said = run(&internet, &granted, &curl("changes"))?;
    same(internet.home(), "/changes\n".to_owned(), &said)
}

fn several(who: Who) -> Result<(), String> {
    let internet = Internet::of(who)?;
    let curl = |name: &str, port: u16| format!("curl -sS -m 20 http://{name}.rebind.test:{port}/{name}; echo \" $?\";");
    // At the public one of both, nobody listens on 8081; at home, somebody does.
    let all = [("both", 8081), ("six", 8080), ("metadata", 8080), ("home", 8081)].map(|(name, port)| curl(name, port));
    let script = format!("{}{}", all.concat(), curl("both", 8080));
    let flags = ["--allow-net=*.rebind.test:*", "--allow-net=0.0.0.0/0:*", "--allow-net=[::/0]:*"];
    let said = run(&internet, &flags, &script)?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    same((out.lines().last(), internet.home()), (Some("public 0"), String::new()), &said)?;
    let granted = ["--allow-net=*.rebind.test:*", "--allow-net=127.0.0.1:8081", "--allow-net=[::1]:8080"];
    let said = run(&internet, &granted, &script)?;
    let mut home: Vec<String> = internet.home().lines().map(str::to_owned).collect();
    home.sort();
    same(home, ["/both", "/home", "/six"].map(str::to_owned).to_vec(), &said)
}

fn waiting(who: Who) -> Result<(), String> {
    let internet = Internet::of(who)?;
    internet.desk.policy(
        "[network]\nallow = [\"public.rebind.test:8080\"]\nask = [\"asks.rebind.test:8080\"]\n[approvals]\ntimeout = \"10m\"\n",
    )?;
    // More than there are threads that look names up. Each has been told its address, and waits for a person.
    let script = "for i in $(seq 24); do curl -s -m 600 http://asks.rebind.test:8080/ & done; echo started; read go; \
                  curl -sS -m 60 http://public.rebind.test:8080/; echo \" $?\"; kill $(jobs -p)";
    let mut command = internet.command(&[], &["sh", "-c", script]);
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| error.to_string())?;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut parked = 0;
    while parked < 24 && std::time::Instant::now() < until {
        let list = internet.desk.project.json(["approve", "list", "--json"])?;
        parked = list["parked"].as_array().map_or(0, Vec::len);
    }
    let mut input = child.stdin.take().ok_or("it has an input")?;
    input.write_all(b"go\n").map_err(|error| error.to_string())?;
    let lines = BufReader::new(child.stdout.take().ok_or("it has an output")?).lines();
    let lines: Vec<String> = lines.map_while(Result::ok).collect();
    let done = child.wait_with_output().map_err(|error| error.to_string())?;
    same(
        (parked, lines),
        (24, ["started", "public 0"].map(str::to_owned).to_vec()),
        String::from_utf8_lossy(&done.stderr),
    )
}
