//! The same again and again is told now and then, with how often: a flood of refusals is no flood of entries.

use std::collections::HashMap;
use std::hash::Hash;

use model::NetworkEvent;

/// Different things that are kept apart. What comes after them is counted together.
const MOST: usize = 4096;

pub struct Tally<K> {
    /// So many of one thing are told each by itself.
    alone: u64,
    most: usize,
    known: HashMap<K, Counted>,
    others: Option<Counted>,
}

struct Counted {
    /// Of each way in which it came. Programs ask for both versions of an address at once: that is once.
    ways: [u64; 3],
    told: u64,
    event: NetworkEvent,
}

/// What to do about one more.
#[derive(Debug, PartialEq)]
pub enum Note {
    Tell(Box<NetworkEvent>),
    Known,
}

impl<K: Eq + Hash> Tally<K> {
    pub fn new(alone: u64) -> Tally<K> {
        Tally { alone: alone.max(1), most: MOST, known: HashMap::new(), others: None }
    }

    /// `event` is what one of it looks like; `others` what to call all that no longer fit.
    pub fn note(&mut self, key: K, way: usize, event: impl FnOnce() -> NetworkEvent, others: &str) -> Note {
        let alone = self.alone;
        let full = self.known.len() >= self.most;
        let counted = match self.known.entry(key) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(free) if !full => {
                free.insert(Counted { ways: [0; 3], told: 0, event: event() })
            }
            std::collections::hash_map::Entry::Vacant(_) => self.others.get_or_insert_with(|| {
                let mut event = event();
                event.host = others.to_owned();
                event.caller = None;
                Counted { ways: [0; 3], told: 0, event }
            }),
        };
        let before = counted.times();
        if let Some(way) = counted.ways.get_mut(way) {
            *way += 1;
        }
        let times = counted.times();
        if times == before || !(times <= alone || is_power_of_ten(times)) {
            return Note::Known;
        }
        counted.told = times;
        let mut event = counted.event.clone();
        event.times = (times > alone).then_some(times);
        Note::Tell(Box::new(event))
    }

    /// What came since it was last told.
    pub fn rest(&mut self) -> Vec<NetworkEvent> {
        let mut rest: Vec<NetworkEvent> = self
            .known
            .values_mut()
            .chain(&mut self.others)
            .filter(|counted| counted.times() > counted.told)
            .map(|counted| {
                counted.told = counted.times();
                let mut event = counted.event.clone();
                event.times = Some(counted.told);
                event
            })
            .collect();
        rest.sort_by(|one, other| one.host.cmp(&other.host).then(one.port.cmp(&other.port)));
        rest
    }
}

impl Counted {
    fn times(&self) -> u64 {
        self.ways.into_iter().max().unwrap_or_default()
    }
}

fn is_power_of_ten(mut number: u64) -> bool {
    while number >= 10 && number.is_multiple_of(10) {
        number /= 10;
    }
    number == 1
}

#[cfg(test)]
mod tests {
    use model::NetworkDeed;

    use super::*;

    fn event(host: &str) -> NetworkEvent {
        NetworkEvent::new(NetworkDeed::Name, host.to_owned())
    }

    #[test]
    fn a_flood_is_told_at_powers_of_ten_and_at_the_end() {
        let mut tally = Tally::new(1);
        let mut told = Vec::new();
        for _ in 0..12_345 {
            if let Note::Tell(event) = tally.note("a", 0, || event("a"), "others") {
                told.push(event.times);
            }
        }
        assert_eq!(told, [None, Some(10), Some(100), Some(1000), Some(10_000)]);
        let rest = tally.rest();
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0].times, Some(12_345));
        assert_eq!(tally.rest(), []);
    }

    #[test]
    fn both_versions_of_one_question_are_one() {
        let mut tally = Tally::new(1);
        assert!(matches!(tally.note("a", 0, || event("a"), ""), Note::Tell(_)));
        assert_eq!(tally.note("a", 1, || event("a"), ""), Note::Known);
        assert_eq!(tally.rest(), []);
    }

    #[test]
    fn ever_new_things_are_counted_together_after_a_while() {
        let mut tally = Tally::new(1);
        tally.most = 5;
        let told = (0..1000).filter(|number| {
            let name = format!("n{number}");
            matches!(tally.note(name.clone(), 0, || event(&name), "(others)"), Note::Tell(_))
        });
        assert_eq!(told.count(), 5 + 3);
        let rest = tally.rest();
        assert_eq!((rest[0].host.as_str(), rest[0].times), ("(others)", Some(995)));
    }
}
