//! `cargo xtask soak`: a day's work of the service in minutes, with guests and the server killed at random.

use std::time::Duration;

use testkit::Who;
use testkit::soak::{Told, Wish, soak};

const RUNS: u64 = 50_000;

pub fn run(flags: &[&str]) -> Result<(), String> {
    let (mut runs, mut minutes, mut seed) = (RUNS, None, 1);
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        let number = flags.next().and_then(|value| value.parse::<u64>().ok());
        let number = number.filter(|number| *number > 0).ok_or_else(|| format!("`{flag}` wants a number"))?;
        match *flag {
            "--runs" => runs = number,
            "--minutes" => minutes = Some(number),
            "--seed" => seed = number,
            _ => return Err(format!("there is no flag `{flag}`; see `cargo xtask --help`")),
        }
    }
    for who in [Who::Ordinary, Who::Root] {
        println!("as {}, {runs} runs, seed {seed}", who.name());
        let at_most = minutes.map(|minutes| Duration::from_secs(minutes * 60));
        let told = soak(who, &Wish { runs, at_most, seed }, &|text| println!("  {text}"))?;
        let Told { runs, answered, lost, guests_killed, servers_killed, entries, memory, descriptors, took } = told;
        println!(
            "  {runs} runs in {} s: {answered} answered, {lost} ended with whoever asked or was asked",
            took.as_secs()
        );
        println!(
            "  killed: {guests_killed} guests, the server {servers_killed} times; {entries} ends on a sound record"
        );
        println!("  the server: {} to {} KiB, {} to {} descriptors", memory.0, memory.1, descriptors.0, descriptors.1);
        println!("  nothing is left: no process, mount, control group, file");
    }
    Ok(())
}
