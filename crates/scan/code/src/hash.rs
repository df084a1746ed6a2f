//! Tables of names: a hash that is quick for short texts, with a key that whoever wrote the program can't know.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;
use std::sync::OnceLock;

pub(crate) type Names<V> = HashMap<Rc<str>, V, Keyed>;
pub(crate) type NameSet = HashSet<Rc<str>, Keyed>;

#[derive(Clone, Copy)]
pub(crate) struct Keyed(u64);

impl Default for Keyed {
    fn default() -> Keyed {
        static KEY: OnceLock<u64> = OnceLock::new();
        Keyed(*KEY.get_or_init(|| RandomState::new().hash_one(0)))
    }
}

impl BuildHasher for Keyed {
    type Hasher = Quick;

    fn build_hasher(&self) -> Quick {
        Quick(self.0)
    }
}

pub(crate) struct Quick(u64);

impl Quick {
    fn add(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 ^= u64::from(byte);
    }

    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
