//! One run under the monitor's eyes: whether it may begin, what it does, what follows.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use ledger::{Appended, Durable};
use model::{
    Action, Alert, Denied, Detector, Entry, Goes, Grant, Hold, Outcome, Principal, Reason, Refusal, Response, Retry,
    Ruling, Sample, Started, Trouble, Wall, Watch, Witness,
};
use monitor::{Ended, Live, Observation, Profile, THROTTLED, Terms};
use policy::Monitored;
use serde_json::{Value, json};

use super::store::{EVERYONE, ProfileFile, Store};
use super::{known_as, now, processors, user};
use crate::fresh::Fresh;
use crate::gate::News;
use crate::layers::not_set_up;
use crate::outside;
use crate::rail::Rail;

/// How long an agent stays throttled, or asked about, in seconds. A suspension lasts until somebody ends it.
const THROTTLED_FOR: u64 = 60 * 60;
const ASKED_FOR: u64 = 24 * 60 * 60;
const ALERT: &str = "monitor.alert";

pub struct Monitoring {
    store: Store,
    file: ProfileFile,
    /// Whom it is about: the agent first, then whoever runs it.
    names: [String; 2],
    policy: Monitored,
    terms: Cell<Terms>,
    live: RefCell<Live>,
    /// What its gate tells, where it has one.
    news: RefCell<Option<News>>,
    /// What is fetched meanwhile: taken in now and then, so that there is room for more.
    fresh: RefCell<Option<Rc<Fresh>>>,
    alerts: RefCell<Vec<Alert>>,
    rail: Rc<Rail>,
    watch: Rc<dyn Watch>,
    version: &'static str,
    /// What all of this took.
    pub took: Cell<Duration>,
}

impl Monitoring {
    pub fn of(
        store: Store,
        principal: &Principal,
        policy: Monitored,
        rail: Rc<Rail>,
        watch: Rc<dyn Watch>,
        version: &'static str,
    ) -> Result<Monitoring, Outcome> {
        let began = Instant::now();
        let names = [known_as(principal), user(principal)];
        let file = store.open(&names[0]).map_err(not_set_up)?;
        let mut terms = Terms::of(processors());
        terms.mining_after = policy.mining_after.unwrap_or(terms.mining_after);
        terms.runaway_after = policy.runaway_after.unwrap_or(terms.runaway_after);
        let (live, alerts) = (RefCell::new(Live::new(terms)), RefCell::default());
        let (news, fresh) = (RefCell::default(), RefCell::default());
        let terms = Cell::new(terms);
        let took = Cell::new(began.elapsed());
        Ok(Monitoring { store, file, names, policy, terms, live, news, fresh, alerts, rail, watch, version, took })
    }

    /// Counts one more run, and says whether it may begin; with what is to be asked about it.
    pub fn admit(&self) -> Result<Vec<Reason>, Outcome> {
        self.timed(|| {
            self.observe(&[Observation::Asked]).map_err(not_set_up)?;
            let Some(hold) = self.held().map_err(not_set_up)? else { return Ok(Vec::new()) };
            match hold.response {
                Response::Off | Response::Alert => Ok(Vec::new()),
                Response::Suspend => Err(Outcome::Refused(suspended(&hold))),
                Response::Throttle => {
                    let (room, said) =
                        self.file.change(|profile| profile.begin_throttled(now())).map_err(not_set_up)?;
                    self.warn(said);
                    room.map(|()| Vec::new()).map_err(|wait| Outcome::Refused(throttled(&hold, wait)))
                }
                Response::Ask => Ok(vec![question(&hold)]),
            }
        })
    }

    /// Whether it may still begin: while a person was asked, somebody may have said no to all of it.
    pub fn still_free(&self) -> Result<(), Outcome> {
        match self.held().map_err(not_set_up)? {
            Some(hold) if hold.response == Response::Suspend => Err(Outcome::Refused(suspended(&hold))),
            _ => Ok(()),
        }
    }

    /// What a run may use is its own.
    pub fn grants(&self, grant: &Grant) {
        let Some(allowed) = grant.powers().limits.millicpus else { return };
        let terms = self.terms.get();
        let processors = terms.processors.min(f64::from(allowed) / 1000.0);
        self.live.replace(Live::new(Terms { processors, ..terms }));
    }

