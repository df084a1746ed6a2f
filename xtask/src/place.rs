//! Where things are: the tree, the peers, programs; and who we are.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root of the repository.
pub fn tree() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().map(Path::to_owned).unwrap_or_default()
}

/// Where cargo puts what it builds.
pub fn targets() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| tree().join("target"), PathBuf::from)
}

pub fn are_we_root() -> bool {
    // Whoever reads this folder owns it: our effective user.
    std::fs::metadata("/proc/self").is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0)
}

/// Where a program is in `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| runs(file))
}

/// Whether a file is there and may be executed by somebody.
pub fn runs(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Whether a user without rights of their own gets at a file: each folder above must let them pass.
pub fn open_to_all(file: &Path) -> bool {
    file.ancestors()
        .skip(1)
        .all(|folder| std::fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0))
}

/// What a command prints, if it succeeds.
pub fn said(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
