//! How long what is written inside takes to whoever listens, alone and with many others.

use std::io::BufRead;
use std::sync::Barrier;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::Who;

use super::{Amounts, Server, keep};
use crate::bench::samples::{Samples, Table, median, met, milliseconds, percentile};

/// Says what time it is, again and again, by a clock that is the same inside and outside.
const CODE: &str =
    "import time\nfor _ in range(LINES):\n    time.sleep(PAUSE)\n    print(time.monotonic_ns(), flush=True)";
const SOON: Duration = Duration::from_millis(1);

pub fn measure(who: Who, server: &Server, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let title = format!("From a write inside to whoever streams it over HTTP, as {}", who.name());
    let mut table = Table::new(title, &["", "lines", "p50 ms", "p99 ms", "wanted"]);
    // A hundred lines a second, of one or of all: more of them would measure the programs that write.
    let cases = [("one stream", 1, 0.01, amounts.runs), ("all of 100 streams at once", amounts.streams, 1.0, 5)];
    for (name, streams, pause, lines) in cases {
        let code = CODE.replace("LINES", &lines.to_string()).replace("PAUSE", &pause.to_string());
        let together = Barrier::new(streams);
        let one = || -> Result<Vec<Duration>, String> {
            let client = server.client();
            together.wait();
            let times = times(client?, &code)?;
            match times.len() == lines {
                true => Ok(times),
                false => Err(format!("{} of {lines} lines came", times.len())),
            }
        };
        let ended: Vec<Result<Vec<Duration>, String>> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..streams).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|one| one.join().unwrap_or_else(|_| Err("a client gave up".to_owned()))).collect()
        });
        let times: Vec<Duration> =
            ended.into_iter().collect::<Result<Vec<_>, String>>()?.into_iter().flatten().collect();
        keep(samples, "streams", name, who, &times)?;
        // That every line comes is seen to above.
        let wanted = if streams == 1 { met(median(&times) <= SOON, "p50 ≤ 1 ms") } else { String::new() };
        let (p50, p99) = (milliseconds(median(&times)), milliseconds(percentile(&times, 0.99)));
        let name = name.replace("100", &streams.to_string());
        table.rows.push(vec![name, times.len().to_string(), p50, p99, wanted]);
    }
    Ok(table)
}

/// How old each line was when it came.
fn times(mut client: super::Client, code: &str) -> Result<Vec<Duration>, String> {
    client.send("POST", "/v1/run", &json!({"command": ["python3", "-c", code], "stream": true}))?;
    let (mut times, mut event, mut line) = (Vec::new(), String::new(), String::new());
    loop {
        line.clear();
        if client.reader.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
            return Err("the stream ended before its run".to_owned());
        }
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        if let Some(name) = line.strip_prefix("event: ") {
            name.trim().clone_into(&mut event);
        }
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let data: Value = serde_json::from_str(data).map_err(|error| error.to_string())?;
        match event.as_str() {
            "stdout" => {
                let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
                let written = data["text"].as_str().unwrap_or_default().lines().filter_map(|line| line.parse().ok());
                times.extend(written.map(|written: u64| Duration::from_nanos(now.saturating_sub(written))));
            }
            "result" => return Ok(times),
            "problem" => return Err(format!("it was refused: {data}")),
            _ => {}
        }
    }
}
