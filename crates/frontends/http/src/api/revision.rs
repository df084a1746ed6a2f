//! `If-Match` on what is judged: only under the policy that the client has seen. Whoever judges compares, not we: between a look
//! here and the judgement the policy could change.

use axum::http::{HeaderMap, header};

use crate::problem::{Problem, Result};

/// More are no condition that somebody means.
const MOST: usize = 16;

/// The revisions that it may be judged under; none if any will do.
pub fn expected(headers: &HeaderMap) -> Result<Vec<String>> {
    let mut revisions = Vec::new();
    for value in headers.get_all(header::IF_MATCH) {
        let value = value.to_str().map_err(|_| wrong())?;
        if value.trim() == "*" {
            return Ok(Vec::new());
        }
        for tag in value.split(',') {
            revisions.push(revision(tag.trim()).ok_or_else(wrong)?);
        }
    }
    if revisions.len() > MOST {
        return Err(wrong());
    }
    Ok(revisions)
}

/// Of a tag that stands for every byte of it; a weak one says less than is asked here.
fn revision(tag: &str) -> Option<String> {
    let inside = tag.strip_prefix('"')?.strip_suffix('"')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    (!inside.is_empty() && inside.len() <= 128 && inside.bytes().all(plain)).then(|| inside.to_owned())
}

fn wrong() -> Problem {
    Problem::wrong("`If-Match` has no revision of a policy")
        .hint("send what `GET /v1/policies` has as its `ETag`, in quotes")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(values: &[&'static str]) -> Option<Vec<String>> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_MATCH, HeaderValue::from_static(value));
        }
        expected(&headers).ok()
    }

    #[test]
    fn a_condition_is_a_list_of_tags_or_a_star_and_nothing_else_passes_for_one() {
        let named = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&[]), named(&[]));
        assert_eq!(read(&["*"]), named(&[]));
        assert_eq!(read(&["\"a1\""]), named(&["a1"]));
        assert_eq!(read(&["\"a1\", \"b2\"", "\"c3\""]), named(&["a1", "b2", "c3"]));
        for wrong in ["", "a1", "\"a1", "\"\"", "W/\"a1\"", "\"a1\",", "\"a\"b\"", "\"a1\" \"b2\""] {
            assert_eq!(read(&[wrong]), None, "{wrong}");
        }
    }
}
