//! Secrets as somebody reads them who does not see what lies between their letters: paint, line ends, dumps of bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrets::formats::examples::spelled_out;
use secrets::{Added, Formats, Redactor, Values};

const VALUE: &str = "fish-under-glass-9137";

fn known() -> Redactor {
    let mut values = Values::new();
    assert_eq!(values.add("DEPLOY_KEY", VALUE.as_bytes()), Added::Kept);
    Redactor::new(&values, Some(&Formats::built_in()))
}

/// What comes out, whole and byte by byte: always the same.
fn redacted(redactor: &mut Redactor, text: &[u8]) -> String {
    let mut out = Vec::new();
    redactor.push(text, &mut out);
    redactor.finish(&mut out);
    let mut slow = Vec::new();
    text.iter().for_each(|byte| redactor.push(&[*byte], &mut slow));
    redactor.finish(&mut slow);
    assert_eq!(String::from_utf8_lossy(&slow), String::from_utf8_lossy(&out), "of {}", text.escape_ascii());
    String::from_utf8_lossy(&out).into_owned()
}

fn token() -> String {
    spelled_out("ghp_⟨github 36⟩").expect("as written above")
}

#[test]
fn paint_between_letters_hides_nothing() {
    let mut redactor = known();
    let token = token();
    for (secret, name) in [(VALUE, "DEPLOY_KEY"), (token.as_str(), "github.token.personal")] {
        for paint in [
            "\x1b[31m", "\x1b[0m\x1b[38;2;255;100;0m", "\u{200b}", "\u{feff}", "\u{ad}", "\u{e0041}",
            "\x1b]0;title\x07", "\x1b]8;;https://example.org\x1b\\", "\x1b(B", "\x08", "\r", "\0", "\x7f", "\u{9b}1m",
            "\x1b[K\u{2060}\x1b[m",
        ] {
            for cut in 1..secret.len() {
                let text = format!("a {}{paint}{} b\n", &secret[..cut], &secret[cut..]);
                let out = redacted(&mut redactor, text.as_bytes());
                let marks = out.replace("\x1b[31m", "").replace("\x1b[0m", "").replace("\x1b[38;2;255;100;0m", "");
                assert_eq!(marks.replace("\x1b[m", ""), format!("a [redacted:{name}] b\n"), "{text:?}");
            }
            let every: String = secret.chars().flat_map(|letter| [paint.to_owned(), letter.to_string()]).collect();
            let out = redacted(&mut redactor, format!("a {every} b\n").as_bytes());
            assert!(out.contains(&format!("[redacted:{name}]")) && out.ends_with(" b\n"), "{every:?} became {out:?}");
        }
    }
}

#[test]
fn a_token_that_is_painted_is_found_and_the_paint_stays() {
    let token = token();
    let out = redacted(&mut known(), format!("found: \x1b[01;31m\x1b[K{token}\x1b[m\x1b[K ok\n").as_bytes());
    assert_eq!(out, "found: \x1b[01;31m\x1b[K[redacted:github.token.personal]\x1b[m\x1b[K ok\n");
    // Where paint ends inside, what follows is not painted.
    let out = redacted(&mut known(), format!("\x1b[31m{}\x1b[0m{} ok\n", &token[..9], &token[9..]).as_bytes());
    assert_eq!(out, "\x1b[31m[redacted:github.token.personal]\x1b[0m ok\n");
}

#[test]
fn letters_that_are_printed_twice_are_read_once() {
    let token = token();
    for secret in [VALUE, &token] {
        let bold: String = secret.chars().map(|letter| format!("{letter}\x08{letter}")).collect();
        let under: String = secret.chars().map(|letter| format!("_\x08{letter}")).collect();
        let other: String = secret.chars().map(|letter| format!("x\x08{letter}")).collect();
        for text in [bold, under, other] {
            // Not byte by byte: a letter that is taken back later does not look like one when it comes.
            let mut out = Vec::new();
            let mut redactor = known();
            redactor.push(format!("a {text} b\n").as_bytes(), &mut out);
            redactor.finish(&mut out);
            let out = String::from_utf8_lossy(&out);
            assert!(out.contains("[redacted:") && out.ends_with("] b\n") && out.len() < 50, "{text:?} became {out:?}");
        }
    }
}

#[test]
fn a_value_in_two_bytes_a_letter_is_known() {
    for big in [false, true] {
        let wide = |text: &str| -> Vec<u8> {
            text.encode_utf16().flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
        };
        let out = redacted(&mut known(), &wide(&format!("key: {VALUE}\r\n")));
        assert!(out.contains("[redacted:DEPLOY_KEY]") && !out.contains('h'), "{out:?}");
    }
}

fn lines<'a>(bytes: &'a [u8], columns: usize, mut line: impl FnMut(usize, &'a [u8]) -> String) -> String {
    bytes.chunks(columns).enumerate().map(|(number, part)| line(number * columns, part) + "\n").collect()
}

fn plain(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '.' }).collect()
}

