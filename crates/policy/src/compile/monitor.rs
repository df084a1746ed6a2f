//! `[monitor]` → its terms.

use std::net::Ipv4Addr;

use model::{Detector, Response};

use super::{Compiler, Owner};
use crate::file::{Monitor, Text};
use crate::monitor::MonitorTerms;
use crate::reader::BadPolicy;

impl Compiler<'_> {
    pub(super) fn monitor(&self, monitor: &Monitor) -> Result<MonitorTerms, BadPolicy> {
        let Monitor {
            default,
            runaway,
            heavy,
            mining,
            scan,
            exfiltration,
            retries,
            change,
            timeouts,
            rate,
            mining_after,
            runaway_after,
            webhook,
        } = monitor;
        // As in `Detector::ALL`.
        let named = [runaway, heavy, mining, scan, exfiltration, retries, change, timeouts, rate];
        let others = [default, mining_after, runaway_after, webhook];
        let said = named.iter().chain(&others).filter_map(|text| text.as_ref());
        if self.owner == Owner::Project
            && let Some(first) = said.map(Text::span).min_by_key(|span| span.start)
        {
            let message = "who is watched, and what follows, is not for a project's file; put `[monitor]` in your own";
            return Err(self.bad(&first, message));
        }
        let response = |text: &Option<Text>| text.as_ref().map(|text| self.response(text)).transpose();
        let mut responses = [None; Detector::ALL.len()];
        for (known, text) in responses.iter_mut().zip(named) {
            *known = response(text)?;
        }
        Ok(MonitorTerms {
            default: response(default)?,
            responses,
            mining_after: self.quantity("monitor.mining_after", mining_after, model::units::duration)?,
            runaway_after: self.quantity("monitor.runaway_after", runaway_after, model::units::duration)?,
            webhook: webhook.as_ref().map(|text| self.webhook(text)).transpose()?,
        })
    }

    fn response(&self, text: &Text) -> Result<Response, BadPolicy> {
        let names: Vec<&str> = Response::ALL.iter().map(|response| response.name()).collect();
        let found = Response::ALL.into_iter().find(|response| response.name() == text.get_ref());
        found.ok_or_else(|| self.unknown(text, "response of the monitor", &names))
    }

    /// What an agent did is nobody else's business, so it leaves the machine encrypted or not at all.
    fn webhook(&self, text: &Text) -> Result<String, BadPolicy> {
        let address = text.get_ref();
        let host = |rest: &str| rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned();
        // Whoever sends it looks again where that leads.
        let is_here = |host: &String| {
            let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
            name == "localhost"
                || name == "[::1]"
                || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        };
        let host = match (address.strip_prefix("https://"), address.strip_prefix("http://")) {
            (Some(rest), _) => Some(host(rest)),
            (None, rest) => rest.map(host).filter(is_here),
        };
        let plain = address.chars().all(|letter| letter.is_ascii_graphic());
        match host {
            Some(host) if !host.is_empty() && plain && !host.contains('@') => Ok(address.clone()),
            _ => Err(self.bad(
                &text.span(),
                format!(
                    "monitor.webhook: `{}` is no address; write `https://host/path`, or `http://127.0.0.1:port/path`",
                    address.escape_debug()
                ),
            )),
        }
    }
}
