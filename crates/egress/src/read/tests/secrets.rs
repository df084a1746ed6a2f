//! Secrets are added where they belong, and are seen nowhere else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;

const STAND_IN: &str = "belljar_standin_4711";
const VALUE: &str = "s3same/open+now";

fn setting() -> Setting {
    Setting::tls().with("token", STAND_IN, VALUE)
}

fn porter() -> TestPorter {
    TestPorter::new(allow).adding(|name, place| {
        if name == "token" && place.host.to_string() == NAME { Ruling::Allow } else { Ruling::Deny }
    })
}

fn no_value_in(gate: &Gate) {
    let shown = format!("{:?} {:?}", gate.porter.events.borrow(), gate.session.traffic());
    assert!(!shown.contains(VALUE) && !shown.contains("s3same"), "{shown}");
}

#[test]
fn a_secret_is_added_in_header_query_and_basic() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &[])), seen.service()).await;
        let gate = gate(setting(), &roots, porter(), upstream).await;
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        for (given, sent) in [
            (format!("Bearer {STAND_IN}"), format!("Bearer {VALUE}")),
            (format!("token {STAND_IN}"), format!("token {VALUE}")),
            (basic(&format!("git:{STAND_IN}")), basic(&format!("git:{VALUE}"))),
            (basic(&format!("{STAND_IN}:")), basic(&format!("{VALUE}:"))),
        ] {
            let request =
                Request::get("/").header("authorization", given).header("cookie", "a=b").header("range", "bytes=0-1");
            let (status, ..) = gate.get(request).await;
            assert_eq!(status, 200);
            assert_eq!(seen.header("authorization").unwrap(), sent);
            assert_eq!(seen.header("accept-encoding").unwrap(), "identity");
            assert_eq!((seen.header("cookie"), seen.header("range")), (None, None));
        }
        assert_eq!(gate.get(Request::get(format!("/?a=1&key={STAND_IN}&b"))).await.0, 200);
        assert_eq!(seen.target(), "/?a=1&key=s3same%2Fopen%2Bnow&b");
        assert_eq!(gate.get(Request::get("/").header("x-custom", STAND_IN)).await.0, 200);
        assert_eq!(seen.header("x-custom").unwrap(), VALUE);
        // Nothing at all is fine too.
        assert_eq!(gate.get(Request::get("/").header("accept-encoding", "gzip")).await.0, 200);
        assert_eq!(seen.header("accept-encoding").unwrap(), "identity");
        let deeds = gate.porter.deeds();
        assert_eq!(
            deeds[..3],
            [(NetworkDeed::Request, false), (NetworkDeed::Secret, false), (NetworkDeed::Answer, false)]
        );
        assert_eq!(gate.session.traffic().secrets, ["token"]);
        no_value_in(&gate);
    });
}

#[test]
fn a_stand_in_where_it_has_no_business_is_refused_and_recorded() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &["http/1.1", "h2"])), seen.service()).await;
        let denies = TestPorter::new(allow);
        let elsewhere = gate(setting(), &roots, denies, upstream).await;
        let (status, _, body) = elsewhere.get(Request::get("/").header("authorization", STAND_IN)).await;
        assert_eq!(status, 403);
        assert!(body.contains("`token` is not for this host"), "{body}");
        assert_eq!(elsewhere.get(Request::get("/").header("cookie", STAND_IN)).await.0, 403);
        assert_eq!(elsewhere.get(Request::get("/").header("authorization", "Bearer own")).await.0, 200);
        assert_eq!(elsewhere.porter.denied()[0].secret.as_deref(), Some("token"));
        assert_eq!(elsewhere.porter.denied()[0].what, NetworkDeed::Secret);

        let before = seen.count();
        let here = gate(setting(), &roots, porter(), upstream).await;
        assert_eq!(here.get(Request::get(format!("/a/{STAND_IN}"))).await.0, 403);
        for protocol in ["http/1.1", "h2"] {
            let (writer, body) = tests_body();
            let request = Request::post(format!("https://{NAME}/")).header("host", NAME).body(body).unwrap();
            writer.send(Bytes::from("x=belljar_stand")).unwrap();
            writer.send(Bytes::from("in_4711&y")).unwrap();
            drop(writer);
            let answer = match protocol {
                "h2" => here.http2().await.send_request(request).await.unwrap(),
                _ => {
                    let mut request = request;
                    *request.uri_mut() = "/".parse().unwrap();
                    here.http1().await.send_request(request).await.unwrap()
                }
            };
            assert_eq!(answer.status(), 403, "{protocol}");
        }
        assert_eq!(seen.count(), before);
        let denied = here.porter.denied();
        assert_eq!(denied.len(), 3, "{denied:?}");
        assert!(denied.iter().all(|event| event.what == NetworkDeed::Secret && event.rule == "secret.place"));
        no_value_in(&here);
    });
}

