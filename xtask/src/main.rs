//! Developer tasks, as `cargo xtask TASK`: what CI runs, what the documents are made from, what is measured.

mod bench;
mod fuzz;
mod interpreters;
mod needs;
mod place;
mod release;
mod soak;
mod start_up;
mod steps;
mod structure;
mod test;
mod threats;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask TASK

  test                 everything that CI runs: format, lints, dependencies, laws of the architecture, tests,
                       the escape suite, the matrix in THREATS.md, a short benchmark.
                       As root it installs what is missing and says so; otherwise it says what it skips and why.
  release              build the binary as it is released, static and for any Linux, and say where it is
  start-up             step through starts of the released binary, as root and as a user, and write down which functions they run, in
                       order, so that the linker puts these side by side (crates/belljar/start_up.ld); a quarter of an hour (as root).
                       To be done when what a start does has changed: with a list that was old, a start touched a fifth more
  interpreters         build JavaScript and Python as WebAssembly modules from pinned sources, with Debian's clang, and
                       install them beside belljar for `--backend wasm`; some minutes, once
      FOLDER           where belljar is installed, if it is not the builds here
  structure            only the laws of the architecture: who may depend on whom, where `unsafe` lives
  needs                only install what the tests and benchmarks need (as root)
  threats              try every attack on belljar and its peers, write the matrix into THREATS.md (as root)
  threats --keep-peers the same without trying the peers again
  threats --demanded   write what the tests demand, which have passed, without trying all of it again
  threats --check      fail if the matrix in THREATS.md is not what the suite demands
  threats --only TEXT  print the verdicts, with evidence, for attacks whose name contains TEXT; write nothing
  fuzz                 look for bytes that break a law of crates/laws, with libFuzzer; builds for some minutes
                       at first. A crash is a failure, with the path of the input that led to it.
      --seconds N      so long with each target (default 10)
      TARGET           only this one
      TARGET FILE      only this input
  soak                 a day's work of the service in minutes, with guests and the server killed at random (as root): nothing
                       may be left, nothing lost, and the server may not grow
      --runs N         so many as each user (default 50000)
      --minutes N      at most so long for each
      --seed N         other chances
  bench native         measure belljar beside its peers in one run; about six minutes, raw samples in bench-results/
      --quick          a few samples of each, to see that it works
      --runs N         samples of each start-up (default 200; slow peers take 20)
      --markdown       print the tables as the README shows them
  bench workspace      measure layers over 10 and 100,000 files, the same jobs inside and outside, and other ways to a
                       copy to write to; raw samples in bench-results/, 5 GB of projects below BELLJAR_PEERS
      --quick          a few samples of each, over 20,000 files instead, to see that it works
      --runs N         samples of each command over each size (default 200 starts, 100 of the others, 50 diffs)
      --markdown       print the tables as the README shows them
  bench policy         measure verdicts, loading of policies, and what they add to a start; --quick, --runs, --markdown
  bench scan           measure the scanner beside bandit and semgrep, and what the release gate costs; the same flags
  bench ledger         measure what the record costs a run, and how fast it is written, searched and verified (10 million
                       entries, 4 GB for a while); the same flags
  bench egress         measure what the gate adds to connections, requests, downloads and starts, beside srt's and mitmproxy's
                       proxies; the same flags, of which --runs is of starts
  bench backends       measure each kind of isolation beside what it is made of (`docker run`, `runsc run` …); the same flags
  bench service        measure runs and sandboxes that are asked for over HTTP, with warm starts; the same flags

Environment
  BELLJAR_PEERS        where peers and tool-chains for tests are installed (default /opt/belljar-peers)
  BELLJAR              the binary under test (default: what `release` builds, or else the default build)

Examples
  cargo xtask test
  cargo xtask threats --only files/
  cargo xtask fuzz --seconds 600 filter
  cargo nextest run --release -E 'binary(toolchains)' --success-output final
  cargo xtask bench native --runs 500";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let again = match words.as_slice() {
        ["threats", "--cell" | "--check" | "--demanded", ..] => None,
        ["test" | "threats" | "bench" | "soak", ..] => release::instead(&words),
        _ => None,
    };
    let done = again.unwrap_or_else(|| task(&words));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn task(words: &[&str]) -> Result<(), String> {
    match words {
        [] | ["help" | "-h" | "--help", ..] | [_, "-h" | "--help"] => {
            println!("{HELP}");
            Ok(())
        }
        ["release"] => release::build(),
        ["start-up"] => start_up::write(),
        ["test"] => test::test(),
        ["interpreters"] => interpreters::install(None),
        ["interpreters", folder] => interpreters::install(Some(folder)),
        ["structure"] => structure::check(),
        ["needs"] => needs::install(),
        ["threats"] => threats::write(true),
        ["threats", "--keep-peers"] => threats::write(false),
        ["threats", "--check"] => threats::check(),
        ["threats", "--demanded"] => threats::write_demanded(),
        ["threats", "--only", text] => threats::show(text),
        // Not for people: one cell of the matrix, in a process of its own.
        ["threats", "--cell", attack, column] => threats::cell(attack, column),
        ["soak", flags @ ..] => soak::run(flags),
        ["fuzz", flags @ ..] => fuzz::fuzz(flags),
        ["bench", "native", flags @ ..] => bench::native(flags),
        ["bench", "workspace", flags @ ..] => bench::workspace::workspace(flags),
        ["bench", "policy", flags @ ..] => bench::policy::policy(flags),
        ["bench", "ledger", flags @ ..] => bench::ledger::ledger(flags),
        ["bench", "egress", flags @ ..] => bench::egress::egress(flags),
        ["bench", "backends", flags @ ..] => bench::backends::backends(flags),
        ["bench", "scan", flags @ ..] => bench::scan::scan(flags),
        ["bench", "service", flags @ ..] => bench::service::service(flags),
        _ => Err(format!("there is no task `{}`; see `cargo xtask --help`", words.join(" "))),
    }
}
