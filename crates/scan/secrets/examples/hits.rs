//! What has the format of a secret in files and folders: `cargo run --release -p belljar-secrets --example hits -- PATH…`.
//! For looking through ordinary text, where each hit is one too many. Says where, and what the line is like.

use std::path::PathBuf;

use secrets::{Formats, find_in};

#[allow(clippy::print_stdout)]
fn main() {
    let formats = Formats::built_in();
    let (mut files, mut bytes, mut hits) = (0u64, 0u64, 0u64);
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    while let Some(path) = paths.pop() {
        if path.is_symlink() {
            continue;
        }
        if let Ok(entries) = std::fs::read_dir(&path) {
            paths.extend(entries.flatten().map(|entry| entry.path()));
            continue;
        }
        // What is no text is not looked at for its looks.
        let Some(text) = std::fs::read(&path).ok().filter(|text| !text.contains(&0)) else { continue };
        files += 1;
        bytes += text.len() as u64;
        for found in find_in(&path.display().to_string(), &text, &formats) {
            hits += 1;
            println!("{}\t{}:{}\t{}", found.rule, found.at.name, found.at.line, around(&text, found.at.start));
        }
    }
    println!("{files} files, {bytes} bytes, {hits} hits");
}

fn around(text: &[u8], start: u64) -> String {
    let start = start as usize;
    let part = &text[start.saturating_sub(30)..text.len().min(start + 50)];
    String::from_utf8_lossy(part).escape_debug().to_string()
}
