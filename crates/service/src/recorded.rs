//! A run that nobody remembers any more, as the record tells of it: that it ran, and how it ended, without what it said.

use model::{Entry, EntryQuery, Service};
use serde_json::{Value, json};

use crate::job::Answer;

/// An id of the whole length: the start of one is enough for people, and a guess for an API.
const LENGTH: usize = 32;

pub fn run(service: &dyn Service, run: &str) -> Result<Answer, Answer> {
    if run.len() != LENGTH || !run.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(Answer::NotFound);
    }
    let newest = |kinds: &[&str]| {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let query = EntryQuery { run: Some(run.to_owned()), kinds, ..EntryQuery::default() };
        service.records().newest(&query, 1).or_else(crate::task::or_none).map(|mut found| found.pop())
    };
    let ended = newest(&["run.ended"])?;
    let asked = newest(&["run.asked"])?.or_else(|| ended.clone()).ok_or(Answer::NotFound)?;
    Ok(Answer::Done(shown(run, &asked, ended.as_ref())))
}

fn shown(run: &str, asked: &Entry, ended: Option<&Entry>) -> Value {
    let mut shown = json!({
        "id": run, "status": "unknown", "created": seconds(&asked.at), "cancelled": false, "notices": [], "recorded": true,
    });
    let Some(ended) = ended else { return shown };
    let told = &ended.data;
    shown["cancelled"] = (told["overrun"] == "cancelled").into();
    shown["ended"] = json!(seconds(&ended.at));
    if told["outcome"] != "ran" {
        shown["status"] = "failed".into();
        shown["problem"] =
            json!({"outcome": told["outcome"], "rule": told["rule"], "wall": told["wall"], "detail": told["why"]});
        return shown;
    }
    shown["status"] = "done".into();
    shown["result"] = json!({
        "outcome": "ran", "run": run, "exit": told["exit"], "signal": told["signal"], "overrun": told["overrun"],
        "usage": told["usage"], "backend": told["backend"],
    });
    shown
}

/// `2026-11-17T13:15:00…Z`, in seconds since 1970; 0 for what is no time.
fn seconds(at: &str) -> u64 {
    let number = |from: usize, to: usize| at.get(from..to).and_then(|digits| digits.parse::<u64>().ok());
    let all = (number(0, 4), number(5, 7), number(8, 10), number(11, 13), number(14, 16), number(17, 19));
    let (Some(year @ 1970..), Some(month @ 1..=12), Some(day @ 1..=31), Some(hour), Some(minute), Some(second)) = all
    else {
        return 0;
    };
    // Years that begin in March, so that the day that some have more comes last.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1 - 719_468;
    ((days * 24 + hour) * 60 + minute) * 60 + second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_entries_are_seconds() {
        for (at, known) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("1970-03-01T00:00:01Z", 5_097_601),
            ("2000-02-29T12:00:00.5Z", 951_825_600),
            ("2026-11-17T13:15:00Z", 1_794_921_300),
            ("2024-12-31T23:59:59Z", 1_735_689_599),
            ("", 0),
            ("yesterday", 0),
            ("1969-01-01T00:00:00Z", 0),
        ] {
            assert_eq!(seconds(at), known, "{at}");
        }
    }
}
