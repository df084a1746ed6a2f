//! `belljar forward`: from the host's loopback to a server of a run that goes on already.
//!
//! Nothing was prepared for it, so runs pay nothing for it: the record says which process watches over a run, the kernel who
//! lives in it, and only to who made a sandbox does it open its network. From there on it is as with `--publish`: somebody in
//! that network connects, and can do nothing else.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use egress::{GateLimits, GateSettings};
use ledger::Durable;
use model::{
    Action, AskedAtGate, Asking, Doors, Endpoint, Entry, EntryQuery, Gated, Hears, HostName, Judgement, KeptSandbox,
    Led, NetworkDeed, NetworkEvent, Opening, OutgoingRequest, Porter, Principal, Published, Reason, Records, Refusal,
    Ruling, Trouble, Visits, agents,
};
use serde_json::{Value, json};
use sys::process::Alone;
use sys::residents::{self, Found, Residence};

use crate::Engine;
use crate::rail::Rail;
use crate::user::User;

/// Runs that were begun last, among which those that go on are looked for.
const MOST_RUNS: usize = 2048;

/// Where a run's process is, for whoever looks for it later. Costs next to nothing to say.
pub fn whereabouts() -> Value {
    let uptime = u64::try_from(residents::uptime().as_millis()).unwrap_or(u64::MAX);
    json!({"id": std::process::id(), "uptime_ms": uptime, "namespace": residents::numbered_in()})
}

/// A run that goes on.
struct Going {
    run: String,
    process: i32,
    /// When it was opened, as this machine runs.
    at: Duration,
    sandbox: Option<String>,
}

impl Visits for Engine {
    fn lead(&self, which: &str, ports: &[Published], hears: Hears) -> Result<(), Trouble> {
        let going = self.going_on(which)?;
        let run = going.run.as_str();
        let home = match residents::of(going.process, going.at) {
            Ok(Found::Here(home)) => home,
            Ok(Found::Gone) => return Err(has_ended(run)),
            Ok(Found::Closed) => return Err(trouble(format!("nobody in run {run} lets anybody in"), NOT_LET_IN)),
            Err(error) => return Err(trouble(format!("cannot look for who lives in run {run}: {error}"), NOT_LET_IN)),
        };
        let mut visits = Vec::new();
        for published in ports {
            let listener = egress::listen(published.host).map_err(|error| Trouble {
                message: match error.kind() {
                    // C libraries have different words for it.
                    std::io::ErrorKind::AddrInUse => {
                        format!("somebody listens at 127.0.0.1:{} already", published.host)
                    }
                    _ => format!("cannot listen at 127.0.0.1:{}: {error}", published.host),
                },
                fix: format!("choose another port: `belljar forward {which} OTHER:{}`", published.guest),
            })?;
            visits.push((*published, listener));
        }
        let porter = self.visitors(run, hears);
        for published in ports {
            porter.opens_for(published)?;
        }
        let dialer = Alone::prove().and_then(|alone| sys::dialer::start_in(&home.network, alone));
        let dialer =
            dialer.map_err(|error| trouble(format!("cannot enter the network of run {run}: {error}"), NOT_LET_IN))?;
        for ports in ports {
            let listens = home.listens(ports.guest);
            (porter.hears)(&Led::Open { run: run.to_owned(), ports: *ports, listens });
        }
        serve(porter, visits, dialer, home, run)
    }

    fn usher(&self, which: &str, agent: Option<&str>, asked: OwnedFd, ready: &dyn Fn()) -> Result<(), Trouble> {
        self.usher_into(which, agent, &asked, ready)
    }
}

const NOT_LET_IN: &str =
    "do it as the user who began the run, outside of any container; or begin it with `--publish HOST:GUEST`";

fn serve(
    porter: Visitors,
    visits: Vec<(Published, std::net::TcpListener)>,
    dialer: OwnedFd,
    home: Residence,
    run: &str,
) -> Result<(), Trouble> {
    let porter = Rc::new(porter);
    let failed =
        |error: io::Error| trouble(format!("cannot wait for the end of run {run}: {error}"), "please report this");
    let settings = GateSettings {
        porter: porter.clone(),
        gated: Gated::default(),
        first: 0,
        limits: GateLimits::default(),
        reader: None,
        visits,
        dialer: Some(dialer),
        heeds_signals: true,
    };
    let end = home.first.try_clone().map_err(failed)?;
    egress::serve_gate(settings, Doors::default(), end).map_err(|error| failed(io::Error::other(error)))?;
    let mut look = [rustix::event::PollFd::from_borrowed_fd(home.first.as_fd(), rustix::event::PollFlags::IN)];
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    let with_the_run = rustix::event::poll(&mut look, Some(&now)).is_ok_and(|ready| ready > 0);
    (porter.hears)(&Led::Ended { run: run.to_owned(), with_the_run });
    Ok(())
}

