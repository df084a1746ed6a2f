//! Secrets on their way out: however they are cut, written and hidden between other bytes.

use std::path::Path;
use std::process::Stdio;

use belljar_testkit::Who;
use belljar_testkit::project::Said;
use belljar_testkit::twice::Check;

use crate::desk::{Desk, Saying};

pub const ALL: &[(&str, Check)] = &[
    ("a_known_value_does_not_come_out_letter_by_letter", cut),
    ("a_known_value_does_not_come_out_in_other_letters", encoded),
    ("a_known_value_does_not_come_out_of_a_huge_line", huge),
    ("what_looks_like_a_secret_does_not_come_out_on_either_stream", formats),
    ("all_other_bytes_come_out_as_they_are", bytes),
    ("a_prompt_without_a_line_break_comes_out_at_once", prompt),
    ("a_project_can_not_turn_redaction_off", project),
    ("no_secret_is_kept_in_what_belljar_writes", kept),
    ("a_known_value_does_not_come_out_between_paint_and_in_dumps", disguised),
    ("a_command_that_has_a_secret_leaves_no_trace_of_it", remembered),
    ("a_patch_shows_no_secret_unless_a_person_wants_it_exact", patch),
    ("a_value_that_is_not_looked_for_is_named", unguarded),
];

const NAME: &str = "DEPLOY_TOKEN";
/// Made up, and like no format that is known.
const VALUE: &str = "seven-bells-under-9-glasses";

/// Python in a sandbox, called by somebody who has the secret in their environment; what it said.
fn python(desk: &Desk, script: &str, knows: bool) -> Result<Said, String> {
    let mut command = desk.project.command(["run", "--", "/usr/bin/python3", "-c", script]);
    if knows {
        command.env(NAME, VALUE);
    }
    let said = Said::of_command(&mut command)?;
    if said.code != Some(0) {
        return Err(format!("the script failed: {said:?}"));
    }
    Ok(said)
}

/// The script says the secret where it is not known, which is the control, and does not where it is.
fn taken_out(desk: &Desk, script: &str, trace: &[u8]) -> Result<Said, String> {
    let has = |said: &Said| said.out.windows(trace.len()).any(|part| part == trace);
    if !has(&python(desk, script, false)?) {
        return Err("the control failed: nothing to be taken out".to_owned());
    }
    let said = python(desk, script, true)?;
    match has(&said) {
        true => Err("it came out".to_owned()),
        false => Ok(said),
    }
}

fn cut(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let script = format!(
        "import os\nfor letter in '<{VALUE}>' * 3: os.write(1, letter.encode())\n\
         os.write(1, b'and ' + '{VALUE}'[:9].encode())"
    );
    let said = taken_out(&desk, &script, VALUE.as_bytes())?;
    let text = String::from_utf8_lossy(&said.out);
    let gone = format!("<[redacted:{NAME}]>");
    if !text.starts_with(&gone.repeat(3)) {
        return Err(format!("something else came out: {text}"));
    }
    // What was only begun is no secret, or is treated as one; but the rest is there.
    match text.contains(">and ") && said.error.contains(NAME) && !said.error.contains(VALUE) {
        true => Ok(()),
        false => Err(format!("{said:?}")),
    }
}

fn encoded(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let ways = [
        "import base64, sys; sys.stdout.buffer.write(base64.b64encode(V))",
        "import base64, sys; sys.stdout.buffer.write(base64.b64encode(b'x' + V + b'yz'))",
        "import base64, sys; sys.stdout.buffer.write(base64.urlsafe_b64encode(b'xy' + V))",
        "import sys; sys.stdout.write(V.hex())",
        "import sys; sys.stdout.write(V.hex().upper())",
        "import sys; sys.stdout.write(''.join('%%%02X' % c for c in V))",
    ];
    for way in ways {
        let script = way.replace('V', &format!("b'{VALUE}'"));
        // What the middle of the value looks like, written so: what is beside it changes the letters at its ends.
        let plain = python(&desk, &script, false)?.out;
        let middle = &plain[plain.len() / 3..plain.len() * 2 / 3];
        taken_out(&desk, &script, middle).map_err(|error| format!("{way}: {error}"))?;
    }
    Ok(())
}

fn huge(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let script = format!("import sys; sys.stdout.write('a' * 5000000 + '{VALUE}' + 'b' * 5000000)");
    let said = taken_out(&desk, &script, VALUE.as_bytes())?;
    let [a, b] = [b'a', b'b'].map(|letter| said.out.iter().filter(|byte| **byte == letter).count());
    match (a >= 5_000_000, b >= 5_000_000) {
        (true, true) => Ok(()),
        _ => Err(format!("{a} and {b} letters came out")),
    }
}

