//! Differences between backends that are meant, each with its reason. `docs/backends.md` shows the same table.

pub struct Difference {
    pub backend: &'static str,
    /// What the names of requests begin with.
    pub requests: &'static str,
    pub why: &'static str,
    /// Every one of these differs, always; else some of them may, on some hosts.
    pub always: bool,
}

pub const TABLE: &[Difference] = &[];

fn find(backend: &str, request: &str) -> Option<&'static Difference> {
    TABLE.iter().find(|difference| difference.backend == backend && request.starts_with(difference.requests))
}

pub fn why(backend: &str, request: &str) -> Option<&'static str> {
    find(backend, request).map(|difference| difference.why)
}

pub fn everywhere(backend: &str, request: &str) -> bool {
    find(backend, request).is_some_and(|difference| difference.always)
}
