//! Whom programs inside shall trust, where their requests are read on the way: files of the gate's own, and in which places
//! of this host programs look for such files by themselves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use model::{AUTHORITIES, Gated, JAVA_AUTHORITIES, Network, Origin, Powers};

/// What is to be seen instead of what is there. As plain data: a plan is a pure function of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Paths inside, in the order in which they are handed over.
    pub files: Vec<PathBuf>,
    /// Files of the host, free of links, and which of `files` is seen in their place.
    pub replaced: Vec<(PathBuf, &'static str)>,
    /// Names that programs know, and which file they lead to where nothing of the host's is.
    pub well_known: Vec<(PathBuf, &'static str)>,
}

/// Where programs look for authorities without being told. The first that there is, mostly.
const BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem", "/etc/pki/tls/cert.pem",
];
const JAVA_BUNDLES: &[&str] = &["/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts"];
/// Below a Java of its own.
const IN_JAVA: &[&str] = &["lib/security/cacerts", "jre/lib/security/cacerts"];
const JAVAS: &str = "/usr/lib/jvm";

impl Trust {
    /// What a launch would be told, for those who only want to see the plan.
    pub fn foreseen(powers: &Powers) -> Trust {
        match &powers.network {
            Network::Gated(Gated { reads: true, .. }) => {
                Trust::look(powers, [AUTHORITIES, JAVA_AUTHORITIES].map(PathBuf::from).to_vec())
            }
            Network::Gated(_) | Network::Closed => Trust::default(),
        }
    }

    /// `files` of the gate's, and what they stand for on this host.
    pub fn look(powers: &Powers, files: Vec<PathBuf>) -> Trust {
        let given = |path: &str| files.iter().any(|file| file == Path::new(path));
        let mut replaced = BTreeSet::new();
        let mut well_known = Vec::new();
        // Looked up to where they really are: their names are links more often than not.
        // Most are not there: to ask for all of a way at once takes less than to look at each part of it.
        let mut replace = |path: &Path, by| match path.metadata().and_then(|_| path.canonicalize()) {
            Ok(real) if real.is_file() => drop(replaced.insert((real, by))),
            // What is not there, or not to be seen by whoever asks, nobody inside will read.
            Ok(_) | Err(_) => {}
        };
        if given(AUTHORITIES) {
            BUNDLES.iter().for_each(|path| replace(Path::new(path), AUTHORITIES));
            well_known.extend(BUNDLES.iter().map(|path| (path.into(), AUTHORITIES)));
        }
        if given(JAVA_AUTHORITIES) {
            JAVA_BUNDLES.iter().for_each(|path| replace(Path::new(path), JAVA_AUTHORITIES));
            let installed = std::fs::read_dir(JAVAS).into_iter().flatten().flatten().map(|entry| entry.path());
            let granted = powers.files.places.iter().filter(|place| place.origin == Origin::Toolchain);
            for java in installed.chain(granted.map(|place| place.path.clone())) {
                IN_JAVA.iter().for_each(|path| replace(&java.join(path), JAVA_AUTHORITIES));
            }
        }
        Trust { files, replaced: replaced.into_iter().collect(), well_known }
    }
}
