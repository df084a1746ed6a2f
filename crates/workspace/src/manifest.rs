//! What a run left, as one digest: each path, how it is there, and what it holds.
//!
//! Contents count up to a bound, as a build may leave gigabytes; what is beyond it counts by its size and time. What is
//! taken from a sandbox is digested whole when it is taken.

use model::Manifest;

use crate::base::Kind;
use crate::changes::{Difference, Version};

/// Of all files together, and of one.
const MOST: u64 = 32 << 20;
const LARGEST: u64 = 4 << 20;

pub struct Making {
    hasher: blake3::Hasher,
    left: u64,
    by_size: u64,
}

impl Making {
    pub fn new() -> Making {
        Making { hasher: blake3::Hasher::new(), left: MOST, by_size: 0 }
    }

    /// The next workspace. Called in their order, with differences in theirs.
    pub fn add(&mut self, place: &[u8], differences: &[Difference<'_>]) {
        self.word(place);
        for difference in differences {
            self.word(difference.path);
            match difference.is {
                None => self.word(b"gone"),
                Some(version) => self.version(difference.path, version),
            }
        }
        // So that the last of one workspace is not the first of the next.
        self.word(b"");
    }

    pub fn finish(self) -> Manifest {
        Manifest { blake3: self.hasher.finalize().to_hex().to_string(), by_size: self.by_size }
    }

    fn version(&mut self, path: &[u8], version: Version<'_>) {
        let kind: &[u8] = match version.kind() {
            Kind::File => b"file",
            Kind::Folder => b"folder",
            Kind::Link => b"link",
            Kind::Special => b"special",
        };
        self.word(kind);
        self.word(&version.mode().to_le_bytes());
        if matches!(version.kind(), Kind::Folder | Kind::Special) {
            return;
        }
        let size = version.size();
        let hash = match size <= LARGEST.min(self.left) {
            true => crate::changes::hash_of(path, version).ok().flatten(),
            false => None,
        };
        match hash {
            Some(hash) => {
                self.left -= size;
                self.word(&hash.0);
            }
            None => {
                self.by_size += 1;
                self.word(&size.to_le_bytes());
                if let Version::In(_, seen) = version {
                    self.word(&seen.modified.to_le_bytes());
                }
            }
        }
    }

    /// With its length first, so that nothing can be moved from one word to the next.
    fn word(&mut self, bytes: &[u8]) {
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }
}
