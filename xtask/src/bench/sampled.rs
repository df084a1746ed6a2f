//! What the examples that are measured share, each by its path: how they take samples, and how they tell them to `measured`.

use std::hint::black_box;
use std::time::Instant;

/// How long a job takes, in nanoseconds, each time.
pub fn sampled<T>(runs: usize, mut job: impl FnMut() -> T) -> Vec<u64> {
    let sample = |_| {
        let start = Instant::now();
        black_box(job());
        u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    };
    (0..runs).map(sample).collect()
}

// An example prints: it is no library.
#[allow(clippy::print_stdout)]
pub fn report(samples: &serde_json::Value) {
    println!("{samples}");
}
