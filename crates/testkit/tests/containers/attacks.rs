//! Every attack of the escape suite on a container: as the ordinary user, whom files of the field belong to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use belljar_testkit::contestant::built;
use belljar_testkit::engine::{Engine, VARIABLE};
use belljar_testkit::trial::trial;
use belljar_testkit::{Attack, Contestant, Verdict, Who, escapes};

/// Attacks that mean nothing here, or that containers are known not to hold, and why.
const OTHERWISE: &[(&str, &str)] = &[
    ("files/pipe_in_a_read_grant", "a pipe in a folder that is read can be written to: engines apply no Landlock"),
    ("files/planted_program", "the program is looked for inside the image, where nothing was planted"),
    ("kernel/first_process", "the first process is the engine's own, as the payload's user, and guards nothing"),
    ("kernel/own_filter", "takes longer than a trial may"),
    ("kernel/raise_limits", "processes are counted by the engine's control group, not by a limit of each"),
    ("resources/denial_flood", "refused calls are not counted: the engine's filter tells nobody"),
    ("resources/disk_closed_folder", DISK),
    ("resources/disk_deep", DISK),
    ("resources/disk_given_back", DISK),
    ("resources/disk_unlinked", DISK),
    ("resources/disk_workspace", DISK),
    ("resources/inodes_workspace", DISK),
    ("resources/name_on_terminal", "refused calls are not listed"),
    ("resources/name_turns_the_line", "refused calls are not listed"),
];
const DISK: &str =
    "bytes in writable places of the host are limited file by file: the wall is held partly, and says so";

/// More than processors: most of it is waiting.
const AT_ONCE: usize = 3;

pub fn held(who: Who) -> Result<(), String> {
    let engine = Engine::start()?;
    engine.make_attackers(&built("belljar-escapes"))?;
    // SAFETY: no other thread is there yet.
    unsafe { std::env::set_var(VARIABLE, engine.host()) };
    let attacks: Vec<&Attack> = escapes::all().collect();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let known = OTHERWISE.iter().find(|(id, _)| *id == attack.id);
                    match (trial(attack, Contestant::Container, who), known) {
                        (Verdict::Held, None) => println!("{}: held", attack.id),
                        (Verdict::Held, Some(_)) => {
                            note(&failed, format!("{} holds now: it is no exception", attack.id))
                        }
                        (other, Some((_, why))) => println!("{}: {why} ({other:?})", attack.id),
                        (other, None) => note(&failed, format!("{}: {other:?}", attack.id)),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_default();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("{} of {}:\n{}", failed.len(), attacks.len(), failed.join("\n")))
    }
}

fn note(list: &Mutex<Vec<String>>, line: String) {
    if let Ok(mut list) = list.lock() {
        list.push(line);
    }
}
