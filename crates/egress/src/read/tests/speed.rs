//! What reading costs. Measured when asked for, with optimisation: `cargo test --release -p belljar-egress -- --ignored`.

use std::time::Instant;

use super::streams::Pieces;
use super::*;

const MEGABYTES: usize = 512;

async fn one(sender: &mut hyper::client::conn::http1::SendRequest<Reply>, path: &str) -> usize {
    sender.ready().await.unwrap();
    let request = Request::get(path).header("host", NAME).body(full("")).unwrap();
    let mut answer = sender.send_request(request).await.unwrap();
    let mut length = 0;
    while let Some(frame) = answer.body_mut().frame().await {
        length += frame.unwrap().data_ref().map_or(0, Bytes::len);
    }
    length
}

/// A server on its own thread, as it is in life.
fn elsewhere(roots: &TestRoots) -> SocketAddr {
    let config = roots.server(NAME, &["http/1.1"]);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async move {
            let piece = Bytes::from(vec![7; 256 << 10]);
            let service: Service = Rc::new(move |request| {
                let piece = piece.clone();
                Box::pin(async move {
                    match request.uri().path() {
                        "/large" => Response::new(Pieces(4 * MEGABYTES as u64, piece).boxed_unsync()),
                        _ => Response::new(full("ok")),
                    }
                })
            });
            tell.send(server(Some(config), service).await).unwrap();
            std::future::pending::<()>().await;
        });
    });
    told.recv().unwrap()
}

#[test]
#[ignore = "measures"]
fn reading_costs_little() {
    run(async {
        let roots = TestRoots::new();
        let upstream = elsewhere(&roots);
        let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
        let direct = TlsConnector::from(trusting(&std::fs::read(&roots.file).unwrap(), &["http/1.1"]));
        let stream = TcpStream::connect(upstream).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let stream = direct.connect(ServerName::try_from(NAME).unwrap(), stream).await.unwrap();
        let (mut direct, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        spawn_local(connection);
        let mut read = gate.http1().await;
        let mut small = Vec::new();
        let mut large = Vec::new();
        for sender in [&mut direct, &mut read] {
            one(sender, "/large").await;
            let mut times = Vec::new();
            for _ in 0..2000 {
                let began = Instant::now();
                one(sender, "/").await;
                times.push(began.elapsed());
            }
            times.sort();
            small.push(times[times.len() / 2]);
            let began = Instant::now();
            assert_eq!(one(sender, "/large").await, MEGABYTES << 20);
            large.push(MEGABYTES as f64 / began.elapsed().as_secs_f64());
        }
        let added = small[1].saturating_sub(small[0]);
        let message = format!(
            "a request: {:?} direct, {:?} read, {added:?} more; MB/s: {:.0} direct, {:.0} read ({:.0} %)",
            small[0],
            small[1],
            large[0],
            large[1],
            100.0 * large[1] / large[0]
        );
        std::fs::write(std::env::temp_dir().join("belljar-read-speed"), &message).unwrap();
        assert!(added < Duration::from_micros(200), "{message}");
        assert!(large[1] > 0.3 * large[0] || large[1] > 1000.0, "{message}");
    });
}
