//! Attacks on the record: by changing it, by keeping it from being written, from inside, and by what is put in it.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use belljar_testkit::Who;
use belljar_testkit::project::Said;
use belljar_testkit::twice::Check;

use crate::desk::{Desk, Saying, expected};
use crate::stories::{entries, sound};

pub const ALL: &[(&str, Check)] = &[
    ("an_entry_that_was_edited_is_named", edited),
    ("without_a_record_nothing_runs", unwritable),
    ("no_variable_leads_past_the_record", diverted),
    ("nothing_inside_reaches_the_record", inside),
    ("no_secret_is_in_the_record", secrets),
    ("a_killed_belljar_leaves_a_sound_record", killed),
];

fn ledger(desk: &Desk) -> PathBuf {
    desk.home.join(".local/state/belljar/ledger")
}

fn edited(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    for number in ["1", "2", "3"] {
        desk.expect(&["run", "-q", "--", "echo", number], 0, "")?;
    }
    sound(&desk)?;
    let segment = ledger(&desk).join("00000001.log");
    let text = fs::read_to_string(&segment).map_err(|error| error.to_string())?;
    let place = text.find("\"echo\",\"2\"").ok_or("the control failed: it is not in the record")?;
    let entry = text[..place].lines().count();
    let file = fs::File::options().write(true).open(&segment).map_err(|error| error.to_string())?;
    file.write_all_at(b"7", place as u64 + 8).map_err(|error| error.to_string())?;
    let said = desk.expect(&["ledger", "verify"], 1, "")?;
    let words = String::from_utf8_lossy(&said.out).into_owned();
    match words.contains(&format!("entry {entry} was edited")) && words.contains("NOT sound") {
        true => Ok(()),
        false => Err(format!("wanted entry {entry}: {words}")),
    }
}

fn unwritable(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let folder = ledger(&desk);
    let parent = folder.parent().ok_or("it has a parent")?;
    let make = || -> std::io::Result<()> {
        fs::create_dir_all(parent)?;
        fs::write(&folder, "in its place")?;
        for path in folder.ancestors().take_while(|path| *path != desk.home) {
            desk.project.give(path)?;
        }
        Ok(())
    };
    make().map_err(|error| error.to_string())?;
    desk.expect(&["run", "--", "touch", "made"], 125, "nothing runs without its record")?;
    fs::remove_file(&folder).map_err(|error| error.to_string())?;
    desk.expect(&["run", "--", "true"], 0, "").map(drop)
}

fn diverted(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let elsewhere = desk.home.join("elsewhere");
    fs::create_dir(&elsewhere).and_then(|()| desk.project.give(&elsewhere)).map_err(|error| error.to_string())?;
    let mut command = desk.project.command(["run", "-q", "--", "echo", "diverted"]);
    command.env("XDG_STATE_HOME", &elsewhere).env("HOME", &elsewhere);
    expected(&mut command, 0, "")?;
    let asked = entries(&desk, &["--type", "run.asked"])?;
    match asked.iter().any(|entry| entry["data"]["command"][1] == "diverted") {
        true => Ok(()),
        false => Err(format!("{asked:?}")),
    }
}

fn inside(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.expect(&["run", "-q", "--", "true"], 0, "")?;
    let folder = ledger(&desk);
    let key = folder.join("key.pem").to_string_lossy().into_owned();
    // The control: outside, its owner reads it.
    if !fs::read_to_string(&key).is_ok_and(|text| text.contains("PRIVATE KEY")) {
        return Err("the control failed: there is no key".to_owned());
    }
    let said = desk.say(&["run", "-q", "--", "cat", &key])?;
    if said.code == Some(0) {
        return Err("the key can be read inside".to_owned());
    }
    // Nor may somebody ask for it, or for a folder around it; not even where state lies elsewhere.
    let folders = [folder.as_path(), folder.parent().unwrap_or(Path::new("/"))];
    for asked in folders.map(|path| path.to_string_lossy().into_owned()) {
        for flag in ["--read", "--write"] {
            let said = desk.say(&["run", "-q", flag, &asked, "--", "cat", &key])?;
            if said.code == Some(0) || said.out.windows(7).any(|part| part == b"PRIVATE") {
                return Err(format!("{flag} {asked}: {said:?}"));
            }
        }
    }
    sound(&desk).map(drop)
}

/// Made up, and like no format that is known.
const VALUE: &str = "nine-clocks-under-4-bells";

fn secrets(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let run = |knows: bool| -> Result<Said, String> {
        let mut command =
            desk.project.command(["run", "-q", "--", "sh", "-c", &format!("echo {VALUE} > {VALUE}.txt; exit 3")]);
        if knows {
            command.env("DEPLOY_TOKEN", VALUE);
        }
        let said = Said::of_command(&mut command)?;
        match said.code {
            Some(3) => Ok(said),
            _ => Err(format!("{said:?}")),
        }
    };
    run(true)?;
    let found = find(&ledger(&desk), VALUE.as_bytes())?;
    if let Some(path) = found {
        return Err(format!("it is in {}", path.display()));
    }
    // The control: what nobody knows to be a secret is there.
    run(false)?;
    match find(&ledger(&desk), VALUE.as_bytes())? {
        Some(_) => Ok(()),
        None => Err("the control failed: the command is not in the record".to_owned()),
    }
}

fn find(folder: &Path, value: &[u8]) -> Result<Option<PathBuf>, String> {
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())?.flatten() {
        let path = entry.path();
        if path.is_file() && fs::read(&path).is_ok_and(|bytes| bytes.windows(value.len()).any(|part| part == value)) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn killed(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let mut command = desk.project.command(["run", "-q", "--", "sh", "-c", "echo here; sleep 60"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let mut line = [0; 5];
    let mut stdout = child.stdout.take().ok_or("it has an output")?;
    std::io::Read::read_exact(&mut stdout, &mut line).map_err(|error| error.to_string())?;
    child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
    let asked = entries(&desk, &["--type", "run.asked"])?;
    if asked.len() != 1 {
        return Err(format!("{asked:?}"));
    }
    desk.expect(&["run", "-q", "--", "true"], 0, "")?;
    sound(&desk).map(drop)
}
