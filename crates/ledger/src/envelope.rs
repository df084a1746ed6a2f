//! A statement under a signature, as in-toto and cosign know it: a DSSE envelope.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::key::{Key, PublicKey};

/// What is in it.
pub const STATEMENT: &str = "application/vnd.in-toto+json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    pub payload_type: String,
    /// Base64.
    pub payload: String,
    pub signatures: Vec<Signed>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    pub keyid: String,
    /// Base64.
    pub sig: String,
}

impl Envelope {
    pub fn sign(key: &Key, payload: &[u8]) -> Envelope {
        let sig = BASE64.encode(key.sign(&signed_bytes(STATEMENT, payload)));
        let signatures = vec![Signed { keyid: key.public().id(), sig }];
        Envelope { payload_type: STATEMENT.to_owned(), payload: BASE64.encode(payload), signatures }
    }

    /// What is in it, if this key signed it. Before that, nothing of it is looked at.
    pub fn open(&self, key: &PublicKey) -> Result<Vec<u8>, String> {
        if self.payload_type != STATEMENT {
            return Err(format!("it holds `{}`, not `{STATEMENT}`", self.payload_type.escape_debug()));
        }
        let payload = BASE64.decode(&self.payload).map_err(|error| format!("its payload is no base64: {error}"))?;
        let bytes = signed_bytes(&self.payload_type, &payload);
        let is_ours =
            |signed: &Signed| BASE64.decode(&signed.sig).is_ok_and(|signature| key.signed(&bytes, &signature));
        match self.signatures.iter().any(is_ours) {
            true => Ok(payload),
            false => Err(format!("key {} did not sign it", key.id())),
        }
    }
}

/// Signs nothing, with nobody's key: what that needs of the processor and of memory is there then, when somebody waits for it.
pub fn rehearse() {
    drop(Envelope::sign(&Key::nobodys(), b"{}"));
}

/// With the lengths in it, so that no two pairs of type and payload are the same bytes.
fn signed_bytes(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}