impl Engine {
    /// Runs that go on and have no layers, as they are listed beside those that have some.
    pub(crate) fn going_without_layers(&self) -> Result<Vec<KeptSandbox>, Trouble> {
        let going = self.all_going_on()?.into_iter().filter(|going| going.sandbox.is_none());
        let shown = |going: Going| -> Result<KeptSandbox, Trouble> {
            let kinds = vec!["run.asked".to_owned()];
            let query = EntryQuery { run: Some(going.run.clone()), kinds, ..EntryQuery::default() };
            let asked = self.newest(&query, 1)?.pop();
            let words = asked.as_ref().and_then(|entry| entry.data["command"].as_array());
            let words = words.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            let ago = residents::uptime().saturating_sub(going.at).as_secs();
            let began = (ledger::micros_now() / 1_000_000).saturating_sub(ago);
            Ok(KeptSandbox {
                id: going.run,
                name: None,
                running: true,
                open: false,
                created: began,
                used: began,
                command: words.collect(),
                workspaces: Vec::new(),
                snapshots: Vec::new(),
                disk: 0,
                made: false,
                trouble: None,
            })
        };
        going.map(shown).collect()
    }

    /// The run that a process watches over; what a visit to an open sandbox does is another's.
    pub(crate) fn run_watched_by(&self, process: i32) -> Result<Option<String>, Trouble> {
        Ok(self.all_going_on()?.into_iter().find(|going| going.process == process).map(|going| going.run))
    }

    /// The newest first.
    fn all_going_on(&self) -> Result<Vec<Going>, Trouble> {
        let query = EntryQuery { kinds: vec!["sandbox.opening".to_owned()], ..EntryQuery::default() };
        let mut all: Vec<Going> = Vec::new();
        let here = residents::numbered_in();
        for entry in self.newest(&query, MOST_RUNS)?.iter().rev() {
            // Where its layers were no good, it was tried again with others: the last one counts.
            if let Some(going) = going(entry, here)
                && !all.iter().any(|known| known.run == going.run)
            {
                all.push(going);
            }
        }
        all.retain(|going| residents::lives(going.process, going.at));
        Ok(all)
    }

    fn going_on(&self, which: &str) -> Result<Going, Trouble> {
        let mut all = self.all_going_on()?;
        if which == "last" {
            let none = || trouble("nothing runs now".to_owned(), "begin it: `belljar run -- COMMAND`");
            return if all.is_empty() { Err(none()) } else { Ok(all.swap_remove(0)) };
        }
        // As `ps` calls it; else as the record does.
        let kept = self.workspaces.find(which).ok().map(|kept| kept.id);
        let is_meant = |going: &Going| match &kept {
            Some(kept) => going.sandbox.as_ref() == Some(kept),
            None => which.len() >= 4 && going.run.starts_with(which),
        };
        let live: Vec<String> = all.iter().map(|going| going.run.chars().take(8).collect()).collect();
        all.retain(is_meant);
        // Of one that stays, its host: whoever visits it has nobody living there.
        if let Some(host) = kept.as_deref().and_then(|id| self.host_of(id)).filter(|_| all.len() > 1) {
            all.retain(|going| going.process == host);
        }
        match all.len() {
            1 => Ok(all.swap_remove(0)),
            0 if kept.is_some() || self.was_a_run(which)? => Err(has_ended(which)),
            0 => {
                let listed = if live.is_empty() {
                    "nothing runs now".to_owned()
                } else {
                    format!("these run: {}", live.join(", "))
                };
                let message = format!("no run is called `{}`; {listed}", which.escape_debug());
                Err(trouble(message, "see `belljar ps`"))
            }
            _ => Err(trouble(format!("several runs begin with `{}`", which.escape_debug()), "give more of its id")),
        }
    }

    fn host_of(&self, id: &str) -> Option<i32> {
        let host = self.workspaces.call_on(id).ok()??;
        Some(rustix::net::sockopt::socket_peercred(&host).ok()?.pid.as_raw_nonzero().get())
    }

    fn was_a_run(&self, which: &str) -> Result<bool, Trouble> {
        let kinds = vec!["run.asked".to_owned()];
        let query = EntryQuery { run: Some(which.to_owned()), kinds, ..EntryQuery::default() };
        Ok(which.len() >= 4 && !self.newest(&query, 1)?.is_empty())
    }

