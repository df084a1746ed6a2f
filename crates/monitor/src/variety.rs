//! How many different things there were in the last minutes, without keeping them: each sets one of 256 bits, and how many
//! are still unset tells how many there were (linear counting). Two maps, so that a scan over a border is one scan.

use serde::{Deserialize, Serialize};

const BITS: u32 = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variety {
    start: u64,
    lasts: [u64; 4],
    before: [u64; 4],
}

impl Variety {
    /// One more thing; says how many different ones there were in the last one to two periods.
    pub fn add(&mut self, thing: u64, now: u64, period: u64) -> f64 {
        let passed = if self.start > now { u64::MAX } else { (now - self.start) / period.max(1) };
        match passed {
            0 => {}
            1 => (self.before, self.lasts, self.start) = (self.lasts, [0; 4], self.start + period.max(1)),
            _ => (self.before, self.lasts, self.start) = ([0; 4], [0; 4], now),
        }
        let bit = thing % u64::from(BITS);
        if let Some(word) = self.lasts.get_mut((bit / 64) as usize) {
            *word |= 1 << (bit % 64);
        }
        self.different()
    }

    pub fn different(&self) -> f64 {
        let set: u32 = self.lasts.iter().zip(&self.before).map(|(lasts, before)| (lasts | before).count_ones()).sum();
        let unset = f64::from(BITS.saturating_sub(set).max(1));
        f64::from(BITS) * (f64::from(BITS) / unset).ln()
    }
}

/// The same for the same texts, always and everywhere (FNV-1a, mixed once more, since low bits are what counts).
pub fn fingerprint(texts: &[&str]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for text in texts {
        // With something between them that is in no text.
        for byte in text.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_things_are_counted_and_the_same_are_not() {
        let mut variety = Variety::default();
        for _ in 0..1000 {
            assert!(variety.add(fingerprint(&["mount", ""]), 1, 1000) < 1.1);
        }
        let names: Vec<String> = (0..20).map(|number| format!("call{number}")).collect();
        let counted = names.iter().map(|name| variety.add(fingerprint(&[name]), 1, 1000)).fold(0.0, f64::max);
        assert!((18.0..24.0).contains(&counted), "{counted}");
    }

    #[test]
    fn what_was_long_ago_counts_no_more() {
        let mut variety = Variety::default();
        (0..50).for_each(|number| {
            variety.add(fingerprint(&[&number.to_string()]), 10_000, 1000);
        });
        assert!(variety.add(7, 12_500, 1000) < 1.1);
    }
}
