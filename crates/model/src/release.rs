//! The release gate for what a sandbox says while it runs: bytes pass through here on their way out.

use serde::Serialize;

/// One stream on its way out.
pub trait Outlet {
    /// Appends to `out` what may pass of all that came so far. Some may be held back until more is known.
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>);
    /// Nothing more comes: appends what was held back and may pass.
    fn end(&mut self, out: &mut Vec<u8>);
    /// Whether something is held back.
    fn holds(&self) -> bool;
    /// A person waits for it, and nothing came for a while: appends what was held back and may pass, and begins anew.
    fn rest(&mut self, out: &mut Vec<u8>);
}

/// A kind of secret that was taken out, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Redacted {
    /// The format's rule, or the name of the variable whose value it was.
    pub what: String,
    pub times: u64,
}

/// A variable that is a secret by its name, and whose value is not looked for in what comes out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unguarded {
    pub variable: String,
    pub why: String,
}

/// Whether a text has the secrets that are in what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    WithoutSecrets,
    Exact,
}

/// Changes as a patch. With something taken out it can be read, and not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    pub bytes: Vec<u8>,
    pub taken_out: u64,
}

/// What goes in and comes out of a sandbox while it runs. Where there is no outlet, a stream goes straight to the caller.
#[derive(Default)]
pub struct Streams {
    /// What was read of the caller's input already: it comes first.
    pub input: Vec<u8>,
    pub output: Option<Box<dyn Outlet>>,
    pub error: Option<Box<dyn Outlet>>,
    /// Of a sandbox with a terminal of its own.
    pub terminal: Option<Box<dyn Outlet>>,
}
