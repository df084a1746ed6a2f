//! What a request asks for of the network, read: bad text is refused with the fix.

use model::{HostName, NetworkAsked, Published, Refusal};

use crate::compile::is_secret;
use crate::host::HostPattern;
use crate::immutable::Immutable;
use crate::pattern::{Care, Roots};
use crate::policy::Policy;
use crate::presets;
use crate::reader::nearest;
use crate::rule::Rule;
use crate::sheet::Sheet;

#[derive(Default)]
pub struct Wanted {
    pub none: bool,
    pub allow: Vec<HostPattern>,
    pub deny: Vec<HostPattern>,
    /// Rules of registries that are named.
    pub registries: Vec<Rule>,
    /// What of those never changes.
    pub immutable: Vec<Immutable>,
    pub secrets: Vec<WantedSecret>,
    pub pinned: Vec<(HostName, std::net::IpAddr)>,
    pub published: Vec<Published>,
}

pub struct WantedSecret {
    pub name: String,
    /// Where it may go: as asked, or else as the policy says. Never empty.
    pub hosts: Vec<HostPattern>,
}

impl Wanted {
    /// Where nothing may go out, whatever else is asked for is not looked at.
    pub fn read(asked: &NetworkAsked, policy: &Policy) -> Result<Wanted, Refusal> {
        let NetworkAsked { allow, deny, none, secrets, publish, pinned } = asked;
        let mut wanted = Wanted { none: *none, ..Wanted::default() };
        for text in deny {
            match text.strip_prefix('@') {
                Some(name) => wanted.deny.extend(hosts(&registry(name)?.rules).cloned()),
                None => wanted.deny.push(host(text, "--deny-net")?),
            }
        }
        if *none {
            return Ok(wanted);
        }
        for text in allow {
            match text.strip_prefix('@') {
                Some(name) => {
                    let registry = registry(name)?;
                    wanted.registries.extend(registry.rules);
                    wanted.immutable.extend(registry.settings.immutable);
                }
                None => wanted.allow.push(host(text, "--allow-net")?),
            }
        }
        for text in secrets {
            wanted.secret(text, policy)?;
        }
        for (name, address) in pinned {
            let bad = || {
                let message = format!("`{}` is no name of a host", name.escape_debug());
                Refusal::new("network.name", message, "write `--add-host registry.test=127.0.0.1`")
            };
            wanted.pinned.push((HostName::read(name).ok_or_else(bad)?, *address));
        }
        for (host, guest) in publish {
            let published = Published { host: *host, guest: *guest };
            if wanted.published.contains(&published) {
                continue;
            }
            if *host == 0 || *guest == 0 || wanted.published.iter().any(|known| known.host == *host) {
                let message = format!("port {host} can't be published: it is no port, or is published twice");
                return Err(Refusal::new("network.publish", message, "write `--publish 8080:80`, each port once"));
            }
            wanted.published.push(published);
        }
        Ok(wanted)
    }

    fn secret(&mut self, text: &str, policy: &Policy) -> Result<(), Refusal> {
        let (name, at) = match text.split_once('@') {
            Some((name, at)) => (name, Some(host(at, "--secret")?)),
            None => (text, None),
        };
        if !is_secret(name) {
            let message = format!("`{}` is no name for a secret", name.escape_debug());
            return Err(Refusal::new(
                "secrets.name",
                message,
                "use letters, digits, `_`, `-` and `.`: `--secret NAME@HOST`",
            ));
        }
        let hosts: Vec<HostPattern> = match at {
            Some(at) => vec![at],
            None => policy.secret_hosts(name).cloned().collect(),
        };
        if hosts.is_empty() {
            return Err(Refusal::new(
                "secrets.hosts",
                format!("nobody says where the secret `{name}` may go"),
                &format!("write `--secret {name}@HOST`, or in your policy `[secrets.{name}] hosts = [\"HOST\"]`"),
            ));
        }
        match self.secrets.iter_mut().find(|known| known.name == name) {
            Some(known) => {
                known.hosts.extend(hosts.into_iter().filter(|host| !known.hosts.contains(host)).collect::<Vec<_>>())
            }
            None => self.secrets.push(WantedSecret { name: name.to_owned(), hosts }),
        }
        Ok(())
    }

    /// All that it would reach, one for each name.
    pub fn reached(&self) -> Vec<HostPattern> {
        let mut reached = self.allow.clone();
        for pattern in hosts(&self.registries) {
            if !reached.iter().any(|known| known.covers_names(pattern)) {
                reached.push(pattern.clone());
            }
        }
        reached
    }

    pub fn denies(&self, pattern: &HostPattern) -> bool {
        self.none || self.deny.iter().any(|denied| denied.covers(pattern, Care::Forgiving))
    }
}

/// Whether a secret may be asked for at a host, by whoever kept it for these: a request narrows that, and never widens it. What is
/// no host is refused where the request is read.
pub fn is_kept_for(asked: &str, hosts: &[String]) -> bool {
    let Ok(asked) = HostPattern::read(asked) else { return true };
    hosts.iter().filter_map(|host| HostPattern::read(host).ok()).any(|host| host.covers(&asked, Care::Exact))
}

fn host(text: &str, flag: &str) -> Result<HostPattern, Refusal> {
    HostPattern::read(text).map_err(|message| {
        Refusal::new(
            "network.host",
            message,
            &format!("write `{flag} {}`", if flag == "--secret" { "NAME@HOST" } else { "HOST:PORT" }),
        )
    })
}

fn registry(name: &str) -> Result<Sheet, Refusal> {
    let nowhere = Roots { home: "/", project: None };
    let sheet = match presets::REGISTRIES.contains(&name) {
        true => presets::sheet(name, nowhere).and_then(Result::ok),
        false => None,
    };
    sheet.map(|(sheet, _)| sheet).ok_or_else(|| {
        let meant = match nearest(name, presets::REGISTRIES) {
            Some(meant) => format!("did you mean `@{meant}`?"),
            None => format!("there are: @{}", presets::REGISTRIES.join(", @")),
        };
        Refusal::new("network.registry", format!("`@{}` is no registry", name.escape_debug()), &meant)
    })
}

fn hosts(rules: &[Rule]) -> impl Iterator<Item = &HostPattern> {
    rules.iter().flat_map(|rule| rule.hosts().unwrap_or_default())
}
