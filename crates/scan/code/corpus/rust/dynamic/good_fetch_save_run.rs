use std::{fs, process::Command};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bytes = reqwest::blocking::get("https://data.example/words.txt")?.bytes()?;
    fs::write("/tmp/words.txt", &bytes)?;
    Command::new("git").arg("status").spawn()?;
    Ok(())
}
