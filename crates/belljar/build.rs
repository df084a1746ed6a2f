//! Lays the code that a start runs side by side in the released binary: see `start_up.ld` and docs/decisions/0005.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=start_up.ld");
    let is = |name: &str, wanted: &str| var(name).is_ok_and(|value| value == wanted);
    // Only where a release is built: everybody's linker knows such a script, but nobody else needs it.
    if is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "musl")
        && let Ok(folder) = var("CARGO_MANIFEST_DIR")
    {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{folder}/start_up.ld");
    }
}
