//! The monitor's hands: what it sees goes into an agent's profile, an alert onto the record, and what the policy says
//! follows from it holds from then on.
//!
//! A name is a claim. Whoever gives another one each time is seen in the profile of all together, and what holds for
//! `user:NAME` holds for everything that this user runs, whatever it calls itself.

mod agents;
mod run;
mod store;
mod webhook;

pub use agents::principal;
pub use run::Monitoring;
pub use webhook::{NoClient, Webhook};

use std::time::{SystemTime, UNIX_EPOCH};

use model::Principal;

/// Under which an agent is known: its name, or that of the user who runs something themselves.
fn known_as(principal: &Principal) -> String {
    principal.agent.clone().unwrap_or_else(|| user(principal))
}

fn user(principal: &Principal) -> String {
    format!("user:{}", principal.user)
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Processors that this process may use. Without the control groups that limit it: to read those takes longer than all else.
fn processors() -> f64 {
    let all = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
    f64::from(all.max(1))
}
