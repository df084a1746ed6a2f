//! Which of the things that are gone are still there under another name.

use std::collections::BTreeMap;
use std::io;

use crate::base::Kind;
use crate::changes::{Difference, LARGEST_SHOWN, same_contents_at};

/// More pairs than this are not compared: nobody reads a list of them.
const MOST: usize = 2000;

/// Pairs of a deletion and an addition of the same contents, by their numbers.
pub fn pairs(differences: &[Difference<'_>]) -> io::Result<Vec<(usize, usize)>> {
    let mut gone: BTreeMap<(u8, u64), Vec<usize>> = BTreeMap::new();
    let key = |kind: Kind, size: u64| match kind {
        Kind::File if size > 0 && size <= LARGEST_SHOWN => Some((0, size)),
        Kind::Link => Some((1, size)),
        _ => None,
    };
    for (number, difference) in differences.iter().enumerate() {
        if let (Some(was), None) = (difference.was, difference.is)
            && let Some(key) = key(was.kind(), was.size())
        {
            gone.entry(key).or_default().push(number);
        }
    }
    let mut pairs = Vec::new();
    let mut compared = 0;
    for (number, difference) in differences.iter().enumerate() {
        let (None, Some(is)) = (difference.was, difference.is) else { continue };
        let Some(candidates) = key(is.kind(), is.size()).and_then(|key| gone.get_mut(&key)) else { continue };
        let mut found = None;
        for (at, candidate) in candidates.iter().enumerate() {
            compared += 1;
            if compared > MOST {
                return Ok(pairs);
            }
            let before = &differences[*candidate];
            if let Some(was) = before.was
                && same_contents_at((before.path, was), (difference.path, is))?
            {
                found = Some(at);
                break;
            }
        }
        if let Some(at) = found {
            pairs.push((candidates.remove(at), number));
        }
    }
    Ok(pairs)
}
