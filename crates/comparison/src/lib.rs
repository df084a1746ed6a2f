//! What each backend costs and what runs in it, measured on this host: each is started as a user starts it, by the
//! command line, interleaved so that noise hits all alike, and within a bounded time.

mod chart;
mod contestant;
mod corpus;
mod jobs;
mod measure;
mod scores;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use model::{Benchmark, BenchmarkWish, Benchmarks, Candidate, Compared, Spread, Tried, Trouble, Watch};

use contestant::{Contestant, peers};
use jobs::Jobs;

/// Measures by starting `belljar` again and again.
pub struct Bench {
    /// Where it is. Looked for when something is to be measured: everybody who starts has one of these.
    pub belljar: fn() -> PathBuf,
}

impl Benchmarks for Bench {
    fn compare(&self, wish: &BenchmarkWish, watch: &dyn Watch) -> Result<Benchmark, Trouble> {
        let began = Instant::now();
        let field = Field::make(&(self.belljar)())?;
        let known = |name: &String| wish.candidates.iter().any(|candidate| candidate.name == *name);
        if let Some(unknown) = wish.backends.iter().find(|name| !known(name)) {
            let names: Vec<&str> = wish.candidates.iter().map(|candidate| candidate.name.as_str()).collect();
            let message = format!("there is no backend called `{}`", unknown.escape_debug());
            return Err(Trouble { message, fix: format!("the backends are: {}", names.join(", ")) });
        }
        let wanted = |candidate: &&Candidate| wish.backends.is_empty() || wish.backends.contains(&candidate.name);
        let jobs = Jobs::new(wish.language.as_deref(), &field.folder)?;
        let mut ways = peers(wish.language.is_some(), wish.image.as_deref());
        ways.extend(wish.candidates.iter().filter(wanted).map(|candidate| Contestant::of(candidate, wish)));
        let mut round = Round { wish, watch, field: &field, jobs: &jobs, began, cut_short: false };
        let mut rows: Vec<Compared> = ways.iter().map(|way| round.first(way)).collect();
        round.starts(&ways, &mut rows);
        round.rest(&ways, &mut rows);
        let programs = round.programs(&ways, &mut rows);
        for row in rows.iter_mut().filter(|row| !row.peer || row.name == "bwrap") {
            row.attacks = scores::of(&row.name);
        }
        let cut_short = round.cut_short;
        field.remove()?;
        Ok(Benchmark {
            machine: measure::machine(),
            language: wish.language.clone(),
            rows,
            programs,
            seconds: began.elapsed().as_secs_f64(),
            cut_short,
        })
    }

    fn chart(&self, comparison: &Benchmark) -> String {
        chart::svg(comparison)
    }
}

/// Where measured runs work and keep their state: nothing of the user's is read or written.
pub struct Field {
    pub belljar: PathBuf,
    pub folder: PathBuf,
    /// Each run gets a workspace that nobody worked in before.
    used: AtomicUsize,
}

impl Field {
    fn make(belljar: &Path) -> Result<Field, Trouble> {
        let name = format!("belljar-bench-{}", std::process::id());
        let folder = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from).join(name);
        let made = std::fs::create_dir(&folder).and_then(|()| {
            ["work", "state", "cache", "modules"].iter().try_for_each(|part| std::fs::create_dir(folder.join(part)))
        });
        made.map_err(|error| Trouble {
            message: format!("cannot make `{}`: {error}", folder.display()),
            fix: "choose a folder that can be written to with TMPDIR".to_owned(),
        })?;
        Ok(Field { belljar: belljar.to_owned(), folder, used: AtomicUsize::new(0) })
    }

    pub fn workspace(&self) -> std::io::Result<PathBuf> {
        let number = self.used.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join("work").join(number.to_string());
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    fn remove(&self) -> Result<(), Trouble> {
        std::fs::remove_dir_all(&self.folder).map_err(|error| Trouble {
            message: format!("cannot remove `{}`: {error}", self.folder.display()),
            fix: "remove it yourself".to_owned(),
        })
    }
}

struct Round<'a> {
    wish: &'a BenchmarkWish,
    watch: &'a dyn Watch,
    field: &'a Field,
    jobs: &'a Jobs,
    began: Instant,
    cut_short: bool,
}

