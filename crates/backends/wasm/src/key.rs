//! What compiled code is called: after everything that it depends on.

use std::fs::File;
use std::io::Read;

use crate::failure::Failure;
use crate::module::Module;
use crate::worker::Worker;

/// Changed when what the worker makes of a module changes, without another build of it.
const KIND: &str = "belljar compiled module 1";

/// A digest of the module, the build of the worker (and with it the engine and its settings), and the processor.
pub fn name(module: &Module, worker: &Worker) -> Result<String, Failure> {
    let mut hasher = blake3::Hasher::new_derive_key(KIND);
    for part in [blake3::hash(&module.bytes).as_bytes().as_slice(), worker.identity.as_bytes(), &processor()] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// What the first processor says it can do: homes are shared between machines. Nothing, if nobody says: the worker looks
/// itself whether code fits the processor.
fn processor() -> Vec<u8> {
    let mut said = Vec::new();
    let first = File::open("/proc/cpuinfo").and_then(|file| file.take(4096).read_to_end(&mut said));
    if first.is_err() {
        return Vec::new();
    }
    let lines = said.split(|byte| *byte == b'\n');
    let mut telling =
        lines.filter(|line| ["flags", "Features", "model name"].iter().any(|name| line.starts_with(name.as_bytes())));
    telling.by_ref().take(2).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use model::{Access, Origin, Place};

    use super::*;

    fn named(bytes: &[u8], identity: &str) -> String {
        let place =
            Place { path: "/w".into(), access: Access::Read, folder: false, origin: Origin::Asked, owner: (0, 0) };
        let module = Module { path: "/m".into(), bytes: bytes.to_vec() };
        name(&module, &Worker { place, identity: identity.to_owned() }).expect("it has a name")
    }

    #[test]
    fn another_module_or_another_worker_has_another_name() {
        assert_eq!(named(b"a", "1"), named(b"a", "1"));
        assert_ne!(named(b"a", "1"), named(b"b", "1"));
        assert_ne!(named(b"a", "1"), named(b"a", "2"));
    }
}
