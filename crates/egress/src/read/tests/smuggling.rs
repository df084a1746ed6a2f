//! Requests that two readers could read in two ways: each is refused, and the server sees nothing of it.

use super::*;

const FINE: &str = "GET /fine HTTP/1.1\r\nHost: api.example.org\r\n\r\n";

#[test]
fn what_two_could_read_in_two_ways_is_refused_and_the_server_sees_nothing_of_it() {
    let post =
        |headers: &str, body: &str| format!("POST /x HTTP/1.1\r\nHost: api.example.org\r\n{headers}\r\n\r\n{body}");
    let get = |line: &str| format!("{line}\r\nHost: api.example.org\r\n\r\n");
    let smuggled = "GET /evil HTTP/1.1\r\nHost: api.example.org\r\n\r\n";
    let corpus: Vec<(&str, String)> = vec![
        ("CL.TE", post("Content-Length: 6\r\nTransfer-Encoding: chunked", "0\r\n\r\nG")),
        ("TE.CL", post("Transfer-Encoding: chunked\r\nContent-Length: 4", "5c\r\nGPOST")),
        ("two lengths", post("Content-Length: 1\r\nContent-Length: 2", "aa")),
        ("twice the same length", post("Content-Length: 1\r\nContent-Length: 1", "a")),
        ("a list of lengths", post("Content-Length: 1, 1", "a")),
        ("a length with a sign", post("Content-Length: +1", "a")),
        ("a negative length", post("Content-Length: -1", "a")),
        ("a length in hex", post("Content-Length: 0x1", "a")),
        ("a length of nothing", post("Content-Length: ", "a")),
        ("a huge length", post("Content-Length: 99999999999999999999", "a")),
        ("TE.TE", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "0\r\n\r\n")),
        ("TE twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n")),
        ("TE xchunked", post("Transfer-Encoding: xchunked", "0\r\n\r\n")),
        ("TE list", post("Transfer-Encoding: gzip, chunked", "0\r\n\r\n")),
        ("TE quoted", post("Transfer-Encoding: \"chunked\"", "0\r\n\r\n")),
        ("TE with a vertical tab", post("Transfer-Encoding: \x0bchunked", "0\r\n\r\n")),
        ("TE before the colon", post("Transfer-Encoding : chunked", "0\r\n\r\n")),
        ("TE folded", post("Transfer-Encoding:\r\n chunked", "0\r\n\r\n")),
        ("TE identity", post("Transfer-Encoding: identity", smuggled)),
        (
            "TE in 1.0",
            "POST / HTTP/1.0\r\nHost: api.example.org\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        ),
        ("X: and TE behind a bare LF", post("X: a\nTransfer-Encoding: chunked", "0\r\n\r\n")),
        ("bare LF in the first line", "GET / HTTP/1.1\nHost: api.example.org\r\n\r\n".to_owned()),
        ("bare LF at the end", "GET / HTTP/1.1\r\nHost: api.example.org\n\n".to_owned()),
        ("bare CR", get("GET / HTTP/1.1\r\nX: a\rb")),
        ("NUL", get("GET / HTTP/1.1\r\nX: a\0b")),
        ("a control", get("GET / HTTP/1.1\r\nX: a\x08b")),
        ("a name with a space", get("GET / HTTP/1.1\r\nX Y: a")),
        ("a name with a tab", get("GET / HTTP/1.1\r\nX\t: a")),
        ("no name", get("GET / HTTP/1.1\r\n: a")),
        ("no colon", get("GET / HTTP/1.1\r\nX")),
        ("folded", get("GET / HTTP/1.1\r\nX: a\r\n b")),
        ("an empty first line", format!("\r\n{FINE}")),
        ("two hosts", get("GET / HTTP/1.1\r\nHost: api.example.org")),
        ("another host first", get("GET / HTTP/1.1\r\nHost: evil.example")),
        ("no host", "GET / HTTP/1.1\r\n\r\n".to_owned()),
        ("another host", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned()),
        ("another port", "GET / HTTP/1.1\r\nHost: api.example.org:8080\r\n\r\n".to_owned()),
        ("an empty port", "GET / HTTP/1.1\r\nHost: api.example.org:\r\n\r\n".to_owned()),
        ("a port with a zero", "GET / HTTP/1.1\r\nHost: api.example.org:0443\r\n\r\n".to_owned()),
        ("a user", "GET / HTTP/1.1\r\nHost: me@api.example.org\r\n\r\n".to_owned()),
        ("a last dot", "GET / HTTP/1.1\r\nHost: api.example.org.\r\n\r\n".to_owned()),
        ("a percent", "GET / HTTP/1.1\r\nHost: api%2eexample.org\r\n\r\n".to_owned()),
        ("two in one", "GET / HTTP/1.1\r\nHost: api.example.org, evil.example\r\n\r\n".to_owned()),
        ("absolute", get("GET http://api.example.org/ HTTP/1.1")),
        ("absolute to another", get("GET http://evil.example/ HTTP/1.1")),
        ("connect", get("CONNECT evil.example:443 HTTP/1.1")),
        ("connect to a path", get("CONNECT / HTTP/1.1")),
        ("a star that is no question", get("GET * HTTP/1.1")),
        ("a fragment", get("GET /a#b HTTP/1.1")),
        ("a backslash", get("GET /a\\b HTTP/1.1")),
        ("letters beyond", get("GET /\u{e9} HTTP/1.1")),
        ("two spaces", get("GET  / HTTP/1.1")),
        ("a tab", get("GET\t/ HTTP/1.1")),
        ("three words and more", get("GET / x HTTP/1.1")),
        ("the oldest version", "GET /\r\n\r\n".to_owned()),
        ("another version", get("GET / HTTP/1.2")),
        ("a version in small letters", get("GET / http/1.1")),
        ("a method that is no word", get("G(T / HTTP/1.1")),
        ("prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
        ("h2c", get("GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x")),
        ("another upgrade", get("GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0")),
        ("dots", get("GET /a/../b HTTP/1.1")),
        ("encoded dots", get("GET /a/%2e%2E/b HTTP/1.1")),
        ("dots between encoded slashes", get("GET /a%2f..%2fb HTTP/1.1")),
        ("dots before a semicolon", get("GET /a/..;/b HTTP/1.1")),
        ("encoded NUL", get("GET /a%00 HTTP/1.1")),
        ("encoded backslash", get("GET /a%5Cb HTTP/1.1")),
        ("half a percent", get("GET /a%2 HTTP/1.1")),
        ("too many headers", get(&format!("GET / HTTP/1.1{}", "\r\nX: a".repeat(100)))),
        ("a huge head", get(&format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(70_000)))),
        ("an extension", post("Transfer-Encoding: chunked", "1;a=b\r\na\r\n0\r\n\r\n")),
        ("an empty extension at the end", post("Transfer-Encoding: chunked", "1\r\na\r\n0;\r\n\r\n")),
        ("an extension with LF", post("Transfer-Encoding: chunked", &format!("1;\na\r\n0\r\n\r\n{smuggled}"))),
        ("a size with a sign", post("Transfer-Encoding: chunked", "+1\r\na\r\n0\r\n\r\n")),
        ("a size with 0x", post("Transfer-Encoding: chunked", "0x1\r\na\r\n0\r\n\r\n")),
        ("a size with a space", post("Transfer-Encoding: chunked", "1 \r\na\r\n0\r\n\r\n")),
        (
            "a size without an end",
            post("Transfer-Encoding: chunked", &format!("{}1\r\na\r\n0\r\n\r\n", "0".repeat(17))),
        ),
        ("a chunk that is longer", post("Transfer-Encoding: chunked", "1\r\nab\r\n0\r\n\r\n")),
        ("a chunk that ends with LF", post("Transfer-Encoding: chunked", "1\r\na\n0\r\n\r\n")),
        ("a size that ends with LF", post("Transfer-Encoding: chunked", "1\na\r\n0\r\n\r\n")),
        ("a trailer with a length", post("Transfer-Encoding: chunked", "0\r\nContent-Length: 5\r\n\r\n")),
        ("a trailer with a host", post("Transfer-Encoding: chunked", "0\r\nHost: evil.example\r\n\r\n")),
        ("a trailer with a key", post("Transfer-Encoding: chunked", "0\r\nAuthorization: x\r\n\r\n")),
        ("a folded trailer", post("Transfer-Encoding: chunked", "0\r\nX: a\r\n b\r\n\r\n")),
    ];
    run(async move {
        let roots = TestRoots::new();
        for (what, bytes) in corpus {
            let seen = Seen::default();
            let upstream = server(None, seen.service()).await;
            let gate = gate(Setting::plain(), &roots, TestPorter::new(allow), upstream).await;
            let said = gate.raw(bytes.as_bytes()).await;
            assert!(said.starts_with("HTTP/1.1 400 "), "{what}: {said}");
            assert!(said.contains("refused by belljar") && said.to_lowercase().contains("connection: close"), "{what}");
            assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{what}: {said}");
            assert_eq!(seen.count(), 0, "{what}: the server saw it");
            let denied = gate.porter.denied();
            assert_eq!(denied.len(), 1, "{what}: {denied:?}");
            assert_eq!((denied[0].what, denied[0].rule.as_str()), (NetworkDeed::Request, "egress.http"), "{what}");

            // The one before it is answered; nothing after it is.
            let said = gate.raw(format!("{FINE}{bytes}{smuggled}").as_bytes()).await;
            assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("HTTP/1.1 400 "), "{what}: {said}");
            assert_eq!(said.matches("HTTP/1.1 ").count(), 2, "{what}: {said}");
            assert_eq!(seen.count(), 1, "{what}");
            assert_eq!(seen.target(), "/fine", "{what}");
        }
    });
}

