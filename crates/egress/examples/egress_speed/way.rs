//! The way to the server: straight, through whatever is around us, or through a proxy.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::client::Resumption;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Result;

pub struct Way {
    host: String,
    port: u16,
    /// Of the server, or of the proxy.
    address: SocketAddr,
    proxy: Option<Proxy>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

struct Proxy {
    /// As a header has it.
    credentials: Option<String>,
}

pub trait Talks: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Talks for T {}

pub struct Connection {
    stream: Box<dyn Talks>,
    /// The request without its number, where it is HTTP.
    http: Option<String>,
    room: Vec<u8>,
}

impl Way {
    pub fn new(lane: &str, host: &str, port: &str, trust: &str) -> Result<Way> {
        let port: u16 = port.parse()?;
        let proxy = std::env::var("HTTP_PROXY").ok();
        let (address, proxy) = match &proxy {
            Some(text) => {
                let text = text.trim_start_matches("http://").trim_end_matches('/');
                let (credentials, place) = text.rsplit_once('@').map_or((None, text), |(who, at)| (Some(who), at));
                let credentials = credentials.map(|who| STANDARD.encode(who));
                let address = look_up(place)?;
                // Some sandboxes start theirs beside the command, and not before it.
                let until = Instant::now() + Duration::from_secs(10);
                while std::net::TcpStream::connect(address).is_err() && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(10));
                }
                (address, Some(Proxy { credentials }))
            }
            None => (look_up(&format!("{host}:{port}"))?, None),
        };
        let tls = match lane {
            "tls" => {
                let name = ServerName::try_from(host.to_owned())?;
                Some((TlsConnector::from(Arc::new(trusting(trust)?)), name))
            }
            _ => None,
        };
        Ok(Way { host: host.to_owned(), port, address, proxy, tls })
    }

    /// Ready to be asked for something.
    pub async fn open(&self) -> Result<Connection> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        if let Some(Proxy { credentials }) = &self.proxy {
            let who = credentials.as_ref().map_or(String::new(), |who| format!("Proxy-Authorization: Basic {who}\r\n"));
            let Way { host, port, .. } = self;
            let asked = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{who}\r\n");
            stream.write_all(asked.as_bytes()).await?;
            let head = head(&mut stream).await?;
            if !head.starts_with("HTTP/1.1 200") && !head.starts_with("HTTP/1.0 200") {
                return Err(format!("the proxy says {head}").into());
            }
        }
        let Some((connector, name)) = &self.tls else {
            return Ok(Connection { stream: Box::new(stream), http: None, room: Vec::new() });
        };
        let stream = connector.connect(name.clone(), stream).await?;
        let rest = format!(" HTTP/1.1\r\nhost: {}:{}\r\n\r\n", self.host, self.port);
        Ok(Connection { stream: Box::new(stream), http: Some(rest), room: Vec::new() })
    }
}

impl Connection {
    /// Asks for so many bytes, and reads all of them.
    pub async fn ask(&mut self, bytes: u64) -> Result<()> {
        match &self.http {
            Some(rest) => {
                self.stream.write_all(format!("GET /bytes/{bytes}{rest}").as_bytes()).await?;
                self.stream.flush().await?;
                self.answer(bytes).await
            }
            None => {
                let mut asked = [0; 9];
                asked[1..].copy_from_slice(&bytes.to_be_bytes());
                self.stream.write_all(&asked).await?;
                self.swallow(bytes).await
            }
        }
    }

    /// The head and what follows it in one read, as clients do.
    async fn answer(&mut self, bytes: u64) -> Result<()> {
        let mut begun = Vec::with_capacity(4096);
        loop {
            if self.stream.read_buf(&mut begun).await? == 0 {
                return Err("the server ended in the midst of its answer".into());
            }
            let Some(end) = begun.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&begun[..end]).to_ascii_lowercase();
            let told = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            if !head.starts_with("http/1.1 200") || told != Some(bytes) {
                return Err(format!("an answer that was not asked for: {head}").into());
            }
            return self.swallow(bytes - (begun.len() - end - 4) as u64).await;
        }
    }

    async fn swallow(&mut self, mut left: u64) -> Result<()> {
        // An idle connection of ours holds no room; this is made at the first large answer.
        let wanted = usize::try_from(left)?.min(256 << 10);
        if self.room.len() < wanted {
            self.room.resize(wanted, 0);
        }
        while left > 0 {
            match self.stream.read(&mut self.room).await? {
                0 => return Err("the server ended in the midst of its answer".into()),
                read => left = left.checked_sub(read as u64).ok_or("more than was asked for")?,
            }
        }
        Ok(())
    }
}

async fn head(stream: &mut TcpStream) -> Result<String> {
    let mut said = Vec::new();
    while !said.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut said).await? == 0 {
            return Err("the proxy closed the connection".into());
        }
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The servers of the benchmark are at an address of the older kind.
pub fn look_up(place: &str) -> Result<SocketAddr> {
    let found = place.to_socket_addrs()?.find(SocketAddr::is_ipv4);
    found.ok_or_else(|| format!("{place} has no address").into())
}

/// Each connection agrees anew: most programs live too short to remember the last one.
fn trusting(trust: &str) -> Result<ClientConfig> {
    let file = match trust {
        "env" => std::env::var_os("SSL_CERT_FILE").ok_or("SSL_CERT_FILE is not set")?,
        file => file.into(),
    };
    let mut roots = RootCertStore::empty();
    let bytes = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.to_string_lossy()))?;
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&bytes).flatten());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut configuration = builder.with_root_certificates(roots).with_no_client_auth();
    configuration.resumption = Resumption::disabled();
    configuration.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(configuration)
}
