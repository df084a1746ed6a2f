use std::fs::File;
use std::io::Read;

pub fn notes() -> String {
    let mut text = String::new();
    File::open("notes.txt").unwrap().read_to_string(&mut text).unwrap();
    text
}
