//! Every attack of the escape suite on a container: as the ordinary user, whom files of the field belong to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use belljar_testkit::contestant::built;
use belljar_testkit::engine::{Engine, VARIABLE};
use belljar_testkit::escapes::InAContainer;
use belljar_testkit::trial::trial;
use belljar_testkit::{Attack, Contestant, Verdict, Who, escapes};

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
                    let known = escapes::in_a_container(attack);
                    if let Some((InAContainer::Meaningless, why)) = known {
                        println!("{}: not tried: {why}", attack.id);
                        continue;
                    }
                    // Once more where nothing can be said: an engine tells late of what the kernel ended for memory.
                    let first = trial(attack, Contestant::Container, who);
                    let verdict = match first {
                        Verdict::Unclear(_) => trial(attack, Contestant::Container, who),
                        said => said,
                    };
                    match (verdict, known) {
                        (Verdict::Held, None) => println!("{}: held", attack.id),
                        (Verdict::Broken(_), Some((_, why))) => println!("{}: {why}", attack.id),
                        (Verdict::Held, Some(_)) => {
                            note(&failed, format!("{} holds now: it is no exception", attack.id))
                        }
                        (other, _) => note(&failed, format!("{}: {other:?}", attack.id)),
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
