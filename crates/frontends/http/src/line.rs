//! Who is next. A free place goes to the tenant that has the fewest jobs at this moment, and within it to the agent that has the
//! fewest; of equals, to the one that was served longest ago, then to whoever came first. So nobody waits behind another's queue.

use std::collections::HashMap;

/// How much there may be at once, and how many may wait.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub all: usize,
    pub tenant: usize,
    pub agent: usize,
    pub queue: usize,
    pub agent_queue: usize,
}

/// Whose job it is. An agent is one of its tenant: the same name elsewhere is another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Who {
    pub tenant: String,
    pub agent: Option<String>,
}

/// What can't be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    Tenant,
    Agent,
}

pub struct Line<T> {
    room: Room,
    running: usize,
    /// Goes up with each that is let in.
    turn: u64,
    tenants: HashMap<String, Counts>,
    agents: HashMap<(String, String), Counts>,
    /// In the order of their coming.
    waits: Vec<(u64, Who, T)>,
    next: u64,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    running: usize,
    waiting: usize,
    /// When one was let in last.
    turn: u64,
}

/// Whether somebody may begin at once, or waits under a number.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    Now,
    Waits(u64),
}

impl<T> Line<T> {
    pub fn new(room: Room) -> Line<T> {
        Line { room, running: 0, turn: 0, tenants: HashMap::new(), agents: HashMap::new(), waits: Vec::new(), next: 0 }
    }

    pub fn running(&self) -> usize {
        self.running
    }

    /// `waiter`: told later, if it has to wait.
    pub fn come(&mut self, who: &Who, waiter: T) -> Result<Place, Full> {
        // Whoever waits could not be let in, so a place that is free for this one is free.
        if self.has_room(who) {
            self.let_in(who);
            return Ok(Place::Now);
        }
        if self.tenant(who).waiting >= self.room.queue {
            return Err(Full::Tenant);
        }
        if self.agent(who).is_some_and(|agent| agent.waiting >= self.room.agent_queue) {
            return Err(Full::Agent);
        }
        self.count(who, |counts| counts.waiting += 1);
        self.next += 1;
        self.waits.push((self.next, who.clone(), waiter));
        Ok(Place::Waits(self.next))
    }

    /// Does not want to wait any more; nothing, if it was let in meanwhile.
    pub fn go(&mut self, number: u64) {
        if let Some(at) = self.waits.iter().position(|(known, _, _)| *known == number) {
            let (_, who, _) = self.waits.remove(at);
            self.count(&who, |counts| counts.waiting = counts.waiting.saturating_sub(1));
        }
    }

    /// One has ended: who comes in for it. At most one place is free by that, but it may be of use to none.
    pub fn leave(&mut self, who: &Who) -> Option<(Who, T)> {
        self.running = self.running.saturating_sub(1);
        self.count(who, |counts| counts.running = counts.running.saturating_sub(1));
        let rank = |(number, who, _): &(u64, Who, T)| {
            let (tenant, agent) = (self.tenant(who), self.agent(who).unwrap_or_default());
            (tenant.running, tenant.turn, agent.running, agent.turn, *number)
        };
        let fits = |wait: &&(u64, Who, T)| self.has_room(&wait.1);
        let (number, _, _) = self.waits.iter().filter(fits).min_by_key(|wait| rank(wait))?;
        let at = self.waits.iter().position(|(known, _, _)| known == number)?;
        let (_, who, waiter) = self.waits.remove(at);
        self.count(&who, |counts| counts.waiting = counts.waiting.saturating_sub(1));
        self.let_in(&who);
        Some((who, waiter))
    }

    fn has_room(&self, who: &Who) -> bool {
        self.running < self.room.all
            && self.tenant(who).running < self.room.tenant
            && self.agent(who).is_none_or(|agent| agent.running < self.room.agent)
    }

    fn let_in(&mut self, who: &Who) {
        self.running += 1;
        self.turn += 1;
        let turn = self.turn;
        self.count(who, |counts| {
            counts.running += 1;
            counts.turn = turn;
        });
    }

    fn tenant(&self, who: &Who) -> Counts {
        self.tenants.get(&who.tenant).copied().unwrap_or_default()
    }

