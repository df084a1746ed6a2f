//! One agent over all its runs, or all agents together: a fixed number of numbers, whatever happens.

use model::{Alert, Baseline, Denial, Detector, Overrun, Severity, Watched};
use serde::{Deserialize, Serialize};

use crate::drift::Drift;
use crate::variety::{Variety, fingerprint};
use crate::window::{Window, sane, short};
use crate::words::{bytes, number, percent, seconds};
use crate::{Ended, Observation, Terms};

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// A profile as JSON is never larger, in bytes.
pub const LARGEST: usize = 4096;

/// Runs in a minute. Agents that start several at once, and test suites that start belljar, stay below it.
const MOST_RUNS: f64 = 300.0;
/// Refusals by one rule within five minutes. Agents try again a few times, in other words; not a dozen times.
const MOST_RETRIES: f64 = 12.0;
const RETRIES_WITHIN: u64 = 5 * MINUTE;
/// Of one call in one run.
const MOST_OF_ONE_CALL: u64 = 10_000;
/// Different refused things within ten minutes. Ordinary programs try a handful: what they can do without.
const MOST_KINDS: f64 = 15.0;
const KINDS_WITHIN: u64 = 10 * MINUTE;
/// Within an hour. A test that hangs is tried again, but not so often.
const MOST_TIMEOUTS: f64 = 6.0;
/// Runs within an hour that were ended at their limits of memory, processor time or disk.
const MOST_OVERRUNS: f64 = 5.0;
/// Of all that the machine could compute in three hours: whoever thinks between builds stays below it.
const MOST_LOAD: f64 = 0.9;
const LOAD_WITHIN: u64 = 3 * HOUR;
/// Bytes out within an hour, and how many times what is usual for an hour.
const MUCH_EGRESS: f64 = (1u64 << 30) as f64;
const EGRESS_TIMES: f64 = 8.0;

/// What is less than this is no change of behaviour, however much it grew: a quarter of an hour of all processors in one
/// run, so many refused calls in one run, so many refusals in ten minutes, so many runs in one, so many bytes out.
const MUCH_PROCESSOR: f64 = 900.0;
const MANY_DENIALS: f64 = 50.0;
const MANY_REFUSALS: f64 = 10.0;
const REFUSALS_WITHIN: u64 = 10 * MINUTE;
const MANY_RUNS: f64 = 60.0;
const NEWS_OF_EGRESS: f64 = (16u64 << 20) as f64;
/// Rules whose refusals are counted apart; of more, the oldest are forgotten.
const RULES: usize = 8;
/// Who is throttled may begin so many runs within so many milliseconds.
pub const THROTTLED: usize = 6;
pub const THROTTLED_WITHIN: u64 = MINUTE;
/// Of the newest hour in what is usual for one.
const HOURLY_WEIGHT: f64 = 0.1;

/// What is known of an agent. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    first: u64,
    last: u64,
    runs: u64,
    refused: u64,
    /// In milliseconds.
    processor: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    peak_memory: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    read: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    written: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    egress: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    denials: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    timeouts: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    overruns: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    alerts: u64,
    rate: Window,
    #[serde(default, skip_serializing_if = "is_default")]
    refusals: Window,
    #[serde(default, skip_serializing_if = "is_default")]
    recent_timeouts: Window,
    #[serde(default, skip_serializing_if = "is_default")]
    recent_overruns: Window,
    load: Window,
    sent: Window,
    /// Sent in an hour, as usual.
    #[serde(with = "short")]
    hourly: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    kinds: Variety,
    #[serde(default, skip_serializing_if = "is_default")]
    retries: [Retried; RULES],
    of_rate: Drift,
    of_processor: Drift,
    of_denials: Drift,
    #[serde(default, skip_serializing_if = "is_default")]
    of_refusals: Drift,
    of_egress: Drift,
    /// When each detector last saw what it looks for.
    #[serde(default, skip_serializing_if = "is_default")]
    episodes: [u64; Detector::ALL.len()],
    /// When the last runs were begun.
    #[serde(default, skip_serializing_if = "is_default")]
    begun: [u64; THROTTLED],
}

