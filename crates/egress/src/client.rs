//! Posts something to a place, and hears whether it was taken.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::{Error, Result};
use crate::headers;
use crate::place::{Encryption, Url, machines};
use crate::trust::{self, Trust};

/// Of an answer. What is longer is not read.
const LARGEST_ANSWER: usize = 64 << 10;
/// Of the head of an answer.
const LARGEST_HEAD: usize = 64 << 10;
/// For the body of an answer whose head said yes already.
const FOR_THE_REST: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Settings {
    pub url: Url,
    pub encryption: Encryption,
    pub trust: Trust,
    /// Lines of headers to send along.
    pub header_file: Option<PathBuf>,
    /// From the first step to the answer, each time.
    pub patience: Duration,
}

/// Somebody who takes posts. Connects for each of them.
#[derive(Clone)]
pub struct Client {
    settings: Settings,
    /// Only where it is needed: to read the certificates of a machine takes milliseconds.
    encrypted: Option<Arc<ClientConfig>>,
}

/// They took it, and said this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// As much of it as came, up to a bound.
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(settings: Settings) -> Result<Client> {
        let encrypted = settings.url.encrypted.then(|| trust::configuration(&settings.trust)).transpose()?;
        Ok(Client { settings, encrypted })
    }

    /// Nobody else is asked, no redirect is followed, and nothing of it is tried twice.
    pub fn post(&self, content_type: &str, body: Vec<u8>) -> Result<Answer> {
        let Settings { url, encryption, patience, .. } = &self.settings;
        let deadline = Instant::now() + *patience;
        let request = self.request(content_type, body)?;
        let machines = machines(&url.host, url.port, &url.shown, url.encrypted, *encryption)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Setup(error.to_string()))?;
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = runtime.block_on(async { tokio::time::timeout(left, self.exchange(&machines, request)).await });
        answer.unwrap_or_else(|_| Err(Error::Late { place: url.to_string(), seconds: patience.as_secs() }))
    }

    fn request(&self, content_type: &str, body: Vec<u8>) -> Result<Request<Full<Bytes>>> {
        let url = &self.settings.url;
        let version = concat!("belljar/", env!("CARGO_PKG_VERSION"));
        let mut request = Request::post(url.path.as_str())
            .header(HOST, url.host_header())
            .header(CONTENT_TYPE, content_type)
            .header(USER_AGENT, version);
        if let Some(file) = &self.settings.header_file {
            for (name, value) in headers::read(file)? {
                request = request.header(name, value);
            }
        }
        request.body(Full::new(body.into())).map_err(|error| Error::Setup(error.to_string()))
    }

    async fn exchange(&self, machines: &[SocketAddr], request: Request<Full<Bytes>>) -> Result<Answer> {
        let url = &self.settings.url;
        let stream = self.connect(machines).await?;
        let Some(configuration) = &self.encrypted else { return self.talk(stream, request).await };
        let stranger = |why: String| Error::Stranger { place: url.to_string(), why };
        let name = ServerName::try_from(url.host.clone()).map_err(|error| stranger(error.to_string()))?;
        let stream = TlsConnector::from(configuration.clone()).connect(name, stream).await;
        match stream {
            Ok(stream) => self.talk(stream, request).await,
            // What is wrong with a certificate stays wrong; a line that broke may hold the next time.
            Err(error) if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) => {
                Err(stranger(error.to_string()))
            }
            Err(error) => Err(Error::Broken { place: url.to_string(), why: error.to_string() }),
        }
    }

    async fn connect(&self, machines: &[SocketAddr]) -> Result<TcpStream> {
        let place = || self.settings.url.to_string();
        let mut failed = Error::Connect { place: place(), source: std::io::ErrorKind::AddrNotAvailable.into() };
        for machine in machines {
            match TcpStream::connect(machine).await {
                Ok(stream) => return Ok(stream),
                Err(source) => failed = Error::Connect { place: place(), source },
            }
        }
        Err(failed)
    }

    async fn talk<S>(&self, stream: S, request: Request<Full<Bytes>>) -> Result<Answer>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let place = || self.settings.url.to_string();
        let broken = |error: hyper::Error| Error::Broken { place: place(), why: said(&error) };
        let mut builder = http1::Builder::new();
        builder.max_buf_size(LARGEST_HEAD);
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // Ends with the runtime, which ends with this post. What it has to say, the answer says too.
        let driving = tokio::spawn(async move { connection.await.ok() });
        let answer = sender.send_request(request).await.map_err(broken)?;
        let status = answer.status().as_u16();
        let answer = match status {
            200..=299 => Ok(Answer { status, body: rest(answer).await }),
            300..=399 => Err(Error::Redirect { place: place(), status }),
            _ => Err(Error::Refused { place: place(), status }),
        };
        driving.abort();
        answer
    }
}

/// They took it already: what they say of it is welcome, and not waited for.
async fn rest(mut answer: Response<Incoming>) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while body.len() < LARGEST_ANSWER {
            let Some(Ok(frame)) = answer.frame().await else { break };
            let Some(data) = frame.data_ref() else { continue };
            let room = LARGEST_ANSWER - body.len();
            body.extend_from_slice(&data[..data.len().min(room)]);
        }
    };
    tokio::time::timeout(FOR_THE_REST, reading).await.ok();
    body
}

/// With what is behind it: on its own it only says that something failed.
fn said(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
