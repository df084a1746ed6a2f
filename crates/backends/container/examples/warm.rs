//! For `cargo xtask bench backends`: times of runs in containers that wait, in nanoseconds: raising one, and the run.

fn main() -> std::process::ExitCode {
    let count = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(5usize);
    for _ in 0..count {
        match belljar_container::measured::cold_and_warm(&belljar_container::measured::trivial()) {
            Ok((raised, ran)) => say(&format!("{} {}", raised.as_nanos(), ran.as_nanos())),
            Err(failure) => {
                say(&format!("{}; {}", failure.message, failure.fix));
                return std::process::ExitCode::FAILURE;
            }
        }
    }
    std::process::ExitCode::SUCCESS
}

#[allow(clippy::print_stdout)]
fn say(line: &str) {
    println!("{line}");
}
