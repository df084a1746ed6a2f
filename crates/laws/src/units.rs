//! Sizes, times and counts: what is read is more than nothing, and written out it reads back the same.

use std::fmt::Display;
use std::time::Duration;

use model::units;

use crate::shown;

pub fn law(bytes: &[u8]) {
    let Ok(word) = std::str::from_utf8(bytes) else { return };
    reads_back(word, units::bytes, |bytes| format!("{bytes}"));
    // Fractions are rounded down: the next digit up leads back to the same number.
    reads_back(word, units::bytes, |bytes| format!("{}.{:09}K", bytes / 1024, bytes % 1024 * 1_000_000_000 / 1024 + 1));
    reads_back(word, units::duration, |time| format!("{}.{:09}s", time.as_secs(), time.subsec_nanos()));
    reads_back(word, units::processors, |millis| format!("{}.{:03}", millis / 1000, millis % 1000));
    reads_back(word, units::count, |count| format!("{count}"));
    if let Ok(time) = units::duration(word) {
        assert!(time <= Duration::from_nanos(u64::MAX), "{word:?} is longer than can be counted");
    }
}

fn reads_back<T: PartialEq + Default + Copy + std::fmt::Debug, E: Display>(
    word: &str,
    read: impl Fn(&str) -> Result<T, E>,
    written: impl Fn(T) -> String,
) {
    match read(word) {
        Err(error) => shown::is_one_line(&error.to_string()),
        Ok(value) => {
            assert_ne!(value, T::default(), "{word:?} is nothing");
            let again = written(value);
            assert_eq!(read(&again).ok(), Some(value), "{word:?} is read, written as {again:?}, and not the same");
        }
    }
}
