//! Where an engine may listen: what the usual variables say, and the usual places.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::trouble::{Result, Unusable};

/// Sockets to try, the likeliest first. One that somebody named is the only one.
pub fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> Result<Vec<PathBuf>> {
    for name in ["DOCKER_HOST", "CONTAINER_HOST"] {
        let Some(value) = variable(name).filter(|value| !value.is_empty()) else { continue };
        let text = value.to_string_lossy().into_owned();
        return match text.strip_prefix("unix://") {
            Some(path) if path.starts_with('/') => Ok(vec![PathBuf::from(path)]),
            // Its files would be another machine's, and the connection one that no gate decides on.
            _ => Err(Unusable::Remote { variable: name, value: text }),
        };
    }
    let mut found = vec![PathBuf::from("/var/run/docker.sock")];
    if let Some(runtime) = variable("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute()) {
        // An engine of one's own first: it has no rights that one does not have.
        found.insert(0, runtime.join("docker.sock"));
        found.push(runtime.join("podman/podman.sock"));
    }
    found.push(PathBuf::from("/run/podman/podman.sock"));
    Ok(found)
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
        assert_eq!(with(&[("XDG_RUNTIME_DIR", "/run/user/7")])?[0], PathBuf::from("/run/user/7/docker.sock"));
        Ok(())
    }

    #[test]
    fn an_engine_elsewhere_is_refused() {
        for elsewhere in ["tcp://10.0.0.1:2375", "ssh://somebody@host", "unix://relative.sock", "http://x"] {
            assert!(with(&[("DOCKER_HOST", elsewhere)]).is_err(), "{elsewhere}");
        }
    }
}
