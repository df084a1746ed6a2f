use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = env::var("HOME")?;
    fs::remove_dir_all(format!("{home}/.cache/example"))?;
    Ok(())
}
