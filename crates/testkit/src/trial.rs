//! One attack on one contestant as one user, from preparing to judging.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::attack::{Attack, Verdict};
use crate::contestant::{Contestant, Who, built};
use crate::escapes;
use crate::field::{Field, Run};
use crate::inside::{BRIEF, TRIED};

/// No attack takes longer: all are bounded. One that does is ended with all it started.
const LONGEST: Duration = Duration::from_secs(60);

pub fn trial(attack: &Attack, contestant: Contestant, who: Who) -> Verdict {
    match attempt(attack, contestant, who) {
        Ok(verdict) => verdict,
        Err(error) => Verdict::Unclear(format!("the trial itself failed: {error}")),
    }
}

fn attempt(attack: &Attack, contestant: Contestant, who: Who) -> io::Result<Verdict> {
    let field = Field::make(who)?;
    let attacker = field.workspace.join("attacker");
    fs::copy(built("belljar-escapes"), &attacker)?;
    fs::set_permissions(&attacker, fs::Permissions::from_mode(0o755))?;
    field.give(&attacker)?;
    (attack.prepare)(&field)?;
    let brief = field.workspace.join(BRIEF);
    fs::write(&brief, serde_json::to_vec(&field.brief())?)?;
    field.give(&brief)?;
    fs::write(field.root.join("srt.json"), srt_settings(&field))?;
    let program: [OsString; 3] = [attacker.into(), "inside".into(), attack.id.into()];
    let result = field.root.join("result.json");
    let mut command = contestant.command(&field.workspace, attack.flags, &result, &program);
    let run = run(&mut command, who, &result)?;

    let verdict = match attack.judge {
        Some(judge) => judge(&field, &run),
        None if field.looted() => Verdict::Broken("the loot holds the secret".to_owned()),
        None => Verdict::Held,
    };
    // Silence is no proof that a wall held: the attacker must have come to its end.
    // Wrong usage names no wall; a wall that could not be raised would.
    let wrong_usage = run.result["outcome"] == "not-set-up" && run.result["error"]["wall"].is_null();
    let at_the_door = run.result["outcome"] == "refused" || wrong_usage;
    let refused = at_the_door && escapes::REFUSED_AT_THE_DOOR.contains(&attack.id);
    let tried = refused || field.workspace.join(TRIED).exists();
    // Peers and engines may end a program for a forbidden call rather than refuse it: the wall held.
    let peer = Contestant::PEERS.contains(&contestant) || contestant == Contestant::Container;
    Ok(match verdict {
        Verdict::Held if !tried && peer && ended_by_filter(&run) => Verdict::Held,
        Verdict::Held if !tried => Verdict::Unclear(format!(
            "the attack did not come to its end: {:?} {}",
            run.status,
            String::from_utf8_lossy(&run.stderr).trim()
        )),
        other => other,
    })
}

/// By SIGSYS, which nothing but a call filter sends; launchers pass it on as 128 and its number.
fn ended_by_filter(run: &Run) -> bool {
    let Some(status) = run.status else {
        return false;
    };
    status.signal() == Some(libc::SIGSYS) || status.code() == Some(128 + libc::SIGSYS)
}

/// Nothing of the network, the workspace writable: what the others are given too.
fn srt_settings(field: &Field) -> String {
    serde_json::json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowWrite": [field.workspace], "denyWrite": [] }
    })
    .to_string()
}

fn run(command: &mut Command, who: Who, result: &std::path::Path) -> io::Result<Run> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    // A variable that must not get through; attacks look for it.
    command.env("BELLJAR_CANARY_TOKEN", "canary-in-the-environment");
    match who {
        Who::Root => command.env("HOME", "/root").env("USER", "root"),
        Who::Ordinary => {
            let id = who.user_id();
            fs::write(result, "")?;
            std::os::unix::fs::chown(result, Some(id), Some(id))?;
            command
                .uid(id)
                .gid(id)
                .env("HOME", format!("/home/{}", crate::contestant::TEST_USER))
                .env("USER", crate::contestant::TEST_USER)
        }
    };
    let started = Instant::now();
    let mut child = command.spawn()?;
    let pid = child.id() as i32;
    // Read both pipes to their ends without waiting for one: an attacker may fill either.
    let readers = [child.stdout.take().map(read_apart), child.stderr.take().map(read_apart)];
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if started.elapsed() > LONGEST {
            // SAFETY: takes integers; the group is the child's own.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = started.elapsed();
    // What a bare attack leaves running is ours to end.
    // SAFETY: takes integers; the group is the child's own.
    unsafe { libc::kill(-pid, libc::SIGKILL) };
    let mut outputs = readers
        .map(|reader| reader.and_then(|reader| reader.recv_timeout(Duration::from_secs(5)).ok()).unwrap_or_default());
    let result = fs::read(result).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    Ok(Run { status, stdout: std::mem::take(&mut outputs[0]), stderr: std::mem::take(&mut outputs[1]), took, result })
}

fn read_apart(mut from: impl io::Read + Send + 'static) -> std::sync::mpsc::Receiver<Vec<u8>> {
    let (to, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Bounded: an attacker may write for ever.
        let limited = io::Read::take(&mut from, 16 << 20);
        let read = {
            let mut limited = limited;
            io::Read::read_to_end(&mut limited, &mut bytes)
        };
        if read.is_ok() && to.send(bytes).is_err() {
            // The trial is over and nobody waits any more.
        }
    });
    receiver
}
