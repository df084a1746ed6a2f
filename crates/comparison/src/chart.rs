//! A comparison as a picture: bars on a logarithmic scale, since what is compared differs a thousandfold.

use std::fmt::Write;

use model::{Benchmark, Compared};

const WIDTH: f64 = 860.0;
const LABEL: f64 = 130.0;
const BAR: f64 = 18.0;
const GAP: f64 = 8.0;

struct Panel {
    title: &'static str,
    value: fn(&Compared) -> Option<f64>,
    shown: fn(f64) -> String,
}

const PANELS: [Panel; 3] = [
    Panel {
        title: "start to end, median (ms, shorter is better)",
        value: |row| row.start.as_ref().map(|spread| spread.p50),
        shown: |value| format!("{value:.1} ms"),
    },
    Panel {
        title: "memory of one that waits (MiB, shorter is better)",
        value: |row| row.memory.map(|bytes| bytes as f64 / f64::from(1 << 20)),
        shown: |value| format!("{value:.1} MiB"),
    },
    Panel {
        title: "starts a second (longer is better)",
        value: |row| row.throughput,
        shown: |value| format!("{value:.0} / s"),
    },
];

pub fn svg(comparison: &Benchmark) -> String {
    let mut body = String::new();
    let mut top = 40.0;
    for panel in &PANELS {
        let rows: Vec<(&Compared, f64)> = comparison
            .rows
            .iter()
            .filter_map(|row| Some((row, (panel.value)(row)?)))
            .filter(|(_, value)| *value > 0.0)
            .collect();
        if rows.is_empty() {
            continue;
        }
        text(&mut body, 12.0, top, "title", panel.title);
        top += 12.0;
        let least = rows.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min).log10().floor();
        let most = rows.iter().map(|(_, value)| *value).fold(0.0, f64::max).log10().ceil().max(least + 1.0);
        let span = WIDTH - LABEL - 110.0;
        for (row, value) in rows {
            let length = ((value.log10() - least) / (most - least)).clamp(0.01, 1.0) * span;
            text(&mut body, 12.0, top + BAR - 4.0, "name", &row.name);
            let class = if row.peer { "peer" } else { "ours" };
            let bar = format!(
                "<rect class=\"{class}\" x=\"{LABEL}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{BAR}\" rx=\"3\"/>"
            );
            body.push_str(&bar);
            text(&mut body, LABEL + length + 8.0, top + BAR - 4.0, "name", &(panel.shown)(value));
            top += BAR + GAP;
        }
        top += 26.0;
    }
    text(&mut body, 12.0, top, "small", &format!("{}; bars on a logarithmic scale", comparison.machine));
    let height = top + 16.0;
    let language = comparison.language.as_deref().map_or(String::new(), |language| format!(", {language}"));
    let mut head = String::new();
    text(&mut head, 12.0, 20.0, "head", &format!("belljar bench{language}"));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"sans-serif\">\n\
         <style>.head{{font-size:16px;font-weight:bold}}.title{{font-size:13px;font-weight:bold}}.name{{font-size:12px}}\
         .small{{font-size:11px;fill:#667}}.ours{{fill:#3d7a5f}}.peer{{fill:#9aa5b1}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{head}{body}</svg>\n"
    )
}

fn text(out: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // Writing to a string does not fail.
    if writeln!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>").is_err() {
        out.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Spread;

    #[test]
    fn bars_are_in_order_and_words_do_no_harm() {
        let row = |name: &str, p50: f64, peer| Compared {
            name: name.to_owned(),
            peer,
            start: Some(Spread { p50, p99: p50, samples: vec![p50] }),
            ..Compared::default()
        };
        let rows = vec![row("no <sandbox>", 1.0, true), row("native", 4.0, false), row("gvisor", 200.0, false)];
        let comparison = Benchmark { machine: "a & b".to_owned(), rows, ..Benchmark::default() };
        let svg = svg(&comparison);
        assert!(svg.contains("no &lt;sandbox&gt;") && svg.contains("a &amp; b") && !svg.contains("<sandbox>"), "{svg}");
        let widths: Vec<f64> = svg
            .lines()
            .flat_map(|line| line.split("<rect class=\"").skip(1))
            .filter_map(|rest| rest.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert!(widths.len() == 3 && widths[0] < widths[1] && widths[1] < widths[2], "{widths:?}");
    }
}
