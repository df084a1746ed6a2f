//! Where an engine may listen: what the usual variables say, Docker's context, and the usual places.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::trouble::{Result, Unusable};

/// Sockets to try, the likeliest first. One that somebody named is the only one.
pub fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> Result<Vec<PathBuf>> {
    for name in ["DOCKER_HOST", "CONTAINER_HOST"] {
        let Some(value) = variable(name).filter(|value| !value.is_empty()) else { continue };
        return here(name, value.to_string_lossy().into_owned());
    }
    if let Some(named) = context(&variable)? {
        return Ok(named);
    }
    // Engines of one's own first: they have no rights that one does not have.
    let runtime = variable("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let own =
        runtime.into_iter().flat_map(|folder| ["docker.sock", "podman/podman.sock"].map(|name| folder.join(name)));
    let of_all = ["/var/run/docker.sock", "/run/podman/podman.sock"].map(PathBuf::from);
    Ok(own.chain(of_all).collect())
}

/// Its files would otherwise be another machine's, and the connection one that no gate decides on.
fn here(named_by: &'static str, address: String) -> Result<Vec<PathBuf>> {
    match address.strip_prefix("unix://") {
        Some(path) if path.starts_with('/') => Ok(vec![PathBuf::from(path)]),
        _ => Err(Unusable::Remote { variable: named_by, value: address }),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    #[serde(rename = "currentContext")]
    current: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Context {
    name: String,
    endpoints: Endpoints,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Endpoints {
    docker: Endpoint,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Endpoint {
    host: String,
}

/// What Docker's own client would use, if somebody chose a context: a variable, or `docker context use`.
fn context(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Vec<PathBuf>>> {
    const VARIABLE: &str = "DOCKER_CONTEXT";
    let text = |name: &str| variable(name).filter(|value| !value.is_empty());
    let folder = text("DOCKER_CONFIG").map(PathBuf::from);
    let Some(folder) = folder.or_else(|| Some(PathBuf::from(text("HOME")?).join(".docker"))) else { return Ok(None) };
    let chosen = text(VARIABLE).map(|name| name.to_string_lossy().into_owned());
    let name = chosen.unwrap_or_else(|| read::<Settings>(&folder.join("config.json")).unwrap_or_default().current);
    if name.is_empty() || name == "default" {
        return Ok(None);
    }
    // Each is in a folder that is named by a digest; there are few.
    let known = std::fs::read_dir(folder.join("contexts/meta")).into_iter().flatten().flatten();
    let mut known = known.filter_map(|entry| read::<Context>(&entry.path().join("meta.json")));
    match known.find(|context| context.name == name) {
        Some(context) => here("the Docker context", context.endpoints.docker.host).map(Some),
        None => Err(Unusable::NoContext { name, folder }),
    }
}

fn read<T: for<'a> Deserialize<'a>>(file: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)]) -> Result<Vec<PathBuf>> {
        candidates(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value)))
    }

    #[test]
    fn what_somebody_names_is_the_only_one() -> Result<()> {
        assert_eq!(with(&[("DOCKER_HOST", "unix:///x/y.sock")])?, [PathBuf::from("/x/y.sock")]);
        assert_eq!(with(&[("CONTAINER_HOST", "unix:///p.sock")])?, [PathBuf::from("/p.sock")]);
        assert!(with(&[])?.contains(&PathBuf::from("/var/run/docker.sock")));
        let own = ["/run/user/7/docker.sock", "/run/user/7/podman/podman.sock"].map(PathBuf::from);
        assert_eq!(with(&[("XDG_RUNTIME_DIR", "/run/user/7")])?[..2], own, "one's own before everybody's");
        assert_eq!(with(&[("XDG_RUNTIME_DIR", "not/absolute")])?, with(&[])?);
        Ok(())
    }

    #[test]
    fn a_context_that_was_chosen_names_the_only_one() -> std::io::Result<()> {
        let folder = std::env::temp_dir().join(format!("belljar-contexts-{}", std::process::id()));
        let config = folder.to_string_lossy().into_owned();
        for (number, name, host) in [("a", "near", "unix:///near.sock"), ("b", "far", "ssh://x@y")] {
            let meta = folder.join("contexts/meta").join(number);
            std::fs::create_dir_all(&meta)?;
            let text = format!(r#"{{"Name":"{name}","Metadata":{{}},"Endpoints":{{"docker":{{"Host":"{host}"}}}}}}"#);
            std::fs::write(meta.join("meta.json"), text)?;
        }
        let at = |set: &[(&str, &str)]| with(&[set, &[("DOCKER_CONFIG", config.as_str())]].concat()).ok();
        assert_eq!(at(&[("DOCKER_CONTEXT", "near")]), Some(vec![PathBuf::from("/near.sock")]));
        assert_eq!(at(&[("DOCKER_CONTEXT", "far")]), None);
        assert_eq!(at(&[("DOCKER_CONTEXT", "nowhere")]), None);
        assert!(at(&[("DOCKER_CONTEXT", "default")]).is_some_and(|found| found.len() > 1));
        assert_eq!(
            at(&[("DOCKER_HOST", "unix:///x.sock"), ("DOCKER_CONTEXT", "near")]),
            Some(vec![PathBuf::from("/x.sock")])
        );
        std::fs::write(folder.join("config.json"), r#"{"currentContext":"near"}"#)?;
        assert_eq!(at(&[]), Some(vec![PathBuf::from("/near.sock")]));
        std::fs::remove_dir_all(&folder)
    }

    #[test]
    fn an_engine_elsewhere_is_refused() {
        for elsewhere in ["tcp://10.0.0.1:2375", "ssh://somebody@host", "unix://relative.sock", "http://x"] {
            assert!(with(&[("DOCKER_HOST", elsewhere)]).is_err(), "{elsewhere}");
        }
    }
}
