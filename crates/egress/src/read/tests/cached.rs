//! Downloads that are kept: given to others without the server, if it is exactly what the server gave to anybody; and judged.

use hyper::header::{HeaderName, HeaderValue};
use model::Cached;
use tokio::sync::Notify;

use super::*;

/// A folder for what is kept; gone afterwards.
struct Kept(PathBuf);

impl Kept {
    fn new() -> Kept {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Kept(std::env::temp_dir().join(format!("belljar-kept-{}-{number}", std::process::id())))
    }

    fn setting(&self) -> Setting {
        Setting { cache: Some(self.0.clone()), ..Setting::tls() }
    }

    fn content(&self) -> PathBuf {
        std::fs::read_dir(self.0.join("contents")).unwrap().next().unwrap().unwrap().path()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Answers with its number, its path and much else; and counts.
fn wheels(asked: &Rc<RefCell<Vec<String>>>, status: u16, headers: &[(&'static str, &'static str)]) -> Service {
    let (asked, headers) = (asked.clone(), headers.to_vec());
    Rc::new(move |request| {
        asked.borrow_mut().push(request.uri().path().to_owned());
        let text = format!("{} {} {}", asked.borrow().len(), request.uri().path(), "x".repeat(300_000));
        let mut response = Response::new(full(text));
        *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap();
        for (name, value) in &headers {
            response.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        Box::pin(async move { response })
    })
}

fn cached(gate: &Gate) -> Vec<Cached> {
    gate.session.catch_up();
    gate.porter.events.borrow().iter().filter_map(|event| event.cache.clone()).collect()
}

fn get(path: &str) -> hyper::http::request::Builder {
    Request::builder().uri(path)
}

#[test]
fn what_came_once_is_given_to_the_next_and_the_server_is_not_asked() {
    run(async {
        for protocol in ["http/1.1", "h2"] {
            let (roots, kept, asked) = (TestRoots::new(), Kept::new(), Rc::default());
            let told = [("content-type", "application/zip"), ("etag", "\"7\""), ("x-other", "1")];
            let upstream = server(Some(roots.server(NAME, &[protocol])), wheels(&asked, 200, &told)).await;
            let mut first = String::new();
            for round in 0..3 {
                // Each a gate of its own, as every sandbox has.
                let gate = gate(kept.setting(), &roots, TestPorter::new(allow), upstream).await;
                let (status, headers, body) = match protocol {
                    "h2" => {
                        let mut sender = gate.http2().await;
                        let request = get(&format!("https://{NAME}/a.whl")).body(full("")).unwrap();
                        let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        (parts.status.as_u16(), parts.headers, String::from_utf8_lossy(&body).into_owned())
                    }
                    _ => gate.get(get("/a.whl")).await,
                };
                if round == 0 {
                    first.clone_from(&body);
                }
                assert_eq!((status, body.len()), (200, first.len()));
                assert!(body == first && body.starts_with("1 /a.whl"), "{protocol} {round}");
                assert_eq!(headers["content-type"], "application/zip");
                assert_eq!(headers["etag"], "\"7\"");
                assert_eq!(headers["content-length"], first.len().to_string());
                let digest = blake3::hash(first.as_bytes()).to_hex().to_string();
                let traffic = gate.session.traffic();
                let expected = match round {
                    0 => (vec![Cached::Kept(digest)], first.len() as u64, 0),
                    _ => (vec![Cached::Served(digest.clone()), Cached::Served(digest)], 0, first.len() as u64),
                };
                assert_eq!((cached(&gate), traffic.received, traffic.cached), expected, "{protocol} {round}");
                assert_eq!(gate.porter.judged.borrow().len(), 1, "it is judged each time");
            }
            assert_eq!(asked.borrow().len(), 1);
        }
    });
}

#[test]
fn what_is_not_for_everybody_is_asked_for_each_time() {
    run(async {
        // What comes with the request, what with the answer, and whether that is given to others.
        let plain: (&str, u16, &[(&'static str, &'static str)]) = ("", 200, &[]);
        let cases = [
            (plain, true),
            (("authorization", 200, &[]), false),
            (("cookie", 200, &[]), false),
            (("range", 200, &[]), false),
            (("x-api-key", 200, &[]), false),
            (("if-none-match", 200, &[]), false),
            (("", 206, &[("content-range", "bytes 0-1/2")]), false),
            (("", 302, &[("location", "https://elsewhere.test/")]), false),
            (("", 404, &[]), false),
            (("", 200, &[("set-cookie", "a=b")]), false),
            (("", 200, &[("cache-control", "private")]), false),
            (("", 200, &[("cache-control", "no-store")]), false),
            (("", 200, &[("vary", "user-agent")]), false),
            (("", 200, &[("content-encoding", "gzip")]), false),
            (("", 200, &[("vary", "accept-encoding")]), true),
        ];
        for ((header, status, headers), given) in cases {
            let (roots, kept, asked) = (TestRoots::new(), Kept::new(), Rc::default());
            let upstream = server(Some(roots.server(NAME, &["http/1.1"])), wheels(&asked, status, headers)).await;
            let gate = gate(kept.setting(), &roots, TestPorter::new(allow), upstream).await;
            let request = || if header.is_empty() { get("/a.whl") } else { get("/a.whl").header(header, "1") };
            gate.get(request()).await;
            gate.get(get("/a.whl")).await;
            let expected = if given { 1 } else { 2 };
            assert_eq!(asked.borrow().len(), expected, "{header} {status} {headers:?}");
            // And the other way round: who shows a key is not given what others got.
            gate.get(request()).await;
            let expected = if given {
                1
            } else if headers.is_empty() && status == 200 {
                3
            } else {
                expected + 1
            };
            assert_eq!(asked.borrow().len(), expected, "{header} {status} {headers:?}");
        }
        for target in ["/a.whl?x", "/a.html", "//a.whl", "/x%2Fa.whl"] {
            let (roots, kept, asked) = (TestRoots::new(), Kept::new(), Rc::default());
            let upstream = server(Some(roots.server(NAME, &["http/1.1"])), wheels(&asked, 200, &[])).await;
            let gate = gate(kept.setting(), &roots, TestPorter::new(allow), upstream).await;
            gate.get(get(target)).await;
            gate.get(get(target)).await;
            assert_eq!(asked.borrow().len(), 2, "{target}");
        }
    });
}

#[test]
fn a_host_that_has_a_secret_keeps_nothing() {
    run(async {
        let (roots, kept, asked) = (TestRoots::new(), Kept::new(), Rc::default());
        let upstream = server(Some(roots.server(NAME, &["http/1.1"])), wheels(&asked, 200, &[])).await;
        let setting = kept.setting().with("TOKEN", "stand-in-of-token", "sesame-open-now");
        let porter = TestPorter::new(allow).adding(|_, _| Ruling::Allow);
        let gate = gate(setting, &roots, porter, upstream).await;
        gate.get(get("/a.whl")).await;
        gate.get(get("/a.whl")).await;
        assert_eq!(asked.borrow().len(), 2);
        assert!(!kept.0.exists());
    });
}

#[test]
fn what_is_denied_is_denied_though_it_is_kept() {
    run(async {
        let (roots, kept, asked) = (TestRoots::new(), Kept::new(), Rc::default());
        let upstream = server(Some(roots.server(NAME, &["http/1.1"])), wheels(&asked, 200, &[])).await;
        let open = gate(kept.setting(), &roots, TestPorter::new(allow), upstream).await;
        assert_eq!(open.get(get("/a.whl")).await.0, 200);
        let closed = gate(kept.setting(), &roots, TestPorter::new(|_| Ruling::Deny), upstream).await;
        let (status, _, body) = closed.get(get("/a.whl")).await;
        assert_eq!((status, body.contains("/a.whl x")), (403, false));
        let mut porter = TestPorter::new(|_| Ruling::Ask);
        porter.approves = false;
        let asks = gate(kept.setting(), &roots, porter, upstream).await;
        assert_eq!(asks.get(get("/a.whl")).await.0, 403);
        assert_eq!(asks.porter.asked.borrow().len(), 1);
        let unwritten = gate(kept.setting(), &roots, TestPorter::new(allow), upstream).await;
        unwritten.porter.fails.set(true);
        let mut sender = unwritten.http1().await;
        let request = get("/a.whl").header("host", NAME).body(full("")).unwrap();
        assert!(sender.send_request(request).await.is_err(), "what can't be written down is not given");
        assert_eq!(asked.borrow().len(), 1);
    });
}

#[test]
fn the_same_path_of_another_host_or_port_is_another_file() {
    run(async {
        let (roots, kept, asked) = (TestRoots::new(), Kept::new(), Rc::default());
        let good = server(Some(roots.server(NAME, &["http/1.1"])), wheels(&asked, 200, &[])).await;
        let evil = Rc::default();
        let bad = server(Some(roots.server("evil.example", &["http/1.1"])), wheels(&evil, 200, &[])).await;
        let other = Endpoint { host: Host::Name(HostName::read("evil.example").unwrap()), port: 443 };
        let setting = Setting { endpoint: other, ..kept.setting() };
        let evil_gate = gate(setting, &roots, TestPorter::new(allow), bad).await;
        let stream = evil_gate.connect_as("evil.example", &["http/1.1"]).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        spawn_local(connection);
        // As itself; then as the other, which goes nowhere.
        for (host, status) in [("evil.example", 200), (NAME, 400)] {
            sender.ready().await.unwrap();
            let request = get("/a.whl").header("host", host).body(full("")).unwrap();
            let answer = sender.send_request(request).await.unwrap();
            assert_eq!(answer.status(), status);
            answer.into_body().collect().await.unwrap();
        }
        assert_eq!((evil.borrow().len(), asked.borrow().len()), (1, 0));
        let gate_of =
            |port| gate(Setting { endpoint: named(port), ..kept.setting() }, &roots, TestPorter::new(allow), good);
        assert_eq!(gate_of(443).await.get(get("/a.whl")).await.0, 200);
        assert_eq!(asked.borrow().len(), 1, "what the evil one said is not what this one says");
        let at = gate_of(8443).await;
        let mut sender = at.http1().await;
        let request = get("/a.whl").header("host", format!("{NAME}:8443")).body(full("")).unwrap();
        sender.send_request(request).await.unwrap().into_body().collect().await.unwrap();
        assert_eq!(asked.borrow().len(), 2);
        assert_eq!(gate_of(443).await.get(get("/a.whl")).await.0, 200);
        assert_eq!(asked.borrow().len(), 2);
    });
}

/// A server that says the same to everybody, and then closes.
async fn says(roots: &TestRoots, name: &str, words: &'static [u8], asked: Rc<std::cell::Cell<u32>>) -> SocketAddr {
    let config = roots.server(name, &["http/1.1"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (config, asked) = (config.clone(), asked.clone());
            spawn_local(async move {
                let Ok(mut stream) = TlsAcceptor::from(config).accept(stream).await else { return };
                until(&mut stream, Some("\r\n\r\n")).await;
                asked.set(asked.get() + 1);
                stream.write_all(words).await.ok();
                stream.shutdown().await.ok();
            });
        }
    });
    address
}

#[test]
fn an_answer_that_is_not_what_it_announces_is_not_kept() {
    run(async {
        for (words, given) in [
            (&b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n1234"[..], true),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n1234", false),
            (b"HTTP/1.1 200 OK\r\n\r\n1234", false),
            (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n1234\r\n0\r\n\r\n", false),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 3\r\n\r\n1234", false),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", false),
        ] {
            let (roots, kept, asked) = (TestRoots::new(), Kept::new(), Rc::new(std::cell::Cell::new(0)));
            let upstream = says(&roots, NAME, words, asked.clone()).await;
            for _ in 0..2 {
                let gate = gate(kept.setting(), &roots, TestPorter::new(allow), upstream).await;
                let mut sender = gate.http1().await;
                let request = get("/a.whl").header("host", NAME).body(full("")).unwrap();
                let Ok(answer) = sender.send_request(request).await else { continue };
                let body = answer.into_body().collect().await;
                assert_eq!(body.is_ok_and(|body| body.to_bytes().as_ref() == b"1234") && given, given);
            }
            assert_eq!(asked.get(), if given { 1 } else { 2 }, "{}", String::from_utf8_lossy(words));
        }
    });
}

#[test]
fn what_follows_an_answer_is_no_answer_to_the_next() {
    run(async {
        // A second answer behind the first, for whatever is asked next.
        let words = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n1234HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
        let (roots, kept, asked) = (TestRoots::new(), Kept::new(), Rc::new(std::cell::Cell::new(0)));
        let upstream = says(&roots, NAME, words, asked.clone()).await;
        let gate = gate(kept.setting(), &roots, TestPorter::new(allow), upstream).await;
        let mut sender = gate.http1().await;
        for path in ["/a.whl", "/b.whl"] {
            let request = get(path).header("host", NAME).body(full("")).unwrap();
            if sender.ready().await.is_ok()
                && let Ok(answer) = sender.send_request(request).await
            {
                drop(answer.into_body().collect().await);
            }
        }
        let kept = cached(&gate);
        assert_eq!(kept, [Cached::Kept(blake3::hash(b"1234").to_hex().to_string())]);
    });
}

#[test]
fn what_was_changed_on_the_disk_is_fetched_again_and_that_is_told() {
    run(async {
        let (roots, kept, asked) = (TestRoots::new(), Kept::new(), Rc::default());
        let upstream = server(Some(roots.server(NAME, &["http/1.1"])), wheels(&asked, 200, &[])).await;
        let gate = gate(kept.setting(), &roots, TestPorter::new(allow), upstream).await;
        gate.get(get("/a.whl")).await;
        let mut bytes = std::fs::read(kept.content()).unwrap();
        bytes[200_000] = b'!';
        let digest = kept.content().file_name().unwrap().to_string_lossy().into_owned();
        std::fs::write(kept.content(), bytes).unwrap();
        let (_, _, body) = gate.get(get("/a.whl")).await;
        assert!(body.starts_with("2 /a.whl") && !body.contains('!'));
        let (_, _, again) = gate.get(get("/a.whl")).await;
        assert!(again == body);
        assert_eq!(asked.borrow().len(), 2);
        let told = cached(&gate);
        assert_eq!(told[1], Cached::Damaged(digest));
        assert!(matches!(told[2..], [Cached::Kept(_), Cached::Served(_), Cached::Served(_)]), "{told:?}");
    });
}

#[test]
fn the_first_bytes_do_not_wait_for_the_last_and_two_at_once_are_fine() {
    run(async {
        let (roots, kept) = (TestRoots::new(), Kept::new());
        let (go, asked) = (Rc::new(Notify::new()), Rc::new(std::cell::Cell::new(0)));
        let service: Service = {
            let (go, asked) = (go.clone(), asked.clone());
            Rc::new(move |_| {
                asked.set(asked.get() + 1);
                let (sender, body) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
                let go = go.clone();
                spawn_local(async move {
                    sender.send(Bytes::from_static(b"first ")).unwrap();
                    go.notified().await;
                    sender.send(Bytes::from_static(b"last")).unwrap();
                });
                let mut response = Response::new(Pieces(body).boxed_unsync());
                response.headers_mut().insert("content-length", HeaderValue::from_static("10"));
                Box::pin(async move { response })
            })
        };
        let upstream = server(Some(roots.server(NAME, &["http/1.1"])), service).await;
        let gate = gate(kept.setting(), &roots, TestPorter::new(allow), upstream).await;
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let mut sender = gate.http1().await;
            let request = get("/a.whl").header("host", NAME).body(full("")).unwrap();
            let mut body = sender.send_request(request).await.unwrap().into_body();
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.data_ref().unwrap().as_ref(), b"first ");
            bodies.push((sender, body));
        }
        go.notify_waiters();
        for (_sender, body) in bodies {
            assert_eq!(body.collect().await.unwrap().to_bytes().as_ref(), b"last");
        }
        assert_eq!(asked.get(), 2);
        assert_eq!(gate.get(get("/a.whl")).await.2, "first last");
        assert_eq!(asked.get(), 2);
        assert_eq!(std::fs::read_dir(kept.0.join("contents")).unwrap().count(), 1);
    });
}

