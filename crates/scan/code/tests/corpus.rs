//! Dangerous programs and their harmless twins: what is found of the former, and how quiet the latter are, by language
//! and class. `RENEW_TABLE=1` writes the table in `docs/scan.md` anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use code::{Rules, Scanner, Source};
use model::{Finding, Severity};

const RECALL: f64 = 0.95;
const PRECISION: f64 = 0.95;
const BEGIN: &str = "<!-- begin: recall and precision -->\n";
const END: &str = "<!-- end: recall and precision -->";

#[derive(Default, Clone, Copy)]
struct Count {
    bad: usize,
    found: usize,
    good: usize,
    alarms: usize,
}

impl Count {
    fn recall(self) -> f64 {
        if self.bad == 0 { 1.0 } else { self.found as f64 / self.bad as f64 }
    }

    fn precision(self) -> f64 {
        if self.found + self.alarms == 0 { 1.0 } else { self.found as f64 / (self.found + self.alarms) as f64 }
    }

    fn add(&mut self, other: Count) {
        self.bad += other.bad;
        self.found += other.found;
        self.good += other.good;
        self.alarms += other.alarms;
    }
}

#[test]
fn what_is_dangerous_is_found_and_what_is_harmless_is_quiet() {
    let mut counts: BTreeMap<(String, String), Count> = BTreeMap::new();
    let mut wrong = String::new();
    for path in files(&folder("corpus")) {
        let parts: Vec<String> =
            path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        let [.., language, class, name] = parts.as_slice() else { continue };
        let findings = grave(&path);
        let count = counts.entry((language.clone(), class.clone())).or_default();
        if name.starts_with("bad_") {
            count.bad += 1;
            // Found is what is found as what it is: another class does not count.
            match findings.iter().any(|finding| related(class, &finding.class)) {
                true => count.found += 1,
                false => writeln!(wrong, "missed: {language}/{class}/{name}: {:?}", rules(&findings)).expect("text"),
            }
        } else {
            count.good += 1;
            if !findings.is_empty() {
                count.alarms += 1;
                writeln!(wrong, "false alarm: {language}/{class}/{name}: {:?}", rules(&findings)).expect("text");
            }
        }
    }
    let languages: BTreeSet<&String> = counts.keys().map(|(language, _)| language).collect();
    for language in languages {
        let mut all = Count::default();
        counts.iter().filter(|((of, _), _)| of == language).for_each(|(_, count)| all.add(*count));
        let least = if ["python", "javascript", "shell"].contains(&language.as_str()) { 25 } else { 10 };
        assert!(all.bad >= least && all.good == all.bad, "{language} has {} pairs", all.bad);
        assert!(all.recall() >= RECALL, "{language}: recall {:.2}\n{wrong}", all.recall());
        assert!(all.precision() >= PRECISION, "{language}: precision {:.2}\n{wrong}", all.precision());
    }
    is_told(&table(&counts), &wrong);
}

/// A chain shows in more than one class: what is decoded and run is found as either.
fn related(class: &str, found: &str) -> bool {
    class == found
        || matches!(
            (class, found),
            ("obfuscation", "dynamic")
                | ("install", "dynamic")
                | ("process", "dynamic" | "backdoor")
                | ("dynamic", "process")
                | ("destructive", "files")
                | ("backdoor", "process" | "dynamic")
        )
}

fn grave(path: &Path) -> Vec<Finding> {
    let bytes = std::fs::read(path).expect("a file");
    let name = path.to_string_lossy();
    let scanned = Scanner::new(Rules::built_in()).scan(&Source { name: &name, language: None, bytes: &bytes });
    scanned.findings.into_iter().filter(|finding| finding.severity >= Severity::Medium).collect()
}

fn rules(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.rule.as_str()).collect()
}

fn table(counts: &BTreeMap<(String, String), Count>) -> String {
    let mut text = String::from("| language | class | pairs | recall | precision |\n|---|---|---:|---:|---:|\n");
    let mut all = Count::default();
    let languages: BTreeSet<&String> = counts.keys().map(|(language, _)| language).collect();
    for language in languages {
        let mut whole = Count::default();
        for ((_, class), count) in counts.iter().filter(|((of, _), _)| of == language) {
            let (recall, precision) = (count.recall(), count.precision());
            writeln!(text, "| {language} | {class} | {} | {recall:.2} | {precision:.2} |", count.bad).expect("text");
            whole.add(*count);
        }
        let (recall, precision) = (whole.recall(), whole.precision());
        writeln!(text, "| **{language}** | all | {} | **{recall:.2}** | **{precision:.2}** |", whole.bad)
            .expect("text");
        all.add(whole);
    }
    let (recall, precision) = (all.recall(), all.precision());
    writeln!(text, "| **all** | all | {} | **{recall:.2}** | **{precision:.2}** |", all.bad).expect("text");
    text
}

fn is_told(table: &str, wrong: &str) {
    let path = folder("../../../docs/scan.md");
    let text = std::fs::read_to_string(&path).expect("docs/scan.md");
    let (before, rest) = text.split_once(BEGIN).expect("where the table begins");
    let (told, after) = rest.split_once(END).expect("where the table ends");
    if std::env::var_os("RENEW_TABLE").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).expect("docs/scan.md is written");
    } else {
        assert_eq!(told, table, "RENEW_TABLE=1 writes the table anew\n{wrong}");
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut todo, mut files) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(path) = todo.pop() {
        for entry in std::fs::read_dir(&path).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { todo.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}
