//! A second opinion: whatever bash really starts for a line was foreseen, or the line was called unclear.
//!
//! No program can be found where it runs, so bash tells a function of ours what it would have started.

use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use shell::{Reading, Simple, Word};

/// Between words, after each command, and for line ends, at which bash would tell the half of it.
const WORD: char = '\u{1f}';
const END: char = '\u{1e}';
const LINE: char = '\u{1d}';
const TELL: &str = "() { local told; printf -v told '%s\\037' \"$@\"; printf '%s\\036' \"${told//$'\\n'/$'\\035'}\" >&9; return $ANSWER; }";
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
    "<&-", "select ", "echo ", "E", "\nE", "-", "a[", "]", "a[ ", "]=1 ", "]]", "x='a[$(bb)]';", "((x))", "$((x))",
    "${!x}", "${x:x}", "${a[x]}", "${x@P}", "[[ x -eq 1 ]]", "test -v \"$x\"", "declare -i y=x", "read \"$x\"",
    "trap -- 'bb' EXIT;", "time -p\t", "time --\t", "{.},bb}", "{", ",", "..", "3<<<'bb'", "<<<'bb'", "/dev/fd/3",
    "/dev/stdin", "source ", ". ", "PS4='$(bb)';", "set -x;", "mapfile -c1 -tC bb ", "compgen -W '$(bb)'", "<&3",
    "exec 3<<<bb;", "$\\\n(bb)", "<<E\\\n", "(\\\n(", "&\\\n&", "f() ", "f ", "f", "alias aa=bb;", "<(", ">(",
    "set -- bb;", "\"$@\"", "declare ", "x=<(bb)", "; esac", "case aa in aa) bb;& bb) cc;; esac", "{ aa; }", "(bb)",
    "do ", "done", "then ", "fi", "\r", "\u{a0}", "$'\\x61'", "$\"bb\"", "+=", "|| ", "in", "}", "[", "\\\\", "\"`",
    "`\"",
];

#[test]
fn what_bash_starts_was_foreseen() {
    let part = (prop::sample::select(PARTS), prop::bool::weighted(0.7));
    let lines = prop::collection::vec(part, 1..14).prop_map(|parts| {
        parts.iter().map(|(part, blank)| format!("{part}{}", if *blank { " " } else { "" })).collect::<String>()
    });
    is_foreseen_for("noise", &lines, 300);
}

#[test]
fn what_bash_starts_for_scripts_was_foreseen() {
    is_foreseen_for("scripts", &disturbed(lists()), 300);
}

/// Lists of commands that bash can read.
fn lists() -> impl Strategy<Value = String> {
    let simple = prop::sample::select(SIMPLE).prop_map(str::to_owned);
    simple.prop_recursive(4, 24, 4, |list| {
        let words = prop_oneof![
            prop::sample::select(WORDS).prop_map(str::to_owned),
            (prop::sample::select(AROUND), list.clone()).prop_map(|(around, list)| around.replace("LIST", &list)),
            list.clone().prop_map(|list| format!("'{}'", list.replace('\'', "'\\''"))),
        ];
        let command = (prop::sample::select(PROGRAMS), prop::collection::vec(words, 0..4))
            .prop_map(|(program, words)| format!("{program} {}", words.join(" ")));
        let compound = (prop::sample::select(COMPOUND), list.clone(), list.clone())
            .prop_map(|(compound, one, two)| compound.replace("LIST", &one).replace("MORE", &two));
        let joined =
            (prop::sample::select(&["; ", " && ", " || ", " | ", "\n", " & ", " |& "][..]), list.clone(), list)
                .prop_map(|(by, one, two)| format!("{one}{}{two}", if one.ends_with('\n') { "" } else { by }));
        prop_oneof![3 => command, 3 => compound, 2 => joined]
    })
}

/// With line ends behind backslashes where they may stand, and with letters that are missing or twice.
fn disturbed(lists: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let places = || prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    (lists, places(), prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8), 0..2)).prop_map(
        |(list, joints, changes)| {
            let mut letters: Vec<char> = list.chars().collect();
            for (place, change) in changes.iter().filter(|_| !list.is_empty()) {
                let at = place.index(letters.len());
                match change {
                    0 => letters.insert(at, letters[at]),
                    1 => letters[at] = ' ',
                    _ => letters.insert(at, '\\'),
                }
            }
            for joint in joints {
                let at = joint.index(letters.len() + 1);
                letters.splice(at..at, ['\\', '\n']);
            }
            letters.into_iter().collect()
        },
    )
}