#[test]
fn what_is_sound_passes_however_it_is_cut() {
    let sound = [
        (FINE.to_owned(), "/fine", ""),
        ("GET /a?b=c&d=%2F HTTP/1.1\r\nhOsT:\tAPI.example.ORG:443 \r\n\r\n".to_owned(), "/a?b=c&d=%2F", ""),
        ("OPTIONS * HTTP/1.1\r\nHost: api.example.org\r\n\r\n".to_owned(), "*", ""),
        ("GET /%61//b%2fc HTTP/1.0\r\nHost: api.example.org\r\n\r\n".to_owned(), "/a//b%2Fc", ""),
        ("POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 5\r\n\r\nhello".to_owned(), "/", "hello"),
        ("POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n02\r\nlo\r\n0\r\n\r\n".to_owned(), "/", "hello"),
        ("POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n".to_owned(), "/", "0123456789"),
        ("GET /body HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 2\r\n\r\nhi".to_owned(), "/body", "hi"),
        ("POST / HTTP/1.1\r\nHost: api.example.org\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi".to_owned(), "/", "hi"),
    ];
    run(async move {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(None, seen.service()).await;
        let gate = gate(Setting::plain(), &roots, TestPorter::new(allow), upstream).await;
        for (bytes, target, body) in &sound {
            for piece in [1, 7, 4096] {
                let before = seen.count();
                let mut stream = TcpStream::connect(gate.address).await.unwrap();
                for part in bytes.as_bytes().chunks(piece) {
                    stream.write_all(part).await.unwrap();
                    tokio::task::yield_now().await;
                }
                let said = until(&mut stream, Some("\r\n\r\nok")).await;
                assert!(said.contains(" 200 OK\r\n"), "{bytes}: {said}");
                assert_eq!(seen.count(), before + 1, "{bytes}");
                assert_eq!(seen.target(), *target);
                assert_eq!(seen.0.borrow().last().unwrap().1, *body);
            }
        }
    });
}

