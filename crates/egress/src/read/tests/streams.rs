//! What flows, flows: nothing waits for an end, and nothing is kept.

use http_body_util::StreamBody;
use hyper::body::{Body, Frame};

use super::*;

/// A body of as many pieces, made when they are wanted.
pub(super) struct Pieces(pub u64, pub Bytes);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0 == 0 {
            return std::task::Poll::Ready(None);
        }
        self.0 -= 1;
        std::task::Poll::Ready(Some(Ok(Frame::data(self.1.clone()))))
    }
}

fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn an_event_arrives_while_its_answer_is_still_open() {
    run(async {
        let roots = TestRoots::new();
        for protocol in ["http/1.1", "h2"] {
            let (tell, told) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
            let told = Rc::new(RefCell::new(Some(told)));
            let service: Service = Rc::new(move |_| {
                let told = told.clone();
                Box::pin(async move {
                    let mut told = told.borrow_mut().take().unwrap();
                    let events = std::future::poll_fn(move |context| told.poll_recv(context));
                    let (sender, body) = Channel::new();
                    spawn_local(async move {
                        let mut events = events;
                        while let Some(event) = (&mut events).await {
                            sender.send(event);
                        }
                    });
                    Response::new(body.boxed_unsync())
                })
            });
            let upstream = server(Some(roots.server(NAME, &[protocol])), service).await;
            let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
            let request = Request::get(format!("https://{NAME}/")).header("host", NAME).body(full("")).unwrap();
            tell.send(Bytes::from("data: 1\n\n")).unwrap();
            let mut answer = match protocol {
                "h2" => gate.http2().await.send_request(request).await.unwrap(),
                _ => {
                    let mut request = request;
                    *request.uri_mut() = "/".parse().unwrap();
                    let mut sender = gate.http1().await;
                    let answer = sender.send_request(request).await.unwrap();
                    spawn_local(async move { std::future::poll_fn(|context| sender.poll_ready(context)).await });
                    answer
                }
            };
            for number in 1..5 {
                let frame = answer.body_mut().frame().await.unwrap().unwrap();
                assert_eq!(frame.into_data().unwrap(), format!("data: {number}\n\n"));
                // Only now is there a next one.
                tell.send(Bytes::from(format!("data: {}\n\n", number + 1))).unwrap();
            }
        }
    });
}

/// A body that somebody else writes.
struct Channel(tokio::sync::mpsc::UnboundedReceiver<Bytes>);
struct Writer(tokio::sync::mpsc::UnboundedSender<Bytes>);

impl Channel {
    fn new() -> (Writer, Channel) {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        (Writer(sender), Channel(receiver))
    }
}

impl Writer {
    fn send(&self, bytes: Bytes) {
        drop(self.0.send(bytes));
    }
}

impl Body for Channel {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[test]
fn trailers_pass_in_both_directions() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let heard = seen.clone();
        let service: Service = Rc::new(move |request| {
            let answer = (heard.service())(request);
            Box::pin(async move {
                drop(answer.await);
                let mut trailers = hyper::HeaderMap::new();
                trailers.insert("grpc-status", "0".parse().unwrap());
                let frames = [Ok(Frame::data(Bytes::from("message"))), Ok(Frame::trailers(trailers))];
                Response::new(StreamBody::new(Frames(frames.into_iter().collect())).boxed_unsync())
            })
        });
        let upstream = server(Some(roots.server(NAME, &["h2"])), service).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
        let mut trailers = hyper::HeaderMap::new();
        trailers.insert("x-sum", "7".parse().unwrap());
        let frames = [Ok(Frame::data(Bytes::from("question"))), Ok(Frame::trailers(trailers))];
        let body = StreamBody::new(Frames(frames.into_iter().collect())).boxed_unsync();
        let request = Request::post(format!("https://{NAME}/pkg.Service/Method"))
            .header("te", "trailers")
            .header("content-type", "application/grpc")
            .body(body)
            .unwrap();
        let answer = gate.http2().await.send_request(request).await.unwrap();
        let collected = answer.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(collected.to_bytes(), "message");
        assert_eq!(seen.0.borrow()[0].2.as_ref().unwrap()["x-sum"], "7");
        assert_eq!(seen.header("te").as_deref(), Some("trailers"));
    });
}

struct Frames(std::collections::VecDeque<Result<Frame<Bytes>, Infallible>>);

impl futures_core::Stream for Frames {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.pop_front())
    }
}

