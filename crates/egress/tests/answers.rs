//! Whoever answers, and however: a post ends in time, in bounded room, and says what came of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use belljar_egress::{Client, Encryption, Error, Settings, Stream, Trust, Url, Wire, serve};

/// A server that answers each connection once, by `behave`, after it has read the head and body of a small post.
fn server(behave: impl Fn(TcpStream, String) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let at = listener.local_addr().expect("it has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("somebody came");
            let mut read = Vec::new();
            let mut buffer = [0; 4096];
            while !String::from_utf8_lossy(&read).contains("\r\n\r\nbody") {
                match stream.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => read.extend_from_slice(&buffer[..count]),
                }
            }
            behave(stream, String::from_utf8_lossy(&read).into_owned());
        }
    });
    at
}

fn settings(at: SocketAddr) -> Settings {
    Settings {
        url: Url::read(&format!("http://{at}/path?q=1")).expect("it is an address"),
        encryption: Encryption::Needed,
        trust: Trust::Host,
        header_file: None,
        patience: Duration::from_secs(3),
    }
}

fn post(at: SocketAddr) -> Result<u16, Error> {
    let client = Client::new(settings(at))?;
    client.post("text/plain", b"body".to_vec()).map(|answer| answer.status)
}

/// One that is dropped at once would reset the connection before its answer is read.
fn say(mut stream: TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).expect("it is heard");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).ok();
}

#[test]
fn a_post_has_its_headers_and_is_taken() {
    let (send, receive) = mpsc::channel();
    let at = server(move |stream, read| {
        send.send(read).expect("somebody waits");
        say(stream, "HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\nok");
    });
    let file = std::env::temp_dir().join(format!("belljar-headers-{}", std::process::id()));
    std::fs::write(&file, "Authorization: Bearer sesame\n").expect("it is written");
    let client = Client::new(Settings { header_file: Some(file.clone()), ..settings(at) }).expect("it is set up");
    let answer = client.post("application/json", b"body".to_vec()).expect("it is taken");
    std::fs::remove_file(file).expect("it was there");
    assert_eq!((answer.status, answer.body.as_slice()), (202, b"ok".as_slice()));
    let read = receive.recv().expect("it was read");
    assert!(read.starts_with("POST /path?q=1 HTTP/1.1\r\n"), "{read}");
    for header in [&format!("host: {at}"), "content-type: application/json", "authorization: Bearer sesame"] {
        assert!(read.contains(header), "{header}: {read}");
    }
}

