//! Requests in rules: methods, and paths with what follows the `?`.

use std::borrow::Cow;

use crate::pattern::{Care, wild};

/// A request by its method and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPattern {
    /// Any, if none is named.
    pub methods: Vec<Method>,
    /// Any, if none is named.
    pub urls: Vec<UrlPattern>,
}

impl RequestPattern {
    pub fn matches(&self, method: &str, path: &str, care: Care) -> bool {
        (self.methods.is_empty() || self.methods.iter().any(|known| known.matches(method, care)))
            && (self.urls.is_empty() || self.urls.iter().any(|known| known.matches(path, care)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method(String);

impl Method {
    pub fn read(written: &str) -> Result<Method, String> {
        let known = |byte: u8| byte.is_ascii_uppercase() || byte == b'-';
        match !written.is_empty() && written.len() <= 32 && written.bytes().all(known) {
            true => Ok(Method(written.to_owned())),
            false => Err(format!("`{}` is no method; write it in capitals, such as `GET`", written.escape_debug())),
        }
    }

    fn matches(&self, method: &str, care: Care) -> bool {
        match care {
            Care::Exact => self.0 == method,
            // To a server, `post` may be what `POST` is.
            Care::Forgiving => self.0.eq_ignore_ascii_case(method),
        }
    }
}

/// `/repos/*/issues`, `/v1/**`, `**/info/refs?service=git-upload-pack`. `*` stays within a segment, `**` is any number of
/// them; what follows a `?` is only looked at where the pattern has one, and a `*` there is any letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPattern {
    segments: Vec<String>,
    query: Option<String>,
}

impl UrlPattern {
    pub fn read(written: &str) -> Result<UrlPattern, String> {
        let shown = written.escape_debug();
        let (path, query) = match written.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (written, None),
        };
        if !path.starts_with('/') && !path.starts_with("**") {
            return Err(format!("`{shown}` is no path; begin with `/` or `**`, without the host"));
        }
        if !written.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains(['%', '\\', '#']) {
            return Err(format!("`{shown}` has a letter that paths of a request don't have plainly"));
        }
        let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        if let Some(odd) =
            segments.iter().find(|one| one.contains("**") && **one != "**" || matches!(**one, "." | ".."))
        {
            return Err(format!("`{shown}`: `{odd}` is no segment; `**` stands for whole ones, `.` and `..` for none"));
        }
        let segments = segments.into_iter().map(str::to_owned).collect();
        Ok(UrlPattern { segments, query: query.map(str::to_owned) })
    }

    /// `path`: with its query, if it has one.
    pub fn matches(&self, path: &str, care: Care) -> bool {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        match care {
            // Two servers may take an odd path for two places; what allows means none of them.
            Care::Exact => is_plain(path) && self.is_path(path) && self.is_query(query),
            Care::Forgiving => {
                let decoded = decoded(path);
                let (plain, low) = (resolved(&decoded), |text: &str| text.to_ascii_lowercase());
                let spellings =
                    [Cow::Borrowed(path), Cow::Borrowed(decoded.as_str()), low(&decoded).into(), plain.as_str().into()];
                let lower = low(&plain);
                let is_path = spellings.iter().any(|spelling| self.is_path(spelling)) || self.is_path(&lower);
                let query_read = self::decoded(query);
                let is_query =
                    [query, &query_read, &low(&query_read)].into_iter().any(|spelling| self.is_query(spelling));
                is_path && is_query
            }
        }
    }

    fn is_path(&self, path: &str) -> bool {
        let Some(path) = path.strip_prefix('/') else { return false };
        let given: Vec<&str> = path.split('/').collect();
        // reached[i]: the first i segments of the pattern are found in what was read. Time is the product of both.
        let mut reached = vec![false; self.segments.len() + 1];
        reached[0] = true;
        let open = |reached: &mut Vec<bool>| {
            for at in 0..self.segments.len() {
                reached[at + 1] |= reached[at] && self.segments[at] == "**";
            }
        };
        open(&mut reached);
        for segment in given {
            let mut next = vec![false; reached.len()];
            for (at, known) in self.segments.iter().enumerate() {
                match known == "**" {
                    true => next[at + 1] |= reached[at + 1] || reached[at],
                    false => next[at + 1] |= reached[at] && star(known, segment),
                }
            }
            open(&mut next);
            reached = next;
        }
        reached[self.segments.len()]
    }

    fn is_query(&self, query: &str) -> bool {
        self.query.as_ref().is_none_or(|known| star(known, query))
    }
}

/// `*` is any letters; a `?` is itself.
fn star(pattern: &str, text: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == text;
    }
    if !pattern.contains('?') {
        return wild(pattern, text);
    }
    // `wild` takes it for any letter.
    let hidden = |text: &str| text.replace('?', "\u{1}");
    wild(&hidden(pattern), &hidden(text))
}

/// Leads where it says, whoever reads it.
fn is_plain(path: &str) -> bool {
    let odd = |segment: &str| matches!(segment, "." | "..") || segment.starts_with("..;") || segment.starts_with(".;");
    let lower = path.to_ascii_lowercase();
    let hides = ["%2e", "%2f", "%5c", "%00", "%25", "\\", "#"].iter().any(|code| lower.contains(code));
    let empty = path.get(1..).is_some_and(|rest| rest.contains("//") || rest.starts_with('/'));
    !hides && !empty && path.bytes().all(|byte| byte.is_ascii_graphic()) && !path.split('/').any(odd)
}

/// Without its percent signs, and with plain slashes. As often as it takes: what one server hands on, another reads again.
fn decoded(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..3 {
        let once = decoded_once(&text);
        if once == text {
            break;
        }
        text = once;
    }
    text.replace('\\', "/")
}

fn decoded_once(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Without `.`, `..`, empty segments and what follows a `;` in one.
fn resolved(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." => drop(segments.pop()),
            plain => segments.push(plain),
        }
    }
    let end = if path.ends_with('/') && !segments.is_empty() { "/" } else { "" };
    format!("/{}{end}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(pattern: &str, path: &str, care: Care) -> bool {
        UrlPattern::read(pattern).expect("a path").matches(path, care)
    }

