//! Which language a text is in: by its name, or by its first line.

use crate::file::LANGUAGES;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Language {
    Python,
    JavaScript,
    TypeScript,
    Tsx,
    Shell,
    Go,
    Rust,
    Ruby,
    Php,
    Java,
    C,
    Cpp,
    /// Anything people read that is no program: only rules on text are tried.
    Text,
}

/// How much of a beginning tells something.
const HEAD: usize = 256;

impl Language {
    pub const ALL: [Language; 13] = [
        Language::Python,
        Language::JavaScript,
        Language::TypeScript,
        Language::Tsx,
        Language::Shell,
        Language::Go,
        Language::Rust,
        Language::Ruby,
        Language::Php,
        Language::Java,
        Language::C,
        Language::Cpp,
        Language::Text,
    ];

    /// The language of a file by its name and its first bytes; `None` for what is not known to be text.
    pub fn of(name: &str, head: &[u8]) -> Option<Language> {
        let base = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let lower = base.to_ascii_lowercase();
        let known = match lower.as_str() {
            ".bashrc" | ".bash_profile" | ".profile" | ".zshrc" | ".zshenv" | ".zprofile" | ".bash_logout"
            | ".envrc" | "pkgbuild" | "apkbuild" => Some(Language::Shell),
            "rakefile" | "gemfile" | "vagrantfile" | "podfile" | "brewfile" | "guardfile" | "capfile" => {
                Some(Language::Ruby)
            }
            "sconstruct" | "sconscript" | "wscript" => Some(Language::Python),
            "jenkinsfile" | "dockerfile" | "makefile" | "license" | "readme" => Some(Language::Text),
            _ => lower.rsplit_once('.').and_then(|(_, extension)| by_extension(extension)),
        };
        known.or_else(|| by_first_line(head)).or_else(|| is_text(head).then_some(Language::Text))
    }

    pub fn name(self) -> &'static str {
        LANGUAGES[self as usize]
    }

    /// The language of that name, as rules call it.
    pub fn named(name: &str) -> Option<Language> {
        Language::ALL.into_iter().find(|language| language.name() == name)
    }

    pub(crate) fn bit(self) -> u16 {
        1 << self as u16
    }
}

fn by_extension(extension: &str) -> Option<Language> {
    Some(match extension {
        "py" | "pyw" | "pyi" | "pyx" | "pth" | "gyp" | "bzl" => Language::Python,
        "js" | "mjs" | "cjs" | "jsx" | "es6" => Language::JavaScript,
        "ts" | "mts" | "cts" => Language::TypeScript,
        "tsx" => Language::Tsx,
        "sh" | "bash" | "zsh" | "ksh" | "dash" | "bats" | "command" | "ebuild" => Language::Shell,
        "go" => Language::Go,
        "rs" => Language::Rust,
        "rb" | "rake" | "gemspec" | "ru" | "podspec" => Language::Ruby,
        "php" | "phtml" | "php3" | "php4" | "php5" | "php7" | "phps" | "inc" => Language::Php,
        "java" => Language::Java,
        "c" | "h" => Language::C,
        "cc" | "cpp" | "cxx" | "hpp" | "hh" | "hxx" | "c++" | "h++" | "ipp" | "tpp" => Language::Cpp,
        "md" | "markdown" | "txt" | "rst" | "json" | "yml" | "yaml" | "toml" | "xml" | "html" | "htm" | "cfg"
        | "ini" | "conf" | "svg" | "csv" | "adoc" | "mdc" => Language::Text,
        _ => return None,
    })
}

fn by_first_line(head: &[u8]) -> Option<Language> {
    let head = &head[..head.len().min(HEAD)];
    if head.starts_with(b"<?php") {
        return Some(Language::Php);
    }
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace().filter(|word| !word.starts_with('-') && !word.contains('='));
    let mut program = words.next()?.rsplit('/').next()?;
    if program == "env" {
        program = words.next()?.rsplit('/').next()?;
    }
    let bare = program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    Some(match bare {
        "python" | "pypy" => Language::Python,
        "node" | "nodejs" | "bun" => Language::JavaScript,
        "deno" | "ts-node" | "tsx" => Language::TypeScript,
        "sh" | "bash" | "zsh" | "ksh" | "dash" | "ash" => Language::Shell,
        "ruby" => Language::Ruby,
        "php" => Language::Php,
        _ => return None,
    })
}

/// Is it meant for people to read? Bytes that no text holds say no.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(8 * 1024)];
    if head.contains(&0) {
        return false;
    }
    let strange = head.iter().filter(|byte| **byte < 0x20 && !b"\t\n\r\x0c\x1b\x08".contains(byte)).count();
    strange * 20 <= head.len()
}

#[cfg(test)]
mod tests {
    use super::Language;

    #[test]
    fn names_and_first_lines_tell_the_language() {
        for (name, head, language) in [
            ("a/b.py", "", Some(Language::Python)),
            ("x", "#!/usr/bin/env -S python3.12 -u\n", Some(Language::Python)),
            ("x", "#!/bin/sh\n", Some(Language::Shell)),
            ("Rakefile", "", Some(Language::Ruby)),
            ("X.TSX", "", Some(Language::Tsx)),
            ("index", "<?php echo 1;", Some(Language::Php)),
            ("notes", "hello", Some(Language::Text)),
            ("x.bin", "\0\u{1}", None),
        ] {
            assert_eq!(Language::of(name, head.as_bytes()), language, "{name}");
        }
    }

    #[test]
    fn every_language_has_its_name() {
        for language in Language::ALL {
            assert_eq!(Language::named(language.name()), Some(language));
        }
    }
}