fn formats(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    // Put together here, so that no scanner of sources takes this file for a leak.
    let key = ["AKIA", "QYLPMN5HHHFPZAM2"].concat();
    desk.put("say.py", &format!("import sys\nprint('id {key} x')\nprint('id {key} y', file=sys.stderr)\n"))?;
    let said = desk.say(&["run", "--", "/usr/bin/python3", "say.py"])?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    if out.contains(&key) || said.error.contains(&key) || !out.contains(" x") || !said.error.contains(" y") {
        return Err(format!("{said:?}"));
    }
    // The control: a policy lets it through.
    desk.policy("[release]\nredact = false\n")?;
    let said = desk.say(&["run", "-q", "--", "/usr/bin/python3", "say.py"])?;
    match String::from_utf8_lossy(&said.out).contains(&key) && said.error.contains(&key) {
        true => Ok(()),
        false => Err(format!("the control failed: {said:?}")),
    }
}

fn bytes(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let script = "import os, random\nrandom.seed(7)\n\
        whole = bytes(range(256)) * 64 + random.randbytes(1 << 20) + b'\\xff\\xfe\\x00\\xc3'\n\
        os.write(2, str(len(whole)).encode() + b'\\n')\n\
        at = 0\nwhile at < len(whole): at += os.write(1, whole[at:at + 4097])";
    let said = python(&desk, script, true)?;
    let wanted = "import os, random\nrandom.seed(7)\n\
        whole = bytes(range(256)) * 64 + random.randbytes(1 << 20) + b'\\xff\\xfe\\x00\\xc3'\nimport sys\n\
        sys.stdout.buffer.write(whole)";
    let plain = std::process::Command::new("/usr/bin/python3").args(["-c", wanted]).output();
    let plain = plain.map_err(|error| error.to_string())?.stdout;
    match said.out == plain {
        true => Ok(()),
        false => Err(format!("{} bytes came out of {}", said.out.len(), plain.len())),
    }
}

/// Nobody answers a question that is held back.
fn prompt(who: Who) -> Result<(), String> {
    use std::io::{Read, Write};
    let desk = Desk::of(who)?;
    let mut command =
        desk.project.command(["run", "-q", "--", "sh", "-c", "printf 'name? '; read name; echo \"[$name]\""]);
    command.env(NAME, VALUE).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let (mut input, mut output) = (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
    let mut asked = [0; 6];
    let heard = output.read_exact(&mut asked).and_then(|()| input.write_all(b"bell\n"));
    drop(input);
    let mut rest = String::new();
    let read = output.read_to_string(&mut rest);
    child.wait().map_err(|error| error.to_string())?;
    heard.and(read).map_err(|error| error.to_string())?;
    match (&asked, rest.as_str()) {
        (b"name? ", "[bell]\n") => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn project(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.put("belljar.toml", "version = 1\n[release]\nredact = false\n")?;
    desk.expect(&["run", "--", "true"], 125, "not for a project's file").map(|_| ())
}

fn kept(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[defaults]\nexec = \"allow\"\n")?;
    let mut command = desk.project.command(["run", "--json", "--", "echo", VALUE]);
    let said = Said::of_command(command.env(NAME, VALUE))?;
    // The same where only the request says it.
    let given = format!("{NAME}={VALUE}");
    let again = desk.say(&["run", "--json", "--env", &given, "--", "sh", "-c", &format!("echo ${NAME}")])?;
    if again.code != Some(0) || again.error.contains(VALUE) || String::from_utf8_lossy(&again.out).contains(VALUE) {
        return Err(format!("it came out, or is in the result: {again:?}"));
    }
    if said.error.contains(VALUE) || String::from_utf8_lossy(&said.out).contains(VALUE) {
        return Err(format!("it is in the result: {said:?}"));
    }
    let mut files = 0;
    let mut folders = vec![desk.project.state.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|error| error.to_string())?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            if holds(&path, VALUE.as_bytes()) {
                return Err(format!("it is in {}", path.display()));
            }
        }
    }
    match files {
        0 => Err("the control failed: nothing was written".to_owned()),
        _ => Ok(()),
    }
}