/// What most agents never have is not written, nor read: every run waits for that.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Refusals by one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Retried {
    rule: u64,
    last: u64,
    window: Window,
}

impl Profile {
    /// Learns from what happened at `now`, and says what is not as it should be.
    pub fn observe(&mut self, observation: &Observation<'_>, terms: &Terms, now: u64) -> Vec<Alert> {
        if self.first == 0 || self.first > now {
            self.first = now;
        }
        self.last = now;
        let found = match observation {
            Observation::Asked => self.asked(now),
            Observation::Refused { rule, about } => self.refused(rule, about, now),
            Observation::Ended(ended) => self.ended(ended, terms, now),
            // Who is reached is of one run: there it is a hint.
            Observation::Connected { .. } => Vec::new(),
        };
        found.into_iter().filter_map(|alert| self.raise(alert, now)).collect()
    }

    /// An alert that was found elsewhere, unless it is of an episode that was told of already.
    pub fn raise(&mut self, alert: Alert, now: u64) -> Option<Alert> {
        let lasts = self.is_lasting(alert.detector, now);
        *self.episodes.get_mut(alert.detector as usize)? = now;
        (!lasts).then_some(alert)
    }

    /// Whether what this detector looks for was seen a short while ago.
    pub fn is_lasting(&self, detector: Detector, now: u64) -> bool {
        let last = self.episodes.get(detector as usize).copied().unwrap_or_default();
        // What lies far ahead was written before a clock was set back.
        let quiet = quiet(detector);
        last != 0 && now.saturating_sub(last) < quiet && last.saturating_sub(now) < quiet
    }

    /// So many alerts were told of.
    pub fn told(&mut self, alerts: u64) {
        self.alerts = self.alerts.saturating_add(alerts);
    }

    /// Somebody looked into it: whatever comes now is news again.
    pub fn settle(&mut self) {
        self.episodes = Default::default();
        self.retries = Default::default();
        self.kinds = Variety::default();
        for window in [&mut self.rate, &mut self.refusals, &mut self.recent_timeouts, &mut self.recent_overruns] {
            *window = Window::default();
        }
        for drift in self.drifts() {
            drift.settle();
        }
    }

    /// Counts one more begun run of whoever is throttled, or says how many milliseconds to wait.
    pub fn begin_throttled(&mut self, now: u64) -> Result<(), u64> {
        // Times that lie ahead were written before a clock was set back.
        self.begun.iter_mut().for_each(|begun| *begun = (*begun).min(now));
        let Some(oldest) = self.begun.iter_mut().min() else { return Ok(()) };
        let wait = oldest.saturating_add(THROTTLED_WITHIN).saturating_sub(now);
        if wait > 0 && *oldest != 0 {
            return Err(wait);
        }
        *oldest = now;
        Ok(())
    }

    fn asked(&mut self, now: u64) -> Vec<Alert> {
        self.runs = self.runs.saturating_add(1);
        let rate = self.rate.add(1.0, now, MINUTE, |_| {});
        let mut found = Vec::new();
        if rate >= MOST_RUNS {
            found.push(Alert {
                detector: Detector::Rate,
                severity: Severity::Medium,
                measured: format!("{} runs in the last minute", number(rate)),
                threshold: format!("{} a minute", number(MOST_RUNS)),
                baseline: format!("usually {} a minute", number(self.of_rate.usual())),
            });
        }
        if self.of_rate.observe(rate, MANY_RUNS) {
            found.push(changed("runs in a minute", rate, &mut self.of_rate, MANY_RUNS, number));
        }
        found
    }

