//! A signature over the chain up to an entry: whoever has no key can't make the chain anew.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::key::{Key, PublicKey};
use crate::line::{Hash, hex};

/// Entries that may follow each other without one. More of them are a fault: no writer of ours leaves so many.
pub const MOST_UNSIGNED: u64 = 1024;

/// As it stands in an entry, and as anchors keep it: a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    pub installation: String,
    /// The number of the last entry that it is about.
    pub entries: u64,
    /// That entry's hash.
    pub head: String,
    pub time: String,
    /// Which key signed.
    pub key: String,
    pub signature: String,
}

impl Checkpoint {
    pub fn sign(key: &Key, installation: &str, entries: u64, head: &Hash, time: String) -> Checkpoint {
        let mut checkpoint = Checkpoint {
            installation: installation.to_owned(),
            entries,
            head: hex(head),
            time,
            key: key.public().id(),
            signature: String::new(),
        };
        checkpoint.signature = BASE64.encode(key.sign(checkpoint.signed_text().as_bytes()));
        checkpoint
    }

    pub fn holds(&self, key: &PublicKey) -> bool {
        let signature = BASE64.decode(&self.signature);
        signature.is_ok_and(|signature| key.signed(self.signed_text().as_bytes(), &signature))
    }

    pub fn json(&self) -> String {
        // Six texts and a number always have this form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Every part on a line of its own: none of ours has an end of line, and with one in it the signature is another.
    fn signed_text(&self) -> String {
        let Checkpoint { installation, entries, head, time, key, signature: _ } = self;
        format!("belljar checkpoint 1\n{installation}\n{entries}\n{head}\n{time}\n{key}\n")
    }
}
