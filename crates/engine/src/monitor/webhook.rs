//! Telling somebody elsewhere of an alert. The one place where a client for HTTPS is joined: it is given as a part, and
//! until there is one, an alert says that it was not sent.

use model::Trouble;
use serde_json::Value;

/// Sends an alert to an address of the policy. Must not wait for long: a run waits for it.
pub trait Webhook {
    fn tell(&self, address: &str, alert: &Value) -> Result<(), Trouble>;
}

/// Nobody can be told.
pub struct NoClient;

impl Webhook for NoClient {
    fn tell(&self, address: &str, _: &Value) -> Result<(), Trouble> {
        Err(Trouble {
            message: format!("the alert was not sent to {address}: this belljar has no client for it"),
            fix: "read alerts with `belljar log --type monitor`, or `-f` to follow them".to_owned(),
        })
    }
}