fn disguised(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let ways = [
        "import sys; sys.stdout.write('\\x1b[31m'.join(V))",
        "import sys; sys.stdout.write('\\u200b'.join(V))",
        "import sys; sys.stdout.write(''.join(c + '\\b' + c for c in V))",
        "import sys; sys.stdout.write('\\r'.join(V))",
        "import sys; sys.stdout.write('\\n'.join(V))",
        "import sys; sys.stdout.buffer.write(V.encode('utf-16-le'))",
        "import sys; sys.stdout.buffer.write(V.encode('utf-16-be'))",
        "import sys; sys.stdout.write(V[::-1])",
        "import sys\nfor at in range(0, len(V), 16): sys.stdout.write('%08x: %s\\n' % (at, V[at:at+16].encode().hex(' ')))",
    ];
    for way in ways {
        let script = way.replace('V', &format!("'{VALUE}'"));
        let plain = python(&desk, &script, false)?.out;
        let middle = &plain[plain.len() / 3..plain.len() * 2 / 3];
        taken_out(&desk, &script, middle).map_err(|error| format!("{way}: {error}"))?;
    }
    Ok(())
}

/// Every file that belljar keeps, but for what the sandbox itself wrote.
fn nowhere_in_state(desk: &Desk, traces: &[&str]) -> Result<(), String> {
    let mut files = 0;
    let mut folders = vec![desk.project.state.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|error| error.to_string())?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            if let Some(trace) = traces.iter().find(|trace| holds(&path, trace.as_bytes())) {
                return Err(format!("{trace} is in {}", path.display()));
            }
        }
    }
    if files == 0 { Err("the control failed: nothing was written".to_owned()) } else { Ok(()) }
}

fn remembered(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let key = ["AKIA", "QYLPMN5HHHFPZAM2"].concat();
    // The value in base64 and backwards.
    let (encoded, turned) = ("c2V2ZW4tYmVsbHMtdW5kZXItOS1nbGFzc2Vz", "sessalg-9-rednu-slleb-neves");
    let line = format!("echo mark > made; : {VALUE} {key} {encoded} {turned}");
    let mut said = Vec::new();
    for arguments in [
        vec!["run", "--json", "--", "sh", "-c", &line],
        vec!["run", "--", "no-such-program", &line],
        vec!["ps", "--json"],
        vec!["ps"],
        vec!["show"],
        vec!["scan", "--json", "."],
        vec!["check", "--", "sh", "-c", &line],
    ] {
        let one = Said::of_command(desk.project.command(arguments.iter().copied()).env(NAME, VALUE))?;
        said.push(format!("{}{}", String::from_utf8_lossy(&one.out), one.error));
    }
    if !said[0].contains("\"exit\":0") || !said.iter().any(|text| text.contains("[redacted:DEPLOY_TOKEN]")) {
        return Err(format!("the control failed: {said:?}"));
    }
    let traces = [VALUE, key.as_str(), encoded, turned];
    if let Some((text, trace)) =
        said.iter().find_map(|text| Some((text, traces.iter().find(|trace| text.contains(**trace))?)))
    {
        return Err(format!("{trace} was said: {text}"));
    }
    nowhere_in_state(&desk, &traces)
}

fn patch(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let line = format!("printf 'a\\nkey {VALUE}\\nb\\n' > made");
    desk.expect(&["run", "--", "sh", "-c", &line], 0, "")?;
    let shown = |arguments: &[&str], agent: bool| {
        let mut command = desk.project.command(arguments.iter().copied());
        command.env(NAME, VALUE);
        if agent {
            command.env("CLAUDECODE", "1");
        }
        Said::of_command(&mut command)
    };
    let told = shown(&["diff", "-p"], true)?;
    let text = String::from_utf8_lossy(&told.out).into_owned();
    if text.contains(VALUE) || !text.contains("+key [redacted:DEPLOY_TOKEN]\n+b\n") || !told.error.contains("--exact") {
        return Err(format!("{told:?}"));
    }
    let exact = shown(&["diff", "-p", "--exact"], false)?;
    let refused = shown(&["diff", "-p", "--exact"], true)?;
    match String::from_utf8_lossy(&exact.out).contains(VALUE) && refused.code != Some(0) && refused.out.is_empty() {
        true => Ok(()),
        false => Err(format!("{exact:?} {refused:?}")),
    }
}

fn unguarded(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let run = |flag: &str| Said::of_command(desk.project.command(["run", flag, "--", "true"]).env("DB_PASS", "ab9x"));
    let json = run("--json")?.error;
    let told = json.contains("\"unguarded\":[{\"variable\":\"DB_PASS\"") && !json.contains("ab9x");
    let plain = Said::of_command(desk.project.command(["run", "--", "true"]).env("DB_PASS", "ab9x"))?.error;
    match told && plain.contains("DB_PASS") && !plain.contains("ab9x") {
        true => Ok(()),
        false => Err(format!("{json} {plain}")),
    }
}

fn holds(path: &Path, value: &[u8]) -> bool {
    std::fs::read(path).is_ok_and(|bytes| bytes.windows(value.len()).any(|part| part == value))
}
