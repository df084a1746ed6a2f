//! For `cargo xtask bench ledger`: writes, fills, looks up and verifies, and says how long it took, in nanoseconds.

#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use belljar_ledger::{Draft, Durable, Error, Ledger, Outside, micros_now, verify};
use model::EntryQuery;

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse::<u64>().ok()).unwrap_or(1);
    let ledger = Ledger::at(PathBuf::from(words.get(2).map_or("", String::as_str)));
    match words.get(1).map(String::as_str) {
        // One entry at a time, for so many milliseconds: how many.
        Some("write") => {
            // As a run does while it goes on.
            ledger.keep_open();
            let durable = Durable { last_words: true, ..Durable::default() };
            let end = Instant::now() + Duration::from_millis(number(3));
            let mut count = 0u64;
            while Instant::now() < end {
                ledger.append(&[draft(count)], durable)?;
                count += 1;
            }
            println!("{count}");
        }
        // So many entries, many at a time; every thousandth was denied.
        Some("fill") => {
            let mut left = number(3);
            while left > 0 {
                let count = left.min(1000);
                let drafts: Vec<Draft> = (0..count).map(|number| draft(left - number)).collect();
                ledger.append(&drafts, Durable::default())?;
                left -= count;
            }
        }
        // The last hundred that were denied.
        Some("denied") => {
            let began = Instant::now();
            let query = EntryQuery { denied: true, ..EntryQuery::default() };
            let found = ledger.newest(&query, 100)?;
            println!("{} {}", began.elapsed().as_nanos(), found.len());
        }
        Some("verify") => {
            let began = Instant::now();
            let report = verify(&ledger, &Outside::default(), &|_, _| {})?;
            println!("{} {} {}", began.elapsed().as_nanos(), report.entries, report.is_sound());
        }
        _ => println!("write FOLDER MILLISECONDS | fill FOLDER COUNT | denied FOLDER | verify FOLDER"),
    }
    Ok(())
}

fn draft(number: u64) -> Draft {
    Draft {
        at: micros_now(),
        kind: "program.started",
        denied: number.is_multiple_of(1000),
        run: Some(format!("{:032x}", number / 20)),
        user: Some("somebody".to_owned()),
        agent: Some("claude-code".to_owned()),
        data: format!(
            r#"{{"program":"/usr/bin/python3","arguments":["python3","-m","pytest","-q"],"process":{number}}}"#
        ),
    }
}
