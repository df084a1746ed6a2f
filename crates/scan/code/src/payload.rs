//! Texts that are code in disguise: decoded, and scanned again where they look like code.

use crate::evaluate::Piece;
use crate::{Language, decode};

/// Shorter texts hide nothing worth a scan.
const SHORTEST: usize = 24;
/// Longer ones are only decoded as far as payloads go.
const LONGEST: usize = 2 << 20;

/// A piece of code within a constant text, if it looks like some.
pub(crate) fn within(text: &[u8], language: Language, start: usize) -> Option<Piece> {
    if text.len() < SHORTEST || text.len() > LONGEST {
        return None;
    }
    let is_hexadecimal = text.len().is_multiple_of(2) && text.iter().all(u8::is_ascii_hexdigit);
    let is_base64 = !is_hexadecimal
        && text.len() % 4 != 1
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_\n\r".contains(byte))
        && text.iter().any(u8::is_ascii_uppercase)
        && text.iter().any(u8::is_ascii_lowercase);
    let (bytes, via) = if is_hexadecimal {
        (decode::hexadecimal(text)?, "hexadecimal")
    } else if is_base64 {
        (decode::base64(text)?, "base64")
    } else {
        return None;
    };
    let is_packed =
        bytes.starts_with(&[0x1f, 0x8b]) || matches!(bytes.get(..2), Some([0x78, 0x01 | 0x5e | 0x9c | 0xda]));
    let (bytes, via) = if is_packed { (decode::inflated(&bytes)?, "compressed") } else { (bytes, via) };
    let language = looks_like(&bytes, language)?;
    Some(Piece { bytes, language: Some(language), via, start, words: None })
}

/// Which language it looks like; `None` for what is no text, or no code.
pub(crate) fn looks_like(bytes: &[u8], around: Language) -> Option<Language> {
    let text = std::str::from_utf8(bytes).ok()?;
    let head = &text.as_bytes()[..text.len().min(4096)];
    if head.iter().any(|byte| *byte < 0x20 && !b"\t\n\r".contains(byte)) {
        return None;
    }
    if let Some(language) = Language::of("", bytes).filter(|language| *language != Language::Text) {
        return Some(language);
    }
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["import ", "exec(", "__import__", "def ", "print("]) && !has(&["require(", "function", "const ", "var "]) {
        return Some(Language::Python);
    }
    if has(&["require(", "function", "=>", "eval(", "const ", "document.", "process.", "fetch("]) {
        return Some(if around == Language::Python { Language::JavaScript } else { script(around) });
    }
    let programs = [
        "curl ", "wget ", "bash ", "sh -", "/bin/", "nc ", "rm -", "chmod ", "echo ", "/dev/tcp", "cat ", "powershell",
        "sudo ", "python", "base64 ",
    ];
    if has(&programs) {
        return Some(Language::Shell);
    }
    has(&["<?php", "system(", "$_"]).then_some(Language::Php)
}

fn script(around: Language) -> Language {
    match around {
        Language::Shell
        | Language::Text
        | Language::C
        | Language::Cpp
        | Language::Go
        | Language::Rust
        | Language::Java => Language::JavaScript,
        other => other,
    }
}
