//! Code that comes without a command, as the API writes it. The list of languages is `model`'s.

use model::{Language, NoToolchain};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::problem::Problem;

/// Their names.
pub fn names() -> RefOr<Schema> {
    let names = Language::ALL.map(Language::name);
    let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
    schema.description(Some("What the code is written in")).build().into()
}

/// Or nothing.
pub fn names_or_none() -> RefOr<Schema> {
    let names = Language::ALL.map(Language::name).map(Some).into_iter().chain([None]);
    let kinds = utoipa::openapi::schema::SchemaType::from_iter([Type::String, Type::Null]);
    let schema = ObjectBuilder::new().schema_type(kinds).enum_values(Some(names));
    schema.description(Some("What the code is written in")).build().into()
}

pub fn missing(missing: NoToolchain) -> Problem {
    Problem::wrong(missing.to_string())
        .hint("install it for the service, or use `image` with one that has it and `command`")
}
