//! Paths at which secrets lie.

use std::sync::OnceLock;

use crate::words::Words;

/// Parts of paths. What is common in harmless code (`.env`, `.npmrc`) is only taken at the end of a path.
const PARTS: &[&str] = &[
    ".ssh/id_", ".ssh/identity", "id_rsa", "id_ed25519", "id_ecdsa", ".aws/credentials", ".aws/config", ".netrc",
    ".pypirc", ".git-credentials", ".docker/config.json", ".kube/config", ".config/gcloud",
    "application_default_credentials", ".azure/", ".gnupg", "/etc/shadow", "/etc/gshadow", "/etc/sudoers",
    "/Login Data", "\\Login Data", "logins.json", "key4.db", "cookies.sqlite", "wallet.dat", ".ethereum/keystore",
    "exodus.wallet", ".config/solana", "Local Storage/leveldb", "/proc/self/environ", "/proc/1/environ",
    ".config/gh/hosts.yml", ".terraform.d/credentials", ".vault-token", ".pgpass", ".my.cnf", "/secrets/kubernetes.io",
    ".claude/.credentials", ".codex/auth.json", ".config/op/", "Keychains/", ".password-store", ".electrum/wallets",
    "/etc/ssl/private", ".bash_history", ".zsh_history", ".cargo/credentials", ".config/rclone/rclone.conf",
    ".gem/credentials", ".composer/auth.json", ".m2/settings.xml", ".boto", ".s3cfg", "Cookies/Cookies",
    "/Default/Cookies", ".mozilla/firefox", "google-chrome/Default",
];
const ENDS: &[&str] =
    &[".ssh", ".ssh/", ".aws", ".aws/", ".npmrc", ".env", ".gnupg", ".kube", "/environ", ".ssh/*", "Login Data"];

/// Is it, or does it hold, the path of something secret?
pub(crate) fn path(text: &[u8]) -> bool {
    if text.len() < 4 || text.len() > 4096 || text.ends_with(b".pub") {
        return false;
    }
    static FOUND: OnceLock<Words> = OnceLock::new();
    let parts = FOUND.get_or_init(|| Words::of(PARTS.iter().map(|part| part.as_bytes().to_vec()), false));
    ENDS.iter().any(|end| text.ends_with(end.as_bytes())) || parts.within(text).next().is_some()
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_of_secrets_are_known_and_ordinary_ones_are_not() {
        for path in ["~/.ssh/id_rsa", "/etc/shadow", "/home/me/.aws/credentials", ".env", "…/.ssh/id_ed25519"] {
            assert!(super::path(path.as_bytes()), "{path}");
        }
        for path in ["~/.ssh/id_rsa.pub", "src/main.rs", "/etc/hosts", "environment", "config/settings.env.py"] {
            assert!(!super::path(path.as_bytes()), "{path}");
        }
    }
}
