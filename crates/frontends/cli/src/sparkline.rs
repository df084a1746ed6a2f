//! What a run used over its time, in a line of small columns for each kind.

use std::time::Duration;

use serde_json::Value;

use crate::words;

const WIDEST: usize = 40;
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What was used between two samples, or stood at the second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    from: f64,
    to: f64,
    value: f64,
}

/// Lines for these samples, as they are in the record; none if there is none.
pub fn lines(samples: &[Value]) -> Vec<String> {
    let number = |sample: &Value, name: &str| sample[name].as_f64().filter(|value| value.is_finite()).unwrap_or(0.0);
    let spans = |name: &str, rate: bool| -> Vec<Span> {
        let (mut from, mut before) = (0.0, 0.0);
        let mut spans = Vec::with_capacity(samples.len());
        for sample in samples {
            let (to, now) = (number(sample, "after"), number(sample, name));
            if to <= from {
                continue;
            }
            let value = if rate { (now - before).max(0.0) / (to - from) } else { now };
            spans.push(Span { from, to, value });
            (from, before) = (to, now);
        }
        spans
    };
    let size = |bytes: f64| words::size(bytes.max(0.0) as u64);
    let last = |name: &str| samples.last().map_or(0.0, |sample| number(sample, name));
    let mut lines = Vec::new();
    for (name, rate) in [
        ("processor", true),
        ("memory", false),
        ("processes", false),
        ("read", true),
        ("written", true),
        ("output", true),
    ] {
        let spans = spans(name, rate);
        let most = spans.iter().map(|span| span.value).fold(0.0, f64::max);
        if most <= 0.0 {
            continue;
        }
        let told = match name {
            "processor" => {
                let whole = Duration::try_from_secs_f64(last(name).max(0.0)).unwrap_or_default();
                format!("up to {most:.1} processors at once, {} together", words::time(whole))
            }
            "memory" => format!("up to {}", size(most)),
            "processes" => format!("up to {most}"),
            _ => format!("{} together, up to {} a second", size(last(name)), size(most)),
        };
        lines.push(format!("{name:<10} {} {told}", drawn(&columns(&spans), most)));
    }
    lines
}

/// Of equal width in time; each shows what was used on average while it lasted.
fn columns(spans: &[Span]) -> Vec<f64> {
    let whole = spans.last().map_or(0.0, |span| span.to);
    let count = spans.len().min(WIDEST);
    let width = whole / count.max(1) as f64;
    let column = |number: usize| {
        let (from, to) = (number as f64 * width, (number + 1) as f64 * width);
        let shares = spans.iter().map(|span| (span.value, (span.to.min(to) - span.from.max(from)).max(0.0)));
        let (sum, time) = shares.fold((0.0, 0.0), |(sum, time), (value, share)| (sum + value * share, time + share));
        if time > 0.0 { sum / time } else { 0.0 }
    };
    (0..count).map(column).collect()
}

fn drawn(columns: &[f64], most: f64) -> String {
    let height = |value: &f64| {
        let step = (value / most * (HEIGHTS.len() - 1) as f64).round().clamp(0.0, (HEIGHTS.len() - 1) as f64);
        HEIGHTS.get(step as usize).copied().unwrap_or(' ')
    };
    columns.iter().map(height).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_used_when_can_be_seen() {
        let sample = |after: f64, processor: f64, memory: u64| json!({"after": after, "processor": processor, "memory": memory, "output": 0});
        let samples = [sample(1.0, 0.0, 1 << 20), sample(2.0, 2.0, 8 << 20), sample(3.0, 3.0, 4 << 20)];
        let lines = lines(&samples);
        assert_eq!(
            lines,
            ["processor  ▁█▅ up to 2.0 processors at once, 3.0 s together", "memory     ▂█▅ up to 8.0 MiB"]
        );
    }

    #[test]
    fn a_long_run_fits_a_line_and_uneven_samples_keep_their_place() {
        let mut samples: Vec<Value> = (1..=15).map(|second| json!({"after": second, "processor": second})).collect();
        samples.extend((1..=500).map(|minute| json!({"after": 15 + minute * 60, "processor": 15})));
        let lines = lines(&samples);
        let drawn = lines[0].split(' ').nth(2).unwrap_or_default();
        assert_eq!(drawn.chars().count(), WIDEST, "{lines:?}");
        assert!(drawn.ends_with("▁▁▁▁"), "{lines:?}");
    }

    #[test]
    fn numbers_that_are_none_draw_nothing() {
        for samples in
            [vec![], vec![json!({})], vec![json!({"after": -1, "processor": -5})], vec![json!(null), json!([1])]]
        {
            assert!(lines(&samples).is_empty(), "{samples:?}");
        }
        let wild = [json!({"after": 1e308, "processor": 1e308, "memory": 1e308}), json!({"after": 2, "memory": 1})];
        assert!(lines(&wild).iter().all(|line| !line.contains("NaN")));
    }
}
