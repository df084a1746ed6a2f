//! Each request is judged, recorded, and answered for.

use super::*;

fn only_reading(request: &OutgoingRequest) -> Ruling {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", path) if !path.starts_with("/private") => Ruling::Allow,
        ("POST", "/ask") => Ruling::Ask,
        _ => Ruling::Deny,
    }
}

#[test]
fn each_request_of_a_connection_is_judged_by_itself() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &["http/1.1"])), seen.service()).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(only_reading), upstream).await;
        let mut sender = gate.http1().await;
        for (method, path, status) in [
            ("GET", "/a?secret=1", 200),
            ("DELETE", "/a?b", 403),
            ("GET", "/%70rivate", 403),
            ("GET", "/x%2f..%2fprivate", 400),
        ] {
            let request = Request::builder().method(method).uri(path).header("host", NAME);
            sender.ready().await.unwrap();
            let answer = sender.send_request(request.body(full("")).unwrap()).await.unwrap();
            assert_eq!(answer.status(), status, "{method} {path}");
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            if status == 403 {
                let body = String::from_utf8_lossy(&body).into_owned();
                assert!(body.starts_with(&format!("refused by belljar: {method} {NAME}:443/")), "{body}");
                assert!(body.contains("\nrule: test.rule (policy.toml:3)\nhint: allow it under [network]\n"), "{body}");
                assert!(!body.contains("?b"), "{body}");
            }
        }
        assert_eq!(seen.count(), 1);
        assert_eq!(seen.target(), "/a?secret=1");
        assert_eq!(
            gate.porter.deeds(),
            [
                (NetworkDeed::Request, false),
                (NetworkDeed::Answer, false),
                (NetworkDeed::Request, true),
                (NetworkDeed::Request, true),
                (NetworkDeed::Request, true)
            ]
        );
        let events = gate.porter.events.borrow();
        assert_eq!(events[0].path.as_deref(), Some("/a"));
        assert_eq!(events[0].rule, "test.rule");
        assert_eq!(events[1].status, Some(200));
        assert_eq!(events[1].bytes, Some((0, 2)));
        assert!(events[1].took.is_some());
        let traffic = gate.session.traffic();
        assert_eq!((traffic.requests, traffic.refused, traffic.received), (1, 3, 2));
        assert_eq!(traffic.denied[0].grant, "allow it under [network]");
    });
}

#[test]
fn a_path_that_can_be_taken_in_two_ways_is_judged_in_both() {
    run(async {
        let roots = TestRoots::new();
        let upstream = server(Some(roots.server(NAME, &[])), Seen::default().service()).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(only_reading), upstream).await;
        assert_eq!(gate.get(Request::get("/@a%2fb")).await.0, 200);
        assert_eq!(gate.get(Request::get("//private")).await.0, 403);
        assert_eq!(gate.get(Request::get("/%2fprivate")).await.0, 403);
    });
}

#[test]
fn what_cannot_be_recorded_is_not_sent() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &[])), seen.service()).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
        gate.porter.fails.set(true);
        let mut sender = gate.http1().await;
        let request = Request::get("/").header("host", NAME).body(full("")).unwrap();
        assert!(sender.send_request(request).await.is_err());
        assert_eq!(seen.count(), 0);
    });
}

#[test]
fn a_request_that_is_asked_about_waits_and_is_sent_as_it_was_shown() {
    run(async {
        let roots = TestRoots::new();
        for (body, told) in [(b"hello".to_vec(), None), (vec![b'x'; 300_000], Some("first"))] {
            let seen = Seen::default();
            let upstream = server(Some(roots.server(NAME, &[])), seen.service()).await;
            let gate = gate(Setting::tls(), &roots, TestPorter::new(only_reading), upstream).await;
            let mut sender = gate.http1().await;
            let request = Request::post("/ask?a=b").header("host", NAME).body(full(body.clone())).unwrap();
            assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
            let asked = gate.porter.asked.borrow()[0].clone();
            assert_eq!(asked.request, Some(("POST".to_owned(), "/ask?a=b".to_owned())));
            let (length, digest) = asked.body.unwrap();
            assert_eq!(length, body.len() as u64);
            match told {
                None => assert_eq!(digest, blake3::hash(&body).to_hex().to_string()),
                Some(word) => assert!(digest.contains(word), "{digest}"),
            }
            assert_eq!(seen.0.borrow()[0].1, body);
            assert!(gate.porter.events.borrow()[0].why.contains("a tester"));
        }
    });
}

#[test]
fn a_request_that_nobody_approves_is_refused() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &[])), seen.service()).await;
        let porter = TestPorter { approves: false, ..TestPorter::new(only_reading) };
        let gate = gate(Setting::tls(), &roots, porter, upstream).await;
        let (status, _, body) = gate.get(Request::post("/ask")).await;
        assert_eq!(status, 403);
        assert!(body.contains("nobody said yes in time"), "{body}");
        assert_eq!(seen.count(), 0);
        assert_eq!(gate.porter.deeds(), [(NetworkDeed::Request, true)]);
    });
}

