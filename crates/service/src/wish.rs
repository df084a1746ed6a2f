//! A request as text. What a tenant may not even ask for is refused here, before any policy is heard.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use model::{Asked, NetworkAsked, Request, WorkspaceMode};
use serde::{Deserialize, Serialize};

use crate::job::Setting;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Wish {
    pub command: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// From the workspace on.
    pub directory: Option<PathBuf>,
    /// A folder of the host instead of a new one.
    pub workspace: Option<PathBuf>,
    pub workspace_mode: WorkspaceMode,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub hide: Vec<PathBuf>,
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub no_network: bool,
    pub secrets: Vec<String>,
    pub limits: Asked,
    pub backend: Option<String>,
    pub image: Option<String>,
    pub artifacts: Vec<String>,
    pub agent: Option<String>,
    pub capture: Option<u64>,
    /// On a terminal of its own; without a command, a shell.
    pub terminal: bool,
    /// The policy must be one of these; with none, whichever is in force.
    pub revisions: Vec<String>,
    /// The id that it has already.
    pub run: Option<String>,
}

impl Wish {
    /// What it has in common with those that wish for the same: what stands ready for one may be had by another.
    pub fn alike(&self) -> Wish {
        Wish { revisions: Vec::new(), run: None, ..self.clone() }
    }

    /// The request that it is. What names paths of the host is an error for a tenant that has none.
    pub fn request(self, setting: &Setting) -> Result<Request, String> {
        let Wish {
            command,
            environment,
            directory,
            workspace,
            workspace_mode,
            read,
            write,
            hide,
            allow,
            deny,
            no_network,
            secrets,
            limits,
            backend,
            image,
            artifacts,
            agent,
            capture,
            terminal,
            revisions,
            run,
        } = self;
        if setting.confined {
            for (what, named) in [
                ("workspace", workspace.is_some()),
                ("read", !read.is_empty()),
                ("write", !write.is_empty()),
                ("hide", !hide.is_empty()),
                ("workspace_mode", workspace_mode == WorkspaceMode::Direct),
            ] {
                if named {
                    return Err(format!("`{what}` is about the host's own files, and only the tenant `local` has any"));
                }
            }
            let hosts = allow.iter().map(String::as_str);
            let hosts = hosts.chain(secrets.iter().filter_map(|secret| Some(secret.split_once('@')?.1)));
            if let Some(host) = hosts.into_iter().find(|host| is_near(host)) {
                return Err(format!(
                    "`{}` is an address, and may be the host's own network, which only the tenant `local` has; name a host",
                    host.escape_debug()
                ));
            }
            if directory.as_deref().is_some_and(|directory| !is_within(directory)) {
                return Err("`directory` must be a path below the workspace, without `..`".to_owned());
            }
        }
        for (name, value) in &environment {
            if !model::is_variable(name) || value.contains('\0') {
                return Err(format!("`{}` is no variable that can be set", name.escape_debug()));
            }
        }
        if command.iter().any(|word| word.contains('\0')) {
            return Err("a word of the command has a null byte, which no program can be given".to_owned());
        }
        let absolute = |path: &PathBuf| path.is_absolute() && !path.as_os_str().as_encoded_bytes().contains(&0);
        if let Some(path) = read.iter().chain(&write).chain(&hide).chain(&workspace).find(|path| !absolute(path)) {
            return Err(format!(
                "`{}` is no absolute path: the service has no folder that yours would start from",
                path.display()
            ));
        }
        let command = if terminal && command.is_empty() { vec![shell().to_owned()] } else { command };
        Ok(Request {
            command: command.into_iter().map(OsString::from).collect(),
            read,
            write,
            hide,
            workspaces: workspace.into_iter().collect(),
            workspace_mode,
            environment: environment.into_iter().map(|(name, value)| (name.into(), Some(value.into()))).collect(),
            network: NetworkAsked { allow, deny, none: no_network, secrets, ..NetworkAsked::default() },
            directory,
            terminal,
            limits,
            accept_gaps: Vec::new(),
            backend: backend.filter(|name| name != "auto"),
            image,
            runtime: None,
            artifacts,
            agent: setting.agent.clone().or(agent),
            capture,
            trace: false,
            revisions,
            run,
        })
    }
}

