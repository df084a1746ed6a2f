//! The key that signs checkpoints and receipts: Ed25519, made on first use.

use std::io::Read;
use std::path::Path;

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use crate::error::{Error, Result, cannot};
use crate::line::hex;
use crate::place::{Place, options, put};

pub struct Key(SigningKey);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// Without what is in it.
impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Key {}", self.public().id())
    }
}

impl Key {
    /// Of this record. Whoever calls holds its lock.
    pub(crate) fn of(place: &Place) -> Result<Key> {
        match Key::read(&place.key()) {
            Err(Error::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Key::make(place),
            read => read,
        }
    }

    /// Everybody knows it.
    pub(crate) fn nobodys() -> Key {
        Key(SigningKey::from_bytes(&[0; 32]))
    }

    pub(crate) fn read(path: &Path) -> Result<Key> {
        let text = text(path)?;
        let key = SigningKey::from_pkcs8_pem(&text).map_err(|error| bad(path, error.to_string()))?;
        Ok(Key(key))
    }

    fn make(place: &Place) -> Result<Key> {
        let mut seed = [0u8; 32];
        random(&mut seed)?;
        let key = Key(SigningKey::from_bytes(&seed));
        let private = key.0.to_pkcs8_pem(LineEnding::LF).map_err(|error| bad(&place.key(), error.to_string()))?;
        put(&place.public_key(), key.public().pem().as_bytes(), 0o644)?;
        put(&place.key(), private.as_bytes(), 0o600)?;
        Ok(key)
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl PublicKey {
    /// As `belljar ledger key` gives it out.
    pub fn read(path: &Path) -> Result<PublicKey> {
        PublicKey::from_pem(&text(path)?).map_err(|why| bad(path, why))
    }

    pub fn from_pem(pem: &str) -> std::result::Result<PublicKey, String> {
        VerifyingKey::from_public_key_pem(pem).map(PublicKey).map_err(|error| error.to_string())
    }

    pub fn pem(&self) -> String {
        // Thirty-two bytes always have this form.
        self.0.to_public_key_pem(LineEnding::LF).unwrap_or_default()
    }

    /// What it is called: sixteen digits.
    pub fn id(&self) -> String {
        hex(blake3::hash(self.0.as_bytes()).as_bytes())[..16].to_owned()
    }

    pub fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        // Strict: a signature has one form only.
        Signature::from_slice(signature).is_ok_and(|signature| self.0.verify_strict(message, &signature).is_ok())
    }
}

fn text(path: &Path) -> Result<String> {
    const MOST: u64 = 16 << 10;
    // Room for all of a key: a string that grows leaves copies of it behind.
    let mut text = String::with_capacity(1024);
    let file = options().open(path).map_err(cannot("open", path))?;
    file.take(MOST).read_to_string(&mut text).map_err(cannot("read", path))?;
    Ok(text)
}

fn bad(path: &Path, why: String) -> Error {
    Error::Bad { path: path.to_owned(), what: "key of a record", why }
}

pub fn random(bytes: &mut [u8]) -> Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let more = rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty());
        filled += more.map_err(|error| Error::Random(error.into()))?;
    }
    Ok(())
}
