//! Somebody who answers questions at a terminal of their own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::desk::Desk;
use crate::told;

/// Questions that wait now.
pub fn parked(desk: &Desk) -> Result<Vec<Value>, String> {
    let said = desk.project.done(["approve", "list", "--json"])?;
    let listed: Value = told(serde_json::from_slice(&said.out))?;
    Ok(listed["parked"].as_array().cloned().unwrap_or_default())
}

/// Answers what was shown: a yes without a terminal names its digest.
pub fn answer(desk: &Desk, id: &str, how: &str) -> Result<(), String> {
    let question = parked(desk)?.into_iter().find(|question| question["id"] == id).ok_or("nobody asks that")?;
    let digest = question["digest"].as_str().ok_or("a digest")?;
    desk.project.done(["approve", id, how, "--yes", "--digest", digest]).map(drop)
}

/// Says yes to everything while something is done.
pub fn says_yes<T>(desk: &Desk, doing: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for question in parked(desk).unwrap_or_default() {
                    // One that was answered meanwhile is nobody's any more.
                    drop(answer(desk, question["id"].as_str().unwrap_or_default(), "--once"));
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let done = doing();
        over.store(true, Ordering::Relaxed);
        done
    })
}
