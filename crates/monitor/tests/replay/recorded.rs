//! Real runs, as the record has them: what was started, what was sampled, how it ended. `tests/replay/*.trace`, made with
//! `record.py` beside them.

use std::time::Duration;

use model::Sample;

use crate::scene::{Event, Scene, Usage};

const TRACES: &[(&str, &str)] = &[];

pub fn scenes() -> Vec<Scene> {
    TRACES.iter().map(|(name, trace)| scene(name, trace)).collect()
}

/// Lines of `started AFTER WORDS`, `sample AFTER PROCESSOR MEMORY PROCESSES READ WRITTEN OUTPUT DENIALS`,
/// `denied CALL TIMES`, `ended AFTER PROCESSOR`; runs follow each other.
fn scene(name: &'static str, trace: &str) -> Scene {
    let processors = trace.lines().find_map(|line| line.strip_prefix("processors ")).expect("a number of processors");
    let mut scene = Scene::new(name, processors.parse().expect("a number"));
    let mut begun = false;
    let mut origin = 0.0;
    let mut denials = Vec::new();
    for line in trace.lines().filter(|line| !line.starts_with('#') && !line.starts_with("processors")) {
        if !std::mem::replace(&mut begun, true) {
            origin = scene.now() + 5.0;
            scene.at(origin, Event::Asked);
        }
        let mut words = line.split(' ');
        let kind = words.next().expect("a kind");
        let rest: Vec<&str> = words.collect();
        let number = |at: usize| rest[at].parse::<f64>().expect("a number");
        match kind {
            "started" => {
                let words: Vec<String> = rest[1..].iter().map(|word| (*word).to_owned()).collect();
                scene.at(origin + number(0), Event::Started(words[0].clone(), words));
            }
            "sample" => {
                let count = |at: usize| rest[at].parse::<u64>().expect("a count");
                let sample = Sample {
                    after: Duration::from_secs_f64(number(0)),
                    processor: Duration::from_secs_f64(number(1)),
                    memory: count(2),
                    processes: count(3),
                    read: count(4),
                    written: count(5),
                    output: count(6),
                    denials: count(7),
                };
                scene.at(origin + number(0), Event::Sampled(sample));
            }
            "denied" => denials.push((rest[0].to_owned(), rest[1].parse().expect("a count"))),
            "ended" => {
                let denials = std::mem::take(&mut denials);
                let usage = Usage { duration: number(0), processor: number(1), denials, ..Usage::default() };
                scene.at(origin + number(0), Event::Ended(usage));
                begun = false;
            }
            other => panic!("{other} is no line of a trace"),
        }
    }
    scene
}
