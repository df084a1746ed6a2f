//! Tells others outside: anchors their checkpoints, webhooks of alerts. Bounded, and nobody's answer decides anything.

use std::time::Duration;

use egress::{Client, Encryption, Settings, Trust, Url};
use export::cloud_events;
use model::{Entry, HttpsAnchor, Trouble};

use crate::Engine;

/// For a webhook that hangs.
const PATIENCE: Duration = Duration::from_secs(5);

/// The seam that the ledger is handed: it has no network of its own.
pub fn post_checkpoint(anchor: &HttpsAnchor, checkpoint: &str, patience: Duration) -> Result<(), String> {
    let HttpsAnchor { url, header_file, authorities } = anchor;
    let told = || -> egress::Result<()> {
        let settings = Settings {
            url: Url::read(url)?,
            encryption: Encryption::Needed,
            trust: authorities.clone().map_or(Trust::Host, Trust::File),
            header_file: header_file.clone(),
            patience,
        };
        Client::new(settings)?.post("application/json", checkpoint.into()).map(drop)
    };
    told().map_err(|error| error.to_string())
}

pub fn is_an_address(url: &str) -> Result<(), Trouble> {
    Url::read(url).map(drop).map_err(trouble)
}

impl Engine {
    /// Tells a webhook of one entry of the record, such as an alert of the monitor, as a CloudEvent.
    pub fn tell_webhook(&self, url: &str, entry: &Entry) -> Result<(), Trouble> {
        let origin = self.origin(self.kept_record()?)?;
        let event = cloud_events::event(&origin, entry).to_string();
        let tell = || -> egress::Result<()> {
            let settings = Settings {
                url: Url::read(url)?,
                encryption: Encryption::Needed,
                trust: Trust::Host,
                header_file: None,
                patience: PATIENCE,
            };
            Client::new(settings)?.post(cloud_events::ONE, event.into_bytes()).map(drop)
        };
        tell().map_err(trouble)
    }
}

fn trouble(error: egress::Error) -> Trouble {
    Trouble { message: error.to_string(), fix: error.fix().to_owned() }
}