    fn refused(&mut self, rule: &str, about: &str, now: u64) -> Vec<Alert> {
        self.refused = self.refused.saturating_add(1);
        let mut found = Vec::new();
        let times = self.retried(fingerprint(&[rule]), now);
        if times >= MOST_RETRIES {
            found.push(Alert {
                detector: Detector::Retries,
                severity: Severity::Medium,
                measured: format!("{} refusals by `{}` in {}", number(times), cut(rule), span(RETRIES_WITHIN)),
                threshold: format!("{} by one rule in {}", number(MOST_RETRIES), span(RETRIES_WITHIN)),
                baseline: format!("{} of {} runs were ever refused", self.refused, self.runs),
            });
        }
        let kinds = self.kinds.add(fingerprint(&["refused", rule, about]), now, KINDS_WITHIN);
        found.extend(scan(kinds));
        let refusals = self.refusals.add(1.0, now, REFUSALS_WITHIN, |_| {});
        if self.of_refusals.observe(refusals, MANY_REFUSALS) {
            found.push(changed("refusals in 10 min", refusals, &mut self.of_refusals, MANY_REFUSALS, number));
        }
        found
    }

    /// How often this rule refused lately.
    fn retried(&mut self, rule: u64, now: u64) -> f64 {
        let known = self.retries.iter().position(|retried| retried.rule == rule && retried.last != 0);
        let oldest = || self.retries.iter().enumerate().min_by_key(|(_, retried)| retried.last).map(|(at, _)| at);
        let Some(slot) = known.or_else(oldest).and_then(|at| self.retries.get_mut(at)) else { return 0.0 };
        if known.is_none() {
            *slot = Retried { rule, ..Retried::default() };
        }
        slot.last = now;
        slot.window.add(1.0, now, RETRIES_WITHIN, |_| {})
    }

    fn ended(&mut self, ended: &Ended<'_>, terms: &Terms, now: u64) -> Vec<Alert> {
        let Ended { duration, processor, peak_memory, read, written, egress, overrun, denials, denials_not_listed } =
            *ended;
        let milliseconds = u64::try_from(processor.as_millis()).unwrap_or(u64::MAX);
        let processor = sane(processor.as_secs_f64());
        let refused = denials.iter().fold(denials_not_listed, |sum, denial| sum.saturating_add(denial.times));
        self.peak_memory = self.peak_memory.max(peak_memory);
        for (total, more) in [
            (&mut self.processor, milliseconds),
            (&mut self.read, read),
            (&mut self.written, written),
            (&mut self.egress, egress),
            (&mut self.denials, refused),
        ] {
            *total = total.saturating_add(more);
        }
        let mut found = Vec::new();
        found.extend(self.overran(overrun, now));
        found.extend(self.loaded(processor, sane(duration.as_secs_f64()), terms, now));
        found.extend(self.denied(denials, now));
        found.extend(self.sent(egress as f64, now));
        // What all processors do in that time: on a large machine an ordinary build is that much more.
        let much = MUCH_PROCESSOR * terms.processors.max(1.0);
        if self.of_processor.observe(processor, much) {
            found.push(changed("processor time of a run", processor, &mut self.of_processor, much, seconds));
        }
        if self.of_denials.observe(refused as f64, MANY_DENIALS) {
            found.push(changed("refused calls of a run", refused as f64, &mut self.of_denials, MANY_DENIALS, number));
        }
        found
    }

    fn overran(&mut self, overrun: Option<Overrun>, now: u64) -> Option<Alert> {
        match overrun? {
            Overrun::WallTime => {
                self.timeouts = self.timeouts.saturating_add(1);
                let recent = self.recent_timeouts.add(1.0, now, HOUR, |_| {});
                (recent >= MOST_TIMEOUTS).then(|| Alert {
                    detector: Detector::Timeouts,
                    severity: Severity::Low,
                    measured: format!("{} runs ended at their time limit in the last hour", number(recent)),
                    threshold: format!("{} an hour", number(MOST_TIMEOUTS)),
                    baseline: format!("{} of {} runs ever were", self.timeouts, self.runs),
                })
            }
            Overrun::CpuTime | Overrun::Memory | Overrun::Disk => {
                self.overruns = self.overruns.saturating_add(1);
                let recent = self.recent_overruns.add(1.0, now, HOUR, |_| {});
                (recent >= MOST_OVERRUNS).then(|| Alert {
                    detector: Detector::Heavy,
                    severity: Severity::Medium,
                    measured: format!(
                        "{} runs ended at a limit of memory, processor time or disk in the last hour",
                        number(recent)
                    ),
                    threshold: format!("{} an hour", number(MOST_OVERRUNS)),
                    baseline: format!("{} of {} runs ever were", self.overruns, self.runs),
                })
            }
            // Neither is of its own doing.
            Overrun::Cancelled | Overrun::Suspended => None,
        }
    }

