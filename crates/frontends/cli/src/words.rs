//! Saying things to people: on standard error, never to the command's own output.

use std::io::Write;
use std::time::Duration;

/// One line. Whoever does not listen any more misses nothing that the exit code does not say.
pub fn say(line: &str) {
    let line = plain(line.trim_end_matches('\n'));
    match writeln!(std::io::stderr(), "{line}") {
        Ok(()) | Err(_) => {}
    }
}

/// Names and paths in our words are other people's: nothing of them may command a terminal or turn the line around.
fn plain(text: &str) -> String {
    let commands = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    let turns = |letter: char| matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let mut result = String::with_capacity(text.len());
    for letter in text.chars() {
        if commands(letter) || turns(letter) {
            result.extend(letter.escape_unicode());
        } else {
            result.push(letter);
        }
    }
    result
}

/// To standard output, for what was asked for; false if nobody listens.
pub fn print(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
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
