//! What holds whatever is observed: a profile stays small, nothing panics, and the same leads to the same.

use std::time::Duration;

use belljar_monitor::{Ended, LARGEST, Live, Observation, Profile, Terms};
use model::{Denial, Detector, Overrun, Sample, Wall};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Happened {
    Asked,
    Refused(String, String),
    Ended { numbers: [u64; 6], overrun: Option<Overrun>, denials: Vec<(String, u64)>, more: u64 },
}

fn overrun() -> impl Strategy<Value = Option<Overrun>> {
    prop::option::of(prop::sample::select(vec![
        Overrun::WallTime,
        Overrun::CpuTime,
        Overrun::Memory,
        Overrun::Disk,
        Overrun::Cancelled,
        Overrun::Suspended,
    ]))
}

/// Ordinary ones, and those at the ends.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..1000u64, Just(0), Just(u64::MAX)]
}

fn happened() -> impl Strategy<Value = Happened> {
    let denials = prop::collection::vec((".{0,12}", number()), 0..6);
    prop_oneof![
        Just(Happened::Asked),
        (".{0,20}", ".{0,20}").prop_map(|(rule, about)| Happened::Refused(rule, about)),
        (prop::array::uniform6(number()), overrun(), denials, number())
            .prop_map(|(numbers, overrun, denials, more)| Happened::Ended { numbers, overrun, denials, more }),
    ]
}

fn moments() -> impl Strategy<Value = Vec<(Happened, u64)>> {
    prop::collection::vec((happened(), number()), 0..60)
}

fn observe(profile: &mut Profile, happened: &Happened, terms: &Terms, now: u64) -> Vec<model::Alert> {
    match happened {
        Happened::Asked => profile.observe(&Observation::Asked, terms, now),
        Happened::Refused(rule, about) => profile.observe(&Observation::Refused { rule, about }, terms, now),
        Happened::Ended { numbers, overrun, denials, more } => {
            let denials: Vec<Denial> = denials
                .iter()
                .map(|(call, times)| Denial {
                    wall: Wall::SystemCalls,
                    call: call.clone(),
                    detail: None,
                    program: "x".to_owned(),
                    process: 1,
                    times: *times,
                })
                .collect();
            let [duration, processor, peak_memory, read, written, egress] = *numbers;
            let ended = Ended {
                duration: Duration::from_secs(duration),
                processor: Duration::from_secs(processor),
                peak_memory,
                read,
                written,
                egress,
                overrun: *overrun,
                denials: &denials,
                denials_not_listed: *more,
            };
            profile.observe(&Observation::Ended(ended), terms, now)
        }
    }
}

fn written(profile: &Profile) -> String {
    serde_json::to_string(profile).expect("a profile is JSON")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_profile_stays_small_and_reads_back_whatever_happens(moments in moments(), processors in any::<f64>()) {
        let terms = Terms::of(processors);
        let mut profile = Profile::default();
        for (happened, now) in &moments {
            observe(&mut profile, happened, &terms, *now);
            let text = written(&profile);
            prop_assert!(text.len() <= LARGEST, "{}", text.len());
            let read: Profile = serde_json::from_str(&text).expect("it reads back");
            prop_assert_eq!(&read, &profile);
            profile.shown("a", &terms, *now);
        }
    }

    #[test]
    fn the_same_leads_to_the_same_also_when_it_was_written_down_between(moments in moments()) {
        let terms = Terms::of(4.0);
        let (mut kept, mut stored) = (Profile::default(), Profile::default());
        for (happened, now) in &moments {
            stored = serde_json::from_str(&written(&stored)).expect("it reads back");
            prop_assert_eq!(observe(&mut kept, happened, &terms, *now), observe(&mut stored, happened, &terms, *now));
            prop_assert_eq!(&kept, &stored);
        }
    }

    #[test]
    fn an_alert_is_not_repeated_within_its_episode(moments in prop::collection::vec(happened(), 0..120)) {
        let terms = Terms::of(4.0);
        let mut profile = Profile::default();
        let mut last = [None::<u64>; Detector::ALL.len()];
        for (number, happened) in moments.iter().enumerate() {
            let now = 1_000_000_000 + number as u64 * 1000;
            for alert in observe(&mut profile, happened, &terms, now) {
                prop_assert!(last[alert.detector as usize].is_none(), "{alert:?} again");
                last[alert.detector as usize] = Some(now);
            }
        }
    }

    #[test]
    fn no_sample_stops_the_watching(samples in prop::collection::vec(prop::array::uniform8(number()), 0..100)) {
        let mut live = Live::new(Terms::of(2.0));
        let mut alerts = 0;
        for [after, processor, memory, processes, read, written, output, denials] in samples {
            let after = Duration::from_millis(after);
            let processor = Duration::from_millis(processor);
            alerts += live.sampled(&Sample { after, processor, memory, processes, read, written, output, denials }).len();
        }
        prop_assert!(alerts <= Detector::ALL.len());
    }

    #[test]
    fn any_words_are_looked_at(program in ".{0,40}", words in prop::collection::vec(".{0,40}", 0..8)) {
        Live::new(Terms::of(1.0)).started(&program, &words);
    }

    #[test]
    fn whoever_is_throttled_begins_six_runs_a_minute(gaps in prop::collection::vec(0..20_000u64, 1..100)) {
        let mut profile = Profile::default();
        let mut now = 1_000_000_000;
        let mut begun: Vec<u64> = Vec::new();
        for gap in gaps {
            now += gap;
            let room = begun.iter().filter(|moment| now - **moment < 60_000).count() < 6;
            match profile.begin_throttled(now) {
                Ok(()) => {
                    prop_assert!(room);
                    begun.push(now);
                }
                Err(wait) => prop_assert!(!room && wait <= 60_000),
            }
        }
    }
}
