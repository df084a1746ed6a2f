//! Gives bytes to whoever asks, over TCP and over TLS, on this machine's loopback. Ends with its input.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;

use crate::{NAMES, Result};

const PIECE: usize = 256 << 10;

/// Leaves `ca.pem` in the folder, and says its ports.
pub fn serve(folder: &Path) -> Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(certified(folder)?));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Whoever started us is gone, or has seen enough.
    std::thread::spawn(|| {
        let ended = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(if ended.is_ok() { 0 } else { 1 })
    });
    LocalSet::new().block_on(&runtime, async {
        let plain = TcpListener::bind(("127.0.0.1", 0)).await?;
        let secure = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", json!({ "tcp": plain.local_addr()?.port(), "tls": secure.local_addr()?.port() }));
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = plain.accept().await {
                tokio::task::spawn_local(raw(stream));
            }
        });
        loop {
            let (stream, _) = secure.accept().await?;
            let acceptor = acceptor.clone();
            tokio::task::spawn_local(async move {
                stream.set_nodelay(true)?;
                http(acceptor.accept(stream).await?).await
            });
        }
    })
}

/// A zero, and how many bytes are wanted.
async fn raw(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut asked = [0; 9];
    loop {
        stream.read_exact(&mut asked).await?;
        let mut number = [0; 8];
        number.copy_from_slice(&asked[1..]);
        give(&mut stream, &[], u64::from_be_bytes(number)).await?;
    }
}

async fn http<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> std::io::Result<()> {
    let mut said = Vec::with_capacity(1024);
    loop {
        said.clear();
        while !said.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut said).await? == 0 {
                return Ok(());
            }
        }
        let line = String::from_utf8_lossy(&said);
        let wanted = line.strip_prefix("GET /bytes/").and_then(|rest| rest.split(' ').next()?.parse().ok());
        match wanted {
            Some(wanted) => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {wanted}\r\n\r\n");
                give(&mut stream, head.as_bytes(), wanted).await?;
            }
            None => stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await?,
        }
    }
}

async fn give<S: AsyncWrite + Unpin>(stream: &mut S, head: &[u8], bytes: u64) -> std::io::Result<()> {
    let first = usize::try_from(bytes).unwrap_or(usize::MAX).min(PIECE);
    let mut piece = head.to_vec();
    piece.resize(head.len() + first, b'x');
    stream.write_all(&piece).await?;
    let mut left = bytes - first as u64;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE);
        stream.write_all(&piece[..now]).await?;
        left -= now as u64;
    }
    stream.flush().await
}

/// An authority of its own, and a certificate for its names.
fn certified(folder: &Path) -> Result<ServerConfig> {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, "the benchmark's authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = KeyPair::generate()?;
    let authority = parameters.self_signed(&own)?;
    std::fs::write(folder.join("ca.pem"), authority.pem())?;
    let issuer = Issuer::new(parameters, own);
    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new(NAMES.map(str::to_owned))?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut configuration = builder.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key)?;
    configuration.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(configuration)
}
