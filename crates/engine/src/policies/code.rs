//! What a file with code is: how large, and in which language by its name or its first line.

use std::io::Read;
use std::path::Path;

use model::{Resource, Trouble};
use policy::LANGUAGES;

/// How much of a file may be its first line.
const LONGEST_LINE: u64 = 256;

pub fn look(file: &Path, said: Option<&str>) -> Result<Resource, Trouble> {
    let cannot = |error: std::io::Error| Trouble {
        message: format!("cannot read `{}`: {error}", file.display()),
        fix: "name a file with code".to_owned(),
    };
    if let Some(said) = said
        && !LANGUAGES.contains(&said)
    {
        return Err(Trouble {
            message: format!("`{}` is no language", said.escape_debug()),
            fix: format!("the languages are: {}", LANGUAGES.join(", ")),
        });
    }
    let opened = super::recorded::open(file).map_err(cannot)?;
    let bytes = opened.metadata().map_err(cannot)?.len();
    let mut start = Vec::new();
    opened.take(LONGEST_LINE).read_to_end(&mut start).map_err(cannot)?;
    let language = said.or_else(|| by_name(file)).or_else(|| by_first_line(&start));
    Ok(Resource::Code { language: language.map(str::to_owned), bytes })
}

fn by_name(file: &Path) -> Option<&'static str> {
    Some(match file.extension()?.to_str()? {
        "py" | "pyi" => "python",
        "js" | "mjs" | "cjs" | "jsx" => "node",
        "ts" | "mts" | "cts" | "tsx" => "typescript",
        "sh" | "bash" => "shell",
        "fish" => "fish",
        "rb" => "ruby",
        "pl" | "pm" => "perl",
        "php" => "php",
        "lua" => "lua",
        "go" => "go",
        "rs" => "rust",
        "java" => "java",
        "r" | "R" => "r",
        "jl" => "julia",
        "ex" | "exs" => "elixir",
        "awk" => "awk",
        _ => return None,
    })
}

/// `#!/usr/bin/env python3` and the like.
fn by_first_line(start: &[u8]) -> Option<&'static str> {
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let mut program = words.next()?.rsplit('/').next()?;
    if program == "env" {
        program = words.find(|word| !word.starts_with('-') && !word.contains('='))?.rsplit('/').next()?;
    }
    Some(match program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.') {
        "python" | "pypy" => "python",
        "node" | "nodejs" | "bun" => "node",
        "deno" | "tsx" | "ts-node" => "typescript",
        "sh" | "bash" | "dash" | "zsh" | "ksh" => "shell",
        "fish" => "fish",
        "ruby" => "ruby",
        "perl" => "perl",
        "php" => "php",
        "lua" | "luajit" => "lua",
        "Rscript" => "r",
        "julia" => "julia",
        "elixir" => "elixir",
        "awk" | "gawk" | "mawk" => "awk",
        _ => return None,
    })
}
