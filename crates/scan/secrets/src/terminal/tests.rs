use proptest::prelude::*;

use super::*;

fn cleaned(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    let mut cleaner = Cleaner::new();
    cleaner.push(bytes, &mut out);
    cleaner.finish(&mut out);
    String::from_utf8(out).expect("what is shown is text")
}

#[test]
fn text_colours_and_progress_bars_stay() {
    for text in [
        "plain\ttext\r\n", "\x1b[1;31mred\x1b[0m", "\x1b[38;5;8mgrey\x1b[m", "\x1b[38;2;8;8;8mdark\x1b[0m",
        "\r\x1b[2K 50%", "\x1b[12C\x1b[3D\x1b[1G", "grün 漢字 🦀", "spin\x08|",
    ] {
        assert_eq!(cleaned(text.as_bytes()), text);
    }
}

#[test]
fn what_acts_is_shown() {
    for (text, shown) in [
        ("\x1b]52;c;ZXZpbA==\x07x", "␛]52;c;ZXZpbA==x"),
        ("\x1b]52;c;AAAABBBBCCCCDDDDEEEEFFFFGGGG\x1b\\x", "␛]52;c;AAAABBBBCCCCDDDDEEE…x"),
        ("\x1bP$q\"p\x1b\\x", "␛P$q\"px"),
        ("\x1b_Gf=24;AAAA\x1b\\x", "␛_Gf=24;AAAAx"),
        ("\x1b^secret\x1b\\x", "␛^secretx"),
        ("\x1b[c", "␛[c"),
        ("\x1b[6n", "␛[6n"),
        ("\x1b[?1049h", "␛[?1049h"),
        ("\x1b[?2004l", "␛[?2004l"),
        ("\x1b[2J\x1b[H", "␛[2J␛[H"),
        ("\x1b[5A", "␛[5A"),
        ("\x1b[21t", "␛[21t"),
        ("\x1b[8mhidden", "␛[8mhidden"),
        ("\x1b[0;8mhidden", "␛[0;8mhidden"),
        ("\x1b[38;5;1;8mhidden", "␛[38;5;1;8mhidden"),
        ("\x1bc", "␛c"),
        ("\x1b(0qqq", "␛(0qqq"),
        ("\x1b[4i", "␛[4i"),
        ("\x1b[0;59;\"cmd\"p", "␛[0;59;\"cmd\"p"),
        ("\x0e\x00\x07\x7f\x0b", "␎␀␇␡␋"),
        ("a\u{202e}b\u{200b}\u{feff}\u{2066}", "a<U+202E>b<U+200B><U+FEFF><U+2066>"),
        ("\u{9b}2J\u{9d}0;x", "<U+009B>2J<U+009D>0;x"),
        ("\u{e0041}", "<U+E0041>"),
    ] {
        assert_eq!(cleaned(text.as_bytes()), shown, "{text:?}");
    }
}

#[test]
fn raw_bytes_that_are_no_letter_are_shown() {
    assert_eq!(
        cleaned(b"\x9b2J\x90q\xff\xc3(\xed\xa0\x80\xf4\x90\x80\x80"),
        "<9B>2J<90>q<FF><C3>(<ED><A0><80><F4><90><80><80>"
    );
}

#[test]
fn titles_and_links_are_left_out_but_not_their_text() {
    assert_eq!(cleaned(b"\x1b]0;title\x07a\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\b\x1b[?25l\x1b(B"), "alinkb");
}

#[test]
fn no_string_swallows_what_follows() {
    assert_eq!(cleaned(b"\x1b]0;title\nnext line"), "\nnext line");
    let long = [b"\x1bP".to_vec(), vec![b'a'; 5000], b"end".to_vec()].concat();
    let shown = cleaned(&long);
    assert!(shown.starts_with("␛Paaa") && shown.ends_with("aaaend"), "{shown}");
    assert!(shown.len() > 5000 - LONGEST_STRING);
}

#[test]
fn what_is_left_open_is_shown_at_the_end() {
    assert_eq!(cleaned(b"a\x1b"), "a␛");
    assert_eq!(cleaned(b"a\x1b[12"), "a␛[12");
    assert_eq!(cleaned(b"a\x1b]52;c"), "a␛]52;c");
    assert_eq!(cleaned(b"a\xe2\x82"), "a<E2><82>");
    assert_eq!(cleaned(b"\x1b[31mred"), "\x1b[31mred\x1b[0m");
}

