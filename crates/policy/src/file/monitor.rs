//! `[monitor]`, as people write it.

use serde::Deserialize;

#[cfg(test)]
use schemars::JsonSchema;

use super::Text;

/// What follows when an agent does something that it should not: `off`, `alert` (if not said), `throttle` (six runs a
/// minute), `ask` (a person, about each run) or `suspend`. See docs/monitor.md. Not in a project's file.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Monitor {
    /// For all that is not named below.
    #[cfg_attr(test, schemars(with = "Option<Responses>"))]
    pub default: Option<Text>,
    /// A run that turns in place, or has thousands of processes.
    #[cfg_attr(test, schemars(with = "Option<Responses>"))]
    pub runaway: Option<Text>,
    /// Runs that keep the machine busy for hours, or run into limits again and again.
    #[cfg_attr(test, schemars(with = "Option<Responses>"))]
    pub heavy: Option<Text>,
    /// Full load with nothing to show for it, or programs and protocols of miners.
    #[cfg_attr(test, schemars(with = "Option<Responses>"))]
    pub mining: Option<Text>,
    /// Many different things are tried and refused.
    #[cfg_attr(test, schemars(with = "Option<Responses>"))]
    pub scan: Option<Text>,
    /// Much more goes out than usual.
    #[cfg_attr(test, schemars(with = "Option<Responses>"))]
    pub exfiltration: Option<Text>,
    /// The same is refused again and again.
    #[cfg_attr(test, schemars(with = "Option<Responses>"))]
    pub retries: Option<Text>,
    /// Runs, processor time, denials or refusals are several times what they were.
    #[cfg_attr(test, schemars(with = "Option<Responses>"))]
    pub change: Option<Text>,
    /// Runs end at their time limit again and again.
    #[cfg_attr(test, schemars(with = "Option<Responses>"))]
    pub timeouts: Option<Text>,
    /// Hundreds of runs a minute.
    #[cfg_attr(test, schemars(with = "Option<Responses>"))]
    pub rate: Option<Text>,
    /// How long full load without reading, writing or saying anything may last: `10m`, if not said.
    pub mining_after: Option<Text>,
    /// How long one processor may turn in place: `20m`, if not said.
    pub runaway_after: Option<Text>,
    /// Gets each alert as JSON: `https://…`.
    pub webhook: Option<Text>,
}

// For the schema alone: the model knows nothing of schemas.
#[cfg(test)]
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)]
enum Responses {
    Off,
    Alert,
    Throttle,
    Ask,
    Suspend,
}