#[test]
fn headers_between_neighbours_stay_between_them() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let heard = seen.clone();
        let service: Service = Rc::new(move |request| {
            let answer = (heard.service())(request);
            Box::pin(async move {
                let mut answer = answer.await;
                *answer.status_mut() = hyper::StatusCode::FOUND;
                answer.headers_mut().insert("location", "https://evil.example/".parse().unwrap());
                answer.headers_mut().insert("alt-svc", "h3=\":443\"".parse().unwrap());
                answer.headers_mut().insert("strict-transport-security", "max-age=1".parse().unwrap());
                answer
            })
        });
        let upstream = server(Some(roots.server(NAME, &[])), service).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
        let request = Request::get("/")
            .header("proxy-authorization", "Basic x")
            .header("proxy-connection", "keep-alive")
            .header("connection", "close, x-hop")
            .header("x-hop", "1")
            .header("x-stays", "1");
        let (status, headers, _) = gate.get(request).await;
        assert_eq!(status, 302);
        assert_eq!(headers["location"], "https://evil.example/");
        assert!(headers.contains_key("strict-transport-security") && !headers.contains_key("alt-svc"));
        for gone in ["proxy-authorization", "proxy-connection", "x-hop"] {
            assert_eq!(seen.header(gone), None, "{gone}");
        }
        assert_eq!(seen.header("x-stays").as_deref(), Some("1"));
    });
}

#[test]
fn many_requests_on_one_connection_of_the_newer_version_are_judged_each() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &["h2", "http/1.1"])), seen.service()).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(only_reading), upstream).await;
        let sender = gate.http2().await;
        for (method, uri, host, status) in [
            ("GET", format!("https://{NAME}/a"), None, 200),
            ("GET", format!("https://{NAME}:443/a"), Some(NAME), 200),
            ("POST", format!("https://{NAME}/a"), None, 403),
            ("GET", format!("https://{NAME}/private"), None, 403),
            ("GET", format!("https://{NAME}/a/../private"), None, 400),
            ("GET", "https://evil.example/".to_owned(), None, 400),
            ("GET", format!("https://{NAME}:8443/"), None, 400),
            ("GET", format!("https://me@{NAME}/"), None, 400),
            ("GET", format!("http://{NAME}/"), None, 400),
            ("GET", format!("https://{NAME}/"), Some("evil.example"), 400),
            ("CONNECT", format!("{NAME}:443"), None, 400),
        ] {
            let before = seen.count();
            let mut request = Request::builder().method(method).uri(&uri);
            if let Some(host) = host {
                request = request.header("host", host);
            }
            let answer = sender.clone().send_request(request.body(full("")).unwrap()).await;
            match answer {
                Ok(answer) => assert_eq!(answer.status(), status, "{method} {uri}"),
                // The library itself may refuse it before it is sent or heard.
                Err(_) => assert_eq!(status, 400, "{method} {uri}"),
            }
            assert_eq!(seen.count() - before, usize::from(status == 200), "{method} {uri}");
        }
        let mut many = Request::get(format!("https://{NAME}/"));
        for number in 0..101 {
            many = many.header(format!("x-{number}"), "a");
        }
        let before = seen.count();
        let answer = sender.clone().send_request(many.body(full("")).unwrap()).await.unwrap();
        assert_eq!((answer.status().as_u16(), seen.count()), (400, before));
    });
}

#[test]
fn a_server_that_has_had_enough_closes_for_the_client_too() {
    run(async {
        let roots = TestRoots::new();
        let service: Service = Rc::new(|_| {
            Box::pin(async { Response::builder().header("connection", "close").body(full("last")).unwrap() })
        });
        let upstream = server(Some(roots.server(NAME, &[])), service).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
        let mut stream = gate.connect(&[]).await;
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n").as_bytes()).await.unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await.unwrap();
        assert!(said.starts_with(b"HTTP/1.1 200 ") && said.ends_with(b"last"));
    });
}

#[test]
fn a_hundred_at_once_are_answered_and_resets_cost_nothing() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &["h2"])), seen.service()).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
        let sender = gate.http2().await;
        let ask = |path: &str| Request::get(format!("https://{NAME}{path}")).body(full("")).unwrap();
        // Begun and dropped at once, again and again: the connection may end, the gate may not.
        for _ in 0..500 {
            let mut sender = sender.clone();
            if sender.ready().await.is_err() {
                break;
            }
            let begun = sender.send_request(ask("/dropped"));
            drop(tokio::time::timeout(Duration::ZERO, begun).await);
        }
        let sender = gate.http2().await;
        let mut answers = Vec::new();
        for _ in 0..100 {
            answers.push(spawn_local(sender.clone().send_request(ask("/kept"))));
        }
        for answer in answers {
            assert_eq!(answer.await.unwrap().unwrap().status(), 200);
        }
    });
}

#[test]
fn a_flood_of_refused_requests_is_no_flood_of_records() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &[])), seen.service()).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(|_| Ruling::Deny), upstream).await;
        for number in 0..300 {
            assert_eq!(gate.get(Request::get(format!("/{number}"))).await.0, 403);
        }
        let denied = gate.porter.denied();
        assert_eq!(denied.len(), 100);
        assert_eq!(denied[99].path.as_deref(), Some("/99"), "each of the first is told as it was");
        assert_eq!(gate.session.traffic().refused, 300);
        let rest = gate.session.rest();
        assert_eq!((rest.len(), rest[0].times, rest[0].path.clone()), (1, Some(300), None));
        assert_eq!(seen.count(), 0);
    });
}