const PROGRAMS: &[&str] = &[
    "aa", "bb", "x=1 cc", "eval", "command dd", "builtin eval", "exec", "trap", "source", "declare", "! aa", "time bb",
    "coproc cc", "set --", "x=", "a[0]=", "export", "local", "test", "[", "printf -v x", "read x", "let", "unset", ":",
    ">f", "<f aa", "echo", "a[ 1 ]=2 aa", "time -p\taa", "mapfile -c1 -C aa <<<", "f",
];
const SIMPLE: &[&str] = &[
    "aa", "bb cc", "dd", "eval 'ee ff'", "x='a[$(gg)]'", "((x))", "echo $((x))", "PS4='$(hh)'; set -x; :", "x=bb; $x",
    "cat <<E\n$(ii)\nE\n", ": <<'E'\n$(ii)\nE\n", "aa <<-E; bb\n\tcc\n\tE\n", "f() { jj; }; f", "trap 'kk' EXIT",
    "aa >f", "[[ x -eq 1 ]]", "source /dev/stdin <<<'ll mm'", ". /dev/fd/3 3<<<nn", "for x in oo; do $x; done",
    "aa # bb", "set -- pp; \"$@\"", "echo qq | { read x; $x; }", "case rr in rr) ss;& tt) uu;; esac",
    "echo {aa,bb} {.},cc}",
];
const WORDS: &[&str] = &[
    "aa", "\"bb cc\"", "'dd'", "$x", "\"$x\"", "\"$@\"", "{ee,ff}", "*", "$'\\x61'", "\\a", "EXIT", "-v", "--", "x",
    "a[x]", "2>f", "<<<gg", "a=(hh ii)", "#", "${!x}", "${x@P}", "''", "$((1+1))", "x=jj", "-i", "-eq", "]", "]]",
    "{fd}>f",
];
/// Of words.
const AROUND: &[&str] = &[
    "$(LIST)", "\"$(LIST)\"", "`LIST`", "\"`LIST`\"", "<(LIST)", ">(LIST)", "${x:-$(LIST)}", "\"${x:-$(LIST)}\"",
    "$(( $(LIST) ))", "a[$(LIST)]=1", "$((LIST))", "${a[$(LIST)]}", "\"a$(LIST\n)b\"", "$(: # )\nLIST)", "x=$(LIST)",
];
const COMPOUND: &[&str] = &[
    "{ LIST\n}", "(LIST\n)", "(LIST)", "if LIST\nthen MORE\nfi", "if aa; then LIST\nelse MORE\nfi", "((LIST); MORE\n)",
    "while LIST\ndo MORE\nbreak; done", "for x in aa bb; do LIST\ndone", "case aa in a*) LIST\n;; *) MORE\n;; esac",
    "f() { LIST\n}; f", "function g { LIST\n}; g", "[[ $(LIST) ]] && MORE", "cat <<E; (LIST\nE\nMORE)",
    "coproc { LIST\n}", "eval \"LIST\"", "bb <<E\n$(LIST)\nE\nMORE", "{ LIST\n} >f", "! { LIST\n}", "time { LIST\n}",
    "x=$(LIST) MORE", "aa <<A <<'B'\nLIST\nA\nMORE\nB\n", "a=($(LIST) [1]=2); MORE", "for ((;;)) { LIST\nbreak; }",
    "trap -- 'LIST' EXIT", "$(LIST", "'LIST'", "\"LIST\"", "eval 'LIST\n'",
    "select x in aa; do LIST\nbreak; done <<<1",
];

fn is_foreseen_for(name: &str, lines: &impl Strategy<Value = String>, cases: u32) {
    let bash = ["/usr/bin/bash", "/bin/bash"].into_iter().find(|path| Path::new(path).exists());
    let bash = bash.expect("bash is there to be asked");
    let folder = std::env::temp_dir().join(format!("belljar-shell-{name}-{}", std::process::id()));
    let cases = std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let clear = std::cell::Cell::new(0_u32);
    let result = runner.run(lines, |line| {
        let reading = shell::of_line(&line);
        if reading.unclear.is_empty() && !reading.commands.iter().any(runs_file) {
            clear.set(clear.get() + 1);
            for answer in ["0", "1"] {
                for started in really_started(bash, &folder, &line, answer) {
                    prop_assert!(
                        foreseen(&reading, &started),
                        "{line:?} started {started:?}, but read was {reading:#?}"
                    );
                }
            }
        }
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.map_or_else(|error| error.to_string(), |()| String::new()));
    // If everything were called unclear, nothing would be tried.
    assert!(clear.get() * 20 >= cases, "only {} of {cases} lines are clear", clear.get());
}

fn really_started(bash: &str, folder: &Path, line: &str, answer: &str) -> Vec<Vec<String>> {
    std::fs::create_dir_all(folder).expect("a folder to write into");
    // Lines made by chance may loop.
    let output = Command::new("timeout")
        .args(["5", bash, "--norc", "-c", OPEN, "bash", line])
        .env_clear()
        .env("BASH_FUNC_command_not_found_handle%%", TELL)
        .env("ANSWER", answer)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    std::fs::remove_dir_all(folder).expect("the folder goes");
    let told = String::from_utf8_lossy(&output.stdout).replace(LINE, "\n");
    let words = |command: &str| command.strip_suffix(WORD).unwrap_or(command).split(WORD).map(str::to_owned).collect();
    told.split(END).filter(|command| !command.is_empty()).map(words).collect()
}

/// Does it run a file? What an earlier command wrote there is not looked at.
fn runs_file(simple: &Simple) -> bool {
    matches!(simple.name(), Some("source" | ".")) && simple.code.is_none()
}

fn foreseen(reading: &Reading, started: &[String]) -> bool {
    reading.commands.iter().any(|simple| fits(simple, started))
}

fn fits(simple: &Simple, started: &[String]) -> bool {
    let Some((program, arguments)) = started.split_first() else { return true };
    let loose = simple.arguments.iter().any(Word::may_be_many);
    let same = |(word, wanted): (&Word, &String)| word.may_be(wanted);
    simple.program.may_be(program)
        && (loose || (simple.arguments.len() == arguments.len() && simple.arguments.iter().zip(arguments).all(same)))
}
