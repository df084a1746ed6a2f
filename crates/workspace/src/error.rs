//! What can go wrong, in words that name the thing and the way out.

use std::io;
use std::path::{Path, PathBuf};

use model::Trouble;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing} `{}`: {source}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("the state in `{}` can't be used: {why}", path.display())]
    State { path: PathBuf, why: String },
    #[error("there is no sandbox `{0}`")]
    NoSuch(String),
    #[error("no sandbox is kept")]
    None,
    #[error("`{which}` may be any of {}", candidates.join(", "))]
    Ambiguous { which: String, candidates: Vec<String> },
    #[error("a sandbox is called `{0}` already")]
    Taken(String),
    #[error(
        "`{0}` can't be a name: use up to 64 letters, digits, `-`, `_` and `.`, and neither `last` nor only digits and a to f"
    )]
    BadName(String),
    #[error("sandbox {sandbox} has changes half taken: {why}")]
    Unfinished { sandbox: String, why: String },
    #[error("sandbox {sandbox}, or the host's files, changed since somebody was asked; nothing was taken")]
    Changed { sandbox: String },
    #[error("sandbox {0} is in use")]
    Busy(String),
    #[error("sandbox {0} has no snapshot")]
    NoSnapshots(String),
    #[error("sandbox {sandbox} has no snapshot `{name}`; it has {}", known.join(", "))]
    NoSuchSnapshot { sandbox: String, name: String, known: Vec<String> },
    #[error("sandbox {sandbox} has a snapshot `{name}` already")]
    SnapshotTaken { sandbox: String, name: String },
    #[error("sandbox {0} has {MOST_LAYERS} layers, which is the most")]
    TooManyLayers(String),
    #[error("`{}` is not the folder that sandbox {sandbox} was made over", path.display())]
    Replaced { sandbox: String, path: PathBuf },
    #[error("`{}` is in no workspace of sandbox {sandbox}", path.display())]
    Outside { sandbox: String, path: PathBuf },
    #[error("`{}` holds the folder `{}` where layers are kept", place.display(), state.display())]
    Around { place: PathBuf, state: PathBuf },
    #[error("sandboxes {0} and {1} have different workspaces")]
    Unrelated(String, String),
    #[error("there is no artifact `{0}`")]
    NoSuchArtifact(String),
    #[error("`{which}` may be any of the artifacts {}", candidates.join(", "))]
    AmbiguousArtifact { which: String, candidates: Vec<String> },
    #[error("no run and no sandbox `{0}` left artifacts")]
    NoArtifacts(String),
    #[error("artifact {id} is withheld: {reason}; rule: {rule}")]
    Withheld { id: String, reason: String, rule: String },
    #[error("the contents of artifact {id} are gone, or not what they were")]
    Damaged { id: String },
}

/// More than anybody makes by hand, and fewer than the kernel's 500.
pub const MOST_LAYERS: usize = 400;

impl Error {
    pub fn fix(&self) -> String {
        match self {
            Error::File { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "make room: `belljar gc` shows and removes what is old".to_owned()
                }
                io::ErrorKind::PermissionDenied => "check who owns it and who may write to it".to_owned(),
                _ => "check the path, and that its filesystem works".to_owned(),
            },
            Error::State { .. } => {
                "choose another folder with XDG_STATE_HOME; or do without: `--workspace-mode readonly` or `direct`"
                    .to_owned()
            }
            Error::NoSuch(_) | Error::Ambiguous { .. } => "see `belljar ps`".to_owned(),
            Error::None => "make one with `belljar run -- CMD` or `belljar create`".to_owned(),
            Error::Taken(_) | Error::BadName(_) | Error::SnapshotTaken { .. } => "choose another name".to_owned(),
            Error::Busy(_) => "wait until its run has ended; to work side by side, `belljar fork` it before".to_owned(),
            Error::NoSnapshots(_) | Error::NoSuchSnapshot { .. } => "make one with `belljar snapshot`".to_owned(),
            Error::TooManyLayers(_) => "take its changes with `belljar apply`, or begin a new sandbox".to_owned(),
            Error::Changed { .. } => "apply again, and look at the new question".to_owned(),
            Error::Unfinished { .. } => "put the folder of the workspace back, and apply again".to_owned(),
            Error::Replaced { .. } => {
                "put the folder back; `belljar diff --patch` shows the changes for you to take by hand".to_owned()
            }
            Error::Outside { .. } => "name paths of the workspace: absolute, or from where you are".to_owned(),
            Error::Around { .. } => "name a smaller workspace, or choose another folder with XDG_STATE_HOME".to_owned(),
            Error::NoSuchArtifact(_) | Error::AmbiguousArtifact { .. } | Error::NoArtifacts(_) => {
                "see `belljar artifacts ls`".to_owned()
            }
            Error::Withheld { .. } => {
                "its contents were not kept; mend what the rule is about, or the policy, and run again".to_owned()
            }
            Error::Damaged { .. } => "remove it with `belljar artifacts rm`, check the disk, and run again".to_owned(),
            Error::Unrelated(..) => "compare forks of one sandbox".to_owned(),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble { fix: error.fix(), message: error.to_string() }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// Says what was being done to which file.
pub fn cannot<E: Into<io::Error>>(doing: &'static str, path: impl AsRef<Path>) -> impl FnOnce(E) -> Error {
    let path = path.as_ref().to_owned();
    move |source| Error::File { doing, path, source: source.into() }
}
