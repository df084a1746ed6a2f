//! Every attack of the escape suite as a command in a sandbox that was opened before. That each of them succeeds without
//! walls is shown in `escapes`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use belljar_testkit::trial::trial;
use belljar_testkit::{Attack, Contestant, Verdict, Who, escapes};

/// Attacks that mean nothing here, and why.
const OTHERWISE: &[(Contestant, &str, &str)] = &[(
    Contestant::Warm,
    "files/planted_program",
    "what is run is the interpreter, and a script that came with the request",
)];

const AT_ONCE: usize = 2;

/// The same where somebody who was made outside has come in before.
pub fn held_by_warm_starts(who: Who) -> Result<(), String> {
    all_held(Contestant::Warm, who)
}

pub fn held(who: Who) -> Result<(), String> {
    all_held(Contestant::Live, who)
}

fn all_held(contestant: Contestant, who: Who) -> Result<(), String> {
    // Those judged by the clock or by what the whole machine has do without others beside them, after these.
    let (alone, beside): (Vec<&Attack>, Vec<&Attack>) = escapes::all().partition(|attack| {
        attack.id.starts_with("resources/") || attack.id.contains("stores_") || attack.id.contains("home_")
    });
    let failed = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(attack) = beside.get(next.fetch_add(1, Ordering::Relaxed)) {
                    one(attack, contestant, who, &failed);
                }
            });
        }
    });
    alone.iter().for_each(|attack| one(attack, contestant, who, &failed));
    let failed = failed.into_inner().unwrap_or_default();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("{} of {}:\n{}", failed.len(), alone.len() + beside.len(), failed.join("\n"))),
    }
}

fn one(attack: &Attack, contestant: Contestant, who: Who, failed: &Mutex<Vec<String>>) {
    let known = OTHERWISE.iter().find(|(whose, id, _)| *whose == contestant && *id == attack.id);
    let note = |line: String| {
        if let Ok(mut list) = failed.lock() {
            list.push(line);
        }
    };
    match (trial(attack, contestant, who), known) {
        (Verdict::Held, None) => println!("{}: held", attack.id),
        (Verdict::Held, Some(_)) => note(format!("{} holds now: it is no exception", attack.id)),
        (other, Some((_, _, why))) => println!("{}: {why} ({other:?})", attack.id),
        (other, None) => note(format!("{}: {other:?}", attack.id)),
    }
}
