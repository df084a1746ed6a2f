//! What agents write all day, as in `ordinary.txt`, is clear: a doubt that comes too often is one that nobody reads.
//! There, `\n` is a line end; a backslash before it stays one.

use shell::of_line;

const LINES: &str = include_str!("ordinary.txt");

#[test]
fn ordinary_lines_are_clear() {
    let mut doubts = Vec::new();
    for written in LINES.lines() {
        let line = written.replace(r"\\\n", "\\\n").replace(r"\n", "\n");
        let reading = of_line(&line);
        assert!(!reading.commands.is_empty() || line.contains("(("), "{written} starts nothing");
        doubts.extend(reading.unclear.into_iter().map(|sentence| format!("{written}: {sentence}")));
    }
    assert_eq!(doubts, Vec::<String>::new());
    assert!(LINES.lines().count() >= 70);
}
