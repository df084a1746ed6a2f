//! What people are shown, at a terminal.

/// Nothing in it commands a terminal, begins another line or turns the direction of writing.
pub fn is_one_line(text: &str) {
    // Unicode's property Bidi_Control, and its two separators of lines.
    let turns = |letter: char| matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let bad = text.chars().find(|letter| letter.is_control() || turns(*letter));
    assert_eq!(bad, None, "in what is shown: {text:?}");
}

/// The same of a page: lines of such text.
pub fn is_a_page(text: &str) {
    text.split('\n').for_each(is_one_line);
}
