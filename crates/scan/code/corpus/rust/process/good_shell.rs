use std::process::Command;

pub fn build(target: &str) {
    Command::new("make").arg(target).status().ok();
}
