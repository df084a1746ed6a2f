use std::process::Command;

pub fn build(target: &str) {
    Command::new("sh").arg("-c").arg(format!("make {target}")).status().ok();
}
