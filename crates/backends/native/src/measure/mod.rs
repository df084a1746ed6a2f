//! Limits that nothing in the kernel holds here: looked at again and again, and the run ended when one is over.
//!
//! And what is used so far, for the record. A look is cheap or bounded: whoever makes much to look at must not delay the deadline, which is looked at in between.

mod disk;
pub mod records;
mod tree;

use std::io;
use std::time::{Duration, Instant};

use model::{Limits, Overrun, Sample};

use crate::groups::Group;
pub use disk::Disk;
use tree::Tree;

/// How often: soon at first, because a leak is fastest in its first second, and never so often that it costs.
const SOONEST: Duration = Duration::from_millis(10);
const LATEST: Duration = Duration::from_millis(100);
/// The longest that one look at one thing may take.
const BUDGET: Duration = Duration::from_millis(20);
/// Between two samples.
const SAMPLE: Duration = Duration::from_secs(1);

pub struct Measure {
    memory: Option<u64>,
    cpu_time: Option<Duration>,
    tree: Tree,
    disks: Vec<Disk>,
    next: Option<Instant>,
    pause: Duration,
    next_sample: Instant,
    /// Since when nobody is inside, as far as is known.
    alone: Option<Instant>,
    /// Nobody is inside, so nothing grows: it is not looked at until somebody comes.
    rests: bool,
}

impl Measure {
    pub fn new(first: i32, limits: &Limits, disks: Vec<Disk>, grouped: bool) -> Measure {
        let memory = (!grouped).then_some(limits.memory);
        let cpu_time = limits.cpu_time;
        let needed = memory.is_some() || cpu_time.is_some() || !disks.is_empty();
        Measure {
            memory,
            cpu_time,
            tree: Tree::new(first),
            disks,
            next: needed.then(|| Instant::now() + SOONEST),
            pause: SOONEST,
            next_sample: Instant::now() + SAMPLE,
            alone: None,
            rests: false,
        }
    }

    /// Somebody inside who is no child of the first process.
    pub fn invite(&mut self, guest: i32) {
        self.tree.invite(guest);
    }

    /// It begins only now.
    pub fn restart(&mut self) {
        let now = Instant::now();
        self.next = self.next.map(|_| now + SOONEST);
        self.pause = SOONEST;
        self.next_sample = now + SAMPLE;
        self.rests = false;
    }

    /// Before `overrun`, where nobody can come without `wake`: rests from there on if the first process is alone, and all that it may write to
    /// was measured since it is.
    pub fn rest_if_alone(&mut self, now: Instant) {
        if self.rests || now < self.next.unwrap_or(self.next_sample) {
            return;
        }
        self.alone = self.tree.is_alone().then(|| self.alone.unwrap_or(now));
        self.rests = self.alone.is_some_and(|since| self.disks.iter().all(|disk| disk.was_measured_since(since)));
    }

    /// Somebody may be coming.
    pub fn wake(&mut self) {
        self.alone = None;
        if self.rests {
            self.restart();
        }
    }

    /// When to look again.
    pub fn next(&self) -> Option<Instant> {
        (!self.rests).then(|| self.next.map_or(self.next_sample, |next| next.min(self.next_sample)))
    }

    /// What is used so far, if it is time to look.
    pub fn sample(&mut self, now: Instant, group: Option<&Group>) -> Option<Sample> {
        if self.rests || now < self.next_sample {
            return None;
        }
        let by_group = (group.and_then(Group::cpu_time), group.and_then(Group::memory));
        if by_group.0.is_none() || by_group.1.is_none() {
            self.tree.look(self.memory, BUDGET);
        }
        let (processor, memory) = (by_group.0.unwrap_or(self.tree.cpu_time), by_group.1.unwrap_or(self.tree.memory));
        self.tree.look_at_transfers(BUDGET);
        let Tree { processes, read, written, .. } = self.tree;
        self.next_sample = Instant::now() + SAMPLE;
        Some(Sample { processor, memory, processes, read, written, ..Sample::default() })
    }

    /// Looks, if it is time to, and says which limit is over.
    pub fn overrun(&mut self, now: Instant, group: Option<&Group>) -> io::Result<Option<Overrun>> {
        if self.rests || self.next.is_none_or(|next| now < next) {
            return Ok(None);
        }
        self.pause = (self.pause * 2).min(LATEST);
        let over = self.look(group)?;
        self.next = Some(Instant::now() + self.pause);
        Ok(over)
    }

    fn look(&mut self, group: Option<&Group>) -> io::Result<Option<Overrun>> {
        let by_group = group.and_then(Group::cpu_time);
        let of_tree = self.memory.is_some() || self.cpu_time.is_some() && by_group.is_none() || !self.disks.is_empty();
        if of_tree {
            self.tree.look(self.memory, BUDGET);
        }
        if self.memory.is_some_and(|limit| self.tree.memory > limit) {
            return Ok(Some(Overrun::Memory));
        }
        if self.cpu_time.is_some_and(|limit| by_group.unwrap_or(self.tree.cpu_time) > limit) {
            return Ok(Some(Overrun::CpuTime));
        }
        for disk in &mut self.disks {
            if disk.is_over(&self.tree.removed_files, BUDGET)? {
                return Ok(Some(Overrun::Disk));
            }
        }
        Ok(None)
    }
}
