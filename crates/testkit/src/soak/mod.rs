//! A day's work of the service in minutes: runs of all kinds from several clients, guests and the server killed at random
//! moments. Afterwards nothing is left, nothing is lost, and the server is as small as at the beginning.

mod client;
mod house;
mod left;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::contestant::Who;
use crate::dice::Dice;
use client::Client;
use house::House;

/// Clients that ask at the same time.
const CLIENTS: u64 = 4;
/// Of all runs: in the second part the server is not killed any more, so that it can be seen whether it grows.
const WITH_KILLS: u64 = 40;
/// What a server may grow by from a tenth of its runs on, beside a part of what it was: what it remembers of the last runs.
const MEMORY_KIB: u64 = 8 << 10;

pub struct Wish {
    pub runs: u64,
    /// It ends then, however many there were.
    pub at_most: Option<Duration>,
    pub seed: u64,
}

/// What there was.
#[derive(Debug, Default)]
pub struct Told {
    pub runs: u64,
    pub answered: u64,
    /// Ended with whom they were asked of.
    pub lost: u64,
    pub guests_killed: u64,
    pub servers_killed: u64,
    pub entries: u64,
    pub memory: (u64, u64),
    pub descriptors: (u64, u64),
    pub took: Duration,
}

/// What all clients share.
struct Course<'a> {
    house: &'a House,
    begun: AtomicU64,
    most: AtomicU64,
    until: Option<Instant>,
    over: AtomicBool,
    /// Ids of runs that were answered, which must be on the record.
    answered: Mutex<BTreeSet<String>>,
    lost: AtomicU64,
    killed: AtomicU64,
    wrong: Mutex<Option<String>>,
}

/// Needs root, to see everything. `tell`: how far it is.
pub fn soak(who: Who, wish: &Wish, tell: &(dyn Fn(&str) + Sync)) -> Result<Told, String> {
    let begun = Instant::now();
    // Whatever loses its parent becomes ours: nothing that is left can hide.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(|error| error.to_string())?;
    let mut house = House::new(who)?;
    house.start()?;
    let first = wish.runs * WITH_KILLS / 100;
    let mut told = Told::default();
    let mut dice = Dice(wish.seed | 1);
    let until = wish.at_most.map(|time| begun + time);
    let half = wish.at_most.map(|time| begun + time * WITH_KILLS as u32 / 100);
    let mut answered = BTreeSet::new();
    // Each part of the first with a server that is killed at its end, wherever that finds it.
    let parts = (first / 100).clamp(2, 50);
    for part in 0..parts {
        if half.is_some_and(|half| Instant::now() > half) {
            break;
        }
        let runs = first / parts;
        let course = Course::new(&house, runs, half);
        let kill_after = dice.throw() % runs.max(1);
        run(&course, &mut dice, Some(kill_after));
        course.add_to(&mut told, &mut answered)?;
        house.kill()?;
        told.servers_killed += 1;
        house.start()?;
        tell(&format!("{} runs, the server was killed {} times", told.runs, part + 1));
    }
    let second = wish.runs.saturating_sub(told.runs);
    let mut before = (0, 0);
    for (part, share) in [(1, 10), (2, 30), (3, 30), (4, 30)] {
        let course = Course::new(&house, second * share / 100, until);
        run(&course, &mut dice, None);
        course.add_to(&mut told, &mut answered)?;
        house.rests()?;
        let now = (house.memory()?, house.descriptors()?);
        if part == 1 {
            before = now;
        }
        tell(&format!("{} runs, the server has {} KiB and {} descriptors", told.runs, now.0, now.1));
        (told.memory, told.descriptors) = ((before.0, now.0), (before.1, now.1));
    }
    told.answered = answered.len() as u64;
    told.entries = house.records(&answered)?;
    house.clear()?;
    house.end()?;
    // What those leave who stood ready when it ended, the next one finds.
    house.start()?;
    house.clear()?;
    house.end()?;
    let left = left::of(&house);
    told.took = begun.elapsed();
    if !left.is_empty() {
        return Err(format!("left behind: {left:#?}"));
    }
    let (small, large) = told.memory;
    if large > small + small / 4 + MEMORY_KIB {
        return Err(format!("the server grew from {small} to {large} KiB"));
    }
    if told.descriptors.1 > told.descriptors.0 + 16 {
        return Err(format!("the server has {} descriptors, and had {}", told.descriptors.1, told.descriptors.0));
    }
    Ok(told)
}