fn tests_body() -> (tokio::sync::mpsc::UnboundedSender<Bytes>, Reply) {
    struct Told(tokio::sync::mpsc::UnboundedReceiver<Bytes>);
    impl hyper::body::Body for Told {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(hyper::body::Frame::data(bytes))))
        }
    }
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    (sender, Told(receiver).boxed_unsync())
}

#[test]
fn a_host_with_a_secret_takes_no_other_credential() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &[])), seen.service()).await;
        let gate = gate(setting(), &roots, porter(), upstream).await;
        for (name, value) in [
            ("authorization", "Bearer attackers".to_owned()),
            ("authorization", format!("Basic {}", STANDARD.encode("attacker:own"))),
            ("authorization", format!("Bearer attackers, Bearer {STAND_IN}")),
            ("authorization", format!("Bearer attackers {STAND_IN}")),
            ("x-api-key", "attackers".to_owned()),
            ("api-key", "attackers".to_owned()),
            ("private-token", "attackers".to_owned()),
            ("x-goog-api-key", "attackers".to_owned()),
            ("x-amz-security-token", "attackers".to_owned()),
            // Of the two of Basic, some servers look at the user alone, and some at the password.
            ("authorization", format!("Basic {}", STANDARD.encode(format!("{STAND_IN}:attackers-own-token")))),
            ("authorization", format!("Basic {}", STANDARD.encode(format!("attackers_own_secret_key:{STAND_IN}")))),
            ("authorization", format!("attackers_own_secret_key {STAND_IN}")),
            ("x_api_key", "attackers".to_owned()),
            ("x-somebodys-access-token", "attackers".to_owned()),
            ("x-somebodys-key", "attackers".to_owned()),
        ] {
            let request = Request::get("/").header(name, &value).header("x-other", STAND_IN);
            let (status, _, body) = gate.get(request).await;
            assert_eq!(status, 403, "{name}: {value}");
            assert!(body.contains("rule: secret.other") && !body.contains("attackers"), "{body}");
        }
        let twice = Request::get("/").header("authorization", STAND_IN).header("authorization", STAND_IN);
        assert_eq!(gate.get(twice).await.0, 403);
        for query in ["access_token=x", "a=b&API_KEY=x", "%6bey=x", "X-Amz-Signature=x", "a;token=x", "sig=x"] {
            assert_eq!(gate.get(Request::get(format!("/?{query}"))).await.0, 403, "{query}");
        }
        assert_eq!(seen.count(), 0);
        assert!(gate.porter.denied().iter().all(|event| event.rule == "secret.other"));
    });
}

#[test]
fn a_secret_goes_in_clear_only_to_this_machine() {
    run(async {
        let roots = TestRoots::new();
        for (seems, status) in [("127.0.0.1", 200), ("::1", 200), ("192.0.2.1", 403)] {
            let seen = Seen::default();
            let upstream = server(None, seen.service()).await;
            let setting = Setting { tls: false, seems: seems.parse().unwrap(), ..setting() };
            let gate = gate(setting, &roots, porter(), upstream).await;
            let said = gate
                .raw(format!("GET / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\nAuthorization: Bearer {STAND_IN}\r\n\r\n").as_bytes())
                .await;
            assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{seems}: {said}");
            assert_eq!(seen.count(), usize::from(status == 200));
        }
    });
}

