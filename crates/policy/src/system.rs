//! The closed list of what a command may see of the system, before anything is asked for.

/// Folders of programs and libraries. Links among them (`/bin` to `usr/bin`) are made again as links.
pub const ROOTS: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/snap",
    "/run/current-system",
];

/// What tool-chains look up in /etc. Everything else there is about this machine and its people; each entry costs
/// every start some 20 µs, so what programs do well without is not here either.
pub const ETC: &[&str] = &[
    "/etc/alternatives", "/etc/crypto-policies", "/etc/fonts", "/etc/gitconfig", "/etc/java", "/etc/java-8-openjdk",
    "/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/java-25-openjdk", "/etc/jvm",
    "/etc/ld.so.cache", "/etc/localtime", "/etc/maven", "/etc/mime.types", "/etc/mono", "/etc/os-release", "/etc/php",
    "/etc/pki/ca-trust", "/etc/pki/java", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf",
    "/etc/protocols", "/etc/services", "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/static",
];

/// What run-times read of /sys to count processors and memory nodes.
pub const SYS: &[&str] = &["/sys/devices/system"];

/// Folders that a sandbox has of its own; the host's are never shown, whatever is asked.
pub const PRIVATE: &[&str] = &["/proc", "/dev", "/sys"];

/// Folders that nobody may make writable, nor anything in them.
pub const NEVER_WRITABLE: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys", "/usr",
    "/nix", "/gnu", "/snap", "/var/lib", "/var/run", "/var/log", "/var/cache", "/var/spool",
];

/// What the payload inherits of the caller's environment, if it is set.
pub const ENVIRONMENT: &[&str] = &[
    "CI", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "EDITOR", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES",
    "NO_COLOR", "PAGER", "SHELL", "SOURCE_DATE_EPOCH", "TERM", "TZ", "VISUAL",
];

/// Variables that point at a tool-chain: passed on, and what they point at is shown.
pub const TOOLCHAIN_VARIABLES: &[&str] = &[
    "CARGO_HOME", "CONDA_PREFIX", "GOPATH", "GOROOT", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT", "PYENV_VERSION",
    "RBENV_ROOT", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "SDKMAN_DIR", "VIRTUAL_ENV", "VOLTA_HOME",
];