    fn visitors(&self, run: &str, hears: Hears) -> Visitors {
        let principal = Principal { user: User::of_the_process().name, agent: agents::detected(std::env::vars_os()) };
        Visitors { rail: Rail::new(self.ledger().cloned(), Some(run.to_owned()), principal), hears }
    }
}

/// `here`: in a container, say, the same number is somebody else's; who it was there can't be told from here.
fn going(entry: &Entry, here: Option<u64>) -> Option<Going> {
    let process = &entry.data["process"];
    if process["namespace"].as_u64().is_some_and(|there| Some(there) != here) {
        return None;
    }
    Some(Going {
        run: entry.run.clone()?,
        process: process["id"].as_i64().and_then(|id| i32::try_from(id).ok())?,
        at: Duration::from_millis(process["uptime_ms"].as_u64()?),
        sandbox: entry.data["sandbox"].as_str().map(str::to_owned),
    })
}

fn trouble(message: String, fix: &str) -> Trouble {
    Trouble { message, fix: fix.to_owned() }
}

fn has_ended(run: &str) -> Trouble {
    trouble(format!("run {} has ended", run.escape_debug()), "see `belljar ps` for those that go on")
}

/// Lets nothing out: only visitors in, each on the record before it is.
struct Visitors {
    rail: Rail,
    hears: Hears,
}

impl Visitors {
    fn opens_for(&self, published: &Published) -> Result<(), Trouble> {
        let data = json!({
            "host": "localhost", "port": published.guest, "why": format!("from port {} of the host", published.host),
        });
        self.rail.say("network.forward", false, data);
        self.rail.write(Durable::default()).map(drop).map_err(crate::policies::trouble)
    }

    fn no(about: String) -> Judgement {
        let silence = || Reason {
            ruling: Ruling::Deny,
            rule: "network.forward".to_owned(),
            place: String::new(),
            why: "nothing goes out this way".to_owned(),
            action: Action::Connect,
            about,
            grant: String::new(),
        };
        Judgement::of(Vec::new(), silence)
    }
}

impl Porter for Visitors {
    fn knows(&self, name: &HostName) -> Judgement {
        Visitors::no(name.to_string())
    }

    fn opens(&self, destination: &Endpoint) -> Opening {
        Opening::Whole(Visitors::no(destination.to_string()))
    }

    fn leads_to(&self, destination: &Endpoint, _: IpAddr) -> Judgement {
        Visitors::no(destination.to_string())
    }

    fn lets(&self, request: &OutgoingRequest) -> Judgement {
        Visitors::no(request.destination.to_string())
    }

    fn adds(&self, _: &str, destination: &Endpoint) -> Judgement {
        Visitors::no(destination.to_string())
    }

    fn asks(&self, _: &Judgement, about: &AskedAtGate) -> Asking {
        let no = Refusal::new("network.forward", format!("nothing goes out to {} this way", about.destination), "");
        Box::pin(async move { Err(no) })
    }

    fn records(&self, event: &NetworkEvent) -> Result<(), Trouble> {
        self.rail.say(event.what.name(), event.denied, json!(event));
        let is_over = event.what == NetworkDeed::Close;
        let written = self.rail.write(Durable { last_words: is_over, ..Durable::default() });
        let (connection, guest) = (event.connection.unwrap_or_default(), event.port.unwrap_or_default());
        let written = written.map(drop).map_err(crate::policies::trouble);
        let (sent, received) = event.bytes.unwrap_or_default();
        (self.hears)(&match &written {
            Err(trouble) => Led::Refused { guest, why: trouble.to_string() },
            Ok(()) if event.denied => Led::Refused { guest, why: event.why.clone() },
            Ok(()) if is_over => Led::Left { connection, guest, sent, received, why: event.why.clone() },
            Ok(()) => Led::Visit { connection, guest },
        });
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_another_place_is_nobodys_here() {
        let entry = |process: Value| -> Entry {
            let told = json!({"n": 1, "at": "", "type": "sandbox.opening", "run": "a", "data": {"process": process}});
            serde_json::from_value(told).expect("it is an entry")
        };
        let own = whereabouts();
        let here = residents::numbered_in();
        assert!(here.is_some() && going(&entry(own.clone()), here).is_some());
        let mut others = own.clone();
        others["namespace"] = json!(1);
        assert!(going(&entry(others), here).is_none());
        // As it was written before.
        let mut older = own;
        older.as_object_mut().expect("it has names").remove("namespace");
        assert!(going(&entry(older), here).is_some());
    }
}
