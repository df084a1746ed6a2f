//! Our formats as constants: at start nothing is parsed, and expressions are compiled when their keyword occurs.

#[path = "src/formats/file.rs"]
mod file;

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=formats");
    println!("cargo::rerun-if-changed=src/formats/file.rs");
    let mut paths: Vec<_> =
        fs::read_dir("formats")?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let mut table = String::from("[\n");
    for path in paths {
        let text = fs::read_to_string(&path)?;
        let formats = file::read(&path.display().to_string(), &text).map_err(io::Error::other)?;
        for format in formats {
            row(&mut table, &format).map_err(io::Error::other)?;
        }
    }
    table.push(']');
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("formats.rs"), table)
}

fn row(table: &mut String, format: &file::Written) -> std::fmt::Result {
    let file::Written {
        id, title, severity, keywords, regex, lead, before, window, entropy, check, block, rank, ..
    } = format;
    let severity = match severity.as_str() {
        "low" => "Low",
        "medium" => "Medium",
        "high" => "High",
        _ => "Critical",
    };
    writeln!(
        table,
        "BuiltIn {{ id: {id:?}, title: {title:?}, severity: model::Severity::{severity}, keywords: &{keywords:?}, \
         regex: {regex:?}, lead: {lead}, before: {before:?}, window: {window}, entropy: {entropy:?}, check: {check:?}, \
         block: {block}, rank: {rank} }},"
    )
}