impl Round<'_> {
    /// Whether there is time for one more; says what is being done.
    fn goes_on(&mut self, what: &str, done: usize, total: usize) -> bool {
        self.watch.progress(what, done as u64, total as u64);
        self.cut_short |= self.began.elapsed() >= self.wish.longest;
        !self.cut_short
    }

    /// Whether it works at all, with nothing prepared.
    fn first(&mut self, way: &Contestant) -> Compared {
        let mut row = Compared { name: way.name.clone(), peer: way.peer, ..Compared::default() };
        row.skipped = way.unusable.clone();
        if row.skipped.is_some() || !self.goes_on("trying each", 0, 1) {
            return row;
        }
        match measure::once(self.field, way, &self.jobs.start(way.ground)) {
            Ok(time) => row.first = Some(time),
            Err(why) => row.skipped = Some(why),
        }
        row
    }

    fn starts(&mut self, ways: &[Contestant], rows: &mut [Compared]) {
        let mut samples = vec![Vec::new(); ways.len()];
        for round in 0..self.wish.rounds {
            for (index, way) in ways.iter().enumerate() {
                if rows[index].skipped.is_some() || !self.goes_on("starting", round, self.wish.rounds) {
                    continue;
                }
                match measure::once(self.field, way, &self.jobs.start(way.ground)) {
                    Ok(time) => samples[index].push(time),
                    Err(why) => rows[index].skipped = Some(why),
                }
            }
        }
        for (row, samples) in rows.iter_mut().zip(samples) {
            row.start = spread(samples);
        }
    }

    fn rest(&mut self, ways: &[Contestant], rows: &mut [Compared]) {
        for (index, way) in ways.iter().enumerate() {
            if rows[index].skipped.is_some() {
                continue;
            }
            let start = rows[index].start.as_ref().map(|spread| spread.p50).unwrap_or_default();
            if self.goes_on("throughput", index, ways.len()) {
                rows[index].throughput = measure::throughput(self.field, way, &self.jobs.start(way.ground));
            }
            if self.goes_on("memory", index, ways.len()) {
                rows[index].memory = measure::memory(self.field, way, &self.jobs.wait(way.ground));
            }
            if self.goes_on("files", index, ways.len()) {
                let time = measure::best(self.field, way, &self.jobs.files(way.ground));
                rows[index].files = time.map(|time| (time - start).max(0.0));
            }
            if self.goes_on("calls", index, ways.len()) {
                let time = measure::best(self.field, way, &self.jobs.calls(way.ground));
                rows[index].call = time.map(|time| (time - start).max(0.0) * 1e6 / jobs::CALLS);
            }
        }
    }

    fn programs(&mut self, ways: &[Contestant], rows: &mut [Compared]) -> Vec<Tried> {
        let corpus = corpus::programs();
        let mut tried = Vec::new();
        for (number, program) in corpus.iter().enumerate() {
            let mut results = Vec::new();
            for (index, way) in ways.iter().enumerate() {
                let ours_or_bare = !way.peer || way.name == contestant::BARE;
                if rows[index].skipped.is_some() || !ours_or_bare {
                    continue;
                }
                if !self.goes_on("programs", number, corpus.len()) {
                    continue;
                }
                let result = measure::program(self.field, way, program);
                let (ran, of) = rows[index].programs.unwrap_or_default();
                rows[index].programs = Some((ran + usize::from(result == corpus::RUNS), of + 1));
                results.push((way.name.clone(), result));
            }
            if !results.is_empty() {
                tried.push(Tried { program: program.name.to_owned(), results });
            }
        }
        tried
    }
}

fn spread(mut samples: Vec<f64>) -> Option<Spread> {
    if samples.is_empty() {
        return None;
    }
    let kept = samples.clone();
    samples.sort_by(f64::total_cmp);
    let at = |part: f64| samples[((samples.len() - 1) as f64 * part).round() as usize];
    Some(Spread { p50: at(0.5), p99: at(0.99), samples: kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_all_samples_are_no_longer_than_the_middle_one() {
        let spread = spread(vec![5.0, 1.0, 3.0, 2.0, 4.0]).expect("a spread");
        assert_eq!((spread.p50, spread.p99), (3.0, 5.0));
        assert_eq!(spread.samples, [5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!(super::spread(Vec::new()), None);
    }
}
