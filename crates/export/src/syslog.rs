//! Lines of syslog, RFC 5424: one an entry, with what names it as structured data. The record itself has the rest.

use model::Entry;

use crate::Origin;
use crate::entry::{Weight, commands, shortened, summary, weight};

/// "Log audit".
const FACILITY: u8 = 13;
/// Of one value. With all of them a line stays below what every receiver must take through TCP, and fits a datagram.
const LONGEST_VALUE: usize = 512;
/// Of the words at the end, in bytes.
const LONGEST_MESSAGE: usize = 2048;
/// Names of ours among structured data. The number is the one that is kept for whoever has none of their own.
const OURS: &str = "belljar@32473";

/// Without an end of line: there is none in it either.
pub fn line(origin: &Origin, entry: &Entry) -> String {
    let severity = match weight(entry) {
        Weight::Alarm => 1,
        Weight::Refused => 4,
        Weight::Notable => 5,
        Weight::Ordinary => 6,
    };
    let priority = FACILITY * 8 + severity;
    let mut line = format!(
        "<{priority}>1 {} {} belljar - {} ",
        time(&entry.at),
        header(&origin.host, 255),
        header(&entry.kind, 32),
    );
    line += &format!("[origin software=\"belljar\" swVersion=\"{}\"]", value(&origin.version));
    line += &format!("[{OURS} n=\"{}\"", entry.number);
    let named = [
        ("installation", Some(&origin.installation)),
        ("type", Some(&entry.kind)),
        ("run", entry.run.as_ref()),
        ("user", entry.user.as_ref()),
        ("agent", entry.agent.as_ref()),
        ("hash", Some(&entry.hash)),
    ];
    for (name, said) in named {
        if let Some(said) = said.filter(|said| !said.is_empty()) {
            line += &format!(" {name}=\"{}\"", value(said));
        }
    }
    line += &format!(" denied=\"{}\"] ", entry.denied);
    let message = printable(shortened(&summary(entry), LONGEST_MESSAGE));
    if !message.is_ascii() {
        // This is how a receiver knows that it is UTF-8.
        line.push('\u{feff}');
    }
    line + &message
}

/// With its length before it, as streams want it (RFC 6587): a line can hold anything but be taken for two.
pub fn framed(line: &str) -> String {
    format!("{} {line}", line.len())
}

/// Ours has the form that is wanted; whatever has not is not told.
fn time(at: &str) -> &str {
    let form = "dddd-dd-ddTdd:dd:dd.ddddddZ";
    let fits = at.len() == form.len()
        && at.bytes().zip(form.bytes()).all(|(letter, wanted)| match wanted {
            b'd' => letter.is_ascii_digit(),
            _ => letter == wanted,
        });
    if fits { at } else { "-" }
}

/// A word of the header: letters of ASCII that are seen, and not too many.
fn header(text: &str, most: usize) -> String {
    let word: String = text.chars().filter(char::is_ascii_graphic).take(most).collect();
    if word.is_empty() { "-".to_owned() } else { word }
}

fn value(text: &str) -> String {
    let mut written = String::new();
    for letter in printable(shortened(text, LONGEST_VALUE)).chars() {
        if matches!(letter, '"' | '\\' | ']') {
            written.push('\\');
        }
        written.push(letter);
    }
    written
}

/// Nothing of it ends a line or commands a terminal.
fn printable(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match commands(letter) {
            true => plain.extend(letter.escape_default()),
            false => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::entry::samples;

    #[test]
    fn a_line_is_what_the_standard_says() {
        let line = line(&samples::origin(), &samples::run()[6]);
        assert_eq!(
            line,
            format!(
                "<109>1 2026-11-16T14:20:07.123456Z host belljar - call.denied [origin software=\"belljar\" \
                 swVersion=\"0.1.0\"][belljar@32473 n=\"7\" installation=\"00112233445566778899aabbccddeeff\" \
                 type=\"call.denied\" run=\"{}\" user=\"anna\" agent=\"tester\" hash=\"{}\" denied=\"true\"] \
                 call.denied: unshare by sh",
                samples::RUN,
                "ab".repeat(32)
            )
        );
    }

    #[test]
    fn no_name_ends_a_line_a_value_or_the_data() {
        let mut entry = samples::entry(1, "run.asked", false, json!({"command": ["a\n<0>1 b\r\u{85}\u{2028}é"]}));
        entry.agent = Some("x\"] evil=\"y\\\n".to_owned());
        let line = line(&samples::origin(), &entry);
        assert!(!line.contains(['\n', '\r', '\u{85}', '\u{2028}']), "{line:?}");
        assert!(line.contains(r#" agent="x\"\] evil=\"y\\\\n" "#), "{line:?}");
        assert!(line.ends_with("\u{feff}run.asked: a\\n<0>1 b\\r\\u{85}\\u{2028}é"), "{line:?}");
    }

    #[test]
    fn how_serious_it_is_shows_in_the_number() {
        let priority = |kind, denied| {
            let line = line(&samples::origin(), &samples::entry(1, kind, denied, json!({})));
            line.split_once('>').map(|(number, _)| number[1..].to_owned())
        };
        assert_eq!(priority("monitor.alert", false).as_deref(), Some("105"));
        assert_eq!(priority("run.judged", true).as_deref(), Some("108"));
        assert_eq!(priority("run.ended", false).as_deref(), Some("110"));
    }

    #[test]
    fn a_frame_counts_bytes_and_not_letters() {
        assert_eq!(framed("é!"), "3 é!");
    }
}
