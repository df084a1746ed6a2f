//! Other people's text, so that a person sees what it is: what has no shape, turns the line, or looks like something
//! else is written out. Nothing is lost: from what is shown, the text can be made again.
//!
//! Letters are shown if they are known to be visible; whatever is not known is written as `⟨U+202E⟩`.

use std::collections::BTreeSet;

/// Longer runs of spaces are counted.
const SPACES: usize = 8;
/// Marks on one letter; more are written out, or they would cover the lines around them.
const MARKS: usize = 2;

/// A piece that is never broken: what it shows, and how many columns that may take.
pub struct Piece {
    pub text: String,
    pub columns: usize,
}

/// One line of text. Spaces where it begins and ends can be seen.
pub fn pieces(line: &str) -> Vec<Piece> {
    let letters: Vec<char> = line.chars().collect();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut marks = 0;
    let mut at = 0;
    while let Some(letter) = letters.get(at).copied() {
        if letter == ' ' {
            let run = letters[at..].iter().take_while(|letter| **letter == ' ').count();
            let outside = at == 0 || at + run == letters.len();
            match (run > SPACES, outside) {
                (true, _) => pieces.push(whole(format!("⟨{run} spaces⟩"))),
                (false, true) => pieces.extend((0..run).map(|_| whole("·".to_owned()))),
                (false, false) => pieces.extend((0..run).map(|_| whole(" ".to_owned()))),
            }
            (at, marks) = (at + run, MARKS);
            continue;
        }
        match shape(letter) {
            Shape::Plain(columns) => {
                pieces.push(Piece { text: letter.to_string(), columns });
                marks = 0;
            }
            // On a letter that it belongs to, it is a part of that.
            Shape::Mark if marks < MARKS && !pieces.is_empty() => {
                if let Some(last) = pieces.last_mut() {
                    last.text.push(letter);
                }
                marks += 1;
            }
            Shape::Mark | Shape::None => {
                pieces.push(whole(written_out(letter)));
                marks = MARKS;
            }
        }
        at += 1;
    }
    pieces
}

/// Text within a line of ours: its own lines are no lines there.
pub fn inline(text: &str) -> String {
    pieces(text).into_iter().map(|piece| piece.text).collect()
}

/// Words that may not be what they look like, each with what it is. `strict`: where plain letters are expected, as in
/// names of programs and hosts, every other letter is told.
pub fn suspicious(text: &str, strict: bool) -> Vec<String> {
    let mut told = BTreeSet::new();
    let mut warnings = Vec::new();
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_ascii()) {
        let scripts: BTreeSet<&str> = word.chars().filter_map(script).collect();
        let scripts: Vec<&str> = scripts.into_iter().collect();
        if (scripts.len() < 2 && !strict) || !told.insert(word) {
            continue;
        }
        let spelled: String = word
            .chars()
            .map(|letter| if letter.is_ascii() { letter.to_string() } else { written_out(letter) })
            .collect();
        warnings.push(match scripts.as_slice() {
            [_, _, ..] => format!("a word mixes {}: {spelled}", scripts.join(" and ")),
            _ => format!("a word has letters that are not plain ones: {spelled}"),
        });
    }
    warnings
}

fn whole(text: String) -> Piece {
    Piece { columns: text.chars().count(), text }
}

fn written_out(letter: char) -> String {
    match letter {
        '\t' => "⟨tab⟩".to_owned(),
        letter => format!("⟨U+{:04X}⟩", u32::from(letter)),
    }
}

enum Shape {
    /// Visible, in so many columns at most.
    Plain(usize),
    /// Drawn onto the letter before it.
    Mark,
    /// Invisible, commanding, or not known.
    None,
}

fn shape(letter: char) -> Shape {
    match letter {
        ' '..='~' => Shape::Plain(1),
        // What we write with ourselves.
        '⟨' | '⟩' | '·' => Shape::None,
        '\u{300}'..='\u{34e}' | '\u{350}'..='\u{36f}' => Shape::Mark,
        letter if is_blank(letter) => Shape::None,
        // Latin, Greek, Cyrillic and what lies between.
        '\u{a1}'..='\u{58f}' => Shape::Plain(1),
        letter if is_symbol(letter) || is_letter(letter) => Shape::Plain(2),
        _ => Shape::None,
    }
}

/// What lies among letters and nobody can see, that changes what is beside it, or that looks like our brackets.
fn is_blank(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{378}'..='\u{379}' | '\u{380}'..='\u{383}' | '\u{483}'..='\u{489}'
        | '\u{2329}'..='\u{232a}' | '\u{276c}'..='\u{2771}' | '\u{29fc}'..='\u{29fd}' | '\u{3008}'..='\u{3009}')
}

