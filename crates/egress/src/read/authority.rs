//! An authority for one sandbox: it vouches for names to the programs inside, so that the gate can read what they say.
//!
//! Its key is made when it is made, is never written anywhere, and is wiped when it goes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Host;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType, SerialNumber,
};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroize;

use crate::error::{Error, Result};
use crate::read::java;

const DAY: Duration = Duration::from_secs(86_400);
/// A sandbox may live long; what it was given of names is made anew each day.
const AUTHORITY_HOLDS: Duration = Duration::from_secs(365 * 86_400);
const NAME_HOLDS: Duration = Duration::from_secs(5 * 86_400);
/// Clocks inside may be behind.
const BEFORE: Duration = DAY;
/// Whatever somebody asks for, no more than so many are remembered.
const MOST_REMEMBERED: usize = 256;

pub struct Authority {
    issuer: Issuer<'static, Wiped>,
    certificate: CertificateDer<'static>,
    pem: String,
    /// One for all names: making one for each would only cost time.
    key: Wiped,
    signs: Arc<dyn SigningKey>,
    provider: Arc<CryptoProvider>,
    made: RefCell<HashMap<(Host, Protocol), Made>>,
}

/// When, and what.
type Made = (Instant, Arc<ServerConfig>);

/// What is spoken over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Protocol {
    /// Nobody said: the older version.
    Unsaid,
    Http1,
    Http2,
}

impl Protocol {
    pub fn name(self) -> Option<&'static [u8]> {
        match self {
            Protocol::Unsaid => None,
            Protocol::Http1 => Some(b"http/1.1"),
            Protocol::Http2 => Some(b"h2"),
        }
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    pub fn new() -> Result<Authority> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut parameters = CertificateParams::default();
        // Each has a name of its own: of two with the same, programs try the wrong one and give up.
        let serial = serial(&provider)?;
        let shown: String = serial.to_bytes().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        parameters.distinguished_name.push(DnType::CommonName, format!("belljar, for the sandbox {shown}"));
        parameters.distinguished_name.push(DnType::OrganizationName, "belljar");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        parameters.serial_number = Some(serial);
        holds(&mut parameters, AUTHORITY_HOLDS)?;
        let own = Wiped::new()?;
        let certificate = parameters.self_signed(&own).map_err(setup)?;
        let (der, pem) = (certificate.der().clone(), written(certificate.der()));
        let key = Wiped::new()?;
        let bytes = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.0.serialize_der()));
        let signs = provider.key_provider.load_private_key(bytes);
        Ok(Authority {
            issuer: Issuer::new(parameters, own),
            certificate: der,
            pem,
            key,
            signs: signs.map_err(setup)?,
            provider,
            made: RefCell::default(),
        })
    }

    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    /// For programs inside: the authorities of the host, and this one.
    pub fn bundle(&self, host_roots: &[CertificateDer<'_>]) -> Vec<u8> {
        let roots: String = host_roots.iter().map(|root| written(root)).collect();
        (roots + &self.pem).into_bytes()
    }

    /// The same for Java; its password is `changeit`, as everywhere.
    pub fn java_store(&self, host_roots: &[CertificateDer<'_>]) -> Vec<u8> {
        let ours = ("belljar".to_owned(), self.certificate.as_ref());
        let theirs = host_roots.iter().enumerate().map(|(number, root)| (format!("host-{number}"), root.as_ref()));
        java::store(std::iter::once(ours).chain(theirs))
    }

    /// How to answer whoever says hello to this host, in this protocol.
    pub(super) fn answers_as(&self, host: &Host, protocol: Protocol) -> Result<Arc<ServerConfig>> {
        let mut made = self.made.borrow_mut();
        if let Some((since, known)) = made.get(&(host.clone(), protocol))
            && since.elapsed() < DAY
        {
            return Ok(known.clone());
        }
        let leaf = Arc::new(Leaf(Arc::new(self.vouches_for(host)?)));
        let builder = ServerConfig::builder_with_provider(self.provider.clone()).with_safe_default_protocol_versions();
        let mut configuration = builder.map_err(setup)?.with_no_client_auth().with_cert_resolver(leaf);
        configuration.alpn_protocols = protocol.name().into_iter().map(<[u8]>::to_vec).collect();
        let configuration = Arc::new(configuration);
        if made.len() >= MOST_REMEMBERED {
            made.clear();
        }
        made.insert((host.clone(), protocol), (Instant::now(), configuration.clone()));
        Ok(configuration)
    }

    pub(super) fn vouches_for(&self, host: &Host) -> Result<CertifiedKey> {
        let mut parameters = CertificateParams::default();
        parameters.subject_alt_names = vec![match host {
            Host::Name(name) => SanType::DnsName(name.as_str().try_into().map_err(setup)?),
            Host::Address(address) => SanType::IpAddress(*address),
        }];
        // No longer than the field may be; who is meant is said in the other one.
        let shown: String = host.to_string().chars().take(64).collect();
        parameters.distinguished_name.push(DnType::CommonName, shown);
        parameters.use_authority_key_identifier_extension = true;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // Some refuse two with the same number; the library would make it of the key.
        parameters.serial_number = Some(serial(&self.provider)?);
        holds(&mut parameters, NAME_HOLDS)?;
        let certificate = parameters.signed_by(&self.key, &self.issuer).map_err(setup)?;
        Ok(CertifiedKey::new(vec![certificate.der().clone(), self.certificate.clone()], self.signs.clone()))
    }
}

#[derive(Debug)]
struct Leaf(Arc<CertifiedKey>);

impl ResolvesServerCert for Leaf {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// A key that is wiped.
struct Wiped(KeyPair);

impl Wiped {
    fn new() -> Result<Wiped> {
        KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map(Wiped).map_err(setup)
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl rcgen::PublicKeyData for Wiped {
    fn der_bytes(&self) -> &[u8] {
        self.0.der_bytes()
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        self.0.algorithm()
    }
}

impl rcgen::SigningKey for Wiped {
    fn sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, rcgen::Error> {
        self.0.sign(message)
    }
}

fn serial(provider: &CryptoProvider) -> Result<SerialNumber> {
    let mut bytes = [0; 16];
    provider.secure_random.fill(&mut bytes).map_err(|_| setup("there is no chance on this machine"))?;
    // Never negative, never nothing.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn holds(parameters: &mut CertificateParams, how_long: Duration) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(setup)?;
    let whole = Duration::from_secs(now.as_secs());
    let beginning = rcgen::date_time_ymd(1970, 1, 1);
    parameters.not_before = beginning + whole.saturating_sub(BEFORE);
    parameters.not_after = beginning + whole + how_long;
    Ok(())
}

pub(super) fn written(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for start in (0..text.len()).step_by(64) {
        pem.push_str(&text[start..text.len().min(start + 64)]);
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

fn setup(error: impl ToString) -> Error {
    Error::Setup(error.to_string())
}
