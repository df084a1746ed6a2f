//! How often somebody may ask, and how much they may have at once: counted in files under locks, so that it holds for
//! many processes, and a lock ends with whoever held it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::{Action, Denied, Outcome, Principal, Refusal, Retry};
use policy::{AgentTerms, Care, Rate};
use rustix::fs::{FlockOperation, flock};

use crate::judge::usage;
use crate::policies::Loaded;

/// Places among the runs that an agent may have at once. Given back when this is dropped, however that comes about.
#[derive(Default)]
pub struct Slots(#[allow(dead_code, reason = "the locks are held, not used")] Vec<File>);

/// Counts one more, if the policy's terms for this principal have room for it.
pub fn enter(loaded: &Loaded, principal: &Principal) -> Result<Slots, Outcome> {
    let user = format!("user:{}", principal.user);
    let is_meant = |terms: &&AgentTerms| {
        let names = principal.agent.iter().chain(std::iter::once(&user));
        names.into_iter().any(|name| terms.name.matches(name, Care::Forgiving))
    };
    let mut terms =
        loaded.policy.agents().filter(is_meant).filter(|terms| terms.rate.is_some() || terms.concurrent.is_some());
    let Some(first) = terms.next() else { return Ok(Slots::default()) };
    let folder = folder(loaded)?;
    let mut slots = Vec::new();
    for terms in std::iter::once(first).chain(terms) {
        // Each entry counts what its pattern matches together: under other names there would be room again. But two
        // entries of one name are two counts.
        let name = blake3::hash(format!("{}\0{}\0{:?}", terms.place, terms.written, terms.rate).as_bytes()).to_hex();
        let name = &name.as_str()[..16];
        if let Some(most) = terms.concurrent {
            slots.push(slot(&folder, name, most, terms)?);
        }
        if let Some(rate) = terms.rate {
            count(&folder.join(format!("{name}.rate")), rate, terms)?;
        }
    }
    Ok(Slots(slots))
}

/// What can't be counted is not allowed.
fn folder(loaded: &Loaded) -> Result<PathBuf, Outcome> {
    let cannot = |message: String| usage(message, "the policy limits how often you may ask, so that must be counted");
    let state = loaded
        .counted_in
        .clone()
        .or_else(workspace::state_folder)
        .ok_or_else(|| cannot("there is no folder for state: neither XDG_STATE_HOME nor HOME is set".to_owned()))?;
    let folder = state.join("agents");
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| cannot(format!("cannot make `{}`: {error}", folder.display())))?;
    Ok(folder)
}

fn open(path: &Path) -> Result<File, Outcome> {
    let opened = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    opened.map_err(|error| uncounted(path, &error))
}

fn uncounted(path: &Path, error: &dyn std::fmt::Display) -> Outcome {
    usage(
        format!("cannot count how often you ask, in `{}`: {error}", path.display()),
        "make it a file of yours, or remove it",
    )
}

fn slot(folder: &Path, name: &str, most: u64, terms: &AgentTerms) -> Result<File, Outcome> {
    for number in 0..most {
        let path = folder.join(format!("{name}.slot{number}"));
        let file = open(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(error) => return Err(uncounted(&path, &error)),
        }
    }
    let runs = if most == 1 { "run" } else { "runs" };
    Err(too_much(
        terms,
        "agent.concurrent",
        format!("{most} {runs} of `{}` are under way, which is the most", terms.written),
    ))
}

/// When they asked, in nanoseconds since 1970, as many as may be in one period.
fn count(path: &Path, rate: Rate, terms: &AgentTerms) -> Result<(), Outcome> {
    let mut file = open(path)?;
    let cannot = |error: &dyn std::fmt::Display| uncounted(path, error);
    flock(&file, FlockOperation::LockExclusive).map_err(|error| cannot(&error))?;
    let mut bytes = Vec::new();
    // More than this was never written by us.
    (&mut file).take((rate.count + 1) * 8).read_to_end(&mut bytes).map_err(|error| cannot(&error))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| cannot(&error))?;
    let known = bytes.chunks_exact(8).filter_map(|eight| eight.try_into().ok()).map(u64::from_le_bytes);
    let known = known.map(Duration::from_nanos);
    // What lies ahead of now was written before a clock was set back; it counts as just now.
    let mut recent: Vec<Duration> =
        known.map(|moment| moment.min(now)).filter(|moment| now - *moment < rate.period).collect();
    recent.sort();
    if recent.len() as u64 >= rate.count {
        let first = recent.get(recent.len() - rate.count as usize).copied().unwrap_or(now);
        let wait = (rate.period - (now - first)).as_secs() + 1;
        let message = format!(
            "`{}` asked {} times in {} s, which is the most; there is room again in {wait} s",
            terms.written,
            rate.count,
            rate.period.as_secs()
        );
        return Err(too_much(terms, "agent.rate", message));
    }
    recent.push(now);
    let bytes: Vec<u8> =
        recent.iter().flat_map(|moment| u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX).to_le_bytes()).collect();
    file.seek(SeekFrom::Start(0)).map_err(|error| cannot(&error))?;
    file.write_all(&bytes).map_err(|error| cannot(&error))?;
    file.set_len(bytes.len() as u64).map_err(|error| cannot(&error))
}

fn too_much(terms: &AgentTerms, rule: &str, message: String) -> Outcome {
    let denied = Denied {
        action: Action::Exec,
        about: terms.written.clone(),
        rule: rule.to_owned(),
        place: terms.place.clone(),
        reason: message.clone(),
        grant: format!("a change of `{rule}` ({})", terms.place),
        retry: Retry::Later,
    };
    let refusal = Refusal::new(&format!("{rule} ({})", terms.place), message, "try again later");
    Outcome::Refused(Refusal { denied: vec![denied], ..refusal })
}