    /// From now on, what this gate tells. One of an earlier try is no longer listened to.
    pub fn hears(&self, news: Option<News>, fresh: Option<Rc<Fresh>>) {
        self.news.replace(news);
        self.fresh.replace(fresh);
    }

    /// Connections that the gate told of since the last look.
    fn connections(&self) -> Vec<Alert> {
        let heard = self.news.borrow().as_ref().map(News::heard).unwrap_or_default();
        let mut live = self.live.borrow_mut();
        let seen = |(host, port): &(String, u16)| live.observe(&Observation::Connected { host, port: *port });
        heard.iter().filter_map(seen).collect()
    }

    /// Tells the monitor what the backend tells the record.
    pub fn witness(self: &Rc<Self>, inner: Box<dyn Witness>) -> Box<dyn Witness> {
        Box::new(Watching { inner, monitoring: self.clone() })
    }

    /// What it came to. Alerts are in the outcome, too.
    pub fn ended(&self, outcome: &mut Outcome) {
        let told = self.timed(|| match &*outcome {
            Outcome::Ran(finished) => {
                let usage = &finished.usage;
                let (read, written) = {
                    let live = self.live.borrow();
                    (live.last().read, live.last().written)
                };
                self.observe_with_all(&Observation::Ended(Ended {
                    duration: usage.wall_time,
                    processor: usage.user_time + usage.system_time,
                    peak_memory: usage.peak_memory,
                    read,
                    written,
                    egress: finished.traffic.as_ref().map_or(0, |traffic| traffic.sent),
                    overrun: finished.overrun,
                    denials: &finished.denials,
                    denials_not_listed: finished.denials_not_listed,
                }))
            }
            Outcome::Refused(refusal) => {
                let first = refusal.denied.first();
                let rule = first.map_or(refusal.rule.as_str(), |denied| &denied.rule);
                let about = first.map_or("", |denied| &denied.about);
                self.observe_with_all(&Observation::Refused { rule, about })
            }
            Outcome::NotSetUp(_) | Outcome::NotStarted(_) => Ok(()),
        });
        if let Err(trouble) = told {
            self.watch.warn(&trouble.to_string());
        }
        if let Outcome::Ran(finished) = outcome {
            finished.alerts = self.alerts.take();
        }
    }

    /// What holds for the agent, or for whoever runs it: the stricter.
    fn held(&self) -> Result<Option<Hold>, Trouble> {
        let [agent, user] = &self.names;
        let of_agent = self.store.hold(agent, now())?;
        let of_user = if user == agent { None } else { self.store.hold(user, now())? };
        Ok(of_agent.into_iter().chain(of_user).max_by_key(|hold| hold.response))
    }

