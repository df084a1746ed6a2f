//! The monitor's hands: what it sees goes into an agent's profile, an alert onto the record, and what the policy says
//! follows from it holds from then on.
//!
//! A name is a claim. Whoever gives another one each time is seen in the profile of all together, and what holds for
//! `user:NAME` holds for everything that this user runs, whatever it calls itself.

mod agents;
mod run;
mod store;

pub use run::Monitoring;

use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use ledger::Durable;
use model::{Grant, Outcome, Principal, Reason, Trouble};
use serde_json::Value;
use store::Store;

use crate::Engine;
use crate::fresh::Fresh;
use crate::gate::News;
use crate::policies::Loaded;
use crate::record::Record;

impl Engine {
    /// What is known of agents lies beside the ledger: in the home that the user record names.
    fn agents_known(&self) -> Result<Store, Trouble> {
        let ledger = self.ledger().map_err(|failure| Trouble { message: failure.message, fix: failure.fix })?;
        Ok(Store::at(ledger.folder().with_file_name("monitor")))
    }

    /// Something that somebody says about an agent. On the disk before it counts.
    pub(crate) fn record_deed_about(&self, agent: &str, kind: &'static str, data: Value) -> Result<(), Trouble> {
        let record = self.record_of(None);
        record.rail.is_for(&agents::principal(agent), std::env::vars_os().collect());
        record.rail.say(kind, false, data);
        record.write(Durable { on_disk: true, checkpoint: true, last_words: false }).map_err(crate::policies::trouble)
    }

    /// From now on the monitor sees what becomes of it. Says what is to be asked because of what it has seen before.
    pub(crate) fn watch_over(
        &self,
        principal: &Principal,
        loaded: &Loaded,
        record: &Record<'_>,
    ) -> Result<Vec<Reason>, Outcome> {
        let store = self.agents_known().map_err(crate::layers::not_set_up)?;
        let (rail, watch) = (record.rail.clone(), self.watch.clone());
        let monitoring = Monitoring::of(store, principal, loaded.policy.monitored(), rail, watch, self.version)?;
        let monitoring = Rc::new(monitoring);
        record.monitoring.replace(Some(monitoring.clone()));
        monitoring.admit()
    }
}

impl Record<'_> {
    /// What was granted, for whoever watches.
    pub fn grants(&self, grant: &Grant) {
        if let Some(monitoring) = self.monitoring.borrow().as_ref() {
            monitoring.grants(grant);
        }
    }

    /// What comes from the gate while it serves, for whoever watches.
    pub fn hears(&self, news: Option<News>, fresh: Option<Rc<Fresh>>) {
        if let Some(monitoring) = self.monitoring.borrow().as_ref() {
            monitoring.hears(news, fresh);
        }
    }

    /// Whether nobody has suspended whoever asks meanwhile.
    pub fn still_free(&self) -> Result<(), Outcome> {
        self.monitoring.borrow().as_ref().map_or(Ok(()), |monitoring| monitoring.still_free())
    }

    /// What the monitor makes of it.
    pub fn watched_to_the_end(&self, outcome: &mut Outcome) {
        if let Some(monitoring) = self.monitoring.borrow().as_ref() {
            monitoring.ended(outcome);
        }
    }
}

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
