//! JavaScript and Python as modules. Left out where the interpreters are not installed.

use belljar_testkit::Who;
use belljar_testkit::modules::interpreter;
use belljar_testkit::twice::Check;

use crate::table::{Table, ended, fed, says, text};

pub const ALL: &[(&str, Check)] = &[
    ("javascript_runs_code_files_and_input", javascript),
    ("javascript_reads_and_writes_what_was_granted", javascript_files),
    ("javascript_that_never_ends_ends_at_the_time_limit", javascript_loop),
    ("python_runs_code_modules_files_and_input", python),
    ("python_reads_and_writes_what_was_granted", python_files),
    ("python_that_never_ends_ends_at_the_time_limit", python_loop),
    ("python_has_no_processes_and_no_network", python_powers),
];

/// By the name of a test, whether its language is missing here.
pub fn why_not(test: &str) -> Option<String> {
    let language = ["javascript", "python"].into_iter().find(|language| test.starts_with(language))?;
    let list = interpreter(language);
    (!list.exists()).then(|| format!("{language} is not installed: `cargo xtask interpreters`"))
}

fn run(table: &Table, flags: &[&str], words: &[&str], input: &str) -> Result<belljar_testkit::project::Said, String> {
    let all = [&["run", "-q", "--backend", "wasm"], flags, &["--"], words].concat();
    fed(&mut table.project.command(all), input.as_bytes())
}

fn expect(table: &Table, words: &[&str], input: &str, said: &str) -> Result<(), String> {
    let found = ended(run(table, &[], words, input)?, 0)?;
    match text(&found) == said {
        true => Ok(()),
        false => Err(format!("{words:?}: {found:?}, not {said:?}")),
    }
}

fn javascript(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    expect(&table, &["node", "-e", "console.log(1 + 1, [1, 'a'], {b: null})"], "", "2 [ 1, 'a' ] { b: null }\n")?;
    expect(&table, &["node", "-p", "[...'ab'].map(c => c.toUpperCase())"], "", "[ 'A', 'B' ]\n")?;
    table.put("script.js", "console.log(process.argv.slice(2).join('+'), __filename)")?;
    expect(&table, &["node", "script.js", "x", "y z"], "", "x+y z script.js\n")?;
    table.put("lib.js", "exports.twice = (n) => n * 2;")?;
    table.put("uses.js", "console.log(require('./lib').twice(21), require('node:path').extname('a.txt'))")?;
    expect(&table, &["node", "uses.js"], "", "42 .txt\n")?;
    table.put("whole.mjs", "import { value } from './part.mjs'; console.log(await Promise.resolve(value));")?;
    table.put("part.mjs", "export const value = 7;")?;
    expect(&table, &["node", "whole.mjs"], "", "7\n")?;
    expect(&table, &["node", "-"], "console.log('from input')", "from input\n")?;
    expect(&table, &["node"], "console.log('from input')", "from input\n")?;
    let echo = "console.log(require('fs').readFileSync(0, 'utf8').trim().length)";
    expect(&table, &["node", "-e", echo], "twelve chars\n", "12\n")?;
    expect(
        &table,
        &["node", "-e", "setTimeout(() => console.log('later'), 5); console.log('now')"],
        "",
        "now\nlater\n",
    )?;
    ended(run(&table, &[], &["node", "-e", "process.exit(9)"], "")?, 9)?;
    says(&ended(run(&table, &[], &["node", "-e", "throw new TypeError('no')"], "")?, 1)?, "TypeError: no")?;
    says(&ended(run(&table, &[], &["node", "-e", "const f = () => f(); f()"], "")?, 1)?, "stack")?;
    ended(run(&table, &[], &["node", "absent.js"], "")?, 1).map(drop)
}

