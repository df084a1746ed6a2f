//! A short soak: what `cargo xtask soak` does for hours, in a minute.

use belljar_testkit::contestant::belljar;
use belljar_testkit::soak::{Wish, soak};
use belljar_testkit::{Who, twice};
use libtest_mimic::{Arguments, Trial};

const RUNS: u64 = 300;

fn main() {
    let missing = (!belljar().with_file_name("belljar-service").exists())
        .then(|| "belljar-service is not built beside belljar".to_owned())
        .or_else(|| twice::why_not(Who::Root));
    let trials: Vec<Trial> = [Who::Root, Who::Ordinary]
        .into_iter()
        .map(|who| {
            let missing = missing.clone().or_else(|| twice::why_not(who));
            twice::trial("hundreds_of_runs_with_kills_leave_nothing_and_lose_nothing", who, missing, move || {
                let told =
                    soak(who, &Wish { runs: RUNS, at_most: None, seed: 0x5eed_0009 }, &|text| println!("{text}"))?;
                println!("{told:?}");
                match told.servers_killed > 0 && told.guests_killed > 0 && told.answered > RUNS / 4 {
                    true => Ok(()),
                    false => Err(format!("that was no soak: {told:?}")),
                }
            })
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
