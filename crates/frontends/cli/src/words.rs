//! Saying things to people: on standard error, never to the command's own output.

use std::io::Write;
use std::time::Duration;

use serde::Serialize;

/// One line. Whoever does not listen any more misses nothing that the exit code does not say.
pub fn say(text: &str) {
    match writeln!(std::io::stderr(), "{}", line(text)) {
        Ok(()) | Err(_) => {}
    }
}

/// Names and paths in our words are other people's: nothing of them may command a terminal, turn the line around or
/// begin a line that looks like ours.
pub fn line(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if commands(letter) { plain.extend(letter.escape_default()) } else { plain.push(letter) }
    }
    plain
}

/// As programs read it, and safe to look at: what commands a terminal is written as JSON writes it, and reads back the
/// same.
pub fn json(value: &impl Serialize, layout: Layout) -> serde_json::Result<String> {
    let text = match layout {
        Layout::Line => serde_json::to_string(value)?,
        Layout::Page => serde_json::to_string_pretty(value)? + "\n",
    };
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        // A bare line break is the layout's: in a string it is escaped already.
        if letter == '\n' || !commands(letter) {
            plain.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            plain += &format!("\\u{unit:04x}");
        }
    }
    Ok(plain)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    Line,
    Page,
}

/// Control characters, line breaks of all kinds, and letters without a shape that change how others are shown.
fn commands(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Lines as one text.
pub fn page(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|text| line(&text) + "\n").collect()
}

/// Rows with each column as wide as what is in it.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// To standard output, for what was asked for; false if nobody gets it.
pub fn print(text: serde_json::Result<String>) -> bool {
    let text = match text {
        Ok(text) => text,
        Err(error) => {
            say(&format!("belljar: cannot write it as JSON: {error}"));
            return false;
        }
    };
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => true,
        // Whoever reads no further has read enough, and knows.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => false,
        Err(error) => {
            say(&format!("belljar: cannot write to standard output: {error}; send it somewhere else"));
            false
        }
    }
}

/// How many of each, without those that there are none of.
pub fn tally(tally: &model::Tally) -> String {
    let model::Tally { added, modified, deleted, renamed, protected, refused } = tally;
    let counts = [(added, "added"), (modified, "modified"), (deleted, "deleted"), (renamed, "renamed")];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| **count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let mut text = if counts.is_empty() { "nothing".to_owned() } else { counts.join(", ") };
    if *protected > 0 {
        text += &format!(" ({protected} protected)");
    }
    if *refused > 0 {
        text += &format!(" ({refused} that can't be taken)");
    }
    text
}

/// How long ago a second since 1970 was.
pub fn ago(second: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_secs());
    match now.saturating_sub(second) {
        seconds if seconds < 60 => format!("{seconds} s ago"),
        seconds if seconds < 3600 => format!("{} min ago", seconds / 60),
        seconds if seconds < 48 * 3600 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86400),
    }
}

pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

pub fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1000.0),
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_neither_commands_the_terminal_nor_begins_a_line() {
        assert_eq!(
            line("a\nbelljar: exit 0\r\u{1b}[2J\u{9b}2J\t\u{7f}"),
            "a\\nbelljar: exit 0\\r\\u{1b}[2J\\u{9b}2J\\t\\u{7f}"
        );
        assert_eq!(line("\u{202e}gnp\u{61c}\u{e0041}"), "\\u{202e}gnp\\u{61c}\\u{e0041}");
        assert_eq!(line("größer 大 e\u{301}"), "größer 大 e\u{301}");
    }

    #[test]
    fn json_that_is_safe_to_look_at_reads_back_the_same() {
        let text = "a\n\u{1b}\u{7f}\u{9b}\u{202e}\u{61c}\u{e0041}\"\\大";
        for layout in [Layout::Line, Layout::Page] {
            let written = json(&[text], layout).expect("it is written");
            assert!(!written.trim_end().chars().any(|letter| letter != '\n' && commands(letter)), "{written:?}");
            assert_eq!(serde_json::from_str::<Vec<String>>(&written).expect("it is JSON"), [text]);
        }
    }
}
