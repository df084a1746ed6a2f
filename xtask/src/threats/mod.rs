//! The matrix of THREATS.md: every attack tried on nobody, on belljar and on its peers, as they answer here.

mod matrix;
mod modules;

use std::collections::HashMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use testkit::contestant::{belljar, built};
use testkit::engine::Engine;
use testkit::escapes::InAContainer;
use testkit::trial::trial;
use testkit::{Attack, Contestant, Control, Verdict, Who, escapes};

use crate::{place, release};
use matrix::{Cell, Column, Matrix};

const FILE: &str = "THREATS.md";
/// More than processors: most attacks wait.
const AT_ONCE: usize = 3;
/// A cell that is unclear gets this many more tries.
const MORE_TRIES: usize = 2;

/// Runs all and writes the file; or all but the peers, whose columns stay as they are.
pub fn write(with_peers: bool) -> Result<(), String> {
    prepare()?;
    let document = read()?;
    let written = Matrix::parse(matrix::between_markers(&document)?);
    let engine = engine();
    let mut fresh = Matrix::of(escapes::all().collect());
    if !with_peers {
        fresh.keep_peers(&written);
    }
    if let Err(why) = &engine {
        println!("skipped: attacks on containers, whose column stays as it was written: {why}");
        fresh.keep(matrix::CONTAINER, &written);
    }
    fill(&mut fresh);
    let as_modules = match testkit::modules::why_not() {
        None => modules::tried(),
        Some(why) => {
            println!("skipped: attacks as modules, whose table is what the suite demands: {why}");
            modules::demanded()
        }
    };
    drop(engine);
    let text = format!("{as_modules}\n{}", fresh.to_text());
    let path = place::tree().join(FILE);
    let document = matrix::replace(&document, &text)?;
    fs::write(&path, document).map_err(|error| format!("cannot write {FILE}: {error}"))?;
    println!("{text}\nwritten to {FILE}");
    Ok(())
}

/// Writes what the tests demand, without trying anything, and keeps what is written of peers: for after they have passed.
pub fn write_demanded() -> Result<(), String> {
    let document = read()?;
    let text = demanded(matrix::between_markers(&document)?);
    let document = matrix::replace(&document, &text)?;
    fs::write(place::tree().join(FILE), document).map_err(|error| format!("cannot write {FILE}: {error}"))?;
    println!("written to {FILE}; `cargo xtask test` shows whether it is so");
    Ok(())
}

fn demanded(written: &str) -> String {
    let mut fresh = Matrix::of(escapes::all().collect());
    fresh.keep_peers(&Matrix::parse(written));
    fresh.demand();
    format!("{}\n{}", modules::demanded(), fresh.to_text())
}

/// Compares the file with the suite: the same attacks, and for each what the tests, which ran before, demand.
pub fn check() -> Result<(), String> {
    let document = read()?;
    let written = matrix::between_markers(&document)?;
    let fresh = demanded(written);
    let (fresh, written) = (fresh.trim(), written.trim());
    if fresh == written {
        println!("{FILE} says what the suite says");
        return Ok(());
    }
    let differ = |sign: &'static str, one: &str, other: &str| -> Vec<String> {
        one.lines()
            .filter(|line| !other.lines().any(|known| known == *line))
            .map(|line| format!("{sign} {line}"))
            .collect()
    };
    let lines = [differ("-", written, fresh), differ("+", fresh, written)].concat();
    Err(format!("{FILE} is stale; `cargo xtask threats` writes it anew:\n{}", lines.join("\n")))
}

/// Verdicts with their evidence, for whoever works on an attack or a wall.
pub fn show(text: &str) -> Result<(), String> {
    prepare()?;
    let attacks: Vec<&Attack> = escapes::all().filter(|attack| attack.id.contains(text)).collect();
    if attacks.is_empty() {
        return Err(format!("no attack's name contains `{text}`"));
    }
    let engine = engine();
    if let Err(why) = &engine {
        println!("skipped: containers: {why}");
    }
    for attack in attacks {
        println!("{}: {}", attack.id, attack.about);
        for column in matrix::COLUMNS {
            let no_engine = engine.is_err() && column.key == matrix::CONTAINER;
            if matrix::heading(*column).is_some() && !no_engine {
                println!("  {:<15} {}", column.key, in_own_process(attack, column));
            }
        }
    }
    Ok(())
}

