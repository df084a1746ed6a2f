//! A piece of an agent's day: what happened when, and what the monitor says to it.

use std::time::Duration;

use belljar_monitor::{Ended, Live, Observation, Profile, Terms};
use model::{Alert, Denial, Detector, Overrun, Sample, Wall};

/// When all scenes begin, in milliseconds since 1970.
const DAWN: u64 = 1_800_000_000_000;

pub struct Scene {
    pub name: &'static str,
    pub processors: f64,
    /// With seconds from its beginning.
    events: Vec<(f64, Event)>,
    now: f64,
}

#[derive(Clone, Debug)]
pub enum Event {
    Asked,
    Refused(String, String),
    Started(String, Vec<String>),
    Sampled(Sample),
    Ended(Usage),
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub duration: f64,
    pub processor: f64,
    pub egress: u64,
    pub overrun: Option<Overrun>,
    pub denials: Vec<(String, u64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Alarm {
    pub at: f64,
    pub alert: Alert,
}

/// What is to be found.
pub struct Expected {
    pub detector: Detector,
    /// When misbehaviour begins, and how soon it must be found, in seconds.
    pub begins: f64,
    pub within: f64,
}

/// What a run does in each second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second {
    /// Processors.
    pub load: f64,
    pub io: u64,
    pub output: u64,
    /// Programs that are started.
    pub programs: u32,
    pub processes: u64,
    pub denials: u64,
}

impl Scene {
    pub fn new(name: &'static str, processors: f64) -> Scene {
        Scene { name, processors, events: Vec::new(), now: 0.0 }
    }

    pub fn now(&self) -> f64 {
        self.now
    }

    pub fn at(&mut self, at: f64, event: Event) {
        self.now = self.now.max(at);
        self.events.push((at, event));
    }

    pub fn pause(&mut self, seconds: f64) -> &mut Scene {
        self.now += seconds;
        self
    }

    /// A run that is over before anybody looks.
    pub fn short(&mut self, usage: Usage) -> &mut Scene {
        self.at(self.now, Event::Asked);
        self.now += usage.duration;
        self.at(self.now, Event::Ended(usage));
        self
    }

    pub fn refused(&mut self, rule: &str, about: &str) -> &mut Scene {
        self.at(self.now, Event::Asked);
        self.at(self.now, Event::Refused(rule.to_owned(), about.to_owned()));
        self
    }

    /// A run that is sampled each second. `words`: what is started first.
    pub fn long(&mut self, words: &str, seconds: u32, does: impl Fn(u32) -> Second) -> &mut Scene {
        self.at(self.now, Event::Asked);
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        self.at(self.now, Event::Started(words[0].clone(), words));
        let began = self.now;
        let mut sample = Sample { processes: 1, ..Sample::default() };
        for second in 1..=seconds {
            let Second { load, io, output, programs, processes, denials } = does(second);
            self.now = began + f64::from(second);
            for _ in 0..programs {
                self.at(self.now, Event::Started("/usr/bin/cc".to_owned(), vec!["cc".to_owned(), "-c".to_owned()]));
            }
            sample.after = Duration::from_secs(second.into());
            sample.processor += Duration::from_secs_f64(load);
            sample.read += io / 2;
            sample.written += io - io / 2;
            sample.output += output;
            sample.processes = processes.max(1);
            sample.denials += denials;
            self.at(self.now, Event::Sampled(sample));
        }
        let processor = sample.processor.as_secs_f64();
        self.at(self.now, Event::Ended(Usage { duration: seconds.into(), processor, ..Usage::default() }));
        self
    }

    pub fn runs(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, Event::Asked)).count()
    }

    pub fn lasts(&self) -> f64 {
        self.now
    }

    /// All that the monitor says, in one profile.
    pub fn replay(&self) -> Vec<Alarm> {
        let terms = Terms::of(self.processors);
        let mut profile = Profile::default();
        let mut live = Live::new(terms);
        let mut alarms = Vec::new();
        for (at, event) in &self.events {
            let now = DAWN + (at * 1000.0) as u64;
            let found: Vec<Alert> = match event {
                Event::Asked => {
                    live = Live::new(terms);
                    profile.observe(&Observation::Asked, &terms, now)
                }
                Event::Refused(rule, about) => profile.observe(&Observation::Refused { rule, about }, &terms, now),
                Event::Started(program, words) => {
                    live.started(program, words).and_then(|alert| profile.raise(alert, now)).into_iter().collect()
                }
                Event::Sampled(sample) => {
                    let seen = live.sampled(sample);
                    seen.into_iter().filter_map(|alert| profile.raise(alert, now)).collect()
                }
                Event::Ended(usage) => {
                    let denials: Vec<Denial> = usage.denials.iter().map(denial).collect();
                    let ended = Ended {
                        duration: Duration::from_secs_f64(usage.duration),
                        processor: Duration::from_secs_f64(usage.processor),
                        read: live.last().read,
                        written: live.last().written,
                        egress: usage.egress,
                        overrun: usage.overrun,
                        denials: &denials,
                        ..Ended::default()
                    };
                    profile.observe(&Observation::Ended(ended), &terms, now)
                }
            };
            alarms.extend(found.into_iter().map(|alert| Alarm { at: *at, alert }));
        }
        alarms
    }
}

fn denial((call, times): &(String, u64)) -> Denial {
    Denial {
        wall: Wall::SystemCalls,
        call: call.clone(),
        detail: None,
        program: "x".to_owned(),
        process: 1,
        times: *times,
    }
}

/// Numbers that look like chance, and are always the same.
pub fn dice(seed: u32) -> f64 {
    let mut value = seed.wrapping_mul(0x9e37_79b9) ^ 0x85eb_ca6b;
    value = (value ^ value >> 16).wrapping_mul(0x7feb_352d);
    value = (value ^ value >> 15).wrapping_mul(0x846c_a68b);
    f64::from(value ^ value >> 16) / f64::from(u32::MAX)
}

pub fn called(calls: &[&str]) -> Vec<(String, u64)> {
    calls.iter().map(|call| ((*call).to_owned(), 1)).collect()
}