    fn agent(&self, who: &Who) -> Option<Counts> {
        let agent = who.agent.clone()?;
        Some(self.agents.get(&(who.tenant.clone(), agent)).copied().unwrap_or_default())
    }

    /// Of both: there are only as many as somebody made tokens for.
    fn count(&mut self, who: &Who, mut change: impl FnMut(&mut Counts)) {
        change(self.tenants.entry(who.tenant.clone()).or_default());
        if let Some(agent) = &who.agent {
            change(self.agents.entry((who.tenant.clone(), agent.clone())).or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(tenant: &str, agent: &str) -> Who {
        Who { tenant: tenant.to_owned(), agent: Some(agent.to_owned()).filter(|agent| !agent.is_empty()) }
    }

    fn line(all: usize, tenant: usize, agent: usize) -> Line<&'static str> {
        Line::new(Room { all, tenant, agent, queue: 100, agent_queue: 50 })
    }

    #[test]
    fn who_waits_alone_is_next_however_many_others_wait() {
        let mut line = line(2, 2, 2);
        for _ in 0..40 {
            line.come(&who("greedy", ""), "greedy").expect("it may wait");
        }
        assert_eq!(line.come(&who("modest", ""), "modest"), Ok(Place::Waits(39)));
        let (next, told) = line.leave(&who("greedy", "")).expect("somebody");
        assert_eq!((next.tenant.as_str(), told), ("modest", "modest"));
        // And then it takes turns with the other.
        line.come(&who("modest", ""), "modest").expect("it may wait");
        let (next, _) = line.leave(&who("modest", "")).expect("somebody");
        assert_eq!(next.tenant, "modest", "it has the fewest");
        let (next, _) = line.leave(&who("greedy", "")).expect("somebody");
        assert_eq!(next.tenant, "greedy", "nobody else waits");
    }

    #[test]
    fn an_agent_that_floods_its_tenant_keeps_no_other_agent_waiting() {
        let mut line = line(8, 4, 3);
        for _ in 0..20 {
            line.come(&who("t", "flood"), "flood").expect("it may wait");
        }
        assert_eq!(line.running(), 3, "an agent has its own measure");
        assert_eq!(line.come(&who("t", "calm"), "calm"), Ok(Place::Now));
        assert!(matches!(line.come(&who("t", "calm"), "calm"), Ok(Place::Waits(_))));
        let (next, _) = line.leave(&who("t", "flood")).expect("somebody");
        assert_eq!(next.agent.as_deref(), Some("calm"), "it has fewer, though it came last");
        assert!(matches!(line.come(&who("t", ""), "person"), Ok(Place::Waits(_))));
        let (next, _) = line.leave(&who("t", "flood")).expect("somebody");
        assert_eq!(next.agent, None, "a person is no agent, and has none running");
    }

    #[test]
    fn queues_have_an_end_and_who_goes_away_leaves_nothing() {
        let mut line: Line<()> = Line::new(Room { all: 1, tenant: 1, agent: 1, queue: 3, agent_queue: 2 });
        assert_eq!(line.come(&who("t", "a"), ()), Ok(Place::Now));
        assert_eq!(line.come(&who("t", "a"), ()), Ok(Place::Waits(1)));
        assert_eq!(line.come(&who("t", "a"), ()), Ok(Place::Waits(2)));
        assert_eq!(line.come(&who("t", "a"), ()), Err(Full::Agent));
        assert_eq!(line.come(&who("t", "b"), ()), Ok(Place::Waits(3)));
        assert_eq!(line.come(&who("t", "c"), ()), Err(Full::Tenant));
        assert_eq!(
            line.come(&who("u", "a"), ()),
            Ok(Place::Waits(4)),
            "another tenant's agent of that name is another"
        );
        line.go(1);
        line.go(1);
        assert_eq!(line.come(&who("t", "a"), ()), Ok(Place::Waits(5)));
        let mut left = 0;
        let mut at = Some(who("t", "a"));
        while let Some(who) = at {
            left += 1;
            at = line.leave(&who).map(|(next, ())| next);
        }
        assert_eq!((left, line.running(), line.waits.len()), (5, 0, 0));
        assert!(line.tenants.values().chain(line.agents.values()).all(|counts| counts.running + counts.waiting == 0));
    }
}
