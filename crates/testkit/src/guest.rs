//! A virtual machine for what this host's kernel can't show: where the parts are that it is made of.

use std::path::PathBuf;

use crate::contestant::peers_folder;

/// The program that runs it.
pub const MACHINE: &str = "qemu-system-x86_64";

/// A kernel, its module for disks in memory, and programs; each with its place in Debian's package.
pub const PARTS: [(&str, &str); 3] =
    [("vmlinuz", "*/boot/vmlinuz-*"), ("brd.ko", "*/drivers/block/brd.ko*"), ("busybox", "*/bin/busybox")];

/// Where `cargo xtask needs` puts a part.
pub fn part(name: &str) -> PathBuf {
    peers_folder().join("guest").join(name)
}

/// A part that is not there.
pub fn missing() -> Option<&'static str> {
    PARTS.iter().map(|(name, _)| *name).find(|name| !part(name).exists())
}
