//! The user's secrets: recorded before they change, and only changed by people.

use model::{
    EntryQuery, NewSecret, Records, Request, SecretGrant, SecretShown, SecretSource, SecretText, Secrets, Trouble,
    agents,
};
use policy::Policy;
use serde_json::json;
use vault::Vault;

use crate::gate::Source;
use crate::user::User;
use crate::{Engine, record};

/// Uses that are looked at to say when each secret was used last.
const MOST_USES: usize = 2000;

/// What a gate adds.
#[derive(Default)]
pub struct Provided {
    pub known: Vec<(String, SecretText)>,
    /// Fetched when they are needed.
    pub later: Vec<Source>,
}

impl Secrets for Engine {
    fn awaits_value(&self) -> Result<(), Trouble> {
        a_person_asks()?;
        no_core_files()
    }

    fn set(&self, new: NewSecret) -> Result<SecretShown, Trouble> {
        a_person_asks()?;
        no_core_files()?;
        let vault = self.vault()?;
        let told = vault.foresee(&new)?;
        let data = json!({
            "name": told.name, "source": told.source, "hosts": told.hosts, "variable": told.variable, "ttl": told.ttl,
        });
        self.record_deed("secret.set", data)?;
        Ok(vault.set(&new)?)
    }

    fn list(&self) -> Result<Vec<SecretShown>, Trouble> {
        let mut list = self.vault()?.list()?;
        if list.is_empty() {
            return Ok(list);
        }
        // The newest first, or last: the greatest time counts. Without a record nothing is known to have been used.
        let query = EntryQuery { kinds: vec!["secret.used".to_owned()], ..EntryQuery::default() };
        let used = Records::newest(self, &query, MOST_USES).unwrap_or_default();
        for shown in &mut list {
            let of_this = |entry: &&model::Entry| !entry.denied && entry.data["secret"] == shown.name.as_str();
            shown.last_used = used.iter().filter(of_this).map(|entry| entry.at.clone()).max();
        }
        Ok(list)
    }

    fn remove(&self, name: &str) -> Result<SecretShown, Trouble> {
        a_person_asks()?;
        let vault = self.vault()?;
        let told = vault.look(name)?;
        self.record_deed("secret.removed", json!({"name": told.name, "source": told.source}))?;
        Ok(vault.remove(name)?)
    }
}

impl Engine {
    pub(crate) fn vault(&self) -> Result<&Vault, Trouble> {
        // Beside the record: in the home that the user record names, where no variable leads anybody past it.
        let place = || Some(record::folder(&User::of_the_process())?.parent()?.join("secrets"));
        self.vault.get_or_init(|| place().map(Vault::at)).as_ref().ok_or_else(|| Trouble {
            message: "there is no place for secrets".to_owned(),
            fix: "set HOME or XDG_STATE_HOME to a folder of yours".to_owned(),
        })
    }

    /// The same request, with the hosts that the vault has for secrets that are asked for without one; and what it says of them.
    pub(crate) fn with_stored(&self, request: &Request) -> Result<(Request, Vec<SecretShown>), Trouble> {
        let mut request = request.clone();
        let mut stored = Vec::new();
        let asked = std::mem::take(&mut request.network.secrets);
        let known = if asked.is_empty() { Vec::new() } else { self.vault()?.list()? };
        for text in asked {
            let name = text.split_once('@').map_or(text.as_str(), |(name, _)| name);
            let shown = known.iter().find(|known| known.name == name && known.trouble.is_none());
            let elsewhere = |shown: &&SecretShown| {
                let at = text.split_once('@').map(|(_, at)| at);
                !shown.hosts.is_empty() && at.is_some_and(|at| !policy::is_kept_for(at, &shown.hosts))
            };
            // Whoever may say where a secret goes could send it to themselves; and whoever asks may be an agent.
            if let Some(shown) = shown.filter(elsewhere) {
                return Err(Trouble {
                    message: format!("the secret `{name}` is kept for {}, and nobody else", shown.hosts.join(", ")),
                    fix: format!(
                        "ask for `--secret {name}`; or keep it for more: `belljar secret set {name} --host HOST`"
                    ),
                });
            }
            match shown {
                Some(shown) if name == text && !shown.hosts.is_empty() => {
                    request.network.secrets.extend(shown.hosts.iter().map(|host| format!("{name}@{host}")));
                }
                _ => request.network.secrets.push(text.clone()),
            }
            stored.extend(
                shown.filter(|shown| !stored.iter().any(|known: &SecretShown| known.name == shown.name)).cloned(),
            );
        }
        Ok((request, stored))
    }

    /// The values of what a grant adds outside: for its gate, and to be taken out of what is said. Once they are in this
    /// process, it leaves no core file. What a command says is fetched when a request needs it.
    pub(crate) fn fetch_secrets(
        &self,
        granted: &[SecretGrant],
        policy: &Policy,
        stored: &[SecretShown],
    ) -> Result<Provided, Trouble> {
        let mut provided = Provided::default();
        if granted.is_empty() {
            return Ok(provided);
        }
        no_core_files()?;
        let vault = self.vault()?;
        for SecretGrant { name, .. } in granted {
            let value = match policy.secret_source(name) {
                Some(source) => {
                    let bad =
                        |message| Trouble { message, fix: format!("mend `[secrets.{name}] source` in your policy") };
                    let source = SecretSource::read(source).map_err(bad)?;
                    if matches!(source, SecretSource::Command(_)) {
                        let ttl = policy.secret_ttl(name);
                        provided.later.push(Source { name: name.clone(), source, ttl });
                        continue;
                    }
                    vault.fetch_from(name, &source, None)?.0
                }
                None => {
                    let (source, ttl, about) = vault.source(name)?;
                    // What was said of it before was not under its seal.
                    let as_told = |shown: &&SecretShown| shown.name == *name && shown.hosts != about.hosts;
                    if stored.iter().any(|shown| as_told(&shown)) {
                        return Err(Trouble {
                            message: format!("the file of the secret `{name}` was changed meanwhile"),
                            fix: format!("set it again: `belljar secret set {name}`"),
                        });
                    }
                    if matches!(source, SecretSource::Command(_)) {
                        provided.later.push(Source { name: name.clone(), source, ttl });
                        continue;
                    }
                    vault.fetch(name)?.value
                }
            };
            provided.known.push((name.clone(), value));
        }
        Ok(provided)
    }
}

/// Whoever may say where a secret goes could send it to themselves.
fn a_person_asks() -> Result<(), Trouble> {
    let environment: Vec<_> = std::env::vars_os().collect();
    let Some(who) = agents::no_person(&environment) else { return Ok(()) };
    Err(Trouble { message: format!("{who} may not change secrets"), fix: "do it in a terminal of your own".to_owned() })
}

fn no_core_files() -> Result<(), Trouble> {
    sys::process::no_core_files().map_err(|error| Trouble {
        message: format!("cannot turn off core files, which would show values: {error}"),
        fix: "run it with `ulimit -c 0`".to_owned(),
    })
}