impl<'a> Course<'a> {
    fn new(house: &'a House, runs: u64, until: Option<Instant>) -> Course<'a> {
        Course {
            house,
            begun: AtomicU64::new(0),
            most: AtomicU64::new(runs),
            until,
            over: AtomicBool::new(false),
            answered: Mutex::default(),
            lost: AtomicU64::new(0),
            killed: AtomicU64::new(0),
            wrong: Mutex::default(),
        }
    }

    fn add_to(self, told: &mut Told, answered: &mut BTreeSet<String>) -> Result<(), String> {
        told.runs += self.begun.load(Ordering::Relaxed).min(self.most.load(Ordering::Relaxed));
        told.lost += self.lost.load(Ordering::Relaxed);
        told.guests_killed += self.killed.load(Ordering::Relaxed);
        answered.extend(self.answered.into_inner().map_err(|_| "a client panicked")?);
        match self.wrong.into_inner().map_err(|_| "a client panicked")? {
            Some(wrong) => Err(wrong),
            None => Ok(()),
        }
    }

    fn goes_on(&self) -> bool {
        let late = self.until.is_some_and(|until| Instant::now() > until);
        if late || self.begun.fetch_add(1, Ordering::Relaxed) >= self.most.load(Ordering::Relaxed) {
            return false;
        }
        !self.over.load(Ordering::Relaxed)
    }
}

/// `kill_after`: the server ends after so many runs, in the midst of others.
fn run(course: &Course<'_>, dice: &mut Dice, kill_after: Option<u64>) {
    let seeds: Vec<u64> = (0..=CLIENTS).map(|_| dice.throw() | 1).collect();
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            seeds[1..].iter().map(|seed| scope.spawn(move || asks(course, &mut Dice(*seed)))).collect();
        let mut dice = Dice(seeds[0]);
        while clients.iter().any(|client| !client.is_finished()) {
            let at = course.begun.load(Ordering::Relaxed);
            if kill_after.is_some_and(|after| at > after) {
                course.over.store(true, Ordering::Relaxed);
                if course.house.signal_server(libc::SIGKILL) {
                    break;
                }
            }
            // The attack is the moment itself, so here a wait is not a wait for something.
            std::thread::sleep(Duration::from_micros(2_000 + dice.throw() % 60_000));
            course.house.reap();
            if course.house.kill_a_guest(&mut dice) {
                course.killed.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
}

fn asks(course: &Course<'_>, dice: &mut Dice) {
    while course.goes_on() {
        let (body, fate) = one(course.house.mark(), dice);
        match ask(course.house, &body, &fate) {
            Ok(Some(id)) => drop(course.answered.lock().map(|mut known| known.insert(id))),
            Ok(None) => {
                course.lost.fetch_add(1, Ordering::Relaxed);
            }
            Err(wrong) => {
                course.over.store(true, Ordering::Relaxed);
                if let Ok(mut first) = course.wrong.lock() {
                    first.get_or_insert(wrong);
                }
                return;
            }
        }
    }
}

/// What becomes of whoever asks.
enum Fate {
    Waits,
    /// Goes away before the answer.
    Goes(Duration),
}

/// A run of some kind.
fn one(mark: &str, dice: &mut Dice) -> (Value, Fate) {
    let chance = dice.throw() % 20;
    let body = match chance {
        0..=6 => json!({"language": "python", "code": "print(6 * 7)"}),
        7..=10 => json!({"command": ["true", mark]}),
        11 | 12 => json!({"language": "sh", "code": "echo made > new.txt"}),
        13..=15 => json!({"command": ["sh", "-c", "(sleep 5 &); sleep 0.1; echo late", mark]}),
        16 => json!({"command": ["sh", "-c", "while :; do :; done", mark], "timeout": 0.2}),
        17 => json!({"language": "sh", "code": "head -c 100000 /dev/zero | tr '\\0' x", "stream": true}),
        _ => json!({"command": ["sh", "-c", "trap '' TERM; (setsid sleep 60 &) ; sleep 0.3", mark]}),
    };
    let goes = chance >= 18 || dice.throw().is_multiple_of(20);
    (body, if goes { Fate::Goes(Duration::from_micros(dice.throw() % 100_000)) } else { Fate::Waits })
}

/// The id of a run that was answered; none if nobody is there to answer.
fn ask(house: &House, body: &Value, fate: &Fate) -> Result<Option<String>, String> {
    let Ok(mut client) = Client::connect(house) else { return Ok(None) };
    if client.send("POST", "/v1/run", body).is_err() {
        return Ok(None);
    }
    if let Fate::Goes(after) = fate {
        std::thread::sleep(*after);
        return Ok(None);
    }
    let Ok((status, text)) = client.receive() else { return Ok(None) };
    if body["stream"] == true {
        return Ok(None);
    }
    let shown: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {status} {text}"))?;
    match status {
        200 => {}
        // Told to end, or ended with the server.
        409 | 503 => return Ok(None),
        _ => return Err(format!("{body}: {status} {text}")),
    }
    if let Some(sandbox) = shown["result"]["changes"]["sandbox"].as_str() {
        // What it changed is looked at, and thrown away; if the server is gone by then, it is thrown away at the end.
        let Ok(mut client) = Client::connect(house) else { return Ok(shown["id"].as_str().map(str::to_owned)) };
        if client.send("DELETE", &format!("/v1/sandboxes/{sandbox}"), &Value::Null).is_ok()
            && let Ok((status, text)) = client.receive()
            && !matches!(status, 200 | 409 | 503)
        {
            return Err(format!("a sandbox can't be removed: {status} {text}"));
        }
    }
    shown["id"].as_str().map(|id| Some(id.to_owned())).ok_or_else(|| format!("it has no id: {text}"))
}
