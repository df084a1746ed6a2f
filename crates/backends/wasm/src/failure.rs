//! Why a module does not run: no sandbox can be raised for it, or it is no module that can be run.

use std::fmt::Display;
use std::path::Path;

use model::{Outcome, SetupFailure, StartFailure};

#[derive(Debug)]
pub enum Failure {
    Setup(SetupFailure),
    Ended(Box<Outcome>),
}

impl Failure {
    pub fn setup(message: impl Into<String>, fix: impl Into<String>) -> Failure {
        Failure::Setup(SetupFailure { wall: None, message: message.into(), fix: fix.into(), layers: false })
    }

    pub fn cannot(what: &str, path: &Path, error: impl Display) -> Failure {
        Failure::setup(format!("cannot {what} `{}`: {error}", path.display()), "see who may read and write there")
    }

    /// The module itself is at fault.
    pub fn not_started(found: bool, message: String, fix: &str) -> Failure {
        Failure::Ended(Box::new(Outcome::NotStarted(StartFailure { found, message, fix: fix.to_owned() })))
    }

    pub fn not_a_module() -> Failure {
        Failure::setup("only modules run here", "choose another backend with `--backend`")
    }

    /// For those who only ask what would happen.
    pub fn into_setup(self) -> SetupFailure {
        let (message, fix) = match self {
            Failure::Setup(failure) => return failure,
            Failure::Ended(outcome) => match *outcome {
                Outcome::NotStarted(failure) => (failure.message, failure.fix),
                Outcome::NotSetUp(failure) => return failure,
                _ => ("the module could not be compiled".to_owned(), String::new()),
            },
        };
        SetupFailure { wall: None, message, fix, layers: false }
    }
}
