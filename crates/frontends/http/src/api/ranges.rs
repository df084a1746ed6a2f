//! `Range`: which part of a file is asked for. What is not understood is as if it were not said, as RFC 9110 has it.

/// A part: from the beginning on, or so much of the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    From { first: u64, length: Option<u64> },
    Last(u64),
}

/// One range of bytes. Several at once are not had here, and all of it is the answer to them.
pub fn of(header: &str) -> Option<Range> {
    let (first, last) = header.trim().strip_prefix("bytes=")?.trim().split_once('-')?;
    let number = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok())?
    };
    match (first, last) {
        ("", last) => number(last).map(Range::Last),
        (first, "") => Some(Range::From { first: number(first)?, length: None }),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            let length = last.checked_sub(first)?.checked_add(1)?;
            Some(Range::From { first, length: Some(length) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_strictly_or_not_at_all() {
        assert_eq!(of("bytes=0-0"), Some(Range::From { first: 0, length: Some(1) }));
        assert_eq!(of("bytes=5-"), Some(Range::From { first: 5, length: None }));
        assert_eq!(of("bytes=-7"), Some(Range::Last(7)));
        for wrong in [
            "", "bytes", "bytes=", "bytes=-", "bytes=2-1", "bytes=a-b", "bytes=1-2,4-5", "bytes=+1-2", "lines=1-2",
            "bytes=0-18446744073709551615", "bytes=18446744073709551616-",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