/// One trial in this process; the verdict is printed.
pub fn cell(attack: &str, column: &str) -> Result<(), String> {
    let attack = escapes::all().find(|known| known.id == attack).ok_or("there is no such attack")?;
    let column = matrix::COLUMNS.iter().find(|known| known.key == column).ok_or("there is no such column")?;
    let who = match (column.contestant, attack.control) {
        (Contestant::Bare, Control::None(why)) => {
            println!("none {why}");
            return Ok(());
        }
        (Contestant::Gvisor, _) if escapes::not_on_a_kernel_of_its_own(attack).is_some() => {
            println!("none {}", escapes::not_on_a_kernel_of_its_own(attack).unwrap_or_default());
            return Ok(());
        }
        (Contestant::Container, _)
            if matches!(escapes::in_a_container(attack), Some((InAContainer::Meaningless, _))) =>
        {
            println!("none {}", escapes::in_a_container(attack).map_or("", |(_, why)| why));
            return Ok(());
        }
        (Contestant::Bare, Control::BareAsRoot) => Who::Root,
        _ => column.who,
    };
    match trial(attack, column.contestant, who) {
        Verdict::Held => println!("held"),
        Verdict::Broken(evidence) => println!("broken {}", one_line(&evidence)),
        Verdict::Unclear(why) => println!("unclear {}", one_line(&why)),
    }
    Ok(())
}

fn prepare() -> Result<(), String> {
    if !place::are_we_root() {
        return Err("the matrix is made as root: it tries each attack as root and as an ordinary user".to_owned());
    }
    release::everything()?;
    if !place::open_to_all(&belljar()) {
        return Err(format!(
            "the ordinary user can't reach {}; set BELLJAR to a copy that all may run",
            belljar().display()
        ));
    }
    Ok(())
}

fn read() -> Result<String, String> {
    fs::read_to_string(place::tree().join(FILE)).map_err(|error| format!("cannot read {FILE}: {error}"))
}

/// Where the engine listens that containers are attacked in.
static HOST: OnceLock<String> = OnceLock::new();

/// An engine with an image for attackers, named to all that are started from here.
fn engine() -> Result<Engine, String> {
    if let Some(why) = testkit::engine::missing() {
        return Err(why);
    }
    let engine = Engine::start()?;
    engine.make_attackers(&built("belljar-escapes"))?;
    match HOST.set(engine.host()) {
        Ok(()) => Ok(engine),
        Err(_) => Err("there is one already".to_owned()),
    }
}

/// Tries everything but the columns that are taken over.
fn fill(fresh: &mut Matrix) {
    let mut jobs = Vec::new();
    for attack in escapes::all() {
        jobs.extend(fresh.columns_to_try().into_iter().map(|column| (attack, column)));
    }
    // Limits are measured by the clock: alone, one after the other.
    let (alone, beside): (Vec<_>, Vec<_>) =
        jobs.into_iter().partition(|(attack, _)| attack.id.starts_with("resources/"));
    let answers = Mutex::new(HashMap::new());
    for (jobs, threads) in [(beside, AT_ONCE), (alone, 1)] {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((attack, column)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let cell = settled(attack, column);
                        if let Ok(mut answers) = answers.lock() {
                            answers.insert((attack.id, column.key), cell);
                        }
                    }
                });
            }
        });
    }
    for ((attack, column), cell) in answers.into_inner().unwrap_or_default() {
        fresh.set(attack, column, cell);
    }
}

fn settled(attack: &Attack, column: &Column) -> Cell {
    let control = column.contestant == Contestant::Bare && !matches!(attack.control, Control::None(_));
    let enough = |cell: Cell| if control { cell == Cell::Broken } else { cell != Cell::Unclear };
    let mut cell = Cell::Unclear;
    for _ in 0..=MORE_TRIES {
        let answer = in_own_process(attack, column);
        cell = Cell::from_answer(&answer);
        // Said even if the next try goes well: a wall that holds two times out of three does not hold.
        let declared = column.contestant == Contestant::Container && escapes::in_a_container(attack).is_some();
        let leaks = matches!(column.contestant, Contestant::Belljar | Contestant::Gvisor | Contestant::Container)
            && !declared
            && !matches!(cell, Cell::Held | Cell::Not);
        if leaks || !enough(cell) {
            println!("{} on {}: {answer}", attack.id, column.key);
        }
        if enough(cell) {
            break;
        }
    }
    cell
}

/// In a process of its own: what an attack prepares is inherited by nobody else.
fn in_own_process(attack: &Attack, column: &Column) -> String {
    let mut command = Command::new("/proc/self/exe");
    command.args(["threats", "--cell", attack.id, column.key]).stdin(Stdio::null()).stderr(Stdio::null());
    command.envs(HOST.get().map(|host| (testkit::engine::VARIABLE, host)));
    match command.output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or("unclear no answer").to_owned(),
        Err(error) => format!("unclear the trial can't be started: {error}"),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
