//! What /proc says of a process, read as bytes. A process chooses its name, and the name is in these records: one that
//! is no text must not hide the rest.

/// The part of /proc/PID/stat that we need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub pid: i32,
    /// When it began; with its number, what tells it from others.
    pub started: u64,
    /// Its own time, and that of the children it has waited for.
    pub ticks: u64,
    pub of_children: u64,
}

pub fn stat(record: &[u8]) -> Option<Stat> {
    let pid = number(words(record).next()?)?;
    // Names may hold spaces, line breaks and `)`; what follows them holds none of these.
    let name_ends = record.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&[u8]> = words(&record[name_ends + 1..]).collect();
    // proc(5): utime, stime, cutime and cstime are fields 14 to 17, starttime is 22; these begin with field 3.
    let time = |field: usize| number::<u64>(fields.get(field)?);
    let ticks = time(11)?.saturating_add(time(12)?);
    let of_children = time(13)?.saturating_add(time(14)?);
    Some(Stat { pid, started: number(fields.get(19)?)?, ticks, of_children })
}

/// The numbers in /proc/PID/task/TID/children.
pub fn children(record: &[u8]) -> impl Iterator<Item = i32> {
    words(record).filter_map(number).filter(|pid| *pid > 0)
}

/// From a line such as `rchar: 12` in /proc/PID/io; 0 if there is none.
pub fn count(record: &[u8], key: &str) -> u64 {
    let line = record.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(key.as_bytes()));
    line.and_then(|rest| number(words(rest).next()?)).unwrap_or(0)
}

/// Bytes, from a line such as `RssAnon:  12 kB` in /proc/PID/status; 0 if there is none.
pub fn kilobytes(record: &[u8], key: &str) -> u64 {
    count(record, key).saturating_mul(1024)
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_text_hides_nothing() {
        let names: [&[u8]; 6] = [b"sh", b"\xff\xfe", b") R 1 1 1", b"a\nb", b"((", b""];
        for name in names {
            let record = [b"7 (", name, b") S 1 7 7 0 -1 4194560 9 8 7 6 10 20 30 40 20 0 1 0 555 99 1"].concat();
            assert_eq!(stat(&record), Some(Stat { pid: 7, started: 555, ticks: 30, of_children: 70 }), "{name:?}");
        }
        let status = b"Name:\t\xff\xfe\nState:\tS (sleeping)\nRssAnon:\t     200 kB\nRssShmem:\t       4 kB\n";
        assert_eq!(kilobytes(status, "RssAnon:"), 200 * 1024);
        assert_eq!(kilobytes(status, "RssShmem:"), 4 * 1024);
    }

    #[test]
    fn numbers_that_no_kernel_gives_neither_panic_nor_turn_small() {
        let most = u64::MAX.to_string();
        assert_eq!(kilobytes(format!("RssAnon:\t{most} kB").as_bytes(), "RssAnon:"), u64::MAX);
        assert_eq!(children(b"12 0 -1 99999999999 x 13 ").collect::<Vec<_>>(), [12, 13]);
    }
}