fn javascript_files(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let code = "const fs = require('fs'); fs.mkdirSync('made/deep', { recursive: true }); \
                fs.writeFileSync('made/deep/a.txt', 'grüße'); fs.appendFileSync('made/deep/a.txt', '!'); \
                console.log(fs.readFileSync('made/deep/a.txt', 'utf8'), fs.readdirSync('made'), fs.statSync('made/deep/a.txt').size)";
    expect(&table, &["node", "-e", code], "", "grüße! [ 'deep' ] 8\n")?;
    says(&ended(table.belljar(&["diff", "last"])?, 0)?, "made/deep/a.txt")?;
    let code = "try { require('fs').readFileSync('/etc/passwd', 'utf8'); console.log('read') } catch (e) { console.log(e.code) }";
    expect(&table, &["node", "-e", code], "", "ENOENT\n")
}

fn javascript_loop(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    expect(&table, &["node", "-e", ""], "", "")?;
    ended(run(&table, &["--timeout", "1s"], &["node", "-e", "for (;;);"], "")?, 124).map(drop)
}

fn python(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    expect(
        &table,
        &["python3", "-c", "import sys, json; print(json.dumps([1, sys.argv]))", "a"],
        "",
        "[1, [\"-c\", \"a\"]]\n",
    )?;
    table.put("script.py", "import sys, helper\nprint(helper.twice(int(sys.argv[1])), __name__)")?;
    table.put("helper.py", "def twice(n): return n * 2")?;
    expect(&table, &["python3", "script.py", "21"], "", "42 __main__\n")?;
    expect(&table, &["python", "-m", "helper"], "", "")?;
    expect(&table, &["python3", "-m", "json.tool", "--compact"], "{\"a\": [1]}", "{\"a\":[1]}\n")?;
    expect(&table, &["python3", "-"], "print('from input')", "from input\n")?;
    expect(&table, &["python3"], "print('from input')", "from input\n")?;
    expect(&table, &["python3", "-c", "print(len(input()))"], "twelve chars\n", "12\n")?;
    let library = "import re, math, datetime, decimal, hashlib, collections, itertools, random, csv, statistics; \
                   print(hashlib.sha256(b'x').hexdigest()[:8], math.comb(5, 2), re.sub('a', 'b', 'cat'))";
    expect(&table, &["python3", "-c", library], "", "2d711642 10 cbt\n")?;
    ended(run(&table, &[], &["python3", "-c", "raise SystemExit(9)"], "")?, 9)?;
    says(&ended(run(&table, &[], &["python3", "-c", "1 / 0"], "")?, 1)?, "ZeroDivisionError")?;
    let deep = "def f(): f()\nf()";
    says(&ended(run(&table, &[], &["python3", "-c", deep], "")?, 1)?, "RecursionError")
}

fn python_files(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let code = "import os, pathlib\nos.makedirs('made/deep'); p = pathlib.Path('made/deep/a.txt'); p.write_text('x' * 5)\nprint(p.stat().st_size, os.listdir('made'))";
    expect(&table, &["python3", "-c", code], "", "5 ['deep']\n")?;
    says(&ended(table.belljar(&["diff", "last"])?, 0)?, "made/deep/a.txt")?;
    let code = "try: open('/etc/passwd')\nexcept OSError as e: print(type(e).__name__)";
    expect(&table, &["python3", "-c", code], "", "FileNotFoundError\n")?;
    let code = "import sys, os\nlib = os.path.dirname(os.__file__)\ntry: open(lib + '/os.py', 'a')\nexcept OSError as e: print('kept')";
    expect(&table, &["python3", "-c", code], "", "kept\n")
}

fn python_loop(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    expect(&table, &["python3", "-c", "pass"], "", "")?;
    ended(run(&table, &["--timeout", "2s"], &["python3", "-c", "while True: pass"], "")?, 124)?;
    ended(run(&table, &["--timeout", "2s"], &["python3", "-c", "import time; time.sleep(600)"], "")?, 124).map(drop)
}

fn python_powers(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let code = "import os\nfor call in (lambda: os.system('id'), lambda: os.fork(), lambda: __import__('socket').socket()):\n    try: call(); print('could')\n    except Exception as e: print('kept')";
    expect(&table, &["python3", "-c", code], "", "kept\nkept\nkept\n")
}