#[test]
fn a_sequence_inside_of_another_is_none() {
    assert_eq!(cleaned(b"\x1b[3\x1b[2J"), "␛[3␛[2J");
    assert_eq!(cleaned(b"\x1b\x1b[2J"), "␛␛[2J");
    assert_eq!(cleaned(b"\x1b]0;a\x1b[2Jb"), "␛[2Jb");
    assert_eq!(cleaned("\x1b[3\u{9b}2J".as_bytes()), "␛[3<U+009B>2J");
    let many = format!("\x1b[{}m", "1;".repeat(100));
    assert!(!cleaned(many.as_bytes()).contains('\x1b'));
}

/// Only what is listed as harmless still begins with ESC.
fn is_safe(shown: &str) -> bool {
    let mut rest = shown;
    while let Some((before, after)) = rest.split_once('\x1b') {
        if before.chars().any(|letter| misleads(letter) || (letter < ' ' && !"\n\t\r\x08".contains(letter))) {
            return false;
        }
        let Some(inside) = after.strip_prefix('[') else { return false };
        let Some(end) = inside.find(|letter: char| !(' '..='?').contains(&letter)) else { return false };
        if !is_harmless(&inside.as_bytes()[..end], inside.as_bytes()[end]) {
            return false;
        }
        rest = &inside[end + 1..];
    }
    !rest.chars().any(|letter| misleads(letter) || letter == '\x7f' || (letter < ' ' && !"\n\t\r\x08".contains(letter)))
}

proptest! {
    #[test]
    fn any_bytes_become_safe_however_they_are_cut(
        pieces in prop::collection::vec(prop_oneof![
            prop::sample::select(vec!["\x1b", "[", "]", "52;", "m", "\x07", "\x1b\\", "8", "2J", "\u{202e}", "é", "\n", "?", ";", "P", "("])
                .prop_map(|text| text.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..6),
        ], 0..40),
        cut in 1usize..9,
    ) {
        let bytes = pieces.concat();
        let whole = cleaned(&bytes);
        prop_assert!(is_safe(&whole), "{:?}", whole);
        let mut out = Vec::new();
        let mut cleaner = Cleaner::new();
        bytes.chunks(cut).for_each(|piece| cleaner.push(piece, &mut out));
        cleaner.finish(&mut out);
        prop_assert_eq!(String::from_utf8(out).expect("as written above"), whole);
    }
}

fn drawn(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut cleaner = Cleaner::of_a_screen();
    bytes.iter().for_each(|byte| cleaner.push(&[*byte], &mut out));
    cleaner.finish(&mut out);
    out
}

#[test]
fn whoever_has_a_screen_draws_on_it_and_leaves_it_as_it_was() {
    let editor = b"\x1b[?1049h\x1b[2J\x1b[10;20H\x1b[1;31mred\x1b[m\x1b(0lqk\x1b(B\x1b[?25l\x1b7\x1b[3A\x1b8 done";
    let shown = drawn(editor);
    assert!(shown.starts_with(editor), "{}", shown.escape_ascii());
    let after = &shown[editor.len()..];
    for back in [&b"\x1b[?1049l"[..], b"\x1b[?25h", b"\x1b(B"] {
        assert!(after.windows(back.len()).any(|part| part == back), "{}", after.escape_ascii());
    }
    // What it put back itself is not put back again: that could move the cursor.
    assert_eq!(drawn(b"\x1b[?1049h\x1b[?25lx\x1b[?25h\x1b[?1049l"), b"\x1b[?1049h\x1b[?25lx\x1b[?25h\x1b[?1049l");
    // Who only writes changes nothing, so nothing is put back.
    assert_eq!(drawn(b"plain\r\n"), b"plain\r\n");
}

#[test]
fn what_reaches_beyond_the_screen_is_left_out_of_it() {
    for beyond in [
        &b"\x1b]52;c;ZXZpbA==\x07"[..],
        b"\x1b]0;title\x07",
        b"\x1b]8;;http://x.test\x1b\\",
        b"\x1bP$q\"p\x1b\\",
        b"\x1b_x\x1b\\",
        b"\x1b[c",
        b"\x1b[6n",
        b"\x1b[>q",
        b"\x1b[21t",
        b"\x1b[5i",
        b"\x1b[>1u",
        b"\x1b[?u",
        b"\x1bc",
        b"\x1b#8",
    ] {
        let text = [b"a", beyond, b"b"].concat();
        assert_eq!(drawn(&text), b"ab", "{}", beyond.escape_ascii());
    }
}
