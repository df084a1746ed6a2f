//! Fetches what commands say, when the gate needs it: a process of its own, beside the gate.
//!
//! The gate reads what hostile programs send and may start nothing; and what a command is started with should be what the
//! user has, not what the gate has given up. Each value is told to whoever guards the output before the gate gets it: it can't
//! come back before it is known there.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use egress::{Fetches, Fetching};
use model::{Outcome, SecretSource};
use rustix::net::SendFlags;
use sys::process::{Alone, Forked, Namespaces};
use sys::{descriptors, process, signals};
use vault::Vault;
use zeroize::Zeroizing;

use crate::fresh;
use crate::judge::usage;
use crate::rail::Rail;

/// Where the value of a secret is to be had.
#[derive(Clone)]
pub struct Source {
    pub name: String,
    pub source: SecretSource,
    /// How long what it said is used.
    pub ttl: Option<Duration>,
}

/// Room for a value, how long it lasts, and a little more.
const LONGEST: usize = model::LONGEST_SECRET + 64;
const VALUE: u8 = 0;
const FAILED: u8 = 1;

/// Starts it: how to ask it, and its number. It ends with whoever can ask, or with us. `tells`: who guards what is said.
pub fn begin(
    folder: &Path,
    sources: &[Source],
    tells: &OwnedFd,
    rail: Rc<Rail>,
) -> Result<(Rc<dyn Fetches>, i32), Outcome> {
    let started = || start(Vault::at(folder), sources.to_vec(), tells.try_clone()?, Alone::prove()?);
    let (wire, pid) = started().map_err(|error| {
        usage(format!("whoever fetches secrets can't be started: {error}"), "see `belljar doctor`, or run it again")
    })?;
    Ok((Rc::new(Asks { wire: Arc::new(Mutex::new(wire)), rail }), pid))
}

fn start(vault: Vault, sources: Vec<Source>, tells: OwnedFd, alone: Alone) -> io::Result<(OwnedFd, i32)> {
    let (ours, theirs) = descriptors::wire()?;
    match process::fork_into(alone, Namespaces::NONE, None)? {
        Forked::Child => {
            drop(ours);
            let served = attend(vault, &sources, &tells, &theirs);
            process::exit(if served.is_ok() { 0 } else { 1 })
        }
        Forked::Parent { pid, .. } => Ok((ours, pid)),
    }
}

fn attend(vault: Vault, sources: &[Source], tells: &OwnedFd, wire: &OwnedFd) -> io::Result<()> {
    process::die_with_parent()?;
    rustix::thread::set_name(c"belljar-fetch")?;
    process::forbid_inspection()?;
    // What a terminal sends is for the payload. Commands get them back.
    signals::block_all()?;
    let vault = vault.until(wire.try_clone()?);
    loop {
        let mut words = [0; model::LONGEST_SECRET_NAME + 1];
        let (count, _) = descriptors::receive(wire.as_fd(), &mut words)?;
        if count == 0 {
            return Ok(());
        }
        let name = std::str::from_utf8(&words[..count]).unwrap_or_default();
        let answer = match fetched(&vault, sources, tells, name) {
            Ok((value, lasts)) => {
                let lasts = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
                Zeroizing::new([&[VALUE], lasts.to_le_bytes().as_slice(), value.as_bytes()].concat())
            }
            Err(why) => Zeroizing::new([&[FAILED], why.as_bytes()].concat()),
        };
        descriptors::send(wire.as_fd(), &answer[..answer.len().min(LONGEST)], &[])?;
    }
}

fn fetched(
    vault: &Vault,
    sources: &[Source],
    tells: &OwnedFd,
    name: &str,
) -> Result<(Zeroizing<String>, Duration), String> {
    let Some(known) = sources.iter().find(|known| known.name == name) else {
        return Err("nobody knows where it is".to_owned());
    };
    let Source { name, source, ttl } = known;
    let (value, lasts) = vault.fetch_from(name, source, *ttl).map_err(|error| error.for_others())?;
    let message = fresh::message(name, value.reveal());
    rustix::net::send(tells, &message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
        .map_err(|error| format!("what is said could not be guarded: {error}"))?;
    Ok((Zeroizing::new(value.reveal().to_owned()), lasts.unwrap_or_default()))
}

/// How the gate asks it.
struct Asks {
    wire: Arc<Mutex<OwnedFd>>,
    /// Of the gate: what it writes must not have a value in it either.
    rail: Rc<Rail>,
}

impl Fetches for Asks {
    fn fetch(&self, name: &str) -> Fetching {
        let (wire, rail, name) = (self.wire.clone(), self.rail.clone(), name.to_owned());
        Box::pin(async move {
            let asked = name.clone();
            let answer = egress::on_a_thread(move || ask(&wire, &asked)).await;
            let (value, lasts) = answer.unwrap_or_else(|| Err("it could not be asked for".to_owned()))?;
            rail.learns(&name, &value);
            Ok((value, lasts))
        })
    }
}

fn ask(wire: &Mutex<OwnedFd>, name: &str) -> Result<(Zeroizing<String>, Duration), String> {
    let gone = |_| "whoever fetches it is gone".to_owned();
    let wire = wire.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    descriptors::send(wire.as_fd(), name.as_bytes(), &[]).map_err(gone)?;
    let mut words = Zeroizing::new(vec![0; LONGEST]);
    let (count, _) = descriptors::receive(wire.as_fd(), &mut words).map_err(gone)?;
    match words.get(..count) {
        Some([VALUE, a, b, c, d, e, f, g, h, value @ ..]) => {
            let value = String::from_utf8(value.to_vec()).map_err(|_| "it is no text".to_owned())?;
            let lasts = Duration::from_millis(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]));
            Ok((Zeroizing::new(value), lasts))
        }
        Some([FAILED, why @ ..]) => Err(String::from_utf8_lossy(why).into_owned()),
        _ => Err("whoever fetches it is gone".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, line: &str) -> Source {
        Source { name: name.to_owned(), source: SecretSource::Command(line.to_owned()), ttl: None }
    }

    #[test]
    fn a_value_is_guarded_before_it_is_given() {
        let vault = Vault::at("/nonexistent");
        let (tells, hears) = fresh::wires().expect("wires");
        let value = fetched(&vault, &[source("T", "printf %s some-value-77")], &tells, "T").expect("a value").0;
        assert_eq!(value.as_str(), "some-value-77");
        let mut words = [0; 64];
        let (count, _) = rustix::net::recv(&hears, &mut words, rustix::net::RecvFlags::DONTWAIT).expect("it was told");
        assert_eq!(fresh::read(&words[..count]), Some(("T".to_owned(), "some-value-77".to_owned())));
        drop(hears);
        let (tells, hears) = fresh::wires().expect("wires");
        drop(hears);
        // Nobody guards it, so nobody gets it.
        assert!(fetched(&vault, &[source("U", "printf %s some-value-78")], &tells, "U").is_err());
    }

    #[test]
    fn what_a_failing_command_said_is_told_to_nobody() {
        let vault = Vault::at("/nonexistent");
        let (tells, _hears) = fresh::wires().expect("wires");
        for line in ["echo half-a-secret; echo half-a-secret other-secret >&2; exit 3", "printf 'a\\nb'", "true"] {
            let why = fetched(&vault, &[source("T", line)], &tells, "T").expect_err("it fails");
            assert!(!why.contains("secret-") && !why.contains("half") && !why.contains("other"), "{why}");
        }
        assert!(fetched(&vault, &[], &tells, "T").is_err());
    }
}
