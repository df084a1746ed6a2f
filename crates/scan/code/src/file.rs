//! Rules as they are written. Shared with `build.rs`, which turns the built-in ones into constants.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// What the rules of this file are about: the first part of their names.
    pub class: String,
    #[serde(default)]
    pub rule: Vec<toml::Spanned<WrittenRule>>,
    /// Where values come from that matter later.
    #[serde(default)]
    pub origin: Vec<WrittenOrigin>,
    /// Calls that run a text as code.
    #[serde(default)]
    pub runs: Vec<WrittenRuns>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenRule {
    /// Without the class, which stands before it.
    pub id: String,
    pub severity: String,
    #[serde(default)]
    pub cwe: u32,
    pub languages: Vec<String>,
    pub message: String,
    pub fix: String,
    pub when: WrittenWhen,
    pub matches: Vec<String>,
    pub passes: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenWhen {
    /// Names of functions: `os.system`, `subprocess.*`, `*.execute`; `!console.*` is not meant, whatever else is.
    pub call: Vec<String>,
    /// Names of modules; what lies within counts, too.
    pub import: Vec<String>,
    /// Names that are read: `os.environ`.
    pub read: Vec<String>,
    /// What a constant text looks like.
    pub string: String,
    /// What any text looks like, also in comments and in files that are no programs.
    pub text: String,
    /// Names of programs that a shell starts.
    pub program: Vec<String>,
    /// Lower-case words of which one must occur before `string` or `text` is tried.
    pub hints: Vec<String>,
    /// Which argument `matches`, `unless`, `constant` and `from` are about, from 0. Without it: any.
    pub argument: Option<u8>,
    /// What the argument, or the whole command, looks like.
    pub matches: String,
    /// What the argument, or the whole command, must not look like.
    pub unless: String,
    /// Must the argument be known, or must it not?
    pub constant: Option<bool>,
    /// An argument by name…
    pub keyword: String,
    /// …and what its value looks like.
    pub value: String,
    /// Where the argument must come from: one of these.
    pub from: Vec<String>,
    /// A program whose output is run as code.
    pub fed: Option<bool>,
    /// What a file looks like that the command writes.
    pub writes: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenOrigin {
    pub label: String,
    pub languages: Vec<String>,
    #[serde(default)]
    pub call: Vec<String>,
    #[serde(default)]
    pub read: Vec<String>,
    /// Only if an argument has one of these.
    #[serde(default)]
    pub from: Vec<String>,
    /// Only if an argument looks like this.
    #[serde(default)]
    pub matches: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenRuns {
    /// The language of the text; `same` is that of the program.
    pub language: String,
    pub languages: Vec<String>,
    pub call: Vec<String>,
    #[serde(default)]
    pub argument: u8,
    /// The arguments are the words of a command, not a line for a shell.
    #[serde(default)]
    pub words: bool,
}

/// The languages, in the order of their bits.
pub const LANGUAGES: &[&str] =
    &["python", "javascript", "typescript", "tsx", "shell", "go", "rust", "ruby", "php", "java", "c", "cpp", "text"];
/// The labels, in the order of their bits.
pub const LABELS: &[&str] = &[
    "credential-path", "secret", "environment", "variable", "network", "decoded", "input", "socket", "written", "file",
    "tree",
];
/// Words of 64 bits that tell at a glance whether a name may be known, for each language.
pub const SKETCH: usize = 256;
/// What a name's place in a sketch is computed from, byte by byte.
pub const SKETCH_START: u32 = 0x811c_9dc5;

pub const fn sketched(before: u32, byte: u8) -> u32 {
    (before ^ byte as u32).wrapping_mul(0x0100_0193)
}

/// The word of a sketch and the bit in it.
pub const fn sketch_place(computed: u32) -> (usize, u64) {
    let place = (computed ^ computed >> 15) as usize % (SKETCH * 64);
    (place / 64, 1 << (place % 64))
}

pub const SEVERITIES: &[&str] = &["low", "medium", "high", "critical"];

/// Bits for names; the one that is not known, if one is not. `*` is all languages.
pub fn bits<'a>(names: &'a [String], known: &[&str]) -> Result<u16, &'a str> {
    let mut bits = 0;
    for name in names {
        match known.iter().position(|other| other == name) {
            Some(place) => bits |= 1 << place,
            None if name == "*" => bits |= u16::MAX,
            None => return Err(name),
        }
    }
    Ok(bits)
}

/// TypeScript is checked wherever JavaScript is, C++ wherever C is.
pub fn widened(languages: u16) -> u16 {
    let mut wide = languages;
    if languages & 0b10 != 0 {
        wide |= 0b1110;
    }
    if languages & (1 << 10) != 0 {
        wide |= 1 << 11;
    }
    wide
}
