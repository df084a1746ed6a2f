//! Differences between backends that are meant, each with its reason. `docs/backends.md` shows the same table.

pub struct Difference {
    pub backend: &'static str,
    /// What the names of requests begin with.
    pub requests: &'static str,
    pub why: &'static str,
    /// Every one of these differs, always; else some of them may, on some hosts.
    pub always: bool,
}

pub const TABLE: &[Difference] = &[
    Difference {
        backend: "gvisor",
        requests: "no new powers",
        why: "gVisor's `/proc/self/status` has no line `NoNewPrivs`; that it is set is tried by the usher",
        always: true,
    },
    Difference {
        backend: "container",
        requests: "direct ",
        why: "as root, files of root's own are not granted for direct writing in a container: refused by name",
        // As an ordinary user they are.
        always: false,
    },
    Difference {
        backend: "container",
        requests: "not executable",
        why: "whether a program can be executed is found out by the engine: 126 is then the end of a run, not a run that did not start",
        always: true,
    },
    Difference {
        backend: "container",
        requests: "a folder is no program",
        why: "whether a program can be executed is found out by the engine: 126 is then the end of a run, not a run that did not start",
        always: true,
    },
    Difference {
        backend: "wasm",
        requests: "python exit 255",
        why: "preview 1 has no exit codes above 125: a larger one is a trap, and 134",
        always: true,
    },
    Difference {
        backend: "wasm",
        requests: "javascript exit 255",
        why: "preview 1 has no exit codes above 125: a larger one is a trap, and 134",
        always: true,
    },
];

fn find(backend: &str, request: &str) -> Option<&'static Difference> {
    TABLE.iter().find(|difference| difference.backend == backend && request.starts_with(difference.requests))
}

pub fn why(backend: &str, request: &str) -> Option<&'static str> {
    find(backend, request).map(|difference| difference.why)
}

pub fn everywhere(backend: &str, request: &str) -> bool {
    find(backend, request).is_some_and(|difference| difference.always)
}
