//! The key that values are sealed with: XChaCha20-Poly1305, made on first use, in a private file of its own.
//!
//! Nonces are random: with 24 bytes no two meet, however many processes write.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::folder::{Folder, Locked};

const FILE: &str = "key";
const HEAD: &str = "belljar key 1\n";
const NONCE: usize = 24;

/// Its parts are wiped when it is dropped.
pub struct Key(XChaCha20Poly1305);

impl Key {
    pub fn read(folder: &Folder) -> Result<Key> {
        let bytes = folder.read(FILE)?.ok_or_else(|| bad(folder, "it is not there"))?;
        Key::from_file(&bytes).map_err(|why| bad(folder, why))
    }

    /// The key, made if there is none. Where something was sealed with one that is gone, a new one would only hide that.
    pub fn read_or_make(folder: &Folder, locked: &Locked, in_use: bool) -> Result<Key> {
        if in_use || folder.read(FILE)?.is_some() {
            return Key::read(folder);
        }
        let mut bytes = Zeroizing::new([0u8; 32]);
        random(&mut bytes[..])?;
        let mut text = Zeroizing::new(String::with_capacity(128));
        text.push_str(HEAD);
        STANDARD.encode_string(&bytes[..], &mut text);
        text.push('\n');
        folder.put(locked, FILE, text.as_bytes())?;
        // As it will be read from now on.
        Key::read(folder)
    }

    fn from_file(bytes: &[u8]) -> std::result::Result<Key, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
        let line = text.strip_prefix(HEAD).ok_or("it does not begin like a key of belljar")?;
        let line = line.strip_suffix('\n').ok_or("its end is missing")?;
        let mut key = Zeroizing::new([0u8; 32]);
        let length = STANDARD.decode_slice(line, &mut key[..]).map_err(|_| "its text is damaged")?;
        if length != key.len() {
            return Err("its end is missing");
        }
        XChaCha20Poly1305::new_from_slice(&key[..]).map(Key).map_err(|_| "it has the wrong length")
    }

    /// Seals `value`, bound to what is said of it.
    pub fn seal(&self, value: &[u8], about: &[u8]) -> Result<Vec<u8>> {
        let mut sealed = vec![0; NONCE];
        random(&mut sealed)?;
        let payload = Payload { msg: value, aad: about };
        let cipher = self.0.encrypt(XNonce::from_slice(&sealed), payload);
        // Only more bytes than a value can have would not be taken.
        sealed.extend(cipher.map_err(|_| Error::Random(std::io::ErrorKind::InvalidInput.into()))?);
        Ok(sealed)
    }

    /// Nothing, if it was not sealed with this key and for exactly this.
    pub fn open(&self, sealed: &[u8], about: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, cipher) = sealed.split_at_checked(NONCE)?;
        self.0.decrypt(XNonce::from_slice(nonce), Payload { msg: cipher, aad: about }).ok().map(Zeroizing::new)
    }
}

fn bad(folder: &Folder, why: &'static str) -> Error {
    Error::Key { path: folder.path(FILE), why }
}

fn random(bytes: &mut [u8]) -> Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let more = rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty());
        filled += more.map_err(|error| Error::Random(error.into()))?;
    }
    Ok(())
}