/// Of scripts whose letters each have a place of their own. Where vowels and the like are drawn onto other letters, a few
/// can cover a line, so those scripts are written out; as are those that run from right to left, which a terminal may put
/// in another order than they are in.
fn is_letter(letter: char) -> bool {
    matches!(letter,
        '\u{10a0}'..='\u{10ff}' | '\u{13a0}'..='\u{13f5}' | '\u{1e00}'..='\u{1fff}' | '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30ff}' | '\u{3105}'..='\u{312f}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{ff61}'..='\u{ff9f}' | '\u{1d400}'..='\u{1d7ff}' | '\u{20000}'..='\u{2fa1d}')
}

/// Visible, and no letter: dashes, quotes, arrows, mathematics, boxes, pictures.
fn is_symbol(letter: char) -> bool {
    matches!(letter,
        '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{20a0}'..='\u{20c0}' | '\u{2100}'..='\u{23ff}'
        | '\u{2460}'..='\u{27bf}' | '\u{27f0}'..='\u{27ff}' | '\u{2900}'..='\u{2b73}' | '\u{3001}'..='\u{3029}'
        | '\u{ff01}'..='\u{ff60}' | '\u{1f300}'..='\u{1f3fa}' | '\u{1f400}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6d7}'
        | '\u{1f900}'..='\u{1f9ff}')
}

/// Where letters come from that look like those of others.
fn script(letter: char) -> Option<&'static str> {
    Some(match letter {
        'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{2af}' | '\u{1e00}'..='\u{1eff}' => "Latin",
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => "Greek",
        '\u{400}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}' | '\u{a640}'..='\u{a69f}' => "Cyrillic",
        '\u{530}'..='\u{58f}' => "Armenian",
        '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}' => "Cherokee",
        '\u{ff10}'..='\u{ff5a}' => "full-width",
        '\u{2100}'..='\u{214f}' | '\u{2460}'..='\u{24ff}' | '\u{1d400}'..='\u{1d7ff}' => "mathematical",
        // Nobody takes these for Latin letters, and some languages mix them with such.
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_seen_is_shown_as_it_is() {
        for text in
            ["git push --force", "größer", "大きい", "Привет, мир", "e\u{301}", "a → b", "it's “so”", "C:\\x\\n"]
        {
            assert_eq!(inline(text), text);
        }
    }

    #[test]
    fn what_can_not_be_seen_is_written_out() {
        let hidden = [
            "\u{0}", "\r", "\n", "\u{1b}", "\u{7f}", "\u{9b}", "\u{a0}", "\u{ad}", "\u{34f}", "\u{61c}", "\u{115f}",
            "\u{1680}", "\u{180e}", "\u{2003}", "\u{200b}", "\u{200d}", "\u{200e}", "\u{2028}", "\u{202e}", "\u{202f}",
            "\u{2060}", "\u{2066}", "\u{2800}", "\u{3000}", "\u{3164}", "\u{fe0f}", "\u{feff}", "\u{ffa0}", "\u{fff9}",
            "\u{fffd}", "\u{1d173}", "\u{e0041}", "\u{e0100}", "\u{e000}", "\u{10ffff}", "\u{5d0}", "\u{627}", "·",
            "⟨",
        ];
        for text in hidden {
            let code = format!("a⟨U+{:04X}⟩b", text.chars().map(u32::from).sum::<u32>());
            assert_eq!(inline(&format!("a{text}b")), code);
        }
        assert_eq!(inline("a\tb"), "a⟨tab⟩b");
    }

    #[test]
    fn spaces_that_hide_something_are_counted_or_shown() {
        assert_eq!(inline(&format!("ls{}; rm -rf ~", " ".repeat(300))), "ls⟨300 spaces⟩; rm -rf ~");
        assert_eq!(inline("  a  b "), "··a  b·");
        assert_eq!(inline(""), "");
    }

    #[test]
    fn marks_do_not_climb_out_of_their_line() {
        let tower = format!("a{}", "\u{301}".repeat(50));
        let shown = inline(&tower);
        assert_eq!(shown.matches('\u{301}').count(), MARKS);
        assert_eq!(shown.matches("⟨U+0301⟩").count(), 50 - MARKS);
        // There is nothing of the text before it: it would be drawn onto our own line.
        assert_eq!(inline("\u{301}a"), "⟨U+0301⟩a");
        assert_eq!(inline(" \u{301}"), "·⟨U+0301⟩");
    }

    #[test]
    fn words_that_mix_letters_are_told() {
        assert_eq!(suspicious("curl p\u{430}ypal.com", false), ["a word mixes Cyrillic and Latin: p⟨U+0430⟩ypal"]);
        assert_eq!(suspicious("ｇit", false), ["a word mixes Latin and full-width: ⟨U+FF47⟩it"]);
        assert_eq!(suspicious("\u{3bf}ffice \u{3bf}ffice", false).len(), 1);
        assert_eq!(suspicious("größer Привет naïve", false), [] as [&str; 0]);
        assert_eq!(
            suspicious("\u{441}\u{443}", true),
            ["a word has letters that are not plain ones: ⟨U+0441⟩⟨U+0443⟩"]
        );
    }
}
