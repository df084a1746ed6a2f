//! Names as the most forgiving file system or reader compares them.

use unicode_normalization::UnicodeNormalization;

/// Compatibility forms, case and marks that nobody sees are taken away.
pub fn folded(text: &str) -> String {
    let visible = text.chars().filter(|letter| !is_ignorable(*letter)).nfkc();
    // To upper case and back, for letters that have no single lower case: `ß` is `ss`, and a dotless `ı` is `i`.
    let cased = visible.flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    // Again, since a change of case can leave what has a shorter form. A dot above is what remains of `İ`.
    cased.nfkc().filter(|letter| !is_ignorable(*letter) && *letter != '\u{307}').collect()
}

/// Letters that nobody sees: Unicode's property `Default_Ignorable_Code_Point`, of which HFS+ ignores a part.
pub fn is_ignorable(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
