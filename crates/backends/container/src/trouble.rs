//! What can go wrong with an engine, and what to do about it.

use std::io;
use std::path::PathBuf;

use model::{SetupFailure, Trouble, Wall};

pub type Result<T> = std::result::Result<T, Unusable>;

#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("no container engine answers (tried {})", shown(tried))]
    NoEngine { tried: Vec<PathBuf> },
    #[error("the container engine at `{}` does not answer: {source}", socket.display())]
    Down { socket: PathBuf, source: io::Error },
    #[error("you may not use the container engine at `{}`", socket.display())]
    Forbidden { socket: PathBuf },
    #[error("`{variable}` names `{value}`, and only engines of this host are used")]
    Remote { variable: &'static str, value: String },
    #[error("the container engine at `{}` is rootless and of user {owner}: what it runs would be that user and not you", socket.display())]
    Anothers { socket: PathBuf, owner: u32 },
    #[error("there is no Docker context `{name}` in `{}`", folder.display())]
    NoContext { name: String, folder: PathBuf },
    #[error("the container engine speaks version {speaks} of its API, and at least {needed} is needed")]
    TooOld { speaks: String, needed: &'static str },
    #[error("the container engine runs {0} containers, and only Linux ones are used")]
    NotLinux(String),
    #[error("the container engine can't {what}: {said}")]
    Said { what: String, status: u16, said: String },
    #[error("cannot {what}: {source}")]
    Failed { what: String, source: io::Error },
    #[error("the container engine answered `{what}` with something that can't be read: {why}")]
    Unreadable { what: String, why: String },
    #[error("there is no image `{name}`")]
    NoImage { name: String },
    #[error("there is no image `{name}` to be removed")]
    NothingToRemove { name: String },
    #[error("`{name}` is no name of an image")]
    NoName { name: String },
    #[error("there is no image `{name}`, and the policy does not let images be pulled")]
    NotPulled { name: String },
    #[error("the image `{name}` is for {is}, and this host is {here}")]
    OtherMachine { name: String, is: String, here: String },
    #[error("belljar's own image can't be made: there is no static busybox on this host")]
    NoBusybox,
    #[error("the container engine has no runtime `{asked}`; it has {}", known.join(", "))]
    NoRuntime { asked: String, known: Vec<String> },
    #[error("`{}` can't be given to a container: {why}", path.display())]
    Path { path: PathBuf, why: &'static str, fix: &'static str },
    #[error("changes can't be laid over `{}`: {why}", place.display())]
    Layers { place: PathBuf, why: &'static str },
    #[error("{message}")]
    Refused { wall: Wall, message: String, fix: String },
}

/// What an engine is asked to do with what somebody named.
pub const IMPORTING: &str = "import an image";
pub const LOADING: &str = "load an image";

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ")
}

impl Unusable {
    pub fn fix(&self) -> String {
        match self {
            Unusable::NoEngine { .. } | Unusable::Down { .. } => {
                "start it (`systemctl start docker`, or `systemctl --user start podman.socket`), or name its socket: \
                 `DOCKER_HOST=unix:///PATH`; or choose `--backend native`"
                    .to_owned()
            }
            Unusable::Forbidden { .. } => {
                "become a member of the group that owns the socket (mostly `docker`; that is as \
                 good as root), use an engine of your own (rootless Docker or Podman), or choose `--backend native`"
                    .to_owned()
            }
            Unusable::Remote { .. } => "name a socket of this host: `DOCKER_HOST=unix:///PATH`".to_owned(),
            Unusable::Anothers { .. } => {
                "run belljar as that user, or name an engine of your own or of the whole host: \
                 `DOCKER_HOST=unix:///PATH`"
                    .to_owned()
            }
            Unusable::NoContext { .. } => {
                "name one that is there (`docker context ls`), or a socket: `DOCKER_HOST=unix:///PATH`".to_owned()
            }
            Unusable::TooOld { .. } => "use Docker 20.10 or Podman 3, or newer".to_owned(),
            Unusable::NotLinux(_) => "switch the engine to Linux containers".to_owned(),
            Unusable::NoImage { name } | Unusable::NotPulled { name } => format!(
                "load it: `belljar image import DIR|TAR --name {name}`; make one: `belljar image from-host`; leave \
                 `--image` out for belljar's own; or let it be pulled: `[isolation] pull = \"ask\"` or `\"allow\"` in the policy"
            ),
            Unusable::NothingToRemove { .. } => "`belljar image ls` shows what there is".to_owned(),
            Unusable::NoName { .. } => {
                "names are as `debian`, `debian:12` or `example.org/team/tool@sha256:…`; `belljar image ls` shows what there is"
                    .to_owned()
            }
            Unusable::OtherMachine { .. } => "name an image for this kind of machine".to_owned(),
            Unusable::NoBusybox => "install one (Debian: `busybox-static`), or name an image: `--image NAME`; \
                 `belljar image ls` shows what there is"
                .to_owned(),
            Unusable::NoRuntime { .. } => {
                "install it and tell the engine of it (`\"runtimes\"` in its `daemon.json`), or leave `--runtime` out"
                    .to_owned()
            }
            Unusable::Layers { .. } => "run belljar as the owner of the files, or choose `--backend native`".to_owned(),
            Unusable::Path { fix, .. } => (*fix).to_owned(),
            Unusable::Refused { fix, .. } => fix.clone(),
            Unusable::Said { what, .. } if what == IMPORTING || what == LOADING => {
                "name a folder or an archive with a root in it, an OCI layout, or what `docker save` wrote".to_owned()
            }
            Unusable::Failed { source, .. }
                if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                "check that it is there, and who may use it".to_owned()
            }
            Unusable::Said { .. } | Unusable::Failed { .. } | Unusable::Unreadable { .. } => {
                "see the engine's own log, and `belljar doctor`".to_owned()
            }
        }
    }

    /// Whether it was an answer, of this kind.
    pub fn is_status(&self, wanted: u16) -> bool {
        matches!(self, Unusable::Said { status, .. } if *status == wanted)
    }
}

impl From<Unusable> for SetupFailure {
    fn from(error: Unusable) -> SetupFailure {
        let wall = if let Unusable::Refused { wall, .. } = &error { Some(*wall) } else { None };
        let layers = matches!(error, Unusable::Layers { .. });
        SetupFailure { wall, message: error.to_string(), fix: error.fix(), layers }
    }
}

impl From<Unusable> for Trouble {
    fn from(error: Unusable) -> Trouble {
        Trouble { message: error.to_string(), fix: error.fix() }
    }
}
