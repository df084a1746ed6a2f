//! The built-in rules become constants, and a sorted index of names for each language: nothing is read or parsed when
//! a scan begins.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

#[path = "src/file.rs"]
mod file;

use file::{File, LABELS, LANGUAGES, SEVERITIES, SKETCH, SKETCH_START, bits, sketch_place, sketched, widened};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=rules");
    println!("cargo::rerun-if-changed=src/file.rs");
    let mut paths: Vec<_> =
        fs::read_dir("rules")?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let mut made = Made::default();
    for path in &paths {
        let text = fs::read_to_string(path)?;
        let file: File = toml::from_str(&text).map_err(|error| wrong(path, error))?;
        made.add(file).map_err(|error| wrong(path, error))?;
    }
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("rules.rs"), made.written())
}

fn wrong(path: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

#[derive(Default)]
struct Made {
    rules: String,
    origins: String,
    runs: String,
    count: [usize; 3],
    /// By language and pattern: entries as the index holds them.
    index: BTreeMap<(usize, String), Vec<String>>,
}

impl Made {
    fn add(&mut self, file: File) -> Result<(), String> {
        for rule in file.rule {
            let rule = rule.into_inner();
            if rule.matches.is_empty() || rule.passes.is_empty() {
                return Err(format!("{}: a rule has examples under `matches` and under `passes`", rule.id));
            }
            let id = format!("{}.{}", file.class, rule.id);
            let languages = widened(bits(&rule.languages, LANGUAGES).map_err(|name| format!("{id}: language {name}"))?);
            let severity = match rule.severity.as_str() {
                "low" => "Low",
                "medium" => "Medium",
                "high" => "High",
                "critical" => "Critical",
                other => return Err(format!("{id}: severity {other} is none of {SEVERITIES:?}")),
            };
            let when = rule.when;
            let from = bits(&when.from, LABELS).map_err(|name| format!("{id}: label {name}"))?;
            let kinds: Vec<(&str, Vec<String>)> = [
                ("Call", when.call),
                ("Import", when.import),
                ("Read", when.read),
                ("String", one(when.string)),
                ("Text", one(when.text)),
                ("Program", when.program),
            ]
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .collect();
            let [(kind, names)] = kinds.as_slice() else {
                return Err(format!("{id}: `when` has one of call, import, read, string, text, program"));
            };
            if matches!(*kind, "String" | "Text") {
                for language in bit_places(languages) {
                    self.index
                        .entry((language, format!("\u{1}{kind}")))
                        .or_default()
                        .push(format!("Entry::Rule({})", self.count[0]));
                }
            } else {
                let mark = match *kind {
                    "Call" => "",
                    "Import" => "import ",
                    "Read" => "read ",
                    _ => "program ",
                };
                for name in names {
                    self.note(languages, &format!("{mark}{name}"), &format!("Entry::Rule({})", self.count[0]));
                }
            }
            self.count[0] += 1;
            writeln!(
                self.rules,
                "    Rule {{ id: Cow::Borrowed({id:?}), class: Cow::Borrowed({:?}), severity: Severity::{severity}, cwe: {}, \
                 languages: {languages}, message: Cow::Borrowed({:?}), fix: Cow::Borrowed({:?}), when: When {{ kind: \
                 Kind::{kind}, names: {}, hints: {}, argument: {:?}, matches: Cow::Borrowed({:?}), unless: \
                 Cow::Borrowed({:?}), constant: {:?}, keyword: Cow::Borrowed({:?}), value: Cow::Borrowed({:?}), from: \
                 {from}, fed: {:?}, writes: Cow::Borrowed({:?}) }} }},",
                file.class,
                rule.cwe,
                rule.message,
                rule.fix,
                list(names),
                list(&when.hints),
                when.argument,
                when.matches,
                when.unless,
                when.constant,
                when.keyword,
                when.value,
                when.fed,
                when.writes,
            )
            .map_err(|error| error.to_string())?;
        }
        for origin in file.origin {
            let languages = widened(bits(&origin.languages, LANGUAGES).map_err(str::to_owned)?);
            let label = bits(std::slice::from_ref(&origin.label), LABELS).map_err(str::to_owned)?;
            let from = bits(&origin.from, LABELS).map_err(str::to_owned)?;
            let entry = format!("Entry::Origin({})", self.count[1]);
            origin.call.iter().for_each(|name| self.note(languages, name, &entry));
            origin.read.iter().for_each(|name| self.note(languages, &format!("read {name}"), &entry));
            self.count[1] += 1;
            writeln!(
                self.origins,
                "    Origin {{ label: {label}, from: {from}, matches: Cow::Borrowed({:?}) }},",
                origin.matches
            )
            .map_err(|error| error.to_string())?;
        }
        for runs in file.runs {
            let languages = widened(bits(&runs.languages, LANGUAGES).map_err(str::to_owned)?);
            let language = LANGUAGES.iter().position(|known| *known == runs.language);
            if language.is_none() && runs.language != "same" {
                return Err(format!("runs: language {}", runs.language));
            }
            let entry = format!("Entry::Runs({})", self.count[2]);
            runs.call.iter().for_each(|name| self.note(languages, name, &entry));
            self.count[2] += 1;
            writeln!(
                self.runs,
                "    Runs {{ language: {language:?}, argument: {}, words: {} }},",
                runs.argument, runs.words
            )
            .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn note(&mut self, languages: u16, name: &str, entry: &str) {
        for language in bit_places(languages) {
            let entries = self.index.entry((language, name.to_owned())).or_default();
            if !entries.iter().any(|known| known == entry) {
                entries.push(entry.to_owned());
            }
        }
    }

    fn written(&self) -> String {
        let mut text = format!(
            "pub(crate) static RULES: [Rule; {}] = [\n{}];\npub(crate) static ORIGINS: [Origin; {}] = \
             [\n{}];\npub(crate) static RUNS: [Runs; {}] = [\n{}];\n",
            self.count[0], self.rules, self.count[1], self.origins, self.count[2], self.runs
        );
        text += "/// For each language: patterns of names in order, with what is known of them.\n";
        text += "pub(crate) static INDEX: [&[(&str, &[Entry])]; LANGUAGES.len()] = [\n";
        for language in 0..LANGUAGES.len() {
            text += "    &[";
            for ((of, name), entries) in &self.index {
                if *of == language {
                    text += &format!("({name:?}, &[{}]), ", entries.join(", "));
                }
            }
            text += "],\n";
        }
        text += "];\n/// For each language: which names may be in its index.\n";
        text += "pub(crate) static SKETCHES: [[u64; SKETCH]; LANGUAGES.len()] = [\n";
        for language in 0..LANGUAGES.len() {
            let mut sketch = [0_u64; SKETCH];
            for (_, name) in self.index.keys().filter(|(of, _)| *of == language) {
                let (word, bit) = sketch_place(name.bytes().fold(SKETCH_START, sketched));
                sketch[word] |= bit;
            }
            text += &format!("    {sketch:?},\n");
        }
        text + "];\n"
    }
}

fn one(text: String) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { vec![text] }
}

fn bit_places(bits: u16) -> impl Iterator<Item = usize> {
    (0..LANGUAGES.len()).filter(move |place| bits & (1 << place) != 0)
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("Cow::Borrowed({name:?})")).collect();
    format!("Cow::Borrowed(&[{}])", names.join(", "))
}
