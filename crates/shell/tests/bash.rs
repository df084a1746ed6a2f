//! A second opinion: whatever bash really starts for a line was foreseen, or the line was called unclear.
//!
//! No program can be found where it runs, so bash tells a function of ours what it would have started.

use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use shell::{Reading, Simple, Word};

/// Between words, and after each command.
const WORD: char = '\u{1f}';
const END: char = '\u{1e}';
const TELL: &str =
    "() { local told; printf -v told '%s\\037' \"$@\"; printf '%s\\036' \"$told\" >&9; return $ANSWER; }";
/// Opens the way to us, then becomes the shell that is asked.
const OPEN: &str = "exec 9>&1 >/dev/null 2>&1 </dev/null; PATH=/nonexistent FUNCNEST=3 exec \"$BASH\" --norc -c \"$1\"";

const PARTS: &[&str] = &[
    "aa", "bb", "cc dd", "'ee'", "\\ff", "$'g\\x67'", "\"hh ii\"", "`aa`", "$(bb)", "\"$(aa bb)\"", "\"`cc`\"",
    "$((1+1))", "${x:-aa}", "$x", "\"$x\"", "*", "{aa,bb}", "~", "[a]", ";", ";", "&&", "||", "|", "|&", "&", "\n",
    "\n", "(", ")", "{ ", "; }", "<f", ">f", ">>f", "2>&1", "&>f", ">&f", "<<E", "\nE\n", "<<'E'", "<<-E", "<<<aa",
    "<(aa)", ">(bb)", "if ", "; then ", "; else ", "; fi", "case aa in aa)", ";;", "esac", "for x in aa bb; do ",
    "; done", "[[ ", " ]]", "! ", "time ", "#", "\\\n", "'", "\"", "$", "`", "\\", "=", "x=", "x=(", "((", "))", "$((",
    "$(", "${", "}", "eval ", "command ", "exec ", "trap 'aa' EXIT;", "coproc ", "function ff ", "ff()", " in ", ";&",
    "x+=", "builtin ", "{fd}>f", "3>f", "$[1]", "aa=bb", "\t", "case ", " in", "@(aa)", "!(", "\\'", "\\\"", "''",
    "<&-", "select ", "echo ", "E", "\nE", "-",
];

#[test]
fn what_bash_starts_was_foreseen() {
    let bash = ["/usr/bin/bash", "/bin/bash"].into_iter().find(|path| Path::new(path).exists());
    let bash = bash.expect("bash is there to be asked");
    let folder = std::env::temp_dir().join(format!("belljar-shell-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder to write into");
    let cases = std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300);
    let part = (prop::sample::select(PARTS), prop::bool::weighted(0.7));
    let lines = prop::collection::vec(part, 1..14).prop_map(|parts| {
        parts.iter().map(|(part, blank)| format!("{part}{}", if *blank { " " } else { "" })).collect::<String>()
    });
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&lines, |line| {
        let reading = shell::of_line(&line);
        for answer in ["0", "1"] {
            for started in really_started(bash, &folder, &line, answer) {
                prop_assert!(foreseen(&reading, &started), "{line:?} started {started:?}, but read was {reading:#?}");
            }
        }
        Ok(())
    });
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    assert!(result.is_ok(), "{}", result.map_or_else(|error| error.to_string(), |()| String::new()));
}

fn really_started(bash: &str, folder: &Path, line: &str, answer: &str) -> Vec<Vec<String>> {
    let output = Command::new(bash)
        .args(["--norc", "-c", OPEN, "bash", line])
        .env_clear()
        .env("BASH_FUNC_command_not_found_handle%%", TELL)
        .env("ANSWER", answer)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = |command: &str| command.strip_suffix(WORD).unwrap_or(command).split(WORD).map(str::to_owned).collect();
    told.split(END).filter(|command| !command.is_empty()).map(words).collect()
}

fn foreseen(reading: &Reading, started: &[String]) -> bool {
    !reading.unclear.is_empty() || reading.commands.iter().any(|simple| fits(simple, started))
}

fn fits(simple: &Simple, started: &[String]) -> bool {
    let Some((program, arguments)) = started.split_first() else { return true };
    let loose = simple.arguments.iter().any(Word::may_be_many);
    let same = |(word, wanted): (&Word, &String)| word.may_be(wanted);
    simple.program.may_be(program)
        && (loose || (simple.arguments.len() == arguments.len() && simple.arguments.iter().zip(arguments).all(same)))
}
