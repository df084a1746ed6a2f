//! How long the redactor takes, for `cargo xtask bench scan`: a JSON object of samples in nanoseconds on standard output.

#[path = "../../../../xtask/src/bench/sampled.rs"]
mod sampled;

use sampled::{report, sampled};
use secrets::{Formats, Redactor, Values};

fn main() {
    let runs = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(100);
    let log = log(1 << 20);
    let redact = |redactor: &Redactor, out: &mut Vec<u8>| {
        out.clear();
        let mut redactor = redactor.another();
        // As a pipe gives it.
        log.chunks(64 << 10).for_each(|chunk| redactor.push(chunk, out));
        redactor.finish(out).total()
    };
    let mut samples = serde_json::Map::new();
    for count in [0, 10, 100] {
        let mut out = Vec::with_capacity(log.len());
        let mut redactor = None;
        let times = sampled(runs, || {
            // The first makes what all use.
            let redactor = redactor.get_or_insert_with(|| Redactor::new(&values(count), Some(&Formats::built_in())));
            redact(redactor, &mut out)
        });
        samples.insert(format!("redact a megabyte of a build's log, {count} known values"), times.into());
    }
    report(&serde_json::Value::Object(samples));
}

fn values(count: usize) -> Values {
    let mut values = Values::new();
    for number in 0..count {
        let value = format!("value-{:x}-of-{number}", number * 2_654_435_761);
        assert_eq!(values.add(&format!("SECRET_{number}"), value.as_bytes()), secrets::Added::Kept);
    }
    values
}

/// Lines as compilers, test runners and package managers write them.
fn log(bytes: usize) -> Vec<u8> {
    let lines = [
        "   Compiling serde_json v1.0.154 (registry/src/index/serde_json-1.0.154)\n",
        "test engine::policies::tests::a_rule_that_can_not_be_evaluated_denies ... ok\n",
        "  ├─ node_modules/@types/node@22.10.2 sha512-5Xq3Zk4vVwqF1q0qgq3mPj7e0h3yq1pVwq0r8fQk2nM= (1.2 MB)\n",
        "gcc -O2 -Wall -Wextra -fPIC -I/usr/include/x86_64-linux-gnu -c src/main.c -o build/main.o\n",
        "warning: unused variable: `index` --> src/lib.rs:214:9 | 214 | let index = list.len();\n",
        "2026-11-16T10:33:13.482Z INFO  server::http request{method=GET path=/api/items id=7f1c} done in 3.2ms\n",
        "collected 412 items / tests/test_models.py ........................................ [ 37%]\n",
        "Get:12 deb bookworm/main amd64 libssl3 amd64 3.0.15-1~deb12u1 [2,025 kB]\n",
    ];
    let text: Vec<u8> = lines.iter().cycle().flat_map(|line| line.bytes()).take(bytes).collect();
    text
}
