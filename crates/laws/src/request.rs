//! The command line: words become a request, or a complaint that is safe to look at; the command's own words stay.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use cli::hostile::{line, request};

use crate::shown;

pub fn law(bytes: &[u8]) {
    // As the kernel keeps them: a zero byte ends a word.
    let words: Vec<OsString> = bytes.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect();
    let asked = [OsString::from("belljar"), OsString::from("run")].into_iter().chain(words.iter().cloned());
    match request(asked.collect()) {
        Err(complaint) => complaint.lines().for_each(|text| shown::is_one_line(&line(text))),
        Ok(None) => panic!("`run` is no request: {words:?}"),
        Ok(Some(request)) => {
            assert!(!request.command.is_empty(), "a request without a command: {words:?}");
            // What comes after `--` is the command's, word by word.
            if let Some(at) = words.iter().position(|word| word == "--") {
                assert!(words.ends_with(&request.command), "{words:?} became {request:?}");
                assert!(request.command.len() >= words.len() - at - 1, "{words:?} became {request:?}");
            }
        }
    }
}