    fn loaded(&mut self, processor: f64, duration: f64, terms: &Terms, now: u64) -> Option<Alert> {
        let within = LOAD_WITHIN as f64 / SECOND as f64;
        // Of a run that is older than what we look at, only its last part counts.
        let part = if duration > within { within / duration } else { 1.0 };
        let load = self.load.add(processor * part, now, LOAD_WITHIN, |_| {}) / (within * terms.processors);
        (load >= MOST_LOAD).then(|| Alert {
            detector: Detector::Heavy,
            severity: Severity::Low,
            measured: format!("{} of all processor time of the last 3 h was used", percent(load.min(1.0))),
            threshold: percent(MOST_LOAD),
            baseline: format!("usually {} in a run", seconds(self.of_processor.usual())),
        })
    }

    fn denied(&mut self, denials: &[Denial], now: u64) -> Vec<Alert> {
        let mut kinds: f64 = 0.0;
        for denial in denials {
            let detail = denial.detail.as_deref().unwrap_or_default();
            kinds = kinds.max(self.kinds.add(fingerprint(&["call", &denial.call, detail]), now, KINDS_WITHIN));
        }
        let most = denials.iter().max_by_key(|denial| denial.times).filter(|denial| denial.times >= MOST_OF_ONE_CALL);
        let insists = most.map(|denial| Alert {
            detector: Detector::Retries,
            severity: Severity::Medium,
            measured: format!("`{}` was refused {} times in one run", cut(&denial.call), denial.times),
            threshold: format!("{MOST_OF_ONE_CALL} times"),
            baseline: "a program that is refused something goes on without it".to_owned(),
        });
        scan(kinds).into_iter().chain(insists).collect()
    }

    fn sent(&mut self, egress: f64, now: u64) -> Option<Alert> {
        let hourly = &mut self.hourly;
        let hour = self.sent.add(egress, now, HOUR, |sent| *hourly = sane(*hourly + HOURLY_WEIGHT * (sent - *hourly)));
        let drifted = self.of_egress.observe(egress, NEWS_OF_EGRESS);
        let much = hour >= MUCH_EGRESS && hour >= EGRESS_TIMES * self.hourly;
        if !drifted && !much {
            return None;
        }
        if drifted {
            self.of_egress.settle();
        }
        let (measured, threshold) = match much {
            true => (
                format!("{} went out in the last hour", bytes(hour)),
                format!("{}, and {EGRESS_TIMES} times what is usual", bytes(MUCH_EGRESS)),
            ),
            false => (
                format!("{} went out with one run, after others like it", bytes(egress)),
                format!("several times {}, run after run", bytes(self.of_egress.usual().max(NEWS_OF_EGRESS))),
            ),
        };
        let usual = (bytes(self.hourly), bytes(self.of_egress.usual()));
        let baseline = format!("usually {} an hour, {} a run", usual.0, usual.1);
        Some(Alert { detector: Detector::Exfiltration, severity: Severity::High, measured, threshold, baseline })
    }

    fn drifts(&mut self) -> [&mut Drift; 5] {
        [&mut self.of_rate, &mut self.of_processor, &mut self.of_denials, &mut self.of_refusals, &mut self.of_egress]
    }

    /// When something of it was observed last.
    pub fn last_seen(&self) -> u64 {
        self.last
    }

