//! Who may vouch for whom we talk to.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem::Finder;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::error::{Error, Result};

/// Authorities that are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those of this machine, or of `SSL_CERT_FILE`.
    #[default]
    Host,
    /// Those in this file, and no other.
    File(PathBuf),
}

/// Their certificates, for programs inside that are to believe the same.
pub fn roots(trust: &Trust) -> Result<Vec<CertificateDer<'static>>> {
    match trust {
        Trust::Host => Ok(rustls_native_certs::load_native_certs().certs),
        Trust::File(path) => {
            let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.clone(), source })?;
            let bad = |why: String| Error::Bad { path: path.clone(), what: "file of certificates (PEM)", why };
            CertificateDer::pem_slice_iter(&bytes).map(|read| read.map_err(|error| bad(error.to_string()))).collect()
        }
    }
}

/// Those in a file of text. What can't be read there is left out: the others hold.
///
/// Done at every start whose requests are read, where there is a Java; the library's own way took about twice as long.
pub fn roots_in(bundle: &[u8]) -> Vec<CertificateDer<'static>> {
    let mut found = Vec::new();
    let mut letters = Vec::new();
    let mut rest = bundle;
    let begins = Finder::new(b"-----BEGIN CERTIFICATE-----");
    let ends = Finder::new(b"-----END CERTIFICATE-----");
    while let Some((_, begun)) = split_at(rest, &begins) {
        let Some((text, after)) = split_at(begun, &ends) else { break };
        rest = after;
        letters.clear();
        for line in text.split(|byte| *byte == b'\n') {
            letters.extend_from_slice(line.trim_ascii());
        }
        if let Ok(certificate) = STANDARD.decode(&letters) {
            found.push(CertificateDer::from(certificate));
        }
    }
    found
}

fn split_at<'a>(text: &'a [u8], mark: &Finder<'_>) -> Option<(&'a [u8], &'a [u8])> {
    let at = mark.find(text)?;
    Some((text.get(..at)?, text.get(at + mark.needle().len()..)?))
}

/// Their certificates as this machine keeps them, in one file of text; nothing where it keeps them in another way.
pub fn bundle() -> Option<Vec<u8>> {
    const USUAL: [&str; 4] = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ];
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    // What somebody named is meant instead of the usual.
    if named.is_some() || std::env::var_os("SSL_CERT_DIR").is_some() {
        return named.and_then(|path| read(&path));
    }
    USUAL.iter().find_map(|path| read(path.as_ref()))
}

/// With room for one more: all of it would be moved for that.
fn read(path: &Path) -> Option<Vec<u8>> {
    const ONE_MORE: usize = 4 << 10;
    let mut file = File::open(path).ok()?;
    let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
    let mut bytes = Vec::with_capacity(length.saturating_add(ONE_MORE));
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

pub(crate) fn configuration(trust: &Trust) -> Result<Arc<ClientConfig>> {
    let roots = match trust {
        Trust::Host => of_the_host()?,
        Trust::File(path) => of_a_file(path)?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::Setup(error.to_string()))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

fn of_the_host() -> Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // A machine's collection has some that nobody can read any more; the others hold.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    let why = found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
    Err(Error::NoAuthorities(why))
}

fn of_a_file(path: &PathBuf) -> Result<RootCertStore> {
    let bad = |why: String| Error::Bad { path: path.clone(), what: "file of certificates (PEM)", why };
    let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.clone(), source })?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| bad(error.to_string()))?;
        roots.add(certificate).map_err(|error| bad(error.to_string()))?;
    }
    if roots.is_empty() { Err(bad("there is none in it".to_owned())) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_read_as_the_library_reads_it() {
        let one = crate::Authority::new().expect("an authority");
        let other = crate::Authority::new().expect("an authority");
        let (one, other) = (one.certificate_pem().to_owned(), other.certificate_pem().to_owned());
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        for text in [
            String::new(),
            one.clone(),
            format!("# a name\n{one}\n\nanother\n{key}{other}"),
            format!("{one}{other}").replace('\n', "\r\n"),
            bundle().map(|bundle| String::from_utf8_lossy(&bundle).into_owned()).unwrap_or_default(),
        ] {
            let known: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes()).flatten().collect();
            assert_eq!(roots_in(text.as_bytes()), known, "{text}");
        }
        let cut = &one[..one.len() - 40];
        let bad = one.replace("MII", "M!I");
        assert_eq!(roots_in(cut.as_bytes()), []);
        assert_eq!(roots_in(format!("{bad}{other}").as_bytes()).len(), 1);
    }
}
