//! Lines and what they start, as in `table.txt`: `$` is a line, `>` more of it, `%` words without a shell; then each
//! command, and after `?` what is unclear.

use std::fmt::Write;

use shell::{Reading, Simple};

const TABLE: &str = include_str!("table.txt");

#[test]
fn each_line_starts_what_the_table_says() {
    let mut renewed = String::new();
    let mut lines = 0;
    for block in TABLE.split("\n\n") {
        let (mut asked, mut reading) = (String::new(), None);
        for line in block.lines() {
            if let Some(first) = line.strip_prefix("$ ") {
                asked = first.to_owned();
            } else if let Some(more) = line.strip_prefix("> ").or(line.strip_prefix(">")) {
                asked.push('\n');
                asked.push_str(more);
            } else if let Some(words) = line.strip_prefix("% ") {
                let words: Vec<String> = words.split('␣').map(str::to_owned).collect();
                reading = Some(shell::of_words(&words));
            } else if !line.starts_with('#') {
                continue;
            }
            renewed.push_str(line);
            renewed.push('\n');
        }
        if block.lines().all(|line| line.starts_with('#')) {
            renewed.push('\n');
            continue;
        }
        lines += 1;
        write(&reading.unwrap_or_else(|| shell::of_line(&asked)), &mut renewed);
        renewed.push('\n');
    }
    let renewed = format!("{}\n", renewed.trim_end());
    if std::env::var_os("RENEW_TABLE").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/table.txt"), &renewed)
            .expect("the table is written");
        return;
    }
    for (found, wanted) in renewed.split("\n\n").zip(TABLE.trim_end().split("\n\n")) {
        assert_eq!(found.trim_end(), wanted);
    }
    assert!(lines >= 120, "the table has only {lines} lines");
}

fn write(reading: &Reading, into: &mut String) {
    for simple in &reading.commands {
        let Simple { fed_by, writes, reads, through, code, text, assignments, program, arguments: _, script: _ } =
            simple;
        let texts = |words: &[shell::Word]| words.iter().map(|word| word.text().to_owned()).collect::<Vec<_>>();
        write!(into, "    {}", text.replace('\n', "⏎")).expect("a string takes all");
        if program.known().is_none() {
            into.push_str("  [unknown]");
        }
        let set: Vec<String> = assignments.iter().map(|(name, value)| format!("{name}={}", value.text())).collect();
        for (what, values) in [
            ("with", &set),
            ("through", through),
            ("fed by", fed_by),
            ("writes", &texts(writes)),
            ("reads", &texts(reads)),
        ] {
            if !values.is_empty() {
                write!(into, "  [{what}: {}]", values.join(", ")).expect("a string takes all");
            }
        }
        if let Some(code) = code {
            write!(into, "  [{}: {}]", code.language, code.text.trim_end().replace('\n', "⏎"))
                .expect("a string takes all");
        }
        into.push('\n');
    }
    for sentence in &reading.unclear {
        writeln!(into, "    ? {}", sentence.replace('\n', "⏎")).expect("a string takes all");
    }
}
