//! What of a message goes through to a server inside, and what of its answer comes out. What is ours stays ours, what belongs to one
//! connection stays on that, and a guest says nothing in the name of anybody else.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// Who may come is shown by one of these.
pub const TOKEN: HeaderName = HeaderName::from_static("belljar-port-token");
pub const COOKIE: &str = "belljar_port";

/// Of one connection, by RFC 9110 and by custom.
const OF_A_CONNECTION: [&str; 9] = [
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
];
/// Says who comes by which way: we do, and nobody else.
const OF_THE_WAY: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-real-ip"];
/// Commands to a browser that reach beyond the one answer and the one origin.
const BEYOND: [&str; 2] = ["alt-svc", "strict-transport-security"];

fn remove(headers: &mut HeaderMap, names: &[&str]) {
    names.iter().for_each(|name| drop(headers.remove(*name)));
}

/// What `Connection` names is of the connection as well.
fn remove_of_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    named.into_iter().for_each(|name| drop(headers.remove(name)));
    remove(headers, &OF_A_CONNECTION);
}

/// Whether somebody wants to go on as a WebSocket, and as nothing else.
pub fn is_websocket(headers: &HeaderMap) -> bool {
    let upgrades = headers.get_all(header::UPGRADE).iter().collect::<Vec<_>>();
    let connection = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let asks = connection.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case("upgrade"));
    asks && matches!(upgrades.as_slice(), [one] if one.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

fn say_websocket(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// Whether a page of this very host asks. By which scheme it came is known to whoever stands before us, if somebody does.
pub fn is_own(origin: &HeaderValue, host: &str) -> bool {
    let said = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    said.is_some_and(|(scheme, from)| ["http", "https"].contains(&scheme) && from == host)
}

/// A request on its way in. `host`: what was asked for, by this scheme.
pub fn inwards(headers: &mut HeaderMap, host: &str, scheme: &str, port: u16) {
    let websocket = is_websocket(headers);
    remove_of_connection(headers);
    remove(headers, &OF_THE_WAY);
    remove(headers, &["content-length", "expect"]);
    headers.remove(TOKEN);
    // Of another's the server inside may have need; of ours never.
    if headers.get_all(header::AUTHORIZATION).iter().any(|value| contains(value.as_bytes(), b"bj_")) {
        headers.remove(header::AUTHORIZATION);
    }
    let cookies = without_ours(headers);
    headers.remove(header::COOKIE);
    if let Some(cookies) = cookies.and_then(|cookies| HeaderValue::from_str(&cookies).ok()) {
        headers.insert(header::COOKIE, cookies);
    }
    // Servers ask whether a page is their own: it is, if it came from here.
    let inside = format!("localhost:{port}");
    if headers.get(header::ORIGIN).is_some_and(|origin| is_own(origin, host))
        && let Ok(origin) = HeaderValue::from_str(&format!("http://{inside}"))
    {
        headers.insert(header::ORIGIN, origin);
    }
    for (name, value) in [("x-forwarded-host", host), ("x-forwarded-proto", scheme)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    if let Ok(host) = HeaderValue::from_str(&inside) {
        headers.insert(header::HOST, host);
    }
    if websocket {
        say_websocket(headers);
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(';')).map(str::trim)
}

fn is_ours(cookie: &str) -> bool {
    cookie.split('=').next().is_some_and(|name| name.trim() == COOKIE)
}

fn without_ours(headers: &HeaderMap) -> Option<String> {
    let others: Vec<&str> = cookies(headers).filter(|cookie| !cookie.is_empty() && !is_ours(cookie)).collect();
    (!others.is_empty()).then(|| others.join("; "))
}

/// What our own cookie says.
pub fn cookie_of_ours(headers: &HeaderMap) -> Option<&str> {
    cookies(headers).find(|cookie| is_ours(cookie))?.split_once('=').map(|(_, value)| value.trim())
}

/// An answer on its way out.
pub fn outwards(headers: &mut HeaderMap, websocket: bool) {
    remove_of_connection(headers);
    remove(headers, &BEYOND);
    let set: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().filter_map(own_cookie).collect();
    headers.remove(header::SET_COOKIE);
    for value in set {
        headers.append(header::SET_COOKIE, value);
    }
    // Where it came from is nobody else's to know.
    headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("same-origin"));
    if websocket {
        say_websocket(headers);
    }
}

/// For the one host that it comes from, and never one of ours.
fn own_cookie(value: &HeaderValue) -> Option<HeaderValue> {
    let text = value.to_str().ok()?;
    if is_ours(text) {
        return None;
    }
    let domain = |part: &&str| part.split('=').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("domain"));
    // The first part is the cookie itself, whatever it is called.
    let kept: Vec<&str> =
        text.split(';').enumerate().filter(|(at, part)| *at == 0 || !domain(part)).map(|(_, part)| part).collect();
    HeaderValue::from_str(&kept.join(";")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OWN: &str = "http://a.localhost:7070";

    fn headers(list: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            let name: HeaderName = name.parse().expect("a name");
            headers.append(name, value.parse().expect("a value"));
        }
        headers
    }

    fn gone_in(list: &[(&str, &str)]) -> HeaderMap {
        let mut headers = headers(list);
        inwards(&mut headers, "a.localhost:7070", "http", 8080);
        headers
    }

    #[test]
    fn what_is_ours_never_reaches_the_guest() {
        let seen = gone_in(&[
            ("authorization", "Bearer bj_secret"),
            ("belljar-port-token", "bp_secret"),
            ("cookie", "a=1; belljar_port=bp_secret"),
            ("cookie", "belljar_port = bp_secret;b=2"),
            ("x-forwarded-for", "1.2.3.4"),
            ("forwarded", "for=1.2.3.4"),
            ("host", "a.localhost:7070"),
            ("origin", OWN),
        ]);
        let text = format!("{seen:?}");
        assert!(!text.contains("secret") && !text.contains("1.2.3.4"), "{text}");
        assert_eq!(seen["cookie"], "a=1; b=2");
        assert_eq!(
            (&seen["host"], &seen["origin"]),
            (&"localhost:8080".parse().expect("a value"), &"http://localhost:8080".parse().expect("a value"))
        );
        assert_eq!(seen["x-forwarded-host"], "a.localhost:7070");
    }

    #[test]
    fn what_is_the_guests_own_reaches_it() {
        let seen = gone_in(&[
            ("authorization", "Basic dTpw"),
            ("origin", "http://other.example"),
            ("x-own", "1"),
            ("cookie", "s=x"),
        ]);
        assert_eq!(
            (&seen["authorization"], &seen["x-own"]),
            (&"Basic dTpw".parse().expect("a value"), &"1".parse().expect("a value"))
        );
        assert_eq!(
            (&seen["origin"], &seen["cookie"]),
            (&"http://other.example".parse().expect("a value"), &"s=x".parse().expect("a value"))
        );
    }

    #[test]
    fn what_is_of_a_connection_stays_on_it() {
        let seen = gone_in(&[
            ("connection", "keep-alive, X-Hop"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("proxy-authorization", "x"),
            ("keep-alive", "1"),
            ("content-length", "5"),
        ]);
        assert!(
            seen.keys().all(|name| ["host", "x-forwarded-host", "x-forwarded-proto"].contains(&name.as_str())),
            "{seen:?}"
        );
        let seen =
            gone_in(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket"), ("sec-websocket-key", "k")]);
        assert_eq!(
            (&seen["connection"], &seen["upgrade"]),
            (&"Upgrade".parse().expect("a value"), &"websocket".parse().expect("a value"))
        );
        for other in [
            &[("upgrade", "websocket")][..],
            &[("connection", "upgrade"), ("upgrade", "h2c")],
            &[("connection", "upgrade"), ("upgrade", "websocket"), ("upgrade", "h2c")],
        ] {
            assert!(!is_websocket(&headers(other)), "{other:?}");
        }
    }

    #[test]
    fn a_guest_sets_cookies_for_its_own_host_and_none_of_ours() {
        let mut answer = headers(&[
            ("set-cookie", "s=1; Path=/; Domain=localhost; HttpOnly"),
            ("set-cookie", "domain=kept; DOMAIN=.localhost"),
            ("set-cookie", "belljar_port=bp_mine; Path=/"),
            ("set-cookie", " belljar_port =x"),
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("alt-svc", "h3=\":443\""),
            ("strict-transport-security", "max-age=1; includeSubDomains"),
            ("x-own", "1"),
        ]);
        outwards(&mut answer, false);
        let cookies: Vec<&HeaderValue> = answer.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["s=1; Path=/; HttpOnly", "domain=kept"]);
        let mut names: Vec<&str> = answer.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["referrer-policy", "set-cookie", "x-own"]);
    }

    proptest! {
        #[test]
        fn no_spelling_of_a_cookie_brings_ours_in(before in "[ -~]{0,20}", spaces in " {0,3}", after in "[ -~]{0,20}") {
            let line = format!("{before};{spaces}belljar_port{spaces}=bp_secret;{after}");
            if let Ok(value) = HeaderValue::from_str(&line) {
                let mut headers = HeaderMap::new();
                headers.insert("cookie", value);
                inwards(&mut headers, "h", "http", 1);
                let told = format!("{headers:?}");
                prop_assert!(!told.contains("bp_secret"), "{}", told);
            }
        }
    }
}
