//! Presets without what only people and tests read: they are parsed at every start that has a policy.
//! Lines stay where they are, so that places in messages are those of the files.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=presets");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    for entry in fs::read_dir("presets")? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        let name = path.file_name().ok_or_else(|| io::Error::other("a preset has a name"))?;
        fs::write(Path::new(&out).join(name), bare(&text)?)?;
    }
    Ok(())
}

fn bare(text: &str) -> io::Result<String> {
    let mut bare = String::with_capacity(text.len());
    for line in text.lines() {
        let is_example = line.starts_with("matches = ") || line.starts_with("passes = ");
        if is_example && !line.ends_with(']') {
            return Err(io::Error::other(format!("the examples of a preset's rule must be on one line: {line}")));
        }
        if !is_example && !line.starts_with('#') {
            bare += line;
        }
        bare.push('\n');
    }
    Ok(bare)
}