fn pairs(bytes: &[u8]) -> Vec<String> {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn dumps_of_bytes_are_read() {
    for before in 0..18 {
        let text = format!("{}{VALUE} then what follows\n", "=".repeat(before));
        let bytes = text.as_bytes();
        let dumps = [
            lines(bytes, 16, |at, part| {
                let words: Vec<String> = part.chunks(2).map(|word| pairs(word).concat()).collect();
                format!("{at:08x}: {:<39}  {}", words.join(" "), plain(part))
            }),
            lines(bytes, 16, |at, part| {
                let (one, two) = part.split_at(part.len().min(8));
                format!(
                    "{at:08x}  {:<48}  |{}|",
                    format!("{}  {}", pairs(one).join(" "), pairs(two).join(" ")),
                    plain(part)
                )
            }),
            lines(bytes, 16, |at, part| {
                let cell =
                    |byte: &u8| if *byte == b'\n' { "  \\n".to_owned() } else { format!("   {}", char::from(*byte)) };
                format!("{at:07o}{}", part.iter().map(cell).collect::<String>())
            }),
            lines(bytes, 16, |at, part| format!("{at:07o} {}", pairs(part).join(" "))),
            lines(bytes, 16, |at, part| {
                let word = |part: &[u8]| format!("{:02x}{:02x}", part.get(1).unwrap_or(&0), part[0]);
                format!("{at:07o} {}", part.chunks(2).map(word).collect::<Vec<_>>().join(" "))
            }),
            lines(bytes, 12, |_, part| {
                format!("  {},", part.iter().map(|byte| format!("0x{byte:02x}")).collect::<Vec<_>>().join(", "))
            }),
            lines(bytes, 30, |_, part| pairs(part).concat()),
        ];
        for dump in dumps {
            let out = redacted(&mut known(), format!("$ dump\n{dump}\ndone\n").as_bytes());
            assert!(out.contains("[redacted:DEPLOY_KEY]") && out.ends_with("\ndone\n"), "{dump} became {out}");
            for part in ["under", "6e64 6572", "6e 64", "u   n", "752d 646e", "0x6e, 0x64", "756e64"] {
                assert!(!out.contains(part), "{dump} became {out}");
            }
        }
    }
}

#[test]
fn a_line_with_a_number_before_it_is_shown_at_once() {
    for prompt in ["1234567 files, go on? ", "00000000: what is it? ", "  12 or 13? ", "0x10 or 0x20? "] {
        let mut out = Vec::new();
        known().push(prompt.as_bytes(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), prompt);
    }
}

#[test]
fn line_ends_between_letters_hide_nothing() {
    for columns in 1..=VALUE.len() {
        for before in 0..columns {
            for end in ["\n", "\r\n", "\n  ", "\r"] {
                let text = format!("{}{VALUE}{}", "=".repeat(before), "+".repeat(5));
                let folded: Vec<&str> =
                    text.as_bytes().chunks(columns).map(|line| std::str::from_utf8(line).expect("letters")).collect();
                let out = redacted(&mut known(), format!("folded:\n{}\nend", folded.join(end)).as_bytes());
                assert!(out.contains("[redacted:DEPLOY_KEY]") && !out.contains('h'), "{columns} {before} {out:?}");
            }
        }
    }
}

#[test]
fn base64_of_more_text_is_known_however_its_lines_are_wrapped() {
    for columns in [8, 10, 19, 20, 33, 60, 64, 76] {
        for before in 0..9 {
            let text = STANDARD.encode(format!("{}{VALUE}{}", "u".repeat(before), "w".repeat(30)));
            let wrapped: Vec<&str> =
                text.as_bytes().chunks(columns).map(|line| std::str::from_utf8(line).expect("letters")).collect();
            let out = redacted(&mut known(), (wrapped.join("\n") + "\n").as_bytes());
            assert!(out.contains("[redacted:DEPLOY_KEY]"), "{columns} {before} {out}");
        }
    }
}

#[test]
fn a_value_that_is_turned_around_or_spaced_out_is_known() {
    let bytes = |between: &str| VALUE.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(between);
    for text in [
        VALUE.chars().rev().collect::<String>(),
        VALUE.chars().map(|letter| format!("{letter} ")).collect(),
        format!("[{}]", bytes(", ")),
    ] {
        let out = redacted(&mut known(), text.as_bytes());
        assert_eq!(out.trim_matches(['[', ']', ' ']), "redacted:DEPLOY_KEY", "{text}");
    }
}

#[test]
fn what_was_shown_to_somebody_who_waits_is_still_the_beginning() {
    let mut redactor = known();
    let mut out = Vec::new();
    for part in ["fis", "h-u", "nder-glass-9137\n"] {
        redactor.push(part.as_bytes(), &mut out);
        if redactor.held() < 4 {
            redactor.let_go(&mut out);
        }
    }
    redactor.finish(&mut out);
    assert_eq!(String::from_utf8_lossy(&out), "fis[redacted:DEPLOY_KEY]\n");
}

#[test]
fn painted_text_without_secrets_comes_out_as_it_went_in() {
    let text = "\x1b[1m\x1b[32m   Compiling\x1b[0m serde v1.0.1\r\n 50%\r 60%\r\u{feff}man\x08n \x1b]8;;a\x1b\\b\x1b]8;;\x1b\\\n\
                00000000: 7f45 4c46 0201 0100  .ELF....\n*\n00000010\n\x1b[2K\x1b[1Gok \x1b[";
    assert_eq!(redacted(&mut known(), text.as_bytes()), text);
}

#[test]
fn what_nobody_sees_does_not_make_much_wait() {
    let mut redactor = known();
    let mut out = Vec::new();
    redactor.push(b"fish-\x1b[0m", &mut out);
    for _ in 0..2000 {
        redactor.push(&[b"\x1b]0;".as_slice(), &[b'x'; 1000], b"\x07"].concat(), &mut out);
        assert!(redactor.held() < 64 << 10, "{} bytes wait", redactor.held());
    }
}