/// What a person gets who says nothing else. The system's programs are the same inside.
fn shell() -> &'static str {
    if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" }
}

/// Whether it is no name: the gate lets nobody on to this machine, or to what is around it, by a name that leads there. By an
/// address it does, because somebody must have meant it.
fn is_near(host: &str) -> bool {
    let host = host.trim().trim_end_matches('.').to_ascii_lowercase();
    if host.starts_with('[') || host.contains('/') || host.matches(':').count() > 1 {
        return true;
    }
    let name = host.split(':').next().unwrap_or_default().trim_end_matches('.');
    let last = name.rsplit('.').next().unwrap_or_default();
    // Also those that old parsers take for addresses: `127.1`, `0x7f000001`, `2130706433`.
    let number = last.starts_with(|letter: char| letter.is_ascii_digit());
    number || last == "localhost"
}

/// Relative, and never upwards.
pub fn is_within(path: &Path) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    path.components().all(plain) && !path.as_os_str().as_encoded_bytes().contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confined() -> Setting {
        Setting { confined: true, agent: Some("coder".to_owned()), ..Setting::default() }
    }

    #[test]
    fn a_tenant_without_host_files_can_name_none() {
        let named = [
            Wish { workspace: Some("/home".into()), ..Wish::default() },
            Wish { read: vec!["/etc".into()], ..Wish::default() },
            Wish { write: vec!["/etc".into()], ..Wish::default() },
            Wish { hide: vec!["/etc".into()], ..Wish::default() },
            Wish { workspace_mode: WorkspaceMode::Direct, ..Wish::default() },
            Wish { directory: Some("../other".into()), ..Wish::default() },
            Wish { directory: Some("/etc".into()), ..Wish::default() },
        ];
        for wish in named {
            assert!(wish.clone().request(&confined()).is_err(), "{wish:?}");
        }
        assert!(Wish { directory: Some("src/../..".into()), ..Wish::default() }.request(&confined()).is_err());
        assert!(Wish { directory: Some("src".into()), ..Wish::default() }.request(&confined()).is_ok());
    }

    #[test]
    fn a_tenant_without_a_host_names_no_address() {
        let asks = |host: &str, setting: &Setting| {
            let allow = Wish { allow: vec![host.to_owned()], ..Wish::default() };
            let secret = Wish { secrets: vec![format!("KEY@{host}")], ..Wish::default() };
            (allow.request(setting).is_ok(), secret.request(setting).is_ok())
        };
        for host in [
            "127.0.0.1", "127.0.0.1:7070", "127.1", "2130706433:80", "0x7f000001", "[::1]:7070", "::1", "fd00::2",
            "10.0.0.0/8", "0.0.0.0", "localhost", "LOCALHOST:80", "a.localhost.", "localhost.:80", "192.0.2.2",
        ] {
            assert_eq!(asks(host, &confined()), (false, false), "{host}");
            assert_eq!(asks(host, &Setting::default()), (true, true), "{host}");
        }
        for host in ["example.org", "example.org:443", "@pypi", "*.example.org", "3com.com", "a-1.b2"] {
            assert_eq!(asks(host, &confined()), (true, true), "{host}");
        }
    }

    #[test]
    fn an_agents_token_says_which_agent_it_is_and_a_wish_does_not() {
        let wish = Wish { agent: Some("somebody-else".to_owned()), ..Wish::default() };
        assert_eq!(wish.request(&confined()).expect("a request").agent.as_deref(), Some("coder"));
    }

    #[test]
    fn no_variable_is_taken_from_the_servers_own_environment() {
        let wish = Wish { environment: vec![("A".to_owned(), "b".to_owned())], ..Wish::default() };
        let request = wish.request(&Setting::default()).expect("a request");
        assert!(request.environment.iter().all(|(_, value)| value.is_some()));
        let wish = Wish { environment: vec![("A=B".to_owned(), String::new())], ..Wish::default() };
        assert!(wish.request(&Setting::default()).is_err());
    }
}
