//! Where people keep what must not leak. None of it is ever visible inside, whatever is granted around it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::paths::is_within;

/// Below a home. A folder or a file each.
pub const STORES: &[&str] = &[
    // Keys and agents
    ".ssh", ".gnupg", ".pki", ".putty", ".config/age", ".config/sops", ".password-store", ".keychain", ".step",
    ".local/share/keyrings", ".local/share/kwalletd", ".kde/share/apps/kwallet", ".config/keybase", ".vault-token",
    // Clouds and clusters
    ".aws", ".azure", ".config/gcloud", ".boto", ".gsutil", ".kube", ".docker", ".config/containers", ".oci", ".aliyun",
    ".config/doctl", ".config/linode-cli", ".config/hcloud", ".config/scw", ".config/fly", ".fly", ".config/heroku",
    ".terraform.d", ".terraformrc", ".pulumi", ".config/openstack", ".bluemix", ".config/rclone", ".s3cfg", ".mc",
    ".config/configstore", ".config/netlify", ".config/vercel", ".vercel", ".config/wrangler", ".wrangler",
    ".databricks", ".databrickscfg", ".snowflake", ".snowsql", ".config/ngrok", ".ngrok2",
    // Code hosts and registries
    ".git-credentials", ".config/git/credentials", ".config/gh", ".config/glab-cli", ".config/hub", ".netrc", "_netrc",
    ".authinfo", ".authinfo.gpg", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".config/pip", ".pip",
    ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".bundle/config", ".composer/auth.json",
    ".config/composer/auth.json", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties",
    ".nuget/NuGet", ".config/NuGet", ".config/pypoetry/auth.toml", ".hex/hex.config", ".config/nix/nix.conf",
    ".huggingface", ".cache/huggingface/token", ".kaggle", ".config/openai", ".config/anthropic", ".ollama/id_ed25519",
    // Agents and editors, which hold tokens of their own
    ".claude", ".claude.json", ".config/claude", ".codex", ".gemini", ".cursor", ".config/Cursor", ".config/Code",
    ".vscode-server", ".config/github-copilot", ".aider.conf.yml", ".continue", ".config/zed", ".local/share/opencode",
    ".config/JetBrains", // Databases
    ".pgpass", ".pg_service.conf", ".my.cnf", ".mylogin.cnf", ".mongorc.js", ".config/redis",
    // Browsers and mail
    ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
    ".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".config/Slack", ".config/discord", ".config/Signal",
    ".config/1Password", ".config/Bitwarden", ".config/op", ".mutt", ".muttrc", ".msmtprc", ".config/evolution",
    ".local/share/evolution", // Wallets
    ".bitcoin", ".ethereum", ".config/solana", ".electrum", // What was typed
    ".bash_history", ".zsh_history", ".history", ".local/share/fish/fish_history", ".python_history",
    ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history", ".lesshst",
    ".viminfo", ".wget-hsts", // Loose ones
    ".env", ".envrc", ".secrets", ".credentials", ".config/systemd/user", ".Xauthority", ".ICEauthority",
    ".cache/keyring",
];

/// Anywhere on the system.
pub const SYSTEM_STORES: &[&str] = &[
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh",
    "/etc/ssl/private", "/etc/pki/tls/private", "/etc/krb5.keytab", "/etc/wireguard", "/etc/openvpn",
    "/etc/NetworkManager", "/etc/wpa_supplicant", "/etc/docker", "/etc/kubernetes", "/etc/rancher", "/etc/letsencrypt",
    "/etc/ipsec.secrets", "/etc/security/opasswd", "/run/secrets", "/var/run/secrets", "/var/lib/kubelet",
    "/var/lib/docker",
];

/// Stores that people keep elsewhere with a link to them, often enough to look.
pub const OFTEN_LINKED: &[&str] = &[
    ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".netrc", ".git-credentials", ".npmrc", ".pypirc", ".config/gcloud",
    ".config/gh",
];

/// Files that hold secrets wherever they are; hidden in places that are granted besides the workspace.
pub const LOOSE: &[&str] = &[".env", ".env.local", ".env.production", ".envrc"];

/// The store that `path` is or is inside of.
pub(crate) fn around(path: &Path, homes: &[PathBuf], linked: &[PathBuf]) -> Option<PathBuf> {
    // Asked for every place of every grant, and nearly always in vain: no path is put together before it fits.
    let in_home = |home: &PathBuf| {
        let rest = inside(path, home)?;
        STORES.iter().find(|store| is_within(rest, store)).map(|store| home.join(store))
    };
    let of_the_system = || SYSTEM_STORES.iter().find(|store| is_within(path, store)).map(PathBuf::from);
    let of_links = || linked.iter().find(|store| is_within(path, store)).cloned();
    homes.iter().find_map(in_home).or_else(of_the_system).or_else(of_links)
}

/// A store whose place is below `path`, whether it exists or not: it could be made at any time.
pub fn below(path: &Path, homes: &[PathBuf], linked: &[PathBuf]) -> Option<PathBuf> {
    let of_the_system = || SYSTEM_STORES.iter().find(|store| is_within(store, path)).map(PathBuf::from);
    let in_home = |home: &PathBuf| {
        if is_within(home, path) {
            return STORES.first().map(|store| home.join(store));
        }
        let rest = inside(path, home)?;
        STORES.iter().find(|store| is_within(store, rest)).map(|store| home.join(store))
    };
    let of_links = || linked.iter().find(|store| is_within(store, path)).cloned();
    of_the_system().or_else(|| homes.iter().find_map(in_home)).or_else(of_links)
}

/// What is left of a path below a home, without a slash in front.
fn inside<'a>(path: &'a Path, home: &Path) -> Option<&'a Path> {
    let bytes = path.as_os_str().as_bytes();
    let home = home.as_os_str().as_bytes();
    let rest = bytes.strip_prefix(home.strip_suffix(b"/").unwrap_or(home))?.strip_prefix(b"/")?;
    Some(Path::new(OsStr::from_bytes(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_without_making_paths_is_what_all_of_them_would_be() {
        let homes = ["/home/ann", "/root"].map(PathBuf::from);
        let linked = ["/srv/keys"].map(PathBuf::from);
        let all = || {
            let in_homes = homes.iter().flat_map(|home| STORES.iter().map(move |store| home.join(store)));
            in_homes.chain(SYSTEM_STORES.iter().map(PathBuf::from)).chain(linked.iter().cloned())
        };
        let mut paths: Vec<PathBuf> =
            ["/", "/home", "/home/ann", "/home/anna", "/home/ann/work", "/usr", "/etc", "/srv", "/srv/keys/a"]
                .map(PathBuf::from)
                .into();
        paths.extend(["/home/ann/.ss", "/home/ann/.sshd", "/home/ann/.config", "/root/.cargo"].map(PathBuf::from));
        paths.extend(all());
        paths.extend(all().map(|store| store.join("inside")));
        for path in &paths {
            assert_eq!(around(path, &homes, &linked), all().find(|store| is_within(path, store)), "around {path:?}");
            let found = below(path, &homes, &linked);
            assert_eq!(found.is_some(), all().any(|store| is_within(store, path)), "below {path:?}: {found:?}");
            assert!(found.is_none_or(|store| all().any(|known| known == store) && is_within(store, path)));
        }
    }
}