#[test]
fn a_no_is_an_error_and_only_some_may_pass() {
    for (status, passing) in [(400, false), (401, false), (404, false), (429, true), (500, true), (503, true)] {
        let at = server(move |stream, _| say(stream, &format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")));
        let error = post(at).expect_err("it is not taken");
        assert!(matches!(error, Error::Refused { status: said, .. } if said == status), "{error}");
        assert_eq!(error.may_pass(), passing, "{error}");
    }
}

#[test]
fn nobody_is_followed_elsewhere() {
    let (send, receive) = mpsc::channel();
    let elsewhere = server(move |_, read| send.send(read).expect("somebody waits"));
    let at = server(move |stream, _| {
        say(stream, &format!("HTTP/1.1 307 X\r\nlocation: http://{elsewhere}/\r\ncontent-length: 0\r\n\r\n"));
    });
    assert!(matches!(post(at), Err(Error::Redirect { status: 307, .. })));
    assert!(receive.try_recv().is_err());
}

#[test]
fn one_that_never_answers_is_given_up() {
    let at = server(|stream, _| std::mem::forget(stream));
    let began = Instant::now();
    assert!(matches!(post(at), Err(Error::Late { seconds: 3, .. })));
    assert!(began.elapsed() < Duration::from_secs(6));
}

#[test]
fn one_that_answers_a_letter_at_a_time_is_given_up() {
    let at = server(|mut stream, _| {
        let line = "HTTP/1.1 200 OK\r\nx: ".bytes().chain(std::iter::repeat(b'a'));
        for byte in line {
            if stream.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let began = Instant::now();
    assert!(matches!(post(at), Err(Error::Late { .. })));
    assert!(began.elapsed() < Duration::from_secs(6));
}

#[test]
fn one_that_closes_or_talks_nonsense_is_an_error_that_may_pass() {
    let closing = server(|stream, _| drop(stream));
    let nonsense = server(|stream, _| say(stream, "220 mail.example.org ESMTP\r\n"));
    for at in [closing, nonsense] {
        let error = post(at).expect_err("it is no answer");
        assert!(matches!(error, Error::Broken { .. }) && error.may_pass(), "{error}");
    }
}

#[test]
fn a_gigabyte_of_answer_or_of_headers_is_not_read() {
    for head in ["HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n", "HTTP/1.1 200 OK\r\n"] {
        let (send, receive) = mpsc::channel();
        let at = server(move |mut stream, _| {
            stream.write_all(head.as_bytes()).expect("it is heard");
            let chunk = [b"x: y\r\n".as_slice(); 10_000].concat();
            let mut sent = 0;
            while sent < 1 << 30 && stream.write_all(&chunk).is_ok() {
                sent += chunk.len();
            }
            send.send(sent).expect("somebody waits");
        });
        let began = Instant::now();
        match post(at) {
            Ok(status) => assert!(status == 200 && head.contains("length")),
            Err(error) => assert!(matches!(error, Error::Broken { .. }) && !head.contains("length"), "{error}"),
        }
        assert!(began.elapsed() < Duration::from_secs(6));
        // What fits into buffers of the kernel.
        assert!(receive.recv().expect("it was told") < 64 << 20);
    }
}

#[test]
fn a_stream_that_was_closed_is_noticed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = listener.local_addr().expect("it has an address").port();
    let wire = Wire::Tcp { host: "127.0.0.1".to_owned(), port, encryption: Encryption::Needed };
    let mut stream = Stream::open(&wire, Duration::from_secs(3)).expect("it is there");
    let (mut other, _) = listener.accept().expect("we came");
    stream.send(b"3 one").expect("it is sent");
    let mut read = [0; 5];
    other.read_exact(&mut read).expect("it is read");
    assert_eq!(&read, b"3 one");
    other.shutdown(std::net::Shutdown::Both).expect("it is closed");
    drop(other);
    let error = stream.send(b"3 two").expect_err("nobody is there");
    assert!(error.may_pass(), "{error}");
}

#[test]
fn one_that_never_reads_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = listener.local_addr().expect("it has an address").port();
    let wire = Wire::Tcp { host: "127.0.0.1".to_owned(), port, encryption: Encryption::Needed };
    let mut stream = Stream::open(&wire, Duration::from_secs(1)).expect("it is there");
    let began = Instant::now();
    let error = (0..100).find_map(|_| stream.send(&[0; 1 << 20]).err()).expect("buffers are full in the end");
    assert!(matches!(error, Error::Late { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn datagrams_are_sent_whole() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a port");
    let port = socket.local_addr().expect("it has an address").port();
    let wire = Wire::Udp { host: "127.0.0.1".to_owned(), port, encryption: Encryption::Needed };
    let mut stream = Stream::open(&wire, Duration::from_secs(3)).expect("it is there");
    stream.send(b"one").expect("it is sent");
    let mut buffer = [0; 16];
    let count = socket.recv(&mut buffer).expect("it came");
    assert_eq!(&buffer[..count], b"one");
    stream.close().expect("there is nothing to close");
}

#[test]
fn the_page_is_served_and_nothing_else() {
    let at = serve("127.0.0.1:0".parse().expect("it is one"), "text/plain", || "a 1\n".to_owned()).expect("it listens");
    let ask = |line: &str| {
        let mut stream = TcpStream::connect(at).expect("it is there");
        stream
            .write_all(format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes())
            .expect("it is heard");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("it answers");
        said
    };
    let page = ask("GET /metrics");
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("\r\n\r\na 1\n"), "{page}");
    assert!(ask("GET /../etc/passwd").starts_with("HTTP/1.1 404"));
    assert!(ask("POST /metrics").starts_with("HTTP/1.1 405"));
    // More than may come at once: they are turned away, and the page is still there afterwards.
    let crowd: Vec<TcpStream> = (0..200).filter_map(|_| TcpStream::connect(at).ok()).collect();
    assert!(!crowd.is_empty());
    drop(crowd);
    let mut page = String::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(at).expect("it is there");
        let asked = stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        if asked.is_ok() && stream.read_to_string(&mut page).is_ok() && !page.is_empty() {
            break;
        }
    }
    assert!(page.ends_with("a 1\n"), "{page}");
}
