//! The desktop's keyring (Secret Service), through `secret-tool`: values over its standard input and output only.

use std::process::Command;
use std::time::Duration;

use model::SecretText;

use crate::command::{self, Failed, Said};
use crate::error::{Error, Result};

const TOOL: &str = "secret-tool";
/// A person may have to unlock it.
const PATIENCE: Duration = Duration::from_secs(120);

pub fn store(name: &str, value: &SecretText) -> Result<()> {
    let label = format!("--label=belljar: {name}");
    let said = run(name, "keep", &["store", &label], value.reveal().as_bytes())?;
    if said.status.success() { Ok(()) } else { Err(refused(name, "keep", &said)) }
}

pub fn look_up(name: &str) -> Result<SecretText> {
    let said = run(name, "give", &["lookup"], &[])?;
    if !said.status.success() {
        let quiet = said.complaint.trim_ascii().is_empty();
        return Err(if quiet { gone(name) } else { refused(name, "give", &said) });
    }
    SecretText::read(&said.output).map_err(|why| Error::BadValue { name: name.to_owned(), why })
}

/// It is no trouble if there is none.
pub fn clear(name: &str) -> Result<()> {
    let said = run(name, "remove", &["clear"], &[])?;
    match said.status.success() || said.complaint.trim_ascii().is_empty() {
        true => Ok(()),
        false => Err(refused(name, "remove", &said)),
    }
}

fn run(name: &str, doing: &'static str, words: &[&str], input: &[u8]) -> Result<Said> {
    let mut command = Command::new(TOOL);
    command.args(words).args(["application", "belljar", "name", name]);
    command::run(&mut command, input, PATIENCE, None).map_err(|failed| match failed {
        Failed::Start(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Error::NoKeyring { name: name.to_owned() }
        }
        Failed::Start(error) => Error::Keyring { name: name.to_owned(), doing, why: error.to_string() },
        Failed::Late(after) => {
            let why = format!("it did not answer within {} seconds", after.as_secs());
            Error::Keyring { name: name.to_owned(), doing, why }
        }
        Failed::Unwanted => {
            Error::Keyring { name: name.to_owned(), doing, why: "nobody waits for it any more".to_owned() }
        }
        Failed::TooMuch => Error::BadValue { name: name.to_owned(), why: model::BadValue::TooLong },
    })
}

fn gone(name: &str) -> Error {
    Error::Keyring { name: name.to_owned(), doing: "give", why: "it has none of that name".to_owned() }
}

fn refused(name: &str, doing: &'static str, said: &Said) -> Error {
    // It never repeats what it was given; of what it gives, nothing is left in its complaints.
    Error::Keyring { name: name.to_owned(), doing, why: crate::complaint(said) }
}