#[test]
fn a_body_that_breaks_ends_the_request_at_the_server_too() {
    run(async {
        let roots = TestRoots::new();
        let ended = Rc::new(RefCell::new(Vec::new()));
        let seen = ended.clone();
        let service: Service = Rc::new(move |request| {
            let seen = seen.clone();
            Box::pin(async move {
                let whole = request.into_body().collect().await.is_ok();
                seen.borrow_mut().push(whole);
                Response::new(full("ok"))
            })
        });
        let upstream = server(None, service).await;
        let gate = gate(Setting::plain(), &roots, TestPorter::new(allow), upstream).await;
        let said = gate
            .raw(b"POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n")
            .await;
        assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
        while ended.borrow().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(*ended.borrow(), [false], "the server took it for whole");
    });
}

#[test]
fn a_head_that_takes_too_long_is_refused_and_an_idle_connection_is_closed() {
    run(async {
        let roots = TestRoots::new();
        let upstream = server(None, Seen::default().service()).await;
        let limits =
            ReadLimits { head: Duration::from_millis(50), idle: Duration::from_millis(150), ..ReadLimits::default() };
        let gate = gate(Setting { limits, ..Setting::plain() }, &roots, TestPorter::new(allow), upstream).await;
        let said = gate.raw(b"GET / HTTP/1.1\r\nHost: api.exa").await;
        assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("takes too long"), "{said}");
        let mut stream = TcpStream::connect(gate.address).await.unwrap();
        stream.write_all(FINE.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await.unwrap();
        assert!(said.starts_with(b"HTTP/1.1 200 "));
    });
}
