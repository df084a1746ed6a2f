//! Texts made to be slow, deep or long end in a short time, with a sentence and without a panic.

use std::time::{Duration, Instant};

use shell::{DEEPEST, LONGEST, of_line, of_words};

/// Without optimisation and on a busy machine; what is not linear takes minutes.
const PATIENCE: Duration = Duration::from_secs(10);

fn is_read_in_time(text: &str) -> shell::Reading {
    let began = Instant::now();
    let reading = of_line(text);
    let start: String = text.chars().take(30).collect();
    assert!(began.elapsed() < PATIENCE, "{start:?}… took {:?}", began.elapsed());
    reading
}

#[test]
fn what_is_too_deep_is_unclear() {
    for (open, close) in [
        ("( ", ")"),
        ("$(", ")"),
        ("{ ", "; }"),
        ("\"$(", ")\""),
        ("${x:-", "}"),
        ("$((", "))"),
        ("<(", ")"),
        ("if a; then ", "; fi"),
        ("f() { ", "; }"),
        ("while a; do ", "; done"),
        ("case a in a) ", ";; esac"),
        ("x=(", ")"),
        ("${x:-\"", "\"}"),
        ("function f { ", "; }"),
        ("coproc ", ""),
        ("a[$(", ")]=1"),
        ("((a); $(", "))"),
    ] {
        for times in [DEEPEST + 2, 1_000, 20_000] {
            let reading = is_read_in_time(&format!("{}a{}", open.repeat(times), close.repeat(times)));
            assert!(!reading.unclear.is_empty(), "{times} times {open:?} seems clear");
        }
    }
}

#[test]
fn shells_within_shells_end() {
    let mut words = vec!["sudo".to_owned(); 5_000];
    words.push("rm".to_owned());
    assert!(!of_words(&words).unclear.is_empty());
    let mut line = "ls".to_owned();
    for _ in 0..10 {
        line = format!("eval '{}'", line.replace('\'', r"'\''"));
    }
    is_read_in_time(&line);
}

#[test]
fn long_texts_take_no_longer_than_they_are() {
    let parts = [
        "a;", "a|", "a&&", "a ", "{", "}", "[", "]", "{,", "[]", "'a'", "\"a\"", "$x", "`a`", "$(a)", "${x}", "$((",
        "((a)#((\n)\n", "$((a #((\n) )", "<<E ", "<<E\nE\n", "a\n", "~", "~:", "*", "\\", "\\\n", "#", "$", "a=b ",
        "a=b;", "PATH=a;a;", "a|sh|", "x=$(a);", "eval a;", "alias a=b;a;", "sh -c a;", "sudo ", "env ", "find -exec ",
        "xargs -I{} ", "xargs ", "!", "! ", "time ", "[[ a ]];", "case a in ", "a) b;;", "$[1]", "$'a'", "a>b ",
        "a<(b) ", ">(", "\u{e000}", "é", "${x:-", "x=(a ", "{a,b}", "$(a)|sh;", "trap a EXIT;", "eval 'a; b';",
        "coproc a;", "function f ", "a() b;", "f(){ a;};", "a <<<b;", "$x $y;", "for x in a;do b;done;", "a[", "a[1]=",
        "((a);", "$((a);", "\"$((", "$\\\n(", "a\\\n", "echo a|sh;", "x='$(a)';", "declare -i x=a;",
        "cat() { a;};cat|sh;",
    ];
    for part in parts {
        is_read_in_time(&part.repeat(LONGEST / 4 / part.len()));
    }
}

#[test]
fn what_is_too_long_is_unclear() {
    let reading = of_line(&"a ".repeat(LONGEST));
    assert!(reading.commands.is_empty());
    assert_eq!(reading.unclear, ["it is longer than 256 KiB"]);
}

#[test]
fn a_zero_byte_is_unclear() {
    assert_eq!(of_line("rm\0 x").unclear, ["it holds a zero byte"]);
    assert_eq!(of_words(&["rm\0".to_owned()]).unclear, ["a word holds a zero byte"]);
}
