//! The path of a request: the one form in which it is judged, recorded and sent.
//!
//! What everybody takes for the same is written in one way: `%61` becomes `a`, `%c3` becomes `%C3`. What some take for
//! something else is judged in every way in which it can be taken, and the strictest answer counts: `//` is also read as `/`, and
//! `%2F` as `/` (which npm writes in the names of packages, so it can't be refused). What leads out of where it seems to
//! be is refused: segments `.` and `..`, also as `%2e` or before a `;`, and `%00`, `\` and `%5C`.

use super::fence::Violation;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// What is sent.
    pub sent: String,
    /// In which ways it can be taken; the first is `sent`.
    pub readings: Vec<String>,
}

impl Path {
    pub fn read(raw: &str) -> Result<Path, Violation> {
        if raw == "*" {
            return Ok(Path { sent: raw.to_owned(), readings: vec![raw.to_owned()] });
        }
        if !raw.starts_with('/') || !raw.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Violation("a path that is none"));
        }
        let sent = normal(raw)?;
        let parted = sent.replace("%2F", "/");
        for segment in parted.split('/') {
            let name = segment.split(';').next().unwrap_or(segment);
            if matches!(name, "." | "..") {
                return Err(Violation("a path with `.` or `..`"));
            }
        }
        let mut single = String::with_capacity(parted.len());
        for letter in parted.chars() {
            if letter != '/' || !single.ends_with('/') {
                single.push(letter);
            }
        }
        let mut readings = vec![sent.clone()];
        for other in [parted, single] {
            if !readings.contains(&other) {
                readings.push(other);
            }
        }
        Ok(Path { sent, readings })
    }
}

fn normal(raw: &str) -> Result<String, Violation> {
    let bytes = raw.as_bytes();
    let mut text = String::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' | b'#' | b'?' => return Err(Violation("a path with a letter that may not be in it")),
            b'%' => {
                let digits = bytes.get(at..at + 2).and_then(|two| Some((hex(two[0])?, hex(two[1])?)));
                let Some((high, low)) = digits else {
                    return Err(Violation("a path with a `%` that stands for nothing"));
                };
                at += 2;
                match high << 4 | low {
                    0 => return Err(Violation("a path with `%00`")),
                    b'\\' => return Err(Violation("a path with `%5C`")),
                    same if same.is_ascii_alphanumeric() || b"-._~".contains(&same) => text.push(char::from(same)),
                    other => text.push_str(&format!("%{other:02X}")),
                }
            }
            _ => text.push(char::from(byte)),
        }
    }
    Ok(text)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_is_sent_and_judged_in_one_form() {
        let sent = |raw| Path::read(raw).expect(raw).sent;
        assert_eq!(sent("/%61dmin/%7euser"), "/admin/~user");
        assert_eq!(sent("/%c3%a9"), "/%C3%A9");
        assert_eq!(sent("/a%2Bb+c"), "/a%2Bb+c");
        assert_eq!(sent("/..a/b..c/..."), "/..a/b..c/...");
    }

    #[test]
    fn what_can_be_taken_in_two_ways_is_judged_in_both() {
        assert_eq!(Path::read("/@a%2fb").expect("npm").readings, ["/@a%2Fb", "/@a/b"]);
        assert_eq!(Path::read("//a///b").expect("many").readings, ["//a///b", "/a/b"]);
        assert_eq!(Path::read("/a%2F/b").expect("both").readings, ["/a%2F/b", "/a//b", "/a/b"]);
    }

    #[test]
    fn no_path_leads_out_of_where_it_seems_to_be() {
        for bad in [
            "/..", "/a/../b", "/a/./b", "/.", "/a/%2e%2e/b", "/a/%2E./b", "/a/..%2fb", "/a%2f..%2Fb", "/..;/b",
            "/.;x/b", "/a%00", "/a%5cb", "/a\\b", "/a%", "/a%2", "/a%zz", "a", "", "/a b", "/a#b", "/\u{e9}",
        ] {
            assert!(Path::read(bad).is_err(), "{bad}");
        }
    }
}
