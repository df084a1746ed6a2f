//! Lines for a shell: any bytes are read in short time, and the same commands are found however they are wrapped.

use shell::{LONGEST, Reading, of_line, of_words};

/// What a reading may hold at most.
const COMMANDS: usize = 10_000;
const SENTENCES: usize = 32;
const SENTENCE: usize = 400;
/// For texts as long as the fuzzer's, any reading takes less; in a build without optimisation too.
const SECONDS: u64 = 5;

pub fn law(bytes: &[u8]) {
    let Ok(line) = std::str::from_utf8(bytes) else { return };
    let began = std::time::Instant::now();
    let reading = of_line(line);
    assert!(began.elapsed().as_secs() < SECONDS, "reading it takes {:?}", began.elapsed());
    is_bounded(&reading);
    is_closed(line, &reading);
    behind_a_shell_it_is_the_same(line, &reading);
    twice_is_twice(line, &reading);
    a_word_in_quotes_is_that_word(line);
}

fn is_bounded(reading: &Reading) {
    assert!(reading.commands.len() <= COMMANDS);
    assert!(reading.unclear.len() <= SENTENCES);
    for sentence in &reading.unclear {
        assert!(!sentence.is_empty() && sentence.len() < SENTENCE, "a sentence of {} bytes", sentence.len());
    }
}

/// What is not read is said, and a program that is not known is, too.
fn is_closed(line: &str, reading: &Reading) {
    let unread = line.len() > LONGEST || line.contains('\0');
    let unknown = reading.commands.iter().any(|simple| simple.program.known().is_none());
    assert!(!(unread || unknown) || !reading.unclear.is_empty(), "{line:?} is not clear, and nobody says so");
}

fn behind_a_shell_it_is_the_same(line: &str, reading: &Reading) {
    let words = ["sudo", "bash", "-c", "--", line].map(str::to_owned);
    let wrapped = of_words(&words);
    is_bounded(&wrapped);
    if reading.unclear.is_empty() && wrapped.unclear.is_empty() {
        assert_eq!(texts(&wrapped)[2..], texts(reading), "`bash -c` changes what {line:?} starts");
        assert!(
            wrapped.commands[2..].iter().all(|simple| simple.through.starts_with(&["sudo".into(), "bash -c".into()]))
        );
    }
}

fn twice_is_twice(line: &str, reading: &Reading) {
    // These reach over the end of their line.
    if !reading.unclear.is_empty() || line.contains("<<") || line.ends_with('\\') {
        return;
    }
    let again = of_line(&format!("{line}\n{line}"));
    if again.unclear.is_empty() {
        assert_eq!(texts(&again), texts(reading).repeat(2), "{line:?} twice starts something else");
    }
}

fn a_word_in_quotes_is_that_word(word: &str) {
    if word.contains(['\0', '\u{e000}']) || word.len() > LONGEST / 4 {
        return;
    }
    let plain = of_words(&["tool".to_owned(), word.to_owned()]);
    let quoted = of_line(&format!("tool '{}'", word.replace('\'', r"'\''")));
    assert_eq!(quoted, plain, "{word:?} in quotes is another word");
}

fn texts(reading: &Reading) -> Vec<&str> {
    reading.commands.iter().map(|simple| simple.text.as_str()).collect()
}
