//! Normal work raises no alarm, and planted misbehaviour does, in time. What came of it is the table in docs/monitor.md:
//! `RENEW_TABLE=1 cargo test -p belljar-monitor --test replay` writes it anew; then read the diff.
#![allow(clippy::panic)]

mod normal;
mod planted;
mod recorded;
mod scene;

use std::fmt::Write;

use scene::{Alarm, Scene};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitor.md");
const BEGIN: &str = "<!-- replayed -->\n";
const END: &str = "<!-- /replayed -->\n";

#[test]
fn normal_work_raises_no_alarm() {
    for scene in normal::scenes().into_iter().chain(recorded::scenes()) {
        let alarms = scene.replay();
        assert!(alarms.is_empty(), "{}: {alarms:#?}", scene.name);
    }
}

#[test]
fn what_is_planted_is_found_in_time_and_said_once() {
    for (scene, expected) in planted::scenes() {
        let alarms = scene.replay();
        let found = alarms.iter().find(|alarm| alarm.alert.detector == expected.detector);
        let Some(found) = found else { panic!("{}: not found, but {alarms:#?}", scene.name) };
        let after = found.at - expected.begins;
        assert!(after <= expected.within, "{}: found after {after} s only: {found:?}", scene.name);
        let times = alarms.iter().filter(|alarm| alarm.alert.detector == expected.detector).count();
        assert_eq!(times, 1, "{}: said {times} times: {alarms:#?}", scene.name);
        for alarm in &alarms {
            let words = [&alarm.alert.measured, &alarm.alert.threshold, &alarm.alert.baseline];
            assert!(words.iter().all(|text| !text.is_empty()), "{alarm:?}");
        }
    }
}

#[test]
fn a_replay_always_ends_the_same() {
    for (scene, _) in planted::scenes() {
        assert_eq!(scene.replay(), scene.replay(), "{}", scene.name);
    }
}

#[test]
fn the_table_in_the_documentation_is_what_replays_say() {
    let page = std::fs::read_to_string(TABLE).expect("docs/monitor.md");
    let (before, rest) = page.split_once(BEGIN).expect("a place for the table");
    let (written, after) = rest.split_once(END).expect("its end");
    let table = table();
    if std::env::var_os("RENEW_TABLE").is_some() {
        std::fs::write(TABLE, format!("{before}{BEGIN}{table}{END}{after}")).expect("the table is written");
    } else {
        assert_eq!(written, table, "`RENEW_TABLE=1 cargo test -p belljar-monitor --test replay` renews it");
    }
}

fn table() -> String {
    let mut table = "| normal work | runs | lasts | false alarms |\n|---|---|---|---|\n".to_owned();
    for scene in normal::scenes().into_iter().chain(recorded::scenes()) {
        let alarms = scene.replay().len();
        writeln!(table, "| {} | {} | {} | {alarms} |", scene.name, scene.runs(), time(scene.lasts()))
            .expect("a string");
    }
    table += "\n| planted | found by | after | threshold |\n|---|---|---|---|\n";
    for (scene, expected) in planted::scenes() {
        let alarms = scene.replay();
        let found = alarms.iter().find(|alarm| alarm.alert.detector == expected.detector);
        let (after, threshold) = match found {
            Some(Alarm { at, alert }) => (time(at - expected.begins), alert.threshold.clone()),
            None => ("never".to_owned(), String::new()),
        };
        writeln!(table, "| {} | {} | {after} | {threshold} |", scene.name, expected.detector.name()).expect("a string");
    }
    table
}

fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => "at once".to_owned(),
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.0} h", seconds / 3600.0),
    }
}

/// What a scene is about, for the binary's name in messages.
#[test]
fn every_scene_has_a_name_of_its_own() {
    let planted = planted::scenes().into_iter().map(|(scene, _)| scene);
    let mut names: Vec<&str> =
        normal::scenes().into_iter().chain(recorded::scenes()).chain(planted).map(|scene: Scene| scene.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
