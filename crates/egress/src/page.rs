//! A page that others may fetch while we run: `/metrics`, and nothing else.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use crate::error::{Error, Result};

/// Readers at once. More are turned away.
const MOST_READERS: usize = 32;
/// For one reader, however many times it asks.
const PATIENCE: Duration = Duration::from_secs(30);
const LARGEST_HEAD: usize = 16 << 10;
/// After the kernel would not hand over a connection: it has none to spare for now.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves `page` from a thread of its own until the process ends; returns where. Not for a process that forks.
pub fn serve(
    address: SocketAddr,
    content_type: &'static str,
    page: impl Fn() -> String + Send + Sync + 'static,
) -> Result<SocketAddr> {
    let failed = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Setup(error.to_string()))?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(failed)?
    };
    let thread = std::thread::Builder::new().name("metrics".to_owned());
    let serving = thread.spawn(move || runtime.block_on(accept(listener, content_type, Arc::new(page))));
    serving.map(|_| at).map_err(failed)
}

async fn accept<P>(listener: tokio::net::TcpListener, content_type: &'static str, page: Arc<P>)
where
    P: Fn() -> String + Send + Sync + 'static,
{
    let readers = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if readers.fetch_add(1, Ordering::Relaxed) >= MOST_READERS {
            readers.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (page, readers) = (page.clone(), readers.clone());
        tokio::spawn(async move {
            let answering = service_fn(|request| {
                let answer = answer(&request, content_type, page.as_ref());
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut builder = http1::Builder::new();
            builder.max_buf_size(LARGEST_HEAD);
            let connection = builder.serve_connection(TokioIo::new(stream), answering);
            // A reader that breaks off or is too slow knows it; the next one is answered all the same.
            tokio::time::timeout(PATIENCE, connection).await.ok();
            readers.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn answer(request: &Request<Incoming>, content_type: &'static str, page: &dyn Fn() -> String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => {
            *answer.body_mut() = Full::new(page().into());
            answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
        }
        (&Method::GET | &Method::HEAD, _) => {
            *answer.status_mut() = StatusCode::NOT_FOUND;
            *answer.body_mut() = Full::new("see /metrics\n".into());
        }
        _ => {
            *answer.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            answer.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        }
    }
    answer
}