#[test]
fn two_hundred_megabytes_pass_both_ways_and_memory_stays_flat() {
    run(async {
        let roots = TestRoots::new();
        for protocol in ["http/1.1", "h2"] {
            let piece = Bytes::from(vec![7; 64 << 10]);
            let service: Service = Rc::new(move |mut request| {
                let piece = piece.clone();
                Box::pin(async move {
                    let mut length = 0;
                    while let Some(frame) = request.body_mut().frame().await {
                        length += frame.unwrap().data_ref().map_or(0, Bytes::len);
                    }
                    let mut answer = Response::new(Pieces(1600, piece).boxed_unsync());
                    answer.headers_mut().insert("x-length", length.into());
                    answer
                })
            });
            let upstream = server(Some(roots.server(NAME, &[protocol])), service).await;
            let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
            let before = memory();
            let body = Pieces(1600, Bytes::from(vec![9; 64 << 10])).boxed_unsync();
            let request = Request::post(format!("https://{NAME}/")).header("host", NAME).body(body).unwrap();
            let mut answer = match protocol {
                "h2" => gate.http2().await.send_request(request).await.unwrap(),
                _ => {
                    let mut request = request;
                    *request.uri_mut() = "/".parse().unwrap();
                    gate.http1().await.send_request(request).await.unwrap()
                }
            };
            assert_eq!(answer.headers()["x-length"], (1600 * (64 << 10)).to_string());
            let (mut length, mut most) = (0, 0);
            while let Some(frame) = answer.body_mut().frame().await {
                length += frame.unwrap().data_ref().map_or(0, Bytes::len);
                most = most.max(memory());
            }
            assert_eq!(length, 1600 * (64 << 10));
            assert!(most.saturating_sub(before) < 40 << 10, "{protocol}: {before} KiB became {most} KiB");
            drop(answer);
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_web_socket_passes_and_only_if_the_server_agrees() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let heard = seen.clone();
        let service: Service = Rc::new(move |mut request| {
            let heard = heard.clone();
            Box::pin(async move {
                if request.uri().path() != "/socket" {
                    return (heard.service())(request).await;
                }
                assert_eq!(request.headers()["upgrade"], "websocket");
                let upgrade = hyper::upgrade::on(&mut request);
                spawn_local(async move {
                    let mut socket = TokioIo::new(upgrade.await.unwrap());
                    let mut buffer = [0; 1024];
                    while let Ok(read @ 1..) = socket.read(&mut buffer).await {
                        socket.write_all(&buffer[..read]).await.unwrap();
                    }
                });
                let answer = Response::builder().status(101).header("connection", "upgrade");
                answer.header("upgrade", "websocket").body(full("")).unwrap()
            })
        });
        let upstream = server(Some(roots.server(NAME, &[])), service).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
        let wish = |path: &str| {
            format!(
                "GET {path} HTTP/1.1\r\nHost: {NAME}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n"
            )
        };
        let mut stream = gate.connect(&[]).await;
        // Said before the answer: it waits for it.
        stream.write_all((wish("/socket") + "early\0\n").as_bytes()).await.unwrap();
        let mut heard = String::new();
        while !heard.ends_with("early\0\n") {
            let mut buffer = [0; 1024];
            let read = stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "{heard}");
            heard.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        assert!(heard.starts_with("HTTP/1.1 101 "), "{heard}");
        for _ in 0..3 {
            stream.write_all(b"\x81\x05raw\0\n").await.unwrap();
            let mut echo = [0; 7];
            stream.read_exact(&mut echo).await.unwrap();
            assert_eq!(&echo, b"\x81\x05raw\0\n");
        }
        drop(stream);

        let mut stream = gate.connect(&[]).await;
        let next = format!("GET /next HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
        // The parser behind the fence would take this one; so the fence still stands.
        let lax = next.replace("/next", "/smuggled").replace("\r\n", "\n");
        stream.write_all((wish("/refuses") + &next + &lax).as_bytes()).await.unwrap();
        let said = until(&mut stream, None).await;
        assert_eq!(said.matches("HTTP/1.1 200 ").count(), 2, "{said}");
        assert!(said.contains("refused by belljar: the request has a line"), "{said}");
        assert_eq!(seen.target(), "/next");
    });
}

#[test]
fn a_client_that_waits_to_be_told_to_go_on_is_told() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(None, seen.service()).await;
        let gate = gate(Setting::plain(), &roots, TestPorter::new(allow), upstream).await;
        let mut stream = TcpStream::connect(gate.address).await.unwrap();
        let head = format!("PUT / HTTP/1.1\r\nHost: {NAME}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut told = [0; 25];
        stream.read_exact(&mut told).await.unwrap();
        assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"hello").await.unwrap();
        assert!(until(&mut stream, Some("ok")).await.starts_with("HTTP/1.1 200 "));
        assert_eq!(seen.0.borrow()[0].1, "hello");
    });
}

#[test]
fn a_refusal_is_heard_even_if_much_was_still_to_be_said() {
    run(async {
        let roots = TestRoots::new();
        let upstream = server(None, Seen::default().service()).await;
        let gate = gate(Setting::plain(), &roots, TestPorter::new(|_| Ruling::Deny), upstream).await;
        let stream = TcpStream::connect(gate.address).await.unwrap();
        let (mut reads, mut writes) = stream.into_split();
        let head = format!("PUT / HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 2000000\r\n\r\n");
        spawn_local(async move {
            writes.write_all(head.as_bytes()).await.unwrap();
            drop(writes.write_all(&vec![7; 2_000_000]).await);
            writes
        });
        assert!(until(&mut reads, Some("[network]\n")).await.starts_with("HTTP/1.1 403 "));
    });
}