    fn observe(&self, observations: &[Observation<'_>]) -> Result<[bool; Detector::ALL.len()], Trouble> {
        let (now, terms) = (now(), self.terms.get());
        let ((alerts, lasting), said) = self.file.change(|profile| {
            let found = observations.iter().flat_map(|observation| profile.observe(observation, &terms, now)).collect();
            (self.counted(profile, found), Detector::ALL.map(|detector| profile.is_lasting(detector, now)))
        })?;
        self.warn(said);
        self.tell(alerts, &self.names[0])?;
        Ok(lasting)
    }

    /// Also in the profile of all together: who changes their name with each run is in none of their own for long.
    fn observe_with_all(&self, observation: &Observation<'_>) -> Result<(), Trouble> {
        let lasting = self.observe(&[*observation])?;
        let (now, terms) = (now(), self.terms.get());
        let (alerts, said) = self.store.open(EVERYONE)?.change(|profile| {
            let mut found = profile.observe(&Observation::Asked, &terms, now);
            found.extend(profile.observe(observation, &terms, now));
            // What is told of the agent is not told of all.
            found.retain(|alert| !lasting.get(alert.detector as usize).copied().unwrap_or(false));
            self.counted(profile, found)
        })?;
        self.warn(said);
        self.tell(alerts, EVERYONE)
    }

    /// Something that was seen while it runs.
    fn raise(&self, alert: Alert) -> Result<(), Trouble> {
        let (alerts, said) = self.file.change(|profile| {
            let found = profile.raise(alert, now());
            self.counted(profile, found.into_iter().collect())
        })?;
        self.warn(said);
        self.tell(alerts, &self.names[0])
    }

    /// Without those that nobody wants to know of.
    fn counted(&self, profile: &mut Profile, mut found: Vec<Alert>) -> Vec<Alert> {
        found.retain(|alert| self.policy.response(alert.detector) != Response::Off);
        profile.told(found.len() as u64);
        found
    }

    /// On the record, to whoever looks, to whoever the policy names; and what follows from it.
    fn tell(&self, alerts: Vec<Alert>, of: &str) -> Result<(), Trouble> {
        if alerts.is_empty() {
            return Ok(());
        }
        let agent = &self.names[0];
        for alert in alerts {
            let response = self.policy.response(alert.detector);
            let Alert { detector, severity, measured, threshold, baseline } = &alert;
            let data = json!({
                "detector": detector.name(), "severity": severity.name(), "measured": measured, "threshold": threshold,
                "baseline": baseline, "response": response.name(), "of": of,
            });
            self.rail.say(ALERT, false, data.clone());
            self.write()?;
            let written = self.rail.written();
            self.watch.warn(&line(&alert, agent, of, response));
            self.follow_up(&alert, response)?;
            self.alerts.borrow_mut().push(alert);
            // Last: whoever is told may be slow.
            if let Some(written) = written.filter(|_| !self.policy.webhooks.is_empty()) {
                self.send(&written, data);
            }
        }
        self.write()
    }

    /// What runs already may use the room that is kept for it.
    fn write(&self) -> Result<(), Trouble> {
        let written = self.rail.write(Durable { last_words: true, ..Durable::default() });
        written.map(|warning| self.warn(warning)).map_err(crate::policies::trouble)
    }

    /// Tells everybody whom the policy names. What they could not be told is on the record, and nothing waits for it.
    fn send(&self, written: &Appended, mut data: Value) {
        self.rail.without_secrets(&mut data);
        let Principal { user, agent } = self.rail.principal.borrow().clone();
        let entry = Entry {
            number: written.number,
            at: ledger::time_text(ledger::micros_now()),
            kind: ALERT.to_owned(),
            denied: false,
            run: self.rail.run.clone(),
            user: Some(user),
            agent,
            data,
            hash: ledger::hex(&written.hash),
        };
        for address in &self.policy.webhooks {
            if let Err(trouble) = outside::tell_webhook(&written.installation, self.version, address, &entry) {
                self.rail.say("monitor.not-sent", false, json!({"alert": written.number, "why": trouble.message}));
                self.watch.warn(&format!("the alert was not sent: {trouble}"));
            }
        }
    }

    fn follow_up(&self, alert: &Alert, response: Response) -> Result<(), Trouble> {
        let seconds = now() / 1000;
        let (kind, until) = match response {
            Response::Off | Response::Alert => return Ok(()),
            Response::Throttle => ("agent.throttled", Some(seconds + THROTTLED_FOR)),
            Response::Ask => ("agent.asked-about", Some(seconds + ASKED_FOR)),
            Response::Suspend => ("agent.suspended", None),
        };
        let hold = Hold {
            agent: self.names[0].clone(),
            response,
            why: alert.measured.clone(),
            by: format!("monitor.{}", alert.detector.name()),
            since: seconds,
            until,
        };
        self.rail.say(kind, false, json!({"agent": hold.agent, "by": hold.by, "why": hold.why, "until": until}));
        self.store.set_hold(&hold, now())
    }

    fn warn(&self, said: Option<String>) {
        if let Some(said) = said {
            self.watch.warn(&said);
        }
    }

    fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let made = work();
        self.took.set(self.took.get() + began.elapsed());
        made
    }
}

/// Hears what the backend tells, before it is written down.
struct Watching {
    inner: Box<dyn Witness>,
    monitoring: Rc<Monitoring>,
}

impl Witness for Watching {
    fn raising(&mut self) -> Result<(), Trouble> {
        self.inner.raising()
    }

    fn armed(&mut self, proven: &[Wall]) {
        self.inner.armed(proven);
    }

