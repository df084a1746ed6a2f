//! What a sandbox had to do with the network, over all its runs: out of the record, which has it by runs.

use std::collections::{HashSet, VecDeque};

use model::{Entry, EntryQuery, Records, Trouble};

/// All that is of the network, as for `belljar net`.
const KINDS: [&str; 2] = ["network", "secret.used"];

/// The first `most` after an entry; without one, the newest. In their order.
pub fn of(
    records: &dyn Records,
    sandbox: &str,
    denied: bool,
    after: Option<u64>,
    most: usize,
) -> Result<Vec<Entry>, Trouble> {
    let openings = EntryQuery { kinds: vec!["sandbox.opening".to_owned()], ..EntryQuery::default() };
    let mut runs = HashSet::new();
    records.each(&openings, &mut |entry| {
        if entry.data["sandbox"] == sandbox {
            runs.extend(entry.run);
        }
        true
    })?;
    let kinds = KINDS.map(str::to_owned).to_vec();
    let query = EntryQuery { denied, kinds, after: after.unwrap_or_default(), ..EntryQuery::default() };
    let mut found = VecDeque::new();
    records.each(&query, &mut |entry| {
        if entry.run.as_ref().is_some_and(|run| runs.contains(run)) {
            found.push_back(entry);
        }
        if found.len() > most {
            found.pop_front();
        }
        after.is_none() || found.len() < most
    })?;
    Ok(found.into())
}