#[test]
fn a_server_that_echoes_shows_only_what_stands_for_the_secret() {
    run(async {
        let roots = TestRoots::new();
        for protocol in ["http/1.1", "h2"] {
            let service: Service = Rc::new(|request| {
                Box::pin(async move {
                    let key = request.headers()["authorization"].to_str().unwrap().replace("Bearer ", "");
                    let encoded = STANDARD.encode(&key);
                    let text = format!("plain {key}, query s3same%2Fopen%2Bnow, encoded {encoded}.");
                    let (writer, body) = tests_body();
                    for byte in text.bytes() {
                        writer.send(Bytes::from(vec![byte])).unwrap();
                    }
                    let answer = Response::builder().header("x-echo", format!("<{key}>"));
                    answer.body(body).unwrap()
                })
            });
            let upstream = server(Some(roots.server(NAME, &[protocol])), service).await;
            let gate = gate(setting(), &roots, porter(), upstream).await;
            let request = Request::get(format!("https://{NAME}/"))
                .header("host", NAME)
                .header("authorization", format!("Bearer {STAND_IN}"))
                .body(full(""))
                .unwrap();
            let answer = match protocol {
                "h2" => gate.http2().await.send_request(request).await.unwrap(),
                _ => {
                    let mut request = request;
                    *request.uri_mut() = "/".parse().unwrap();
                    gate.http1().await.send_request(request).await.unwrap()
                }
            };
            assert_eq!(answer.headers()["x-echo"], format!("<{STAND_IN}>"));
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let encoded = STANDARD.encode(STAND_IN);
            let expected = format!("plain {STAND_IN}, query {STAND_IN}, encoded {}.", encoded.trim_end_matches('='));
            assert_eq!(String::from_utf8_lossy(&body), expected, "{protocol}");
        }
    });
}

#[test]
fn an_answer_that_is_compressed_all_the_same_is_refused() {
    run(async {
        let roots = TestRoots::new();
        let service: Service = Rc::new(|_| {
            Box::pin(async { Response::builder().header("content-encoding", "gzip").body(full("zipped")).unwrap() })
        });
        let upstream = server(Some(roots.server(NAME, &[])), service).await;
        let gate = gate(setting(), &roots, porter(), upstream).await;
        // Also without the secret: an earlier request may have left it there.
        assert_eq!(gate.get(Request::get("/")).await.0, 502);
        assert_eq!(gate.get(Request::get("/").header("authorization", STAND_IN)).await.0, 502);
    });
}

#[test]
fn a_secret_whose_rule_asks_is_asked_for() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &[])), seen.service()).await;
        let porter = TestPorter { approves: false, ..TestPorter::new(allow).adding(|_, _| Ruling::Ask) };
        let gate = gate(setting(), &roots, porter, upstream).await;
        assert_eq!(gate.get(Request::get("/").header("authorization", STAND_IN)).await.0, 403);
        assert_eq!(gate.porter.asked.borrow().len(), 1);
        assert_eq!(gate.get(Request::get("/")).await.0, 200);
    });
}

#[test]
fn a_server_that_echoes_user_and_password_shows_what_was_given() {
    run(async {
        let roots = TestRoots::new();
        let service: Service = Rc::new(|request| {
            let said = request.headers()["authorization"].to_str().unwrap().to_owned();
            Box::pin(async move { Response::new(full(said)) })
        });
        let upstream = server(Some(roots.server(NAME, &[])), service).await;
        let gate = gate(setting(), &roots, porter(), upstream).await;
        let given = format!("Basic {}", STANDARD.encode(format!("git:{STAND_IN}")));
        let (status, _, body) = gate.get(Request::get("/").header("authorization", &given)).await;
        assert_eq!((status, body.trim_end_matches('=')), (200, given.trim_end_matches('=')));
    });
}

#[test]
fn what_an_earlier_request_left_at_the_server_is_not_seen_either() {
    run(async {
        let roots = TestRoots::new();
        let kept: Rc<RefCell<String>> = Rc::default();
        let keeps = kept.clone();
        let service: Service = Rc::new(move |request: Request<Incoming>| {
            let keeps = keeps.clone();
            Box::pin(async move {
                if let Some(said) = request.headers().get("user-agent") {
                    *keeps.borrow_mut() = said.to_str().unwrap().to_owned();
                }
                let said = if request.uri().path() == "/log" { keeps.borrow().clone() } else { String::new() };
                Response::new(Full::new(Bytes::from(said)).boxed_unsync())
            })
        });
        let upstream = server(Some(roots.server(NAME, &[])), service).await;
        let gate = gate(setting(), &roots, porter(), upstream).await;
        assert_eq!(gate.get(Request::get("/").header("user-agent", STAND_IN)).await.0, 200);
        assert_eq!(*kept.borrow(), VALUE);
        let (status, _, body) = gate.get(Request::get("/log")).await;
        assert_eq!((status, body.as_str()), (200, STAND_IN));
    });
}
