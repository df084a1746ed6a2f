//! One run while it lasts: what can't wait until its end.
//!
//! Evidence is time: each second at load with nothing to show for it counts, and each second that shows something takes
//! back four. So a build that is busy in itself for a while is forgotten with the next file that it writes, and a miner
//! that says something now and then is not.

use std::time::Duration;

use model::{Alert, Detector, Sample, Severity};

use crate::miners::{self, Sign};
use crate::window::sane;
use crate::words::{bytes, number, percent, seconds};
use crate::{Observation, Terms};

/// Of all processors: miners take what there is. Less than all, since others have a share in the machine.
const FULL_LOAD: f64 = 0.7;
/// Of one processor: a loop that has to share it still turns, and what only waits uses a hundredth.
const TURNING: f64 = 0.25;
/// A second: whoever computes for somebody reads or writes more than this.
const TINY_IO: f64 = 64.0 * 1024.0;
const TINIEST_IO: f64 = 4.0 * 1024.0;
/// A second. Whoever says a line every five seconds never has evidence against them, whoever says one a minute has.
const TINY_OUTPUT: f64 = 16.0;
const TAKEN_BACK: f64 = 4.0;
/// Where something speaks of a pool, a tenth of the time is enough.
const WITH_A_HINT: f64 = 0.1;
/// Builds have hundreds at most; the sandbox's own limit is 4096.
const MOST_PROCESSES: u64 = 2000;
/// In a minute: what is refused once is not tried a hundred times a second by anything that works.
const MOST_DENIALS: f64 = 10_000.0;
const DENIALS_WITHIN: f64 = 60.0;

/// One run, from its start.
#[derive(Clone, Debug)]
pub struct Live {
    terms: Terms,
    last: Sample,
    /// Started since the last sample.
    programs: u64,
    /// Evidence, in seconds.
    mining: f64,
    runaway: f64,
    hint: Option<String>,
    /// Denials, and since when they are counted.
    denials: (u64, Duration),
    said: [bool; Detector::ALL.len()],
}

impl Live {
    pub fn new(terms: Terms) -> Live {
        Live {
            terms,
            last: Sample::default(),
            programs: 0,
            mining: 0.0,
            runaway: 0.0,
            hint: None,
            denials: (0, Duration::ZERO),
            said: Default::default(),
        }
    }

    /// What was used up to the last sample.
    pub fn last(&self) -> &Sample {
        &self.last
    }

    /// A program was started: its path, and its words with the first.
    pub fn started(&mut self, program: &str, arguments: &[String]) -> Option<Alert> {
        self.programs = self.programs.saturating_add(1);
        self.take(miners::sign(program, arguments)?)
    }

    /// One more was started, and nobody knows which.
    pub fn one_more(&mut self) {
        self.programs = self.programs.saturating_add(1);
    }

    pub fn observe(&mut self, observation: &Observation<'_>) -> Option<Alert> {
        match observation {
            Observation::Connected { host, port } => self.take(miners::pool(host, *port)?),
            Observation::Asked | Observation::Refused { .. } | Observation::Ended(_) => None,
        }
    }

    fn take(&mut self, sign: Sign) -> Option<Alert> {
        match sign {
            Sign::Hint(hint) => {
                self.hint = Some(hint);
                None
            }
            Sign::Clear(measured) => self.once(Alert {
                detector: Detector::Mining,
                severity: Severity::High,
                measured,
                threshold: "nothing else is called or told that".to_owned(),
                baseline: "none: no build or test does this".to_owned(),
            }),
        }
    }

