//! Code as tools take it. The list of languages is `model`'s.

use model::{Code, Language};
use schemars::{Schema, SchemaGenerator, json_schema};
use service::OfTheHost;

use crate::said::Failure;

/// The kernel takes no longer word.
const LONGEST: usize = 120 << 10;

/// Their names.
pub fn names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "enum": Language::ALL.map(Language::name),
        "description": "What the code is written in. Of php: without `<?php`.",
    })
}

pub fn command(language: Language, code: &str) -> Result<Vec<String>, Failure> {
    is_short(code)?;
    language.command(Code::Word(code), &OfTheHost).map_err(missing)
}

pub fn is_short(code: &str) -> Result<(), Failure> {
    match code.len() <= LONGEST {
        true => Ok(()),
        false => Err(Failure::wrong(format!("the code has {} bytes, and {LONGEST} are the most", code.len()))
            .fix("write it into a file with `write_file`, and run that with `run_command`")),
    }
}

pub fn missing(missing: model::NoToolchain) -> Failure {
    Failure::new("no-language", missing.to_string()).fix("use another language, or have it installed for the server")
}
