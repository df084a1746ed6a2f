//! Whether something became more than it used to be, and stayed so: a CUSUM over doublings above an EWMA.
//!
//! In doublings, because what agents do is spread over orders of magnitude; above a floor, because what is little is no
//! news however much it grew. Each observation adds how many doublings it is above both, less one; four times as much
//! as usual must be seen eight times, sixteen times as much three times.

use serde::{Deserialize, Serialize};

use crate::window::{sane, short};

/// An agent that is new has no usual yet.
pub const WARM_UP: u64 = 30;
/// Of the newest observation in what is usual, once there are many: about the last fifty count.
const WEIGHT: f64 = 0.02;
/// Doublings that are no news.
const SLACK: f64 = 1.0;
/// What is little says nothing against what was much before: small errands between heavy ones excuse only in number.
const LITTLE: f64 = 0.25;
/// One observation is never enough by itself.
const MOST_AT_ONCE: f64 = 4.0;
pub const ALARM: f64 = 8.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    seen: u64,
    #[serde(with = "short")]
    usual: f64,
    #[serde(with = "short")]
    sum: f64,
    #[serde(with = "short")]
    last: f64,
}

impl Drift {
    /// Learns from one more, and says whether it has drifted too far from what was usual before.
    pub fn observe(&mut self, value: f64, floor: f64) -> bool {
        let (value, floor) = (sane(value), sane(floor).max(f64::MIN_POSITIVE));
        self.last = value;
        let drifted = self.seen >= WARM_UP && {
            let doublings = (value.max(floor) / self.usual.max(floor)).log2();
            let slack = if value > floor { SLACK } else { LITTLE };
            self.sum = sane((self.sum + doublings.min(MOST_AT_ONCE) - slack).min(2.0 * ALARM));
            self.sum >= ALARM
        };
        self.seen = self.seen.saturating_add(1);
        let weight = (1.0 / self.seen as f64).max(WEIGHT);
        self.usual = sane(self.usual + weight * (value - self.usual));
        drifted
    }

    pub fn usual(&self) -> f64 {
        self.usual
    }

    pub fn last(&self) -> f64 {
        self.last
    }

    pub fn is_warm(&self) -> bool {
        self.seen >= WARM_UP
    }

    /// After an alarm it takes as long again to raise another.
    pub fn settle(&mut self) {
        self.sum = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warm(value: f64) -> Drift {
        let mut drift = Drift::default();
        for _ in 0..100 {
            assert!(!drift.observe(value, 1.0));
        }
        drift
    }

    #[test]
    fn what_is_new_is_no_drift() {
        let mut drift = Drift::default();
        for _ in 0..WARM_UP {
            assert!(!drift.observe(1e9, 1.0));
        }
    }

    #[test]
    fn one_of_a_thousand_is_no_drift_and_three_are() {
        let mut drift = warm(10.0);
        assert!(!drift.observe(1e6, 1.0));
        assert!(!drift.observe(10.0, 1.0));
        let mut drift = warm(10.0);
        let seen: Vec<bool> = (0..4).map(|_| drift.observe(1e3, 1.0)).collect();
        assert!(seen.contains(&true), "{seen:?}");
    }

    #[test]
    fn little_is_no_drift_however_much_it_grew() {
        let mut drift = warm(0.0);
        assert!((0..1000).all(|_| !drift.observe(99.0, 100.0)));
    }

    #[test]
    fn twice_as_much_is_no_drift() {
        let mut drift = warm(1000.0);
        assert!((0..1000).all(|_| !drift.observe(2000.0, 1.0)));
    }
}
