//! How much in the last hour, in three numbers: a sum for the stretch that lasts and one for the stretch before it, of
//! which as much counts as still lies within the hour.

use serde::{Deserialize, Serialize};

/// More than anything that is ever counted, and small enough that sums of it stay numbers.
const MOST: f64 = 1e18;

/// A number that is one, is not negative and can be added to. Only as exact as it is written down, so that it makes no
/// difference when that is done.
pub fn sane(value: f64) -> f64 {
    if value.is_finite() { f64::from(value.clamp(0.0, MOST) as f32) } else { 0.0 }
}

/// How such a number is written: short.
pub mod short {
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f32(*value as f32)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        f32::deserialize(deserializer).map(|value| super::sane(f64::from(value)))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// When the stretch that lasts began, in milliseconds since 1970.
    start: u64,
    #[serde(with = "short")]
    lasts: f64,
    #[serde(with = "short")]
    before: f64,
}

impl Window {
    /// Adds to it, and says what the last `period` milliseconds came to. `over`: is told of each stretch that is over.
    pub fn add(&mut self, amount: f64, now: u64, period: u64, mut over: impl FnMut(f64)) -> f64 {
        let period = period.max(1);
        // A clock that was set back begins anew: what lies ahead would stay for ever.
        let passed = if self.start > now { u64::MAX } else { (now - self.start) / period };
        match passed {
            0 => {}
            1 => {
                over(self.lasts);
                (self.before, self.lasts, self.start) = (self.lasts, 0.0, self.start + period);
            }
            _ => {
                if self.start != 0 {
                    over(self.lasts);
                }
                (self.before, self.lasts, self.start) = (0.0, 0.0, now);
            }
        }
        self.lasts = sane(self.lasts + sane(amount));
        self.level(now, period)
    }

    /// Without adding anything.
    pub fn level(&self, now: u64, period: u64) -> f64 {
        let period = period.max(1);
        let into = now.saturating_sub(self.start) as f64 / period as f64;
        match into {
            into if into < 1.0 => sane(self.lasts + self.before * (1.0 - into)),
            into if into < 2.0 => sane(self.lasts * (2.0 - into)),
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_the_period_counts_no_more() {
        let mut window = Window::default();
        let start = 1_000_000;
        for second in 0..60 {
            window.add(1.0, start + second * 1000, 60_000, |_| {});
        }
        assert!((window.level(start + 59_999, 60_000) - 60.0).abs() < 0.01);
        assert!((window.level(start + 90_000, 60_000) - 30.0).abs() < 0.01);
        assert_eq!(window.level(start + 120_000, 60_000), 0.0);
    }

    #[test]
    fn a_clock_that_is_set_back_begins_anew() {
        let mut window = Window::default();
        window.add(5.0, 10_000_000, 1000, |_| {});
        assert_eq!(window.add(1.0, 1_000_000, 1000, |_| {}), 1.0);
    }
}
