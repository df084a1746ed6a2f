//! A guest that is ready before anybody knows what it is for: all walls are up, gVisor has booted, and the usher waits for
//! its orders.
//!
//! It serves once. What a payload leaves in a guest goes with it, so that nobody meets what somebody else left there.

use model::{Grant, Outcome, SetupFailure, Stack, Streams};

use crate::{Gvisor, Reins, errand, failure};

/// One guest, for one command.
pub struct Warm {
    raised: native::Warm,
    reins: Reins,
    made_for: Grant,
    payload: (u32, u32),
    filter: Vec<u8>,
}

impl Warm {
    /// Makes one for `grant`, whose command is not started and may be another in the end. Returns when it waits.
    pub fn make(backend: &Gvisor, grant: &Grant, stacks: &[Stack], streams: Streams) -> Result<Warm, SetupFailure> {
        let (raised, reins) = backend.raise(grant, stacks, streams, false)?;
        let raised = raised.warm_up()?;
        let (payload, filter) = (backend.around.payload_is(), backend.around.calls_behind());
        Ok(Warm { raised, reins, made_for: grant.clone(), payload, filter })
    }

    /// Whether it would do for `grant`: only the command, its variables and its time may be others. Walls that are up stay
    /// as they are.
    pub fn fits(&self, grant: &Grant) -> bool {
        let (asked, made) = (grant.powers(), self.made_for.powers());
        let mut limits = asked.limits.clone();
        limits.wall_time = made.limits.wall_time;
        asked.files == made.files
            && asked.network == made.network
            && asked.command.terminal == made.command.terminal
            && limits == made.limits
            && grant.accepted() == self.made_for.accepted()
    }

    /// Starts the command of `grant` and watches it to its end. `Err`: it is not for that one.
    pub fn run(self, grant: &Grant) -> Result<Outcome, SetupFailure> {
        if !self.fits(grant) {
            return Err(failure("this guest was made for other files, another network or other limits"));
        }
        let errand = errand::errand(grant.powers(), self.payload, self.filter)
            .map_err(|error| failure(&format!("cannot pass on the command: {error}")))?;
        let mut raised = self.raised;
        raised.begin(grant.clone());
        self.reins.send(&errand).map_err(|error| failure(&format!("cannot pass on the command: {error}")))?;
        Ok(raised.to_the_end())
    }
}
