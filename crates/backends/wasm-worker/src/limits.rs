//! How much a module may have, all its instances together. The jar around us holds the same a second time.

use wasmtime::{ResourceLimiter, Result};

/// A place in a table is a pointer.
const PLACE: usize = 8;

pub struct Limits {
    left: usize,
}

impl Limits {
    pub fn new(memory: u64) -> Limits {
        Limits { left: usize::try_from(memory).unwrap_or(usize::MAX) }
    }

    /// Whether there is room for so much more; then it is taken.
    fn take(&mut self, more: usize) -> bool {
        match self.left.checked_sub(more) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

impl ResourceLimiter for Limits {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        Ok(self.take(desired.saturating_sub(current)))
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        Ok(self.take(desired.saturating_sub(current).saturating_mul(PLACE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_and_tables_share_one_limit() {
        let mut limits = Limits::new(100);
        assert!(limits.memory_growing(0, 40, None).expect("it can be done"));
        assert!(limits.table_growing(0, 5, None).expect("it can be done"));
        assert!(!limits.memory_growing(40, 61, None).expect("it can be done"));
        assert!(limits.memory_growing(40, 60, None).expect("it can be done"));
        assert!(!limits.table_growing(5, usize::MAX, None).expect("it can be done"));
    }
}