    #[test]
    fn stars_stay_within_a_segment_and_two_go_over_them() {
        for (pattern, path, wanted) in [
            ("/repos/*", "/repos/x", true),
            ("/repos/*", "/repos/x/y", false),
            ("/repos/**", "/repos/x/y", true),
            ("/repos/**", "/repos", true),
            ("/repos/**", "/reposx", false),
            ("/", "/", true),
            ("/", "/x", false),
            ("**", "/", true),
            ("**/git-upload-pack", "/a/b.git/git-upload-pack", true),
            ("**/git-upload-pack", "/git-upload-pack", true),
            ("**/git-upload-pack", "/a/xgit-upload-pack", false),
            ("/a/**/z", "/a/z", true),
            ("/a/**/z", "/a/b/c/z", true),
            ("/a/*-x/z", "/a/b-x/z", true),
            // What follows a `?` only counts where the pattern has one.
            ("/a", "/a?b=c", true),
            ("/a?b=c", "/a?b=c", true),
            ("/a?b=c", "/a?b=c&d=e", false),
            ("/a?b=*", "/a?b=c&d=e", true),
            ("/a?b=c", "/a", false),
        ] {
            for care in [Care::Exact, Care::Forgiving] {
                assert_eq!(is(pattern, path, care), wanted, "{pattern} {path}");
            }
        }
    }

    #[test]
    fn a_path_that_hides_where_it_leads_is_forbidden_and_never_allowed() {
        for path in [
            "/a/../admin/x", "/a/%2e%2e/admin/x", "/a/..%2fadmin/x", "/a/%252e%252e/admin/x", "//admin/x",
            "/a/..\\admin/x", "/%61dmin/x", "/ADMIN/x", "/./admin/x", "/admin;a=b/x",
        ] {
            assert!(is("/admin/**", path, Care::Forgiving), "{path}");
            assert!(!is("/admin/**", path, Care::Exact), "{path}");
        }
        assert!(!is("/a/**", "/a/../admin", Care::Exact));
        assert!(!is("**", "/a/%2e%2e/b", Care::Exact));
        assert!(is("/a?x=secret", "/a?x=%73ecret", Care::Forgiving));
    }

    #[test]
    fn what_is_no_path_or_method_is_refused() {
        for bad in ["", "a", "https://a/b", "/a b", "/a**", "/../b", "/a%20b", "/ä", "/a#b", "*"] {
            assert!(UrlPattern::read(bad).is_err(), "{bad}");
        }
        for bad in ["", "get", "G T", "*", "GÄT"] {
            assert!(Method::read(bad).is_err(), "{bad}");
        }
        let get = Method::read("GET").expect("a method");
        assert!(get.matches("get", Care::Forgiving) && !get.matches("get", Care::Exact));
    }
}
