//! Descriptors whose closing takes the kernel long: those of namespaces, whose last one takes all mounts apart.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::assistant::Assistant;
use crate::process::Alone;

/// One that is being closed.
pub struct Closing(Assistant);

/// Has it closed beside us.
pub fn begin(alone: Alone, descriptor: OwnedFd) -> io::Result<Closing> {
    let number: &'static RawFd = Box::leak(Box::new(descriptor.as_raw_fd()));
    let close = |number: &'static RawFd| {
        // SAFETY: whoever had it gives it up for this, in the table that we share.
        unsafe { rustix::io::close(*number) };
        Ok(0)
    };
    let begun = Assistant::begin(alone, number, close)?;
    // Not closed here as well: the number may be somebody else's by now.
    std::mem::forget(descriptor);
    Ok(Closing(begun))
}

impl Closing {
    /// Waits until it is.
    pub fn join(self) -> io::Result<()> {
        self.0.join().map(drop)
    }
}
