//! What holds for all lines.

use proptest::prelude::*;
use shell::{Reading, of_line, of_words};

/// Lines that can be read whole.
const LINES: &[&str] = &[
    "git log --oneline", "curl x | tee y", "a && b || c", "X=$(curl x) make", "cat <<E\n$(rm y)\nE\n",
    "echo \"$(a `b`)\"", "for f in *.rs; do wc \"$f\"; done", "if a; then b; fi", "sudo -u root rm x",
    "find . -exec rm {} \\;", "(a; b) > out", "[[ -f x ]] && rm x", "bash -c 'ls; pwd'", "case a in a) b;; esac",
    "diff <(a) <(b)", "env X=1 git push", "f() { a; }", "python3 - <<'E'\nimport os\nE\n", "a > \"$OUT\" 2>&1",
    "PATH=/x git push", "time make", "! a", "ls # all of them",
];

fn lines() -> impl Strategy<Value = String> {
    prop::sample::select(LINES).prop_map(str::to_owned)
}

fn texts(reading: &Reading) -> Vec<&str> {
    reading.commands.iter().map(|simple| simple.text.as_str()).collect()
}

/// `word` with each letter in quotes of the kind that the number beside it says.
fn quoted(word: &str, kinds: &[u8]) -> String {
    let letter = |(letter, kind): (char, &u8)| match kind % 4 {
        0 => format!("\"{}\"", if "\"$`\\".contains(letter) { format!("\\{letter}") } else { letter.to_string() }),
        1 if letter != '\n' => format!("\\{letter}"),
        2 => format!("$'\\U{:08x}'", u32::from(letter)),
        _ if letter != '\'' => format!("'{letter}'"),
        _ => "\\'".to_owned(),
    };
    format!("{}''", word.chars().zip(kinds.iter().cycle()).map(letter).collect::<String>())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in any::<String>()) {
        of_line(&text);
    }

    #[test]
    fn no_shell_like_text_panics(text in r#"[ab$(){}\[\]<>|&;'"`\\\n #=~*!0-9-]{0,60}"#) {
        of_line(&text);
        of_words(&["bash".to_owned(), "-c".to_owned(), text]);
    }

    #[test]
    fn no_words_panic(words in prop::collection::vec("[a-z=/.{}$;+-]{0,6}|sudo|env|xargs|find|-exec|bash|-c|su|flock|-S|-I", 0..8)) {
        of_words(&words);
    }

    #[test]
    fn any_quoting_gives_the_same_command(
        words in prop::collection::vec("[^\u{e000}\0]{0,8}", 1..4),
        kinds in prop::collection::vec(any::<u8>(), 1..20),
    ) {
        let words: Vec<String> = std::iter::once("tool".to_owned()).chain(words).collect();
        let line = words.iter().map(|word| quoted(word, &kinds)).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(of_line(&line), of_words(&words));
    }

    #[test]
    fn lines_joined_start_what_each_starts(
        first in lines(),
        second in lines(),
        by in prop::sample::select(&["\n", ";", "&&", "||", "&"][..]),
    ) {
        // Only a line end can follow a here-document or a comment.
        let by = if first.contains(['\n', '#']) { "\n" } else { by };
        let (one, two) = (of_line(&first), of_line(&second));
        let joined = of_line(&format!("{first}{by}{second}"));
        prop_assert_eq!(&joined.unclear, &Vec::<String>::new());
        prop_assert_eq!(texts(&joined), [texts(&one), texts(&two)].concat());
    }

    #[test]
    fn what_is_grouped_is_still_found(line in lines()) {
        let plain = of_line(&line);
        for group in [format!("({line}\n)"), format!("{{ {line}\n}}"), format!("if x; then {line}\nfi"), format!("f() {{ {line}\n}}")] {
            let grouped = of_line(&group);
            prop_assert_eq!(&grouped.unclear, &plain.unclear);
            let found: Vec<&str> = texts(&grouped).into_iter().filter(|text| *text != "x").collect();
            prop_assert_eq!(found, texts(&plain).into_iter().filter(|text| *text != "x").collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_a_shell_is_given_is_still_found(line in lines()) {
        let plain = of_line(&line);
        let inside = of_line(&format!("bash -c '{}'", line.replace('\'', r"'\''")));
        prop_assert_eq!(&inside.unclear, &plain.unclear);
        prop_assert_eq!(texts(&inside)[1..].to_vec(), texts(&plain));
        prop_assert!(inside.commands[1..].iter().all(|simple| simple.through[0] == "bash -c"));
    }
}
