//! Policy files: what is accepted says its version, has no key that was passed over, and limits that leave something.

use ::policy::{BadPolicy, Policy};
use cli::hostile::line;
use model::Asked;

use crate::shown;

pub fn law(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Policy { limits, accepted_partly, .. } = match Policy::read("policy.toml", text) {
        Ok(policy) => policy,
        Err(bad) => return is_told_with_its_place(&bad, text),
    };
    let table: toml::Table = text.parse().expect("what is accepted is TOML");
    assert_eq!(table.get("version").and_then(|version| version.as_integer()), Some(1), "another version was accepted");
    let known = ["version", "environment", "limits", "accept_gaps"];
    assert!(table.keys().all(|key| known.contains(&key.as_str())), "a key was passed over: {table:?}");
    assert_eq!(accepted_partly, Policy::default().accepted_partly, "a file widened what it can't speak of");
    let Asked { wall_time, millicpus, cpu_time, memory, processes, disk, open_files, output } = limits;
    assert!([wall_time, cpu_time].iter().flatten().all(|time| !time.is_zero()), "a limit of no time");
    assert!(
        [memory, processes, disk, open_files, output].iter().flatten().all(|limit| *limit > 0),
        "a limit of nothing"
    );
    assert_ne!(millicpus, Some(0), "a limit of no processor");
    let asked_for = table.get("limits").and_then(|limits| limits.as_table()).map_or(0, |limits| limits.len());
    let given = [wall_time.is_some(), millicpus.is_some(), cpu_time.is_some(), memory.is_some(), processes.is_some()];
    let given = given.into_iter().chain([disk.is_some(), open_files.is_some(), output.is_some()]);
    assert_eq!(given.filter(|given| *given).count(), asked_for, "a limit was passed over");
}

fn is_told_with_its_place(bad: &BadPolicy, text: &str) {
    let lines = text.split('\n').count();
    assert!((1..=lines).contains(&bad.line), "line {} of {lines}", bad.line);
    shown::is_one_line(&line(&bad.to_string()));
}
