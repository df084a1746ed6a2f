//! What must hold for all bytes from hostile hands. Each law takes any bytes and panics if it is broken.
//!
//! `cargo xtask fuzz` looks for bytes that break one; `tests/seeds.rs` tries those that are known, and their neighbours.

mod approvals;
mod archive;
mod cedar;
mod cells;
mod code;
mod denials;
mod downloads;
mod exports;
mod fence;
mod files;
mod filter;
mod hello;
mod layers;
mod ledger;
mod names;
mod policy;
mod records;
mod request;
mod secrets;
mod shell;
mod shown;
mod terminal;
mod units;
mod vault;
mod wire;
mod words;

use arbitrary::{Arbitrary, Unstructured};

/// Panics if it is broken.
pub type Law = fn(&[u8]);

/// Each by the name of its fuzz target and its folder of seeds.
pub const ALL: &[(&str, Law)] = &[
    ("approvals", approvals::law),
    ("archive", archive::law),
    ("cedar", cedar::law),
    ("cells", cells::law),
    ("code", code::law),
    ("denials", denials::law),
    ("downloads", downloads::law),
    ("exports", exports::law),
    ("fence", fence::law),
    ("files", files::law),
    ("filter", filter::law),
    ("hello", hello::law),
    ("layers", layers::law),
    ("ledger", ledger::law),
    ("names", names::law),
    ("policy", policy::law),
    ("records", records::law),
    ("request", request::law),
    ("secrets", secrets::law),
    ("shell", shell::law),
    ("terminal", terminal::law),
    ("units", units::law),
    ("vault", vault::law),
    ("wire", wire::law),
    ("words", words::law),
];

/// Tries the law called `name`.
pub fn hold(name: &str, bytes: &[u8]) {
    let (_, law) = ALL.iter().find(|(known, _)| *known == name).expect("there is such a law");
    law(bytes);
}

/// Bytes as something with a structure; `None` where they are too few.
fn made_of<'a, T: Arbitrary<'a>>(bytes: &'a [u8]) -> Option<T> {
    T::arbitrary_take_rest(Unstructured::new(bytes)).ok()
}