struct Pieces(tokio::sync::mpsc::UnboundedReceiver<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(hyper::body::Frame::data(piece))))
    }
}

#[test]
fn somebody_who_can_not_be_reached_still_gives_what_is_kept() {
    run(async {
        let (roots, kept, asked) = (TestRoots::new(), Kept::new(), Rc::default());
        let upstream = server(Some(roots.server(NAME, &["http/1.1"])), wheels(&asked, 200, &[])).await;
        let online = gate(kept.setting(), &roots, TestPorter::new(allow), upstream).await;
        let (_, _, first) = online.get(get("/a.whl")).await;
        let authority = Authority::new().unwrap();
        let bundle = authority.bundle(&[]);
        let reader = Reader::new(Some(authority), Vec::new(), Trust::Host, ReadLimits::default());
        let reader = Rc::new(reader.with_cache(crate::Cache::at(kept.0.clone(), 1 << 30)));
        let porter = Rc::new(TestPorter::new(|request| match request.path.as_str() {
            "/denied.whl" => Ruling::Deny,
            _ => Ruling::Allow,
        }));
        let session = Rc::new(Session::new(porter.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let alone = Gate { address: listener.local_addr().unwrap(), porter, session: session.clone(), bundle };
        spawn_local(async move {
            while let Ok((client, _)) = listener.accept().await {
                let passage = Passage { number: session.number(), endpoint: named(443), address: None, caller: None };
                let (reader, session) = (reader.clone(), session.clone());
                spawn_local(async move {
                    reader.alone(&session, passage, Vec::new(), client, "no route".to_owned()).await.ok();
                });
            }
        });
        let (status, _, body) = alone.get(get("/a.whl")).await;
        assert!(status == 200 && body == first);
        let (status, _, body) = alone.get(get("/b.whl")).await;
        assert_eq!((status, body.contains("can't be reached")), (502, true), "{body}");
        assert_eq!(alone.get(get("/denied.whl")).await.0, 403);
        assert_eq!(asked.borrow().len(), 1);
        let stream = alone.connect_as(NAME, &["h2"]).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http2::handshake(Here, TokioIo::new(stream)).await.unwrap();
        spawn_local(connection);
        let request = get(&format!("https://{NAME}/a.whl")).body(full("")).unwrap();
        assert_eq!(sender.send_request(request).await.unwrap().status(), 502);
    });
}