    fn resting(&mut self) {
        self.inner.resting();
    }

    fn started(&mut self, started: Vec<Started>, last: bool) -> Result<(), Trouble> {
        let seen = |one: &Started| self.monitoring.live.borrow_mut().started(&one.program, &one.arguments);
        let alerts: Vec<Alert> = started.iter().filter_map(seen).collect();
        self.inner.started(started, last)?;
        alerts.into_iter().try_for_each(|alert| self.monitoring.raise(alert))
    }

    fn one_more(&mut self) {
        self.monitoring.live.borrow_mut().one_more();
        self.inner.one_more();
    }

    fn ending(&mut self) {
        self.inner.ending();
    }

    fn sampled(&mut self, sample: &Sample) -> Result<Goes, Trouble> {
        let goes = self.inner.sampled(sample)?;
        if let Some(fresh) = self.monitoring.fresh.borrow().as_ref() {
            fresh.take_in();
        }
        // What was reached meanwhile first: it says how to take what was used.
        let mut alerts = self.monitoring.connections();
        alerts.extend(self.monitoring.live.borrow_mut().sampled(sample));
        alerts.into_iter().try_for_each(|alert| self.monitoring.raise(alert))?;
        // By what was just seen, or because somebody said so meanwhile.
        match self.monitoring.held()? {
            Some(hold) if hold.response == Response::Suspend => Ok(Goes::Ended),
            _ => Ok(goes),
        }
    }
}

fn line(alert: &Alert, agent: &str, of: &str, response: Response) -> String {
    let Alert { detector, severity, measured, threshold, baseline } = alert;
    let whose = if of == EVERYONE { "all agents together".to_owned() } else { format!("`{agent}`") };
    let follows = match response {
        Response::Off | Response::Alert => String::new(),
        Response::Throttle => format!("; it is throttled, until `belljar agents resume {agent}` or for an hour"),
        Response::Ask => format!("; its runs are asked about, until `belljar agents resume {agent}` or for a day"),
        Response::Suspend => format!("; it is suspended, until `belljar agents resume {agent}`"),
    };
    let (name, severity) = (detector.name(), severity.name());
    format!("alert: {name} ({severity}) of {whose}: {measured}; an alert from: {threshold}; usual: {baseline}{follows}")
}

fn suspended(hold: &Hold) -> Refusal {
    let since = match hold.since {
        0 => String::new(),
        since => format!(" since {}", ledger::time_text(since.saturating_mul(1_000_000))),
    };
    let why = if hold.why.is_empty() { String::new() } else { format!(": {}", hold.why) };
    let message = format!("`{}` is suspended{since} by {}{why}", hold.agent, hold.by);
    let hint = format!("a person who has looked into it says `belljar agents resume {}`", hold.agent);
    refusal("monitor.suspended", hold, message, hint, Retry::No)
}

fn throttled(hold: &Hold, wait: u64) -> Refusal {
    let wait = wait.div_ceil(1000);
    let message = format!(
        "`{}` is throttled to {THROTTLED} runs a minute by {}: {}; there is room again in {wait} s",
        hold.agent, hold.by, hold.why
    );
    let hint = format!("wait, or have a person say `belljar agents resume {}`", hold.agent);
    refusal("monitor.throttled", hold, message, hint, Retry::Later)
}

fn refusal(rule: &str, hold: &Hold, message: String, hint: String, retry: Retry) -> Refusal {
    let denied = Denied {
        action: Action::Exec,
        about: hold.agent.clone(),
        rule: rule.to_owned(),
        place: String::new(),
        reason: message.clone(),
        grant: format!("`belljar agents resume {}`", hold.agent),
        retry,
    };
    Refusal { denied: vec![denied], ..Refusal::new(rule, message, &hint) }
}

fn question(hold: &Hold) -> Reason {
    let rule = if hold.by.starts_with("monitor.") { hold.by.clone() } else { "monitor.held".to_owned() };
    Reason {
        ruling: Ruling::Ask,
        rule,
        place: String::new(),
        why: format!("`{}` did something that it should not: {}", hold.agent, hold.why),
        action: Action::Exec,
        about: hold.agent.clone(),
        grant: format!("`belljar agents resume {}`", hold.agent),
    }
}
