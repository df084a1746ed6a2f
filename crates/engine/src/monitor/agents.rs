//! Agents as front-ends look at them, and what people say about them.

use model::{Agents, Entry, EntryQuery, Hold, Principal, Records, Response, Trouble, Watched, agents};
use monitor::Terms;
use serde_json::json;

use super::store::{Found, Store};
use super::{now, processors};
use crate::user::User;
use crate::{Engine, door};

/// Alerts and what followed from them that are shown of one agent.
const MOST_SHOWN: usize = 20;
/// What a person says with it, in characters.
const LONGEST_WHY: usize = 1000;

impl Agents for Engine {
    fn list(&self) -> Result<Vec<Watched>, Trouble> {
        let found = store()?.list(now())?;
        Ok(found.into_iter().map(|found| Watched { baselines: Vec::new(), ..shown(found) }).collect())
    }

    fn look(&self, agent: &str) -> Result<(Watched, Vec<Entry>), Trouble> {
        let mut all: Vec<Watched> = store()?.list(now())?.into_iter().map(shown).collect();
        let exact = all.iter().position(|known| known.agent == agent);
        let near: Vec<usize> = (0..all.len()).filter(|at| all[*at].agent.starts_with(agent)).collect();
        let at = match (exact, near.as_slice()) {
            (Some(at), _) => at,
            (None, [at]) if !agent.is_empty() => *at,
            _ => {
                return Err(Trouble {
                    message: format!("no agent `{}` is known, or several begin like that", agent.escape_debug()),
                    fix: "see `belljar agents`".to_owned(),
                });
            }
        };
        let found = all.swap_remove(at);
        let query = EntryQuery {
            agent: Some(found.agent.clone()).filter(|name| !name.starts_with("user:")),
            user: found.agent.strip_prefix("user:").map(str::to_owned),
            kinds: ["monitor", "agent"].map(str::to_owned).into(),
            ..EntryQuery::default()
        };
        let mut entries = Records::newest(self, &query, MOST_SHOWN)?;
        // What a user ran through an agent is that agent's.
        entries.retain(|entry| query.user.is_none() || entry.agent.as_ref().is_none_or(|name| *name == found.agent));
        Ok((found, entries))
    }

    fn suspend(&self, agent: &str, why: &str) -> Result<Watched, Trouble> {
        valid(agent, why)?;
        let by = caller();
        let hold = Hold {
            agent: agent.to_owned(),
            response: Response::Suspend,
            why: why.to_owned(),
            by: by.clone(),
            since: now() / 1000,
            until: None,
        };
        self.record_deed_about(agent, "agent.suspended", json!({"agent": agent, "by": by, "why": why}))?;
        store()?.set_hold(&hold, now())?;
        self.known(agent)
    }

    fn resume(&self, agent: &str, why: &str) -> Result<Watched, Trouble> {
        valid(agent, why)?;
        may_resume()?;
        let store = store()?;
        if store.hold(agent, now()).is_ok_and(|hold| hold.is_none()) {
            return Err(Trouble {
                message: format!("nothing holds for `{agent}`"),
                fix: "see `belljar agents` for who is suspended, throttled or asked about".to_owned(),
            });
        }
        let by = caller();
        self.record_deed_about(agent, "agent.resumed", json!({"agent": agent, "by": by, "why": why}))?;
        store.remove_hold(agent)?;
        // What led to it was looked into: it counts no more, and what comes is news.
        store.open(agent)?.change(monitor::Profile::settle)?;
        self.known(agent)
    }
}

impl Engine {
    fn known(&self, agent: &str) -> Result<Watched, Trouble> {
        let found = store()?.list(now())?.into_iter().find(|found| found.agent == agent);
        Ok(found.map(shown).unwrap_or_else(|| Watched { agent: agent.to_owned(), ..Watched::default() }))
    }
}

fn store() -> Result<Store, Trouble> {
    Store::of(&User::of_the_process()).ok_or_else(|| Trouble {
        message: "there is no place for what the monitor knows".to_owned(),
        fix: "set HOME or XDG_STATE_HOME to a folder of yours".to_owned(),
    })
}

fn shown(found: Found) -> Watched {
    let Found { agent, profile, hold, trouble } = found;
    let known = profile.map(|profile| profile.shown(&agent, &Terms::of(processors()), now()));
    Watched { hold, trouble, agent: agent.clone(), ..known.unwrap_or_default() }
}

/// Whoever is held back can't let themselves go. As with approvals, this is for those who say who they are: outside a
/// sandbox a process can do whatever its user can.
fn may_resume() -> Result<(), Trouble> {
    let environment: Vec<_> = std::env::vars_os().collect();
    let Some(who) = agents::no_person(&environment) else { return Ok(()) };
    Err(Trouble {
        message: format!("{who} may not say who runs again"),
        fix: "do it in a terminal of your own".to_owned(),
    })
}

fn caller() -> String {
    let user = format!("user:{}", User::of_the_process().name);
    match agents::detected(std::env::vars_os()) {
        Some(agent) => format!("{user} ({agent})"),
        None => user,
    }
}

fn valid(agent: &str, why: &str) -> Result<(), Trouble> {
    let name = agent.strip_prefix("user:").unwrap_or(agent);
    door::agent(name.strip_prefix("uid:").unwrap_or(name)).map_err(crate::policies::trouble)?;
    if why.chars().count() > LONGEST_WHY {
        return Err(Trouble {
            message: format!("the reason has more than {LONGEST_WHY} characters"),
            fix: "say it in fewer".to_owned(),
        });
    }
    Ok(())
}

/// Whom an entry is about: `user:NAME` is no agent.
pub fn principal(agent: &str) -> Principal {
    let user = User::of_the_process().name;
    Principal { user, agent: Some(agent.to_owned()).filter(|name| !name.starts_with("user:")) }
}
