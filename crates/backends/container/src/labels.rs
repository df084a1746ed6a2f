//! How containers and volumes of ours are known, and whose they are: so that what a killed belljar left is found.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::Api;
use crate::trouble::Result;

pub const OURS: &str = "belljar.sandbox";
const OWNER: &str = "belljar.owner";
const PROCESS: &str = "belljar.process";
const BEGUN: &str = "belljar.begun";
const BOOT: &str = "belljar.boot";
const NAMESPACE: &str = "belljar.processes";

/// Of this process.
pub fn own(id: &str) -> BTreeMap<String, String> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let pairs = [
        (OURS, id.to_owned()),
        (OWNER, rustix::process::geteuid().as_raw().to_string()),
        (PROCESS, pid.to_string()),
        (BEGUN, begun(pid).unwrap_or_default()),
        (BOOT, boot()),
        (NAMESPACE, namespace()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Whether whoever made something is gone for certain. What belongs to another user, or to processes that can't be seen
/// from here, is left alone.
fn is_left_over(labels: &BTreeMap<String, String>) -> bool {
    let label = |name: &str| labels.get(name).map(String::as_str).unwrap_or_default();
    let own = rustix::process::geteuid().as_raw();
    if !label(OWNER).parse().is_ok_and(|owner: u32| own == 0 || own == owner) {
        return false;
    }
    if label(BOOT) != boot() {
        return !label(BOOT).is_empty();
    }
    if label(NAMESPACE) != namespace() {
        return false;
    }
    // A number can come to mean another process; that one began at another time.
    match label(PROCESS).parse().ok().and_then(begun) {
        Some(now) => now != label(BEGUN),
        None => label(PROCESS).parse::<i32>().is_ok(),
    }
}

/// When a process began, as the kernel counts; nothing if there is none.
fn begun(pid: i32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After a name that may have anything in it.
    let after = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    // One that has ended and is not waited for holds nothing any more.
    (*fields.first()? != "Z").then(|| fields.get(19).map(|begun| (*begun).to_owned()))?
}

fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn namespace() -> String {
    std::fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Which runs have a container.
pub fn live(api: &Api) -> Result<BTreeSet<String>> {
    let label = |labels: Option<BTreeMap<String, String>>| labels.and_then(|mut labels| labels.remove(OURS));
    Ok(api.labelled(OURS)?.into_iter().filter_map(|container| label(container.labels)).collect())
}

/// Removes what belljars that were killed have left, and says how much that was.
pub fn clean_up(api: &Api) -> Result<u64> {
    let left = |labels: &Option<BTreeMap<String, String>>| labels.as_ref().is_some_and(is_left_over);
    let mut count = 0;
    for container in api.labelled(OURS)?.into_iter().filter(|container| left(&container.labels)) {
        api.remove(&container.id)?;
        count += 1;
    }
    for volume in api.labelled_volumes(OURS)?.into_iter().filter(|volume| left(&volume.labels)) {
        api.remove_volume(&volume.name)?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> BTreeMap<String, String> {
        let mut labels = own("x");
        labels.insert(name.to_owned(), value.to_owned());
        labels
    }

    #[test]
    fn what_a_live_process_made_is_not_left_over() {
        assert!(!is_left_over(&own("x")));
        assert!(!is_left_over(&BTreeMap::new()));
    }

    #[test]
    fn what_a_gone_process_made_is() {
        assert!(is_left_over(&with(PROCESS, "2147483646")));
        assert!(is_left_over(&with(BEGUN, "1")), "its number means another process now");
        assert!(is_left_over(&with(BOOT, "before")));
    }

    #[test]
    fn what_may_be_alive_elsewhere_is_left_alone() {
        let mut elsewhere = with(PROCESS, "2147483646");
        elsewhere.insert(NAMESPACE.to_owned(), "pid:[1]".to_owned());
        assert!(!is_left_over(&elsewhere));
        assert!(!is_left_over(&with(PROCESS, "nonsense")));
        assert!(!is_left_over(&with(OWNER, "nonsense")));
    }
}
