//! The matrix of THREATS.md: every attack tried on nobody, on belljar and on its peers, as they answer here.

mod matrix;

use std::collections::HashMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::contestant::belljar;
use testkit::trial::trial;
use testkit::{Attack, Contestant, Control, Verdict, Who, escapes};

use crate::{place, steps};
use matrix::{Cell, Column, Matrix};

const FILE: &str = "THREATS.md";
/// More than processors: most attacks wait.
const AT_ONCE: usize = 3;
/// A cell that is unclear, or not what the file says, gets this many more tries.
const MORE_TRIES: usize = 2;

/// Runs all and writes the file.
pub fn write() -> Result<(), String> {
    prepare()?;
    let document = read()?;
    let text = fill(None).to_text();
    let path = place::tree().join(FILE);
    let document = matrix::replace(&document, &text)?;
    fs::write(&path, document).map_err(|error| format!("cannot write {FILE}: {error}"))?;
    println!("{text}\nwritten to {FILE}");
    Ok(())
}

/// Runs all and compares with the file.
pub fn check() -> Result<(), String> {
    prepare()?;
    let document = read()?;
    let written = matrix::between_markers(&document)?;
    let fresh = fill(Some(&Matrix::parse(written))).to_text();
    let (fresh, written) = (fresh.trim(), written.trim());
    if fresh == written {
        println!("{FILE} says what happens here");
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
    for attack in attacks {
        println!("{}: {}", attack.id, attack.about);
        for column in matrix::COLUMNS {
            if matrix::heading(*column).is_some() {
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
    steps::run(
        Command::new("cargo").current_dir(place::tree()).args(["build", "--release", "--workspace", "--quiet"]),
    )?;
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

/// Tries everything. With `written`, columns of peers in another version are taken from there, and a cell that
/// differs from it is tried again: what is judged by the clock may fail once on a busy machine.
fn fill(written: Option<&Matrix>) -> Matrix {
    let mut fresh = Matrix::of(escapes::all().collect());
    if let Some(written) = written {
        fresh.keep_other_versions(written);
    }
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
                        let expected = written.and_then(|written| written.cell(attack, column));
                        let cell = settled(attack, column, expected);
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
    fresh
}

fn settled(attack: &Attack, column: &Column, written: Option<Cell>) -> Cell {
    let control = column.contestant == Contestant::Bare && !matches!(attack.control, Control::None(_));
    let enough = |cell: Cell| match written {
        Some(written) => cell == written,
        None if control => cell == Cell::Broken,
        None => cell != Cell::Unclear,
    };
    let mut cell = Cell::Unclear;
    for _ in 0..=MORE_TRIES {
        let answer = in_own_process(attack, column);
        cell = Cell::from_answer(&answer);
        // Said even if the next try goes well: a wall that holds two times out of three does not hold.
        let leaks = column.contestant == Contestant::Belljar && cell != Cell::Held;
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
    match command.output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or("unclear no answer").to_owned(),
        Err(error) => format!("unclear the trial can't be started: {error}"),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
