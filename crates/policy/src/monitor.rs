//! What follows from what the monitor sees: of all voices, the strictest for each detector.

use std::time::Duration;

use model::{Detector, Response};

use crate::policy::Policy;

/// What one owner says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitorTerms {
    pub default: Option<Response>,
    /// As in [`Detector::ALL`].
    pub responses: [Option<Response>; Detector::ALL.len()],
    pub mining_after: Option<Duration>,
    pub runaway_after: Option<Duration>,
    pub webhook: Option<String>,
}

/// What holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitored {
    responses: [Response; Detector::ALL.len()],
    /// The shortest that anybody names.
    pub mining_after: Option<Duration>,
    pub runaway_after: Option<Duration>,
    /// Everybody's: what one wants to be told, another can't take away.
    pub webhooks: Vec<String>,
}

impl Monitored {
    pub fn response(&self, detector: Detector) -> Response {
        self.responses.get(detector as usize).copied().unwrap_or(Response::Alert)
    }
}

impl MonitorTerms {
    /// A later file of the same owner: what it says counts.
    pub fn overlay(&mut self, later: MonitorTerms) {
        let MonitorTerms { default, responses, mining_after, runaway_after, webhook } = later;
        self.default = default.or(self.default);
        for (known, later) in self.responses.iter_mut().zip(responses) {
            *known = later.or(*known);
        }
        self.mining_after = mining_after.or(self.mining_after);
        self.runaway_after = runaway_after.or(self.runaway_after);
        self.webhook = webhook.or(self.webhook.take());
    }

    fn response(&self, detector: Detector) -> Option<Response> {
        self.responses.get(detector as usize).copied().flatten().or(self.default)
    }

    /// In words, a line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(response) = self.default {
            lines.push(format!("{} what the monitor sees", response.name()));
        }
        let named = Detector::ALL.into_iter().zip(self.responses);
        lines.extend(named.filter_map(|(detector, response)| {
            response.map(|response| format!("{} what the monitor sees by `{}`", response.name(), detector.name()))
        }));
        let times = [("mining", self.mining_after), ("runaway", self.runaway_after)];
        lines.extend(times.into_iter().filter_map(|(name, time)| {
            time.map(|time| format!("the monitor waits {} s for `{name}`", time.as_secs_f64()))
        }));
        lines.extend(self.webhook.iter().map(|address| format!("alerts go to {address}")));
        lines
    }
}

impl Policy {
    /// Who is silent has no say; where all are, an alert is said and nothing more.
    pub fn monitored(&self) -> Monitored {
        let terms = || self.voices.iter().map(|voice| &voice.sheet.settings.monitor);
        let strictest = |detector: Detector| terms().filter_map(|terms| terms.response(detector)).max();
        let mut webhooks: Vec<String> = terms().filter_map(|terms| terms.webhook.clone()).collect();
        webhooks.sort();
        webhooks.dedup();
        Monitored {
            responses: Detector::ALL.map(|detector| strictest(detector).unwrap_or(Response::Alert)),
            mining_after: terms().filter_map(|terms| terms.mining_after).min(),
            runaway_after: terms().filter_map(|terms| terms.runaway_after).min(),
            webhooks,
        }
    }
}
