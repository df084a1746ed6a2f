//! How long snippets take, for `cargo xtask bench scan`: a JSON object of samples in nanoseconds on standard output.

#[path = "../../../../xtask/src/bench/sampled.rs"]
mod sampled;

use code::{Language, Rules, Scanner, Source};
use sampled::{report, sampled};

/// The allocator of the released programs: with musl's own, something else would be measured.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

const PYTHON: &str = "import json, os, sys\n\ndef load(path):\n    with open(path) as file:\n        return json.load(file)\n\n\
    def total(items, rate=1.2):\n    result = 0\n    for item in items:\n        if item.get('active') and item['price'] > 0:\n\
    \u{20}           result += item['price'] * rate\n    return round(result, 2)\n\n";
const JAVASCRIPT: &str = "const path = require('path');\n\nexport function group(list, key) {\n  const groups = {};\n\
    \u{20} for (const item of list) {\n    (groups[item[key]] ||= []).push({ ...item, at: path.join('a', `${item.name}.json`) });\n\
    \u{20} }\n  return Object.entries(groups).map(([name, items]) => ({ name, count: items.length }));\n}\n\n";
const SHELL: &str = "set -eu\nfor file in src/*.c; do\n  name=$(basename \"$file\" .c)\n  gcc -O2 -c \"$file\" -o \"build/$name.o\"\ndone\n\
    if [ -f Makefile ]; then make -j2 all | tail -n 5; fi\ngrep -rn 'TODO' src | sort | uniq -c || true\n\n";

fn main() {
    let runs = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(100);
    let mut samples = serde_json::Map::new();
    for (name, language, text) in [
        ("Python", Language::Python, PYTHON),
        ("JavaScript", Language::JavaScript, JAVASCRIPT),
        ("shell", Language::Shell, SHELL),
    ] {
        let lines: Vec<&str> = text.lines().cycle().take(200).collect();
        let text = lines.join("\n") + "\n";
        // The rules are read with the first: that is what a cold start pays.
        let times = sampled(runs, || {
            let source = Source { name: "snippet", language: Some(language), bytes: text.as_bytes() };
            Scanner::new(Rules::built_in()).scan(&source).findings.len()
        });
        samples.insert(format!("a snippet of 200 lines, {name}"), times.into());
    }
    report(&serde_json::Value::Object(samples));
}
