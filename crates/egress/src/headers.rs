//! Headers from a file: tokens do not belong into the words of a command, which everybody on the machine can read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};

use crate::error::{Error, Result};

const LARGEST: u64 = 64 << 10;
const MOST: usize = 32;

/// Lines such as `Authorization: Bearer …`. Read anew each time: tokens change.
pub fn read(path: &Path) -> Result<Vec<(HeaderName, HeaderValue)>> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    read.map_err(|source| Error::File { path: path.to_owned(), source })?;
    parse(&text).map_err(|why| Error::Bad { path: path.to_owned(), what: "file of headers", why })
}

/// What is wrong is said without the value.
fn parse(text: &str) -> std::result::Result<Vec<(HeaderName, HeaderValue)>, String> {
    if text.len() as u64 > LARGEST {
        return Err(format!("it is larger than {LARGEST} bytes"));
    }
    let mut headers = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| format!("line {number} has no colon"))?;
        let name: HeaderName = name.trim().parse().map_err(|_| format!("line {number} begins with no name"))?;
        if [HOST, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING].contains(&name) {
            return Err(format!("line {number}: `{name}` is not for others to say"));
        }
        let mut value: HeaderValue = value
            .trim()
            .parse()
            .map_err(|_| format!("line {number}: the value of `{name}` has letters that it may not have"))?;
        value.set_sensitive(true);
        headers.push((name, value));
        if headers.len() > MOST {
            return Err(format!("it has more than {MOST} headers"));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_what_is_wrong_is_said_without_its_value() {
        let read = parse("# for the collector\nAuthorization: Bearer sesame\n\nX-Scope: a:b\n").expect("they are two");
        assert_eq!(read[0].0, "authorization");
        assert_eq!(read[1].1, "a:b");
        assert!(!format!("{read:?}").contains("sesame"));
        for bad in ["sesame", "Host: sesame", "a b: sesame", "x: sesame\u{1}", ": sesame"] {
            let said = parse(bad).expect_err(bad);
            assert!(!said.contains("sesame"), "{said}");
        }
        assert!(parse(&"a: b\n".repeat(33)).is_err());
        assert!(parse(&"#".repeat(70_000)).is_err());
    }
}
