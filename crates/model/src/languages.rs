//! Languages that code can come in without a command: which programs of the host run each, and how they are told the code. The one
//! list of them, for every front-end. What is on the host is looked up by whoever asks.

use serde::{Deserialize, Serialize};

use crate::CellLanguage;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    #[serde(alias = "py")]
    Python,
    #[serde(alias = "js", alias = "node")]
    Javascript,
    #[serde(alias = "ts")]
    Typescript,
    Bash,
    Sh,
    #[serde(alias = "rb")]
    Ruby,
    Perl,
    Php,
    Lua,
    Go,
    #[serde(alias = "rs")]
    Rust,
    Java,
    C,
    #[serde(rename = "c++", alias = "cpp")]
    Cpp,
}

/// Code that is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code<'a> {
    /// In a file of this path, which bears the language's ending.
    File(&'a str),
    /// As a word of the command, where the same scanners see it.
    Word(&'a str),
}

/// What of the host decides how code is run.
pub trait Toolchains {
    fn has(&self, program: &str) -> bool;
    /// The first number of its version.
    fn version_of(&self, program: &str) -> Option<u32>;
}

/// No program that runs a language is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoToolchain {
    pub language: Language,
    /// Any of which would do.
    pub programs: Vec<&'static str>,
    pub why: &'static str,
}

impl std::fmt::Display for NoToolchain {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.programs.join("`, `");
        write!(out, "this host has no `{names}`, which would run {}{}", self.language.name(), self.why)
    }
}

