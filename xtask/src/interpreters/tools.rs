//! What builds them: Debian's clang for WebAssembly, with its C library.

use std::path::Path;
use std::process::Command;

use crate::{place, steps};

const PACKAGES: &[&str] = &["clang", "lld", "llvm", "make", "wasi-libc", "libclang-rt-14-dev-wasm32", "python3.11"];

pub fn install() -> Result<(), String> {
    if present() {
        return Ok(());
    }
    let packages = PACKAGES.join(" ");
    if !place::are_we_root() {
        return Err(format!("clang for WebAssembly is missing; as root: apt-get install {packages}"));
    }
    println!("installing {packages}");
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    steps::run(command.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(PACKAGES))
}

pub fn present() -> bool {
    let programs = ["clang", "wasm-ld", "llvm-ar", "llvm-ranlib", "make", "python3.11"];
    programs.iter().all(|name| place::program(name).is_some())
        && Path::new("/usr/include/wasm32-wasi").is_dir()
        && Path::new("/usr/lib/llvm-14/lib/clang/14.0.6/lib/wasi").is_dir()
}

/// Both of one release of Debian's, which is told apart by this.
pub fn version() -> String {
    place::said(Command::new("clang").arg("--version")).unwrap_or_default()
}
