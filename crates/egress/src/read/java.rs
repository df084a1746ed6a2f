//! A store of certificates as Java keeps them (JKS): a list, and a digest over it with the password that everybody knows.

use sha1::Digest;

const PASSWORD: &str = "changeit";
/// Java's own salt of the digest.
const SALT: &[u8] = b"Mighty Aphrodite";

/// Of names and certificates (DER).
pub fn store<'a>(certificates: impl Iterator<Item = (String, &'a [u8])>) -> Vec<u8> {
    let certificates: Vec<_> = certificates.collect();
    let room: usize = certificates.iter().map(|(name, certificate)| name.len() + certificate.len() + 32).sum();
    let mut store = Vec::with_capacity(room + 64);
    number(&mut store, 0xfeed_feed);
    number(&mut store, 2);
    number(&mut store, certificates.len());
    for (name, certificate) in certificates {
        // One that is trusted; the other kind are keys.
        number(&mut store, 1 + 1);
        text(&mut store, &name);
        // Since when: nobody needs to know.
        store.extend([0; 8]);
        text(&mut store, "X.509");
        number(&mut store, certificate.len());
        store.extend(certificate);
    }
    let mut digest = sha1::Sha1::new();
    for letter in PASSWORD.encode_utf16() {
        digest.update(letter.to_be_bytes());
    }
    digest.update(SALT);
    digest.update(&store);
    store.extend(digest.finalize());
    store
}

fn number(store: &mut Vec<u8>, number: usize) {
    store.extend(u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
}

/// Names here are short and plain, so Java's own way to write letters is everybody's.
fn text(store: &mut Vec<u8>, text: &str) {
    store.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    store.extend(text.as_bytes());
}