impl Language {
    pub const ALL: [Language; 14] = [
        Language::Python,
        Language::Javascript,
        Language::Typescript,
        Language::Bash,
        Language::Sh,
        Language::Ruby,
        Language::Perl,
        Language::Php,
        Language::Lua,
        Language::Go,
        Language::Rust,
        Language::Java,
        Language::C,
        Language::Cpp,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::Javascript => "javascript",
            Language::Typescript => "typescript",
            Language::Bash => "bash",
            Language::Sh => "sh",
            Language::Ruby => "ruby",
            Language::Perl => "perl",
            Language::Php => "php",
            Language::Lua => "lua",
            Language::Go => "go",
            Language::Rust => "rust",
            Language::Java => "java",
            Language::C => "c",
            Language::Cpp => "c++",
        }
    }

    /// By its name or by a short one.
    pub fn named(name: &str) -> Option<Language> {
        serde_json::from_value(serde_json::Value::String(name.to_ascii_lowercase())).ok()
    }

    /// How the name of its file ends.
    pub fn of_file(name: &str) -> Option<Language> {
        let (_, ending) = name.rsplit_once('.')?;
        Language::ALL
            .into_iter()
            .find(|language| language.file().rsplit_once('.').is_some_and(|(_, own)| own == ending))
    }

    /// What its file is called where nobody says.
    pub fn file(self) -> &'static str {
        match self {
            Language::Python => "main.py",
            Language::Javascript => "main.js",
            Language::Typescript => "main.ts",
            Language::Bash | Language::Sh => "main.sh",
            Language::Ruby => "main.rb",
            Language::Perl => "main.pl",
            Language::Php => "main.php",
            Language::Lua => "main.lua",
            Language::Go => "main.go",
            Language::Rust => "main.rs",
            Language::Java => "Main.java",
            Language::C => "main.c",
            Language::Cpp => "main.cpp",
        }
    }

    /// Whose variables can be kept from one piece of code to the next.
    pub fn keeps(self) -> Option<CellLanguage> {
        match self {
            Language::Python => Some(CellLanguage::Python),
            Language::Javascript => Some(CellLanguage::Javascript),
            Language::Bash => Some(CellLanguage::Bash),
            _ => None,
        }
    }

    /// Programs, any of which will do.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Language::Python => &["python3", "python"],
            Language::Javascript => &["node", "nodejs", "bun"],
            Language::Typescript => &["tsx", "deno", "bun", "ts-node"],
            Language::Bash => &["bash"],
            Language::Sh => &["sh"],
            Language::Ruby => &["ruby"],
            Language::Perl => &["perl"],
            Language::Php => &["php"],
            Language::Lua => &["lua", "lua5.4", "luajit"],
            Language::Go => &["go"],
            Language::Rust => &["rustc"],
            Language::Java => &["java"],
            Language::C => &["cc", "gcc", "clang"],
            Language::Cpp => &["c++", "g++", "clang++"],
        }
    }

    /// The program that runs it here.
    pub fn program(self, host: &dyn Toolchains) -> Result<&'static str, NoToolchain> {
        let found = self.programs().iter().copied().find(|program| host.has(program));
        if self != Language::Typescript {
            return found.ok_or_else(|| NoToolchain { language: self, programs: self.programs().to_vec(), why: "" });
        }
        // From 22 on it leaves types out by itself.
        match host.has("node").then(|| host.version_of("node")).flatten() {
            Some(22..) => Ok("node"),
            _ => found.ok_or_else(|| {
                let programs = std::iter::once("node").chain(self.programs().iter().copied()).collect();
                NoToolchain { language: self, programs, why: "; of `node`, version 22 or newer" }
            }),
        }
    }

    /// The command that runs it.
    pub fn command(self, code: Code<'_>, host: &dyn Toolchains) -> Result<Vec<String>, NoToolchain> {
        let program = self.program(host)?;
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let takes_code = match self {
            Language::Python | Language::Bash | Language::Sh => Some("-c"),
            Language::Javascript | Language::Ruby | Language::Perl | Language::Lua => Some("-e"),
            Language::Php => Some("-r"),
            _ => None,
        };
        Ok(match (code, takes_code) {
            (Code::Word(code), Some(word)) => words(&[program, word, code]),
            (Code::File(file), Some(_)) => words(&[program, file]),
            // Compiled beside it rather than in the workspace, where it would be a change.
            (Code::File(file), None) => match self.build(program) {
                None => [self.runs(program), words(&[file])].concat(),
                Some(build) => words(&["sh", "-c", &format!("out=$(mktemp -d) && {build}"), "sh", file]),
            },
            (Code::Word(code), None) => {
                let file = self.file();
                let run = match self.build(program) {
                    None => format!("exec {} \"$1\"", self.runs(program).join(" ")),
                    Some(build) => build,
                };
                let line =
                    format!("out=$(mktemp -d) && printf %s \"$1\" >\"$out/{file}\" && set -- \"$out/{file}\" && {run}");
                words(&["sh", "-c", &line, "sh", code])
            }
        })
    }

    /// A line of shell that makes a program of `$1` in `$out` and becomes it.
    fn build(self, program: &str) -> Option<String> {
        let flags = match self {
            Language::Rust => "--edition 2021 -o \"$out/main\" \"$1\"",
            Language::C => "-o \"$out/main\" \"$1\" -lm",
            Language::Cpp => "-o \"$out/main\" \"$1\"",
            Language::Go => "build -o \"$out/main\" \"$1\"",
            _ => return None,
        };
        let around = if self == Language::Go {
            "GOCACHE=\"${GOCACHE:-$out/cache}\" GOFLAGS=-mod=mod GO111MODULE=off "
        } else {
            ""
        };
        Some(format!("{around}{program} {flags} && exec \"$out/main\""))
    }

    /// Words that go before a file.
    fn runs(self, program: &str) -> Vec<String> {
        let words: &[&str] = match (self, program) {
            (Language::Typescript, "node") => &["node", "--experimental-strip-types", "--no-warnings"],
            (Language::Typescript, "deno") => &["deno", "run"],
            _ => return vec![program.to_owned()],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Only(&'static [&'static str], Option<u32>);

    impl Toolchains for Only {
        fn has(&self, program: &str) -> bool {
            self.0.contains(&program)
        }
        fn version_of(&self, _: &str) -> Option<u32> {
            self.1
        }
    }

    #[test]
    fn every_language_is_known_by_its_name_and_names_what_is_missing() {
        for language in Language::ALL {
            assert_eq!(Language::named(language.name()), Some(language));
            let missing = language.command(Code::Word("x"), &Only(&[], None)).expect_err("nothing is there");
            assert!(missing.to_string().contains(language.programs()[0]), "{missing}");
        }
        assert_eq!(Language::named("cpp"), Some(Language::Cpp));
        assert_eq!(Language::of_file("a/b.rs"), Some(Language::Rust));
        assert_eq!(Language::named("cobol"), None);
    }

    #[test]
    fn types_are_left_out_by_a_node_that_can() {
        let program = |only: &Only| Language::Typescript.program(only);
        assert_eq!(program(&Only(&["node", "tsx"], Some(22))), Ok("node"));
        assert_eq!(program(&Only(&["node", "tsx"], Some(20))), Ok("tsx"));
        let missing = program(&Only(&["node"], Some(20))).expect_err("too old");
        assert!(missing.to_string().contains("version 22"), "{missing}");
    }

    #[test]
    fn code_is_a_word_of_its_own_and_never_part_of_a_line() {
        let code = "'; rm -rf / #";
        for language in Language::ALL {
            let has = Only(language.programs(), None);
            let command = language.command(Code::Word(code), &has).expect("it is there");
            assert_eq!(command.iter().filter(|word| word.contains("rm -rf")).count(), 1);
            assert!(command.contains(&code.to_owned()));
        }
    }
}