    /// Every second or so. However far apart samples are, what is between them counts.
    pub fn sampled(&mut self, sample: &Sample) -> Vec<Alert> {
        let last = std::mem::replace(&mut self.last, *sample);
        let passed = sane(sample.after.saturating_sub(last.after).as_secs_f64());
        if passed == 0.0 {
            return Vec::new();
        }
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / passed;
        let used = sane(sample.processor.saturating_sub(last.processor).as_secs_f64() / passed);
        let io = rate(sample.read, last.read) + rate(sample.written, last.written);
        let output = rate(sample.output, last.output);
        let started = std::mem::take(&mut self.programs);
        let evidence = |known: f64, counts: bool| match counts {
            true => sane(known + passed),
            false => sane(known - TAKEN_BACK * passed),
        };
        let full = used >= FULL_LOAD * self.terms.processors || self.hint.is_some() && used >= TURNING;
        self.mining = evidence(self.mining, full && io <= TINY_IO && output <= TINY_OUTPUT && started == 0);
        let turning = used >= TURNING && io <= TINIEST_IO && output == 0.0 && started == 0;
        self.runaway = evidence(self.runaway, turning);
        let alerts = [self.mines(used, io), self.runs_away(used), self.grows(sample), self.insists(sample)];
        alerts.into_iter().flatten().collect()
    }

    fn mines(&mut self, used: f64, io: f64) -> Option<Alert> {
        let patience = self.terms.mining_after.as_secs_f64();
        let (patience, severity) = match &self.hint {
            Some(_) => (patience * WITH_A_HINT, Severity::High),
            None => (patience, Severity::Medium),
        };
        if self.mining < patience {
            return None;
        }
        let hint = self.hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"));
        self.once(Alert {
            detector: Detector::Mining,
            severity,
            measured: format!(
                "{} at {} of {} processors, with {} a second read and written, hardly any output and no program \
                 started{hint}",
                seconds(self.mining),
                percent(used / self.terms.processors),
                number(self.terms.processors),
                bytes(io),
            ),
            threshold: format!(
                "{} at {} of all processors with less than {} a second",
                seconds(patience),
                percent(FULL_LOAD),
                bytes(TINY_IO)
            ),
            baseline: "builds and tests read, write, say or start something within that time".to_owned(),
        })
    }

    fn runs_away(&mut self, used: f64) -> Option<Alert> {
        let patience = self.terms.runaway_after.as_secs_f64();
        // What mines does not also run away.
        if self.runaway < patience || self.has_said(Detector::Mining) {
            return None;
        }
        self.once(Alert {
            detector: Detector::Runaway,
            severity: Severity::Medium,
            measured: format!(
                "{} at {} processors, without output, without a program started, and with nearly nothing read or written",
                seconds(self.runaway),
                number((used * 10.0).round() / 10.0),
            ),
            threshold: format!("{} at {} of a processor like that", seconds(patience), percent(TURNING)),
            baseline: "what computes for somebody says or writes something within that time".to_owned(),
        })
    }

    fn grows(&mut self, sample: &Sample) -> Option<Alert> {
        if sample.processes < MOST_PROCESSES {
            return None;
        }
        self.once(Alert {
            detector: Detector::Runaway,
            severity: Severity::Medium,
            measured: format!("{} processes at once", sample.processes),
            threshold: format!("{MOST_PROCESSES} processes"),
            baseline: "builds have hundreds at most".to_owned(),
        })
    }

    fn insists(&mut self, sample: &Sample) -> Option<Alert> {
        let (before, since) = self.denials;
        let passed = sample.after.saturating_sub(since).as_secs_f64();
        let count = sample.denials.saturating_sub(before) as f64;
        if passed >= DENIALS_WITHIN {
            self.denials = (sample.denials, sample.after);
        }
        if count < MOST_DENIALS {
            return None;
        }
        self.once(Alert {
            detector: Detector::Retries,
            severity: Severity::Medium,
            measured: format!("{} refused calls in {}", number(count), seconds(passed)),
            threshold: format!("{} in {}", number(MOST_DENIALS), seconds(DENIALS_WITHIN)),
            baseline: "a program that is refused something goes on without it".to_owned(),
        })
    }

    fn has_said(&self, detector: Detector) -> bool {
        self.said.get(detector as usize).copied().unwrap_or(true)
    }

    /// One alert of a kind for one run.
    fn once(&mut self, alert: Alert) -> Option<Alert> {
        let said = self.said.get_mut(alert.detector as usize)?;
        (!std::mem::replace(said, true)).then_some(alert)
    }
}
