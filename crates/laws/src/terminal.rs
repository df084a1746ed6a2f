//! Output on a terminal: however it is cut, what is shown is text and a few sequences that stay within a line.

use secrets::terminal::Cleaner;

pub fn law(bytes: &[u8]) {
    let (cut, bytes) = bytes.split_first().map_or((1, bytes), |(first, rest)| (usize::from(*first).max(1), rest));
    let whole = cleaned(bytes, bytes.len().max(1));
    assert_eq!(cleaned(bytes, cut), whole, "cut in pieces of {cut} it is another");
    is_safe(&whole);
    assert_eq!(cleaned(whole.as_bytes(), 7), whole, "what is clean is changed");
}

fn cleaned(bytes: &[u8], cut: usize) -> String {
    let mut cleaner = Cleaner::new();
    let mut out = Vec::new();
    bytes.chunks(cut).for_each(|piece| cleaner.push(piece, &mut out));
    cleaner.finish(&mut out);
    String::from_utf8(out).expect("what is shown is text")
}

fn is_safe(shown: &str) {
    let mut letters = shown.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\t' | '\r' | '\u{8}' => {}
            '\u{1b}' => {
                assert_eq!(letters.next(), Some('['), "another sequence: {shown:?}");
                let inside: String = letters.clone().take_while(|letter| (' '..='?').contains(letter)).collect();
                assert!(
                    inside.len() <= 64 && inside.chars().all(|letter| "0123456789;:".contains(letter)),
                    "{shown:?}"
                );
                let last = letters.nth(inside.len());
                assert!(matches!(last, Some('m' | 'K' | 'C' | 'D' | 'G')), "another sequence: {shown:?}");
                assert!(last == Some('m') || inside.len() <= 4, "far away: {shown:?}");
            }
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => panic!("a control: {shown:?}"),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{ad}' => {
                panic!("it misleads: {shown:?}")
            }
            _ => {}
        }
    }
}
