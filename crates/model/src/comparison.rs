//! Backends beside each other: what they cost, what runs in them, what they hold.

use std::time::Duration;

use serde::Serialize;

use crate::{GroundKind, Trouble, Watch};

/// Somebody who measures.
pub trait Benchmarks {
    fn compare(&self, wish: &BenchmarkWish, watch: &dyn Watch) -> Result<Benchmark, Trouble>;
    /// As a picture, in SVG.
    fn chart(&self, comparison: &Benchmark) -> String;
}

/// What is to be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BenchmarkWish {
    /// Those that there are.
    pub candidates: Vec<Candidate>,
    /// Only these; nothing means all.
    pub backends: Vec<String>,
    /// Start this language's interpreter instead of a program that does nothing.
    pub language: Option<String>,
    /// How often each is started.
    pub rounds: usize,
    /// No measurement begins after this.
    pub longest: Duration,
    /// For those that run images.
    pub image: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub name: String,
    pub ground: GroundKind,
    /// Why it can't be used here.
    pub unusable: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Benchmark {
    pub machine: String,
    pub language: Option<String>,
    pub rows: Vec<Compared>,
    pub programs: Vec<Tried>,
    pub seconds: f64,
    /// Ended before all was measured.
    pub cut_short: bool,
}

/// One way to run a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Compared {
    pub name: String,
    /// Not belljar: nothing at all, or somebody else's sandbox.
    pub peer: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The first start, with nothing prepared, in milliseconds.
    pub first: Option<f64>,
    pub start: Option<Spread>,
    /// Starts a second with all processors busy.
    pub throughput: Option<f64>,
    /// Bytes of memory for each that is there and waits.
    pub memory: Option<u64>,
    /// Milliseconds to write 64 MiB into the workspace and read them again, without the start.
    pub files: Option<f64>,
    /// Nanoseconds for a call out of the program, without the start.
    pub call: Option<f64>,
    /// Programs of the corpus that ran as they should, and how many were tried.
    pub programs: Option<(usize, usize)>,
    /// Attacks of the escape suite that it held, and how many were tried.
    pub attacks: Option<(usize, usize)>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// In milliseconds.
    pub p50: f64,
    pub p99: f64,
    pub samples: Vec<f64>,
}

/// A program of the corpus, and what came of it in each.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tried {
    pub program: String,
    pub results: Vec<(String, String)>,
}
