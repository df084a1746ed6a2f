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
    let language = said.or_else(|| by_name(file)).or_else(|| read(file, &start)).or_else(|| by_first_line(&start));
    Ok(Resource::Code { language: language.map(str::to_owned), bytes })
}

/// As the scanner tells languages, of those that it reads.
fn read(file: &Path, start: &[u8]) -> Option<&'static str> {
    use code::Language::{C, Cpp, Go, Java, JavaScript, Php, Python, Ruby, Rust, Shell, Text, Tsx, TypeScript};
    Some(match code::Language::of(&file.to_string_lossy(), start)? {
        Python => "python",
        JavaScript => "node",
        TypeScript | Tsx => "typescript",
        Shell => "shell",
        Go => "go",
        Rust => "rust",
        Ruby => "ruby",
        Php => "php",
        Java => "java",
        C | Cpp | Text => return None,
    })
}

/// Those that no scanner reads.
fn by_name(file: &Path) -> Option<&'static str> {
    Some(match file.extension()?.to_str()? {
        "fish" => "fish",
        "pl" | "pm" => "perl",
        "lua" => "lua",
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
        "fish" => "fish",
        "perl" => "perl",
        "lua" | "luajit" => "lua",
        "Rscript" => "r",
        "julia" => "julia",
        "elixir" => "elixir",
        "awk" | "gawk" | "mawk" => "awk",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_told_by_the_name_or_the_first_line() {
        let folder = std::env::temp_dir().join(format!("belljar-code-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let told = |name: &str, text: &str| {
            let file = folder.join(name);
            std::fs::write(&file, text).expect("a file");
            match look(&file, None) {
                Ok(Resource::Code { language, .. }) => language,
                other => unreachable!("{other:?}"),
            }
        };
        let cases = [
            ("a.py", "", Some("python")),
            ("a.mjs", "", Some("node")),
            ("a.tsx", "", Some("typescript")),
            ("a.bash", "", Some("shell")),
            ("a.pl", "#!/bin/sh\n", Some("perl")),
            ("a.exs", "", Some("elixir")),
            ("a", "#!/usr/bin/env -S python3.12 -u\n", Some("python")),
            ("b", "#!/usr/bin/env deno\n", Some("typescript")),
            ("c", "#! /usr/bin/gawk -f\n", Some("awk")),
            ("d", "#!/usr/bin/env ruby\n", Some("ruby")),
            ("e.c", "int main;\n", None),
            ("f", "some text\n", None),
        ];
        let found: Vec<_> = cases.iter().map(|(name, text, _)| told(name, text)).collect();
        std::fs::remove_dir_all(&folder).expect("it was ours");
        for ((name, _, wanted), found) in cases.iter().zip(found) {
            assert_eq!(found.as_deref(), *wanted, "{name}");
        }
    }
}