    /// For people and programs, as of `now`.
    pub fn shown(&self, agent: &str, terms: &Terms, now: u64) -> Watched {
        let usual = |drift: &Drift, words: fn(f64) -> String| match drift.is_warm() {
            true => words(drift.usual()),
            false => format!("{} so far", words(drift.usual())),
        };
        let drift = |what: &str, drift: &Drift, floor: f64, words: fn(f64) -> String| Baseline {
            what: what.to_owned(),
            now: words(drift.last()),
            usual: usual(drift, words),
            threshold: format!("several times {}, again and again", words(drift.usual().max(floor))),
        };
        let count = |what: &str, now: f64, usual: String, most: f64| Baseline {
            what: what.to_owned(),
            now: number(now),
            usual,
            threshold: number(most),
        };
        let ever = |part: u64| format!("{part} of {} runs ever", self.runs);
        let load = self.load.level(now, LOAD_WITHIN) / (LOAD_WITHIN as f64 / SECOND as f64 * terms.processors);
        let kinds = if now.saturating_sub(self.last) < 2 * KINDS_WITHIN { self.kinds.different() } else { 0.0 };
        let baselines = vec![
            count("runs in a minute", self.rate.level(now, MINUTE), usual(&self.of_rate, number), MOST_RUNS),
            drift("processor time of a run", &self.of_processor, MUCH_PROCESSOR * terms.processors.max(1.0), seconds),
            Baseline {
                what: "processor time in 3 h".to_owned(),
                now: percent(load),
                usual: String::new(),
                threshold: percent(MOST_LOAD),
            },
            drift("refused calls of a run", &self.of_denials, MANY_DENIALS, number),
            count("different things refused in 10 min", kinds.round(), String::new(), MOST_KINDS),
            count("refusals in 10 min", self.refusals.level(now, REFUSALS_WITHIN), ever(self.refused), MOST_RETRIES),
            count("time-outs in an hour", self.recent_timeouts.level(now, HOUR), ever(self.timeouts), MOST_TIMEOUTS),
            count(
                "limits reached in an hour",
                self.recent_overruns.level(now, HOUR),
                ever(self.overruns),
                MOST_OVERRUNS,
            ),
            Baseline {
                what: "bytes out in an hour".to_owned(),
                now: bytes(self.sent.level(now, HOUR)),
                usual: bytes(self.hourly),
                threshold: bytes(MUCH_EGRESS.max(EGRESS_TIMES * self.hourly)),
            },
        ];
        Watched {
            agent: agent.to_owned(),
            runs: self.runs,
            refused: self.refused,
            first_seen: self.first / SECOND,
            last_seen: self.last / SECOND,
            processor_seconds: self.processor as f64 / SECOND as f64,
            peak_memory: self.peak_memory,
            read: self.read,
            written: self.written,
            egress: self.egress,
            denials: self.denials,
            timeouts: self.timeouts,
            overruns: self.overruns,
            alerts: self.alerts,
            hold: None,
            baselines,
            trouble: None,
        }
    }
}

/// An alert is not repeated before it was quiet for this long: as long as what it counts is remembered.
fn quiet(detector: Detector) -> u64 {
    match detector {
        Detector::Runaway | Detector::Mining | Detector::Scan | Detector::Retries | Detector::Rate => 10 * MINUTE,
        Detector::Exfiltration | Detector::Change | Detector::Timeouts => HOUR,
        Detector::Heavy => LOAD_WITHIN,
    }
}

fn scan(kinds: f64) -> Option<Alert> {
    (kinds >= MOST_KINDS).then(|| Alert {
        detector: Detector::Scan,
        severity: Severity::High,
        measured: format!(
            "about {} different calls or requests were refused in {}",
            number(kinds.round()),
            span(KINDS_WITHIN)
        ),
        threshold: format!("{} different ones in {}", number(MOST_KINDS), span(KINDS_WITHIN)),
        baseline: "ordinary programs try a handful, and go on without".to_owned(),
    })
}

/// An alarm of what became more than it was; it has to do so anew to be told again.
fn changed(what: &str, value: f64, drift: &mut Drift, floor: f64, words: fn(f64) -> String) -> Alert {
    drift.settle();
    Alert {
        detector: Detector::Change,
        severity: Severity::Low,
        measured: format!("{what}: {}, after others like it", words(value)),
        threshold: format!("several times {}, again and again", words(drift.usual().max(floor))),
        baseline: format!("usually {}", words(drift.usual())),
    }
}

fn span(milliseconds: u64) -> String {
    seconds((milliseconds / SECOND) as f64)
}

/// Rules and calls are named by whoever wrote a policy: short enough to be read.
fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(200)]
}
